/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and loads backend plugins.  Called only by the thread that creates a
 * context.  Plugins stay loaded for the life of the process. */
#ifndef TANDEM_HOST_LOADER_LOADER_H
#define TANDEM_HOST_LOADER_LOADER_H

#include "host/context/context.h"

/* Loads plugins into context->backends from the directories in option_path (may
 * be NULL), in TANDEM_PLUGIN_PATH, and from the installed directory, in this
 * order.  If context->backends_option is not NULL, loads only the plugins that
 * it lists.  Returns TANDEM_NO_DEVICE if no plugin could be loaded. */
enum tandem_status plugins_load(struct tandem_context *context,
                                const char *option_path);

/* Returns the loaded plugin whose name is the first `length` bytes of `name`,
 * or NULL if there is none. */
struct tandem_backend *backend_find(const struct tandem_context *context,
                                    const char *name, size_t length);

#endif
