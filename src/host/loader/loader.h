/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and loads backend plugins.  Called only by the thread that creates a
 * context.  Plugins stay loaded for the life of the process. */
#ifndef TANDEM_HOST_LOADER_LOADER_H
#define TANDEM_HOST_LOADER_LOADER_H

#include "host/context/context.h"
#include "host/loader/backend_vtable.h"

struct backend {
    struct tandem_backend vtable; /* fallbacks replace missing entries */
    char name[BACKEND_NAME_BYTES];
};

/* Loads plugins into context->backends from the directories in option_path (may
 * be NULL), in TANDEM_PLUGIN_PATH, and from the installed directory, in this
 * order.  Returns TANDEM_NO_DEVICE if no plugin could be loaded. */
enum tandem_status plugins_load(struct tandem_context *context,
                                const char *option_path);

#endif
