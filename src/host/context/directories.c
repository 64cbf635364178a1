/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and lists directories; see directories.h. */
#include <config.h>

#include "host/context/directories.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int directory_open_writable(const char *path, char *out_why)
{
    const int directory = secure_directory_open(path, SECURE_WRITE, out_why);

    if (directory < 0 && out_why[0] == '\0')
        snprintf(out_why, SECURE_WHY_BYTES, "it cannot be made");
    if (directory < 0 ||
        faccessat(directory, ".", W_OK | X_OK, AT_EACCESS) == 0)
        return directory;
    snprintf(out_why, SECURE_WHY_BYTES, "%s", strerror(errno));
    close(directory);
    return -1;
}

static int names_compare(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

bool strings_append(char ***strings, size_t *count, const char *text)
{
    char **grown = realloc(*strings, (*count + 1) * sizeof(*grown));

    if (grown == NULL)
        return false;
    *strings = grown;
    grown[*count] = strdup(text);
    if (grown[*count] == NULL)
        return false;
    ++*count;
    return true;
}

bool directory_list(int directory, bool (*wanted)(const char *name, void *user),
                    void *user, struct directory_names *out)
{
    /* Open the directory a second time: closedir would close the caller's
     * descriptor, and readdir would move its file offset. */
    const int own = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = own >= 0 ? fdopendir(own) : NULL;
    struct dirent *entry;
    bool ok = entries != NULL;

    *out = (struct directory_names){0};
    while (ok && (entry = readdir(entries)) != NULL) {
        if (wanted(entry->d_name, user))
            ok = strings_append(&out->names, &out->count, entry->d_name);
    }
    if (out->count > 0)
        qsort(out->names, out->count, sizeof(*out->names), names_compare);
    if (entries != NULL)
        closedir(entries);
    else if (own >= 0)
        close(own);
    return ok;
}

void directory_names_free(struct directory_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    *names = (struct directory_names){0};
}
