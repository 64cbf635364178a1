/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of tandem-conformance. Call it from the main thread. */
#ifndef TANDEM_CONFORMANCE_OPTIONS_H
#define TANDEM_CONFORMANCE_OPTIONS_H

#include "suite.h"

#define PROGRAM "tandem-conformance"

enum exit_code {
    EXIT_PASSED = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NO_DEVICE = 3,
    EXIT_NOTHING_PASSED = 4 /* No case ran, or all were skipped. */
};

/* The groups of cases, in the order in which they run. */
struct group {
    const char *name; /* NULL if each operator is its own group. */
    void (*run)(struct suite *suite);
    const char *about;
};
extern const struct group groups[];
extern const uint32_t group_count;

/*
 * Reads the command line. Returns false if the program must end with
 * *out_code: --help or --version was printed, or an error. The options point
 * into argv.
 */
bool options_parse(int argc, char **argv, struct suite_options *options,
                   enum exit_code *out_code);

#endif
