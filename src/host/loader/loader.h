/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and loads backend plugins.  Called only by the thread that creates a
 * context.  Plugins stay loaded for the life of the process.
 */
#ifndef TANDEM_HOST_LOADER_LOADER_H
#define TANDEM_HOST_LOADER_LOADER_H

#include "host/context/context.h"

#define BACKEND_NAME_BYTES 32u

struct backend {
    struct tandem_backend table; /* all entries set, see backend_vtable.c */
    char name[BACKEND_NAME_BYTES];
};

/* Fills context->backends from the directories in option_path (may be NULL), in
 * TANDEM_PLUGIN_PATH and from the installed directory, in this order.  Returns
 * TANDEM_NO_DEVICE if no plugin could be loaded. */
enum tandem_status loader_run(struct tandem_context *context,
                              const char *option_path);

/* backend_vtable.c: checks a plugin's table and fills out with a copy of full
 * size.  table may be NULL.  Returns NULL on success, otherwise the reason for
 * the rejection, either static or stored in why. */
const char *backend_vtable_normalize(const struct tandem_backend *table,
                                     struct tandem_backend *out, char *why,
                                     size_t why_bytes);

#endif
