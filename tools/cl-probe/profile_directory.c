/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the profile directory; see profile_directory.h. */
#include <config.h>

#include "profile_directory.h"

#include "common/environment.h"
#include "common/secure_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Larger than any profile. */
#define TEST_BYTES 65536

/* Finds the directory in the same way as the library. */
bool profile_directory_find(char *out_path, size_t bytes)
{
    const char *path = environment_get_valid("TANDEM_PROFILE_DIR");

    if (path == NULL)
        return environment_cache(out_path, bytes);
    snprintf(out_path, bytes, "%s", path);
    return strlen(path) < bytes;
}

/* Returns 0 or errno. */
static int write_test_file(int directory)
{
    static const char zeros[TEST_BYTES];
    const int file =
        openat(directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    int error = 0;

    if (file < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        /* The file system does not support O_TMPFILE. */
        return faccessat(directory, ".", W_OK | X_OK, AT_EACCESS) == 0 ? 0
                                                                       : errno;
    }
    if (file < 0)
        return errno;
    errno = ENOSPC;
    if (write(file, zeros, sizeof zeros) != (ssize_t)sizeof zeros)
        error = errno;
    close(file);
    return error;
}

bool directory_is_writable(const char *path, char *out_why)
{
    char why[SECURE_WHY_BYTES] = "";
    int directory, error = 0;

    directory = secure_directory_open(path, SECURE_WRITE, why);
    if (directory >= 0) {
        error = write_test_file(directory);
        close(directory);
        if (error == 0)
            return true;
    }
    snprintf(out_why, DIRECTORY_WHY_BYTES, "%s",
             error != 0       ? strerror(error)
             : why[0] != '\0' ? why
                              : "it cannot be made");
    return false;
}

void directory_advise(const char *why, const char *variable,
                      char out_advice[DIRECTORY_ADVICE_BYTES])
{
    if (why[0] == '/') /* the directory could be written, but not safely */
        snprintf(out_advice, DIRECTORY_ADVICE_BYTES,
                 "%sset %.40s to a directory that only you can write",
                 strstr(why, "; run \"") != NULL ? "or " : "", variable);
    else
        snprintf(out_advice, DIRECTORY_ADVICE_BYTES,
                 "make room or make the directory writable, or set %.40s to "
                 "another directory",
                 variable);
}

bool profile_directory_check(char *out_why, unsigned why_bytes)
{
    char path[PATH_MAX], why[DIRECTORY_WHY_BYTES];
    char advice[DIRECTORY_ADVICE_BYTES];

    if (!profile_directory_find(path, sizeof path)) {
        snprintf(out_why, why_bytes,
                 "no directory for profiles is named: set TANDEM_PROFILE_DIR, "
                 "XDG_CACHE_HOME or HOME to an absolute path");
        return false;
    }
    if (directory_is_writable(path, why))
        return true;
    directory_advise(why, "TANDEM_PROFILE_DIR", advice);
    snprintf(out_why, why_bytes, "no profile can be written to %.400s: %s; %s",
             path, why, advice);
    return false;
}
