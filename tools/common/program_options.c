/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the options of a command line; see program_options.h. */
#include <config.h>

#include "program_options.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Longer names are not compared. */
#define MAX_NAME_BYTES 32u

/* Returns the Levenshtein distance: how many bytes must be inserted, deleted or
 * replaced to change one text into the other. */
static size_t edit_distance(const char *a, size_t a_bytes, const char *b,
                            size_t b_bytes)
{
    /* The distances of the current prefix of `a` to each prefix of `b`. */
    size_t row[MAX_NAME_BYTES + 1];

    for (size_t j = 0; j <= b_bytes; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_bytes; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b_bytes; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_bytes];
}

/* Returns a number that is smaller, the more similar the candidate is to the
 * first `length` bytes of `name`; 0 if it begins with them. */
static size_t name_distance(const char *name, size_t length,
                            const char *candidate)
{
    const size_t bytes = strlen(candidate);

    if (bytes > MAX_NAME_BYTES)
        return SIZE_MAX;
    /* An abbreviation is nearer than any misspelt name. */
    return strncmp(candidate, name, length) == 0
               ? 0
               : edit_distance(name, length, candidate, bytes);
}

/* Names that are not similar have at least this distance. */
static size_t distance_limit(size_t length)
{
    return length / 3 + 2;
}

/* Returns the option whose name is most similar to the first `length` bytes of
 * `name`, or NULL if none is similar. */
static const struct option *option_nearest(const struct option *long_options,
                                           const char *name, size_t length)
{
    const struct option *nearest = NULL;
    size_t best = distance_limit(length);

    if (length == 0 || length > MAX_NAME_BYTES)
        return NULL;
    for (const struct option *at = long_options; at->name != NULL; at++) {
        const size_t distance = name_distance(name, length, at->name);

        if (distance < best) {
            best = distance;
            nearest = at;
        }
    }
    return nearest;
}

/* Returns the option with exactly this name, or NULL. */
static const struct option *option_find(const struct option *long_options,
                                        const char *name, size_t length)
{
    for (const struct option *at = long_options; at->name != NULL; at++)
        if (strncmp(at->name, name, length) == 0 && at->name[length] == '\0')
            return at;
    return NULL;
}

/* Returns true if getopt_long accepted or rejected the long option in `word`,
 * which is the last word that it finished.  A rejected short option, such as x
 * in -xh, may be in the next word.  Then `optopt` is its letter. */
static bool is_long_option(const char *word, const struct option *found,
                           int option)
{
    if (strncmp(word, "--", 2) != 0)
        return false;
    return option != '?' || optopt == 0 ||
           (found != NULL && found->has_arg == no_argument &&
            strchr(word, '=') != NULL);
}

/* Prints that no option is called like `word`, whose name has `length` bytes.
 */
static void unknown_option_complain(const char *program, const char *word,
                                    size_t length,
                                    const struct option *long_options)
{
    const struct option *nearest =
        option_nearest(long_options, word + 2, length);

    fprintf(stderr, "%s: there is no option \"--%.*s\"", program, (int)length,
            word + 2);
    if (nearest != NULL)
        fprintf(stderr, "; did you mean \"--%s\"?", nearest->name);
    fputc('\n', stderr);
}

void program_word_complain(const char *program, const char *word,
                           const struct option *long_options)
{
    const struct option *nearest =
        option_nearest(long_options, word, strlen(word));

    fprintf(stderr, "%s: \"%s\" is not understood", program, word);
    if (nearest != NULL)
        fprintf(stderr, "; did you mean \"--%s\"?", nearest->name);
    fputc('\n', stderr);
}

/* Writes the word in the form of an operator's name: TANDEM_OP_REDUCE-SUM
 * becomes reduce_sum. */
static void operator_word_simplify(const char *word, char *out, size_t bytes)
{
    static const char prefix[] = "tandem_op_";
    const size_t length = sizeof prefix - 1;

    if (strncasecmp(word, prefix, length) == 0)
        word += length;
    snprintf(out, bytes, "%s", strcasecmp(word, "matmul") == 0 ? "gemm" : word);
    for (; *out != '\0'; out++)
        *out = *out == '-' ? '_' : (char)tolower((unsigned char)*out);
}

const char *program_operator_nearest(const char *word, const char *const *names,
                                     size_t count)
{
    char simple[MAX_NAME_BYTES + 2];
    const char *nearest = NULL;
    size_t length, best;

    operator_word_simplify(word, simple, sizeof simple);
    length = strlen(simple);
    best = distance_limit(length);
    if (length == 0 || length > MAX_NAME_BYTES)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        /* "sum" means reduce_sum, not sub. */
        const size_t distance = length > 2 && strstr(names[i], simple) != NULL
                                    ? 0
                                    : name_distance(simple, length, names[i]);

        if (strcmp(names[i], simple) == 0)
            return names[i];
        if (distance < best) {
            best = distance;
            nearest = names[i];
        }
    }
    return nearest;
}

int program_option_next(const char *program, int argc, char **argv,
                        const char *short_options,
                        const struct option *long_options)
{
    const struct option *found;
    const char *word;
    char texts[64];
    size_t length;
    int index = -1, option;

    /* The colon makes getopt_long report a missing value as ':', and makes it
     * print nothing. */
    snprintf(texts, sizeof texts, ":%s", short_options);
    option = getopt_long(argc, argv, texts, long_options, &index);
    if (option == -1 || (index < 0 && option != '?' && option != ':'))
        return option;
    word = argv[optind - 1];
    /* The value of a long option may be a word of its own. */
    if (index >= 0 && optarg == word)
        word = argv[optind - 2];
    length = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
    found = length > 0 ? option_find(long_options, word + 2, length) : NULL;
    if (!is_long_option(word, found, option))
        fprintf(stderr,
                option == ':' ? "%s: option -%c needs a value\n"
                              : "%s: there is no option \"-%c\"\n",
                program, optopt);
    else if (found == NULL)
        unknown_option_complain(program, word, length, long_options);
    else if (option == ':')
        fprintf(stderr, "%s: option --%s needs a value\n", program,
                found->name);
    else if (option == '?')
        fprintf(stderr, "%s: option --%s takes no value\n", program,
                found->name);
    else
        return option;
    return '?';
}
