/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment, the library's own directories and what lies in them.  Any
 * thread; sets no tandem_last_error.
 */
#ifndef TANDEM_HOST_CONTEXT_DIRECTORIES_H
#define TANDEM_HOST_CONTEXT_DIRECTORIES_H

#include "common/environment.h"
#include "common/secure_file.h"
#include "host/context/log.h"

#define PATH_BYTES 4096u

/* Logs what the environment says in vain: what is not read, because this
 * program has more rights than its user, and a relative XDG_CACHE_HOME. */
void path_environment_judge(const struct log *log);

/* Opens a directory to write in, made where it is missing; -1, with why. */
int path_writable(const char *path, char *out_why, size_t why_bytes);

struct path_names {
    char **names;
    size_t count;
};

/* The entries of a directory (the descriptor stays the caller's) that wanted
 * says yes to, sorted by compare; false where memory ran out or the directory
 * could not be read, with what had been found. */
bool path_list(int directory, bool (*wanted)(const char *name, void *user),
               void *user, int (*compare)(const void *, const void *),
               struct path_names *out);
/* For path_list: byte order. */
int path_compare(const void *left, const void *right);
void path_names_free(struct path_names *names);

#endif
