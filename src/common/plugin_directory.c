/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the plugins that are installed next to libtandem; see
 * plugin_directory.h. */
#include <config.h>

#include "common/plugin_directory.h"

#include <installed_directories.h>
#include <tandem/backend.h>

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the allocated path of the directory `name` in the directory of the
 * file `library`, without symbolic links, or NULL if it does not exist. */
static char *sibling_directory(const char *library, const char *name)
{
    char path[PATH_MAX];
    const char *end = strrchr(library, '/');
    const int length = end == NULL ? -1
                                   : snprintf(path, sizeof(path), "%.*s/%s",
                                              (int)(end - library), library,
                                              name);

    if (length < 0 || (size_t)length >= sizeof(path))
        return NULL;
    return realpath(path, NULL);
}

bool plugin_directory_find(const void *function, char *out_path)
{
    static const char library_name[] = "/libtandem.so";
    char name[sizeof("tandem/") + 10];
    char *found = NULL, *configured = NULL;
    const char *file;
    Dl_info library;
    bool use = false;

    if (dladdr(function, &library) == 0 || library.dli_fname == NULL)
        return false;
    /* In a program that contains libtandem, dladdr names the program. */
    file = strrchr(library.dli_fname, '/');
    if (file == NULL ||
        strncmp(file, library_name, sizeof(library_name) - 1) != 0)
        return false;
    snprintf(name, sizeof(name), "tandem/%u", TANDEM_ABI_MAJOR);
    found = sibling_directory(library.dli_fname, name);
    configured = realpath(PLUGINDIR, NULL);
    if (found != NULL && strlen(found) < PLUGIN_DIRECTORY_BYTES &&
        (configured == NULL || strcmp(found, configured) != 0)) {
        strcpy(out_path, found);
        use = true;
    }
    free(found);
    free(configured);
    return use;
}
