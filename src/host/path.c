/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trust in files, and the library's own directories; see path.h.
 */
#include <config.h>

#include "host/path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *path_environment(const char *name)
{
#ifdef HAVE_SECURE_GETENV
    const char *value = secure_getenv(name);
#else
    /* What cannot be read safely is not read. */
    const char *value = NULL;

    (void)name;
#endif

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Judges every directory of the resolved absolute path. */
static bool directories_trusted(char *path, char *out_why, size_t why_bytes)
{
    struct stat status;

    for (char *slash = strrchr(path, '/'); slash != NULL;
         slash = strrchr(path, '/')) {
        slash[slash == path] = '\0';
        if (stat(path, &status) != 0) {
            snprintf(out_why, why_bytes, "%s: %s", path, strerror(errno));
            return false;
        }
        if ((status.st_mode & S_IWOTH) && !(status.st_mode & S_ISVTX)) {
            snprintf(out_why, why_bytes, "others may write the directory %s",
                     path);
            return false;
        }
        if (path[1] == '\0')
            break;
    }
    return true;
}

bool path_trusted(const char *path, char *out_why, size_t why_bytes)
{
    struct stat status;
    char *resolved;
    bool trusted;

    if (lstat(path, &status) != 0) {
        snprintf(out_why, why_bytes, "%s", strerror(errno));
        return false;
    }
    if (!S_ISREG(status.st_mode)) {
        snprintf(out_why, why_bytes, "not a regular file");
        return false;
    }
    if (status.st_uid != 0 && status.st_uid != geteuid()) {
        snprintf(out_why, why_bytes,
                 "it belongs to user %lu, neither to root nor to this user",
                 (unsigned long)status.st_uid);
        return false;
    }
    if (status.st_mode & S_IWOTH) {
        snprintf(out_why, why_bytes, "others may write it");
        return false;
    }
    resolved = realpath(path, NULL);
    if (resolved == NULL) {
        snprintf(out_why, why_bytes, "%s", strerror(errno));
        return false;
    }
    trusted = directories_trusted(resolved, out_why, why_bytes);
    free(resolved);
    return trusted;
}

bool path_cache(char *out_path, size_t bytes)
{
    const char *base = path_environment("XDG_CACHE_HOME");
    const char *below = "/tandem";
    int length;

    if (base == NULL || base[0] != '/') {
        base = path_environment("HOME");
        below = "/.cache/tandem";
    }
    if (base == NULL || base[0] != '/')
        return false;
    length = snprintf(out_path, bytes, "%s%s", base, below);
    return length > 0 && (size_t)length < bytes;
}

bool path_make(const char *path)
{
    char part[PATH_BYTES];
    size_t length = strlen(path);
    struct stat status;

    if (length >= sizeof(part) || path[0] != '/')
        return false;
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST && errno != EISDIR &&
            errno != EROFS && errno != EACCES)
            return false;
    }
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode) &&
           access(path, W_OK | X_OK) == 0;
}
