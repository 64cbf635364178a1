/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnoses a PoCL that does not work; see pocl_diagnosis.h. */
#include <config.h>

#include "common/environment.h"
#include "common/pocl_diagnosis.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes the path of PoCL's cache of compiled kernels. Returns the environment
 * variable that sets the path, or NULL if none does. */
static const char *cache_find(char *out_path, size_t bytes)
{
    static const char *const places[][2] = {{"POCL_CACHE_DIR", ""},
                                            {"XDG_CACHE_HOME", "/pocl/kcache"},
                                            {"HOME", "/.cache/pocl/kcache"}};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *value = environment_get(places[i][0]);

        if (value != NULL) {
            snprintf(out_path, bytes, "%s%s", value, places[i][1]);
            return places[i][0];
        }
    }
    return NULL;
}

/* Removes the last component of an absolute or relative path. */
static void path_shorten(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash == NULL)
        strcpy(path, ".");
    else
        slash[slash == path ? 1 : 0] = '\0';
}

/* Returns 0 if the user may create files in the directory or, if it is missing,
 * may create the directory. Otherwise returns an errno value. */
static int path_error(const char *path)
{
    char at[PATH_MAX];
    struct stat status;
    bool missing;

    snprintf(at, sizeof(at), "%s", path);
    do {
        missing = stat(at, &status) != 0;
        if (missing && errno != ENOENT)
            return errno;
        if (missing)
            path_shorten(at);
    } while (missing && strcmp(at, "/") != 0 && strcmp(at, ".") != 0);
    if (!missing && !S_ISDIR(status.st_mode))
        return ENOTDIR;
    return faccessat(AT_FDCWD, at, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

bool pocl_aborts(char *out_why, size_t bytes)
{
    out_why[0] = '\0';
    if (!environment_is_empty("POCL_CACHE_DIR"))
        return false;
    snprintf(out_why, bytes,
             "POCL_CACHE_DIR is set, but empty, at which PoCL aborts the "
             "process; unset it, or set it to a directory that can be written");
    return true;
}

bool pocl_cache_is_writable(char *out_why, size_t bytes)
{
    char path[PATH_MAX];
    const char *variable = cache_find(path, sizeof(path));
    const int error = variable != NULL ? path_error(path) : 0;

    out_why[0] = '\0';
    if (error == 0)
        return true;
    snprintf(out_why, bytes,
             "its cache directory %.200s (from %s) cannot be written: %s; make "
             "it writable, or set POCL_CACHE_DIR to a directory that is",
             path, variable, strerror(error));
    return false;
}

void pocl_explain_absence(char *out_why, size_t bytes)
{
    const char *devices = environment_get("POCL_DEVICES");

    if (pocl_aborts(out_why, bytes) || !pocl_cache_is_writable(out_why, bytes))
        return;
    if (devices != NULL || environment_is_empty("POCL_DEVICES"))
        snprintf(out_why, bytes,
                 "POCL_DEVICES is set to \"%.100s\", which names no device of "
                 "PoCL; unset it",
                 devices != NULL ? devices : "");
    else
        snprintf(out_why, bytes,
                 "with POCL_DEBUG=all in the environment it prints the reason");
}
