/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the options of a program's command line with getopt_long, but accepts
 * long options only by their full names.  Uses getopt's global variables, so
 * only one thread may call it.
 */
#ifndef TOOLS_PROGRAM_OPTIONS_H
#define TOOLS_PROGRAM_OPTIONS_H

#include <getopt.h>
#include <stddef.h>

/* Returns the next option like getopt_long, with its value in `optarg`, or -1
 * after the last option.  If the option is invalid, prints a message with the
 * name `program` and the most similar option, and returns '?'. */
int program_option_next(const char *program, int argc, char **argv,
                        const char *short_options,
                        const struct option *long_options);

/* Prints that the program does not understand the word after its options, and
 * the option whose name is similar, because its dashes may be missing. */
void program_word_complain(const char *program, const char *word,
                           const struct option *long_options);

/* Returns the name of the operator that the word probably means, or NULL if
 * none is similar.  `names` has the names of all operators. */
const char *program_operator_nearest(const char *word, const char *const *names,
                                     size_t count);

#endif
