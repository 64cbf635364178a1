/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plugins answer, made safe to go on with: a plugin may be of any age and
 * quality.  Pure.
 */
#ifndef TANDEM_HOST_LOADER_PLUGIN_REPLY_H
#define TANDEM_HOST_LOADER_PLUGIN_REPLY_H

#include "host/exported_api.h"

/* The plugin's last error; a text where it has none. */
const char *answer_error(const struct tandem_backend *table);

/* TANDEM_FAILED for a status that this host does not know. */
enum tandem_status answer_status(enum tandem_status status);

/* Makes a description one that may be shown, compared and saved: texts ended
 * and of UTF-8 without control characters, numbers within their ranges.
 * index: the device's in its backend. */
void plugin_reply_sanitize_info(struct tandem_device_info *info,
                                uint32_t index);

#endif
