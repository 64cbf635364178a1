/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the file of a report; see report_file.h. */
#include <config.h>

#include "report_file.h"

#include "cl_probe.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void complain(const char *path, int error)
{
    probe_complain("the report \"%s\" cannot be written: %s; name a file in "
                   "another directory, or make room there",
                   path, strerror(error));
}

/* Creates the temporary file and opens it.  Returns -1 with errno set if this
 * fails. */
static int temporary_open(const char *path, char out_name[PATH_MAX])
{
    if (snprintf(out_name, PATH_MAX, "%s.XXXXXX", path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return mkstemp(out_name);
}

bool report_file_check(const char *path)
{
    char name[PATH_MAX];
    struct stat status;
    int file;

    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        probe_complain("the report \"%s\" cannot be written: it is %s; name a "
                       "file",
                       path,
                       S_ISDIR(status.st_mode) ? "a directory"
                                               : "not a regular file");
        return false;
    }
    file = temporary_open(path, name);
    if (file < 0) {
        complain(path, errno);
        return false;
    }
    close(file);
    unlink(name);
    return true;
}

/* Writes all of the text.  Returns 0 or errno. */
static int write_text(int file, const char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        const ssize_t written = write(file, text, left);

        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0) {
            text += written;
            left -= (size_t)written;
        }
    }
    return fsync(file) == 0 ? 0 : errno;
}

bool report_file_write(const char *path, const json_t *report)
{
    const mode_t mask = umask(0);
    char *text =
        json_dumps(report, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    char name[PATH_MAX];
    const int file = temporary_open(path, name);
    int error = file < 0 ? errno : 0;

    umask(mask);
    if (text == NULL)
        abort();
    if (file >= 0) {
        error = write_text(file, text);
        if (error == 0 && fchmod(file, 0666 & ~mask) != 0)
            error = errno;
        if (close(file) != 0 && error == 0)
            error = errno;
        if (error == 0 && rename(name, path) != 0)
            error = errno;
        if (error != 0)
            unlink(name);
    }
    free(text);
    if (error != 0)
        complain(path, error);
    return error == 0;
}
