/* SPDX-License-Identifier: Apache-2.0 */
/* Checks function tables (vtables) of plugins.  Any thread may do so. */
#ifndef TANDEM_HOST_LOADER_BACKEND_VTABLE_H
#define TANDEM_HOST_LOADER_BACKEND_VTABLE_H

#include "host/exported_api.h"

#define BACKEND_NAME_BYTES 32u

/* Checks a plugin's vtable, which may be NULL, and copies it to `out`.
 * Fallbacks replace missing optional entries, so that no caller tests for NULL.
 * Returns NULL on success, otherwise the reason for the rejection: a static
 * text or `why`. */
const char *backend_vtable_normalize(const struct tandem_backend *vtable,
                                     struct tandem_backend *out, char *why,
                                     size_t why_bytes);

#endif
