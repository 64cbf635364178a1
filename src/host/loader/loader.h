/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and loads backend plugins.  Used while a context is created, by its
 * one thread.  Plugins stay loaded for the life of the process.
 */
#ifndef TANDEM_HOST_LOADER_LOADER_H
#define TANDEM_HOST_LOADER_LOADER_H

#include "host/context/context.h"

#define BACKEND_NAME_BYTES 32u

struct backend {
    struct tandem_backend table; /* with fallbacks where the plugin has none */
    char name[BACKEND_NAME_BYTES];
};

/* Fills context->backends from the directories of option_path (may be NULL),
 * of TANDEM_PLUGIN_PATH and the installed one.  TANDEM_NO_DEVICE where no
 * plugin is left. */
enum tandem_status loader_run(struct tandem_context *context,
                              const char *option_path);

/* table.c: judges a plugin's table and makes out a copy of full size.  NULL
 * where it is good; else what is wrong with it, static or in why. */
const char *backend_vtable_normalize(const struct tandem_backend *table,
                       struct tandem_backend *out, char *why,
                       size_t why_bytes);

#endif
