/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the command line of tandem-bench. */
#ifndef TANDEM_BENCH_COMMAND_LINE_H
#define TANDEM_BENCH_COMMAND_LINE_H

#include "suite_runner.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NO_DEVICE = 3 };

struct command {
    struct bench bench;
    struct selection selection;
    bool list;
};

/* Reads the options.  Returns -1 to continue, or the exit status after it
 * printed --help, --version or an error message.  The texts in `command` belong
 * to argv. */
int options_read(int argc, char **argv, struct command *command);

#endif
