/* SPDX-License-Identifier: Apache-2.0 */
/* Removes private data from texts; see private_text.h. */
#include <config.h>

#include "private_text.h"

#include <ctype.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UUID_LENGTH 36u

/* ---- names ---- */

void private_names_add(char *list[PRIVATE_NAMES], const char *name)
{
    /* Names that identify nobody, and that texts of drivers may contain. */
    static const char *const common[] = {"root", "localhost", "cpu",
                                         "gpu",  "opencl",    "/"};
    size_t i = 0;

    if (name == NULL || strlen(name) < 2)
        return;
    for (size_t word = 0; word < sizeof common / sizeof common[0]; word++)
        if (strcmp(name, common[word]) == 0)
            return;
    while (i < PRIVATE_NAMES && list[i] != NULL && strcmp(list[i], name) != 0)
        i++;
    if (i < PRIVATE_NAMES && list[i] == NULL)
        list[i] = strdup(name);
}

void private_names_find(struct private_names *names)
{
    static const char *const variables[] = {"USER", "LOGNAME", "SUDO_USER"};
    const struct passwd *user = getpwuid(getuid());
    char host[HOST_NAME_MAX + 1] = "";

    memset(names, 0, sizeof *names);
    private_names_add(names->homes, getenv("HOME"));
    if (user != NULL) {
        private_names_add(names->homes, user->pw_dir);
        private_names_add(names->users, user->pw_name);
    }
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        private_names_add(names->users, getenv(variables[i]));
    if (gethostname(host, sizeof host - 1) != 0)
        return;
    private_names_add(names->hosts, host);
    host[strcspn(host, ".")] = '\0'; /* the name without the domain */
    private_names_add(names->hosts, host);
}

static void list_free(char *list[PRIVATE_NAMES])
{
    for (size_t i = 0; i < PRIVATE_NAMES; i++)
        free(list[i]);
}

void private_names_destroy(struct private_names *names)
{
    list_free(names->homes);
    list_free(names->users);
    list_free(names->hosts);
}

/* ---- texts ---- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c > 127;
}

/* Returns the length of the first name of the list with which `at` begins and
 * that ends there as a word, or 0. */
static size_t name_length(char *const list[PRIVATE_NAMES], const char *at)
{
    for (size_t i = 0; i < PRIVATE_NAMES && list[i] != NULL; i++) {
        const size_t length = strlen(list[i]);

        if (strncmp(at, list[i], length) == 0 && !is_word(at[length]))
            return length;
    }
    return 0;
}

static bool is_uuid(const char *at)
{
    for (size_t i = 0; i < UUID_LENGTH; i++) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? at[i] != '-' : !isxdigit((unsigned char)at[i]))
            return false;
    }
    return !is_word(at[UUID_LENGTH]);
}

/* Returns true if the path names a file of the system, and no way out of its
 * directories. */
static bool is_system_path(const char *path)
{
    static const char *const directories[] = {
        "/usr/", "/lib/", "/lib64/", "/etc/", "/opt/", "/dev/", "/proc/",
        "/sys/"};
    const char *up = strstr(path, "/../");

    if (up != NULL && (size_t)(up - path) < strcspn(path, " \n\t"))
        return false;
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++)
        if (strncmp(path, directories[i], strlen(directories[i])) == 0)
            return true;
    return false;
}

/* Returns the length of the private path with which `at` begins, or 0. */
static size_t private_path_length(const struct private_names *names,
                                  const char *at)
{
    const size_t home = name_length(names->homes, at);

    if (at[0] != '/' || (home == 0 && is_system_path(at)))
        return 0;
    if (home == 0 && strcspn(at + 1, " \n\t:,;\"'()[]{}<>|") == 0)
        return 0; /* a slash alone */
    return home + strcspn(at + home, "\n\t:,;\"'()[]{}<>|");
}

/* Returns the length of the private data with which `at` begins, and sets
 * *out_instead to the text that replaces them; or returns 0.  `before` is the
 * character before `at`. */
static size_t private_length(const struct private_names *names, char before,
                             const char *at, const char **out_instead)
{
    size_t length;

    if (is_word(before))
        return 0;
    *out_instead = "[path]";
    if (before != '.' && (length = private_path_length(names, at)) > 0)
        return length;
    *out_instead = "[user]";
    if ((length = name_length(names->users, at)) > 0)
        return length;
    *out_instead = "[host]";
    if ((length = name_length(names->hosts, at)) > 0)
        return length;
    *out_instead = "[uuid]";
    return is_uuid(at) ? UUID_LENGTH : 0;
}

char *private_text_remove(const struct private_names *names, const char *text)
{
    char *result = NULL;
    size_t bytes;
    FILE *out = open_memstream(&result, &bytes);
    char before = ' ';

    if (out == NULL)
        abort();
    while (*text != '\0') {
        const char *instead;
        const size_t length = private_length(names, before, text, &instead);

        if (length > 0)
            fputs(instead, out);
        else
            fputc(*text, out);
        text += length > 0 ? length : 1;
        before = text[-1];
    }
    if (fclose(out) != 0)
        abort();
    return result;
}

json_t *private_json_remove(const struct private_names *names,
                            const json_t *value)
{
    json_t *out, *member;
    const char *key;
    char *text;
    size_t i;

    if (json_is_string(value)) {
        text = private_text_remove(names, json_string_value(value));
        out = json_string(text);
        free(text);
        return out;
    }
    if (json_is_array(value)) {
        out = json_array();
        json_array_foreach (value, i, member)
            json_array_append_new(out, private_json_remove(names, member));
        return out;
    }
    if (!json_is_object(value))
        return json_deep_copy(value);
    out = json_object();
    json_object_foreach ((json_t *)value, key, member) {
        if (strcmp(key, "uuid") != 0 && strcmp(key, "pci") != 0)
            json_object_set_new(out, key, private_json_remove(names, member));
    }
    return out;
}
