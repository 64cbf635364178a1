/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes private data from texts before they are written to a report: the
 * user's and the host's name, UUIDs, and the paths of files that do not belong
 * to the system.  Parent process only.
 */
#ifndef CL_PROBE_PRIVATE_TEXT_H
#define CL_PROBE_PRIVATE_TEXT_H

#include <jansson.h>

#define PRIVATE_NAMES 8

/* The texts to remove.  The caller owns it; private_names_destroy frees the
 * strings. */
struct private_names {
    char *homes[PRIVATE_NAMES]; /* home directories; NULL after the last */
    char *users[PRIVATE_NAMES]; /* names of the user; NULL after the last */
    char *hosts[PRIVATE_NAMES]; /* names of the host; NULL after the last */
};

/* Finds the names of the user that runs this process, and of this machine. */
void private_names_find(struct private_names *names);
void private_names_destroy(struct private_names *names);

/* Adds a copy of `name` to a list of private_names.  Ignores NULL, words that
 * identify nobody such as "root", "/", a name of one character, and names for
 * which the list has no room. */
void private_names_add(char *list[PRIVATE_NAMES], const char *name);

/* Returns a copy of `text`, which the caller frees, in which "[user]" replaces
 * each name of the user, "[host]" each name of the host, "[uuid]" each UUID,
 * and "[path]" each absolute path in a home directory or outside of the
 * system's directories (/usr, /lib, /etc, /opt, /dev, /proc and /sys).  A path
 * ends at the next punctuation mark, so that blanks in file names reveal
 * nothing. */
char *private_text_remove(const struct private_names *names, const char *text);

/* Returns a copy of the JSON value without private data: private_text_remove
 * changes all strings, and the members "uuid" and "pci" are left out. */
json_t *private_json_remove(const struct private_names *names,
                            const json_t *value);

#endif
