/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces invalid values that plugins return, because plugins may be of any
 * age and quality.  Stateless; any thread may call these functions. */
#ifndef TANDEM_HOST_LOADER_PLUGIN_REPLY_H
#define TANDEM_HOST_LOADER_PLUGIN_REPLY_H

#include "common/secure_file.h"
#include "host/exported_api.h"

#define BACKEND_NAME_BYTES 32u

/* Checks a plugin's vtable, which may be NULL, and copies it to `out`.
 * Fallbacks replace missing optional entries, so that no caller tests for NULL.
 * Returns NULL on success, otherwise the reason of the rejection, which is a
 * static text or is stored in the SECURE_WHY_BYTES bytes of `why`. */
const char *backend_vtable_normalize(const struct tandem_backend *vtable,
                                     struct tandem_backend *out, char *why);

/* Returns the plugin's last error message, or a default text if it has none. */
const char *plugin_reply_error(const struct tandem_backend *vtable);

/* Returns `status`, or TANDEM_FAILED if this host does not know the value. */
enum tandem_status plugin_reply_sanitize_status(enum tandem_status status);

/* Returns the number of bytes of the UTF-8 character at `text`, or 0 if the
 * character is invalid or an ASCII control character. */
size_t utf8_character_bytes(const unsigned char *text);

/* Makes a device description safe to show, compare and save: terminates each
 * text, replaces control characters and invalid UTF-8, and corrects numbers out
 * of range.  `index` is the index of the device in its backend. */
void plugin_reply_sanitize_info(struct tandem_device_info *info,
                                uint32_t index);

#endif
