/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and lists directories and extends lists of strings.  May be called from
 * any thread.  No function sets the message of tandem_last_error. */
#ifndef TANDEM_HOST_CONTEXT_DIRECTORIES_H
#define TANDEM_HOST_CONTEXT_DIRECTORIES_H

#include "common/secure_file.h"

#include <stdbool.h>
#include <stddef.h>

#define PATH_BYTES 4096u

/* Appends a copy of `text` to the allocated array *strings of *count strings.
 * Returns false and changes nothing if memory runs out. */
bool strings_append(char ***strings, size_t *count, const char *text);

/* Opens a directory for writing and creates it if it is missing.  Returns a
 * descriptor that the caller closes.  On failure, returns -1 and writes the
 * reason to out_why, which has SECURE_WHY_BYTES bytes. */
int directory_open_writable(const char *path, char *out_why);

struct directory_names {
    char **names;
    size_t count;
};

/* Lists the names in a directory that the function `wanted` accepts, sorted in
 * byte order.  Does not close `directory`.  Returns false if the directory
 * cannot be read or memory runs out; `out` then holds the names found so far.
 * The caller always frees `out`. */
bool directory_list(int directory, bool (*wanted)(const char *name, void *user),
                    void *user, struct directory_names *out);
void directory_names_free(struct directory_names *names);

#endif
