/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the plugins that are installed next to libtandem.  Has no state; may be
 * called from any thread. */
#ifndef TANDEM_COMMON_PLUGIN_DIRECTORY_H
#define TANDEM_COMMON_PLUGIN_DIRECTORY_H

#include <stdbool.h>

#define PLUGIN_DIRECTORY_BYTES 4096u

/* Writes the absolute path of the plugin directory next to the shared library
 * that contains `function`, which is a public function of libtandem, to
 * out_path, which has PLUGIN_DIRECTORY_BYTES bytes.  The directory is
 * tandem/MAJOR, where MAJOR is the major version of the plugin ABI.  Returns
 * false if the directory does not exist, if it is the configured directory
 * PLUGINDIR, or if libtandem is linked statically. */
bool plugin_directory_find(const void *function, char *out_path);

#endif
