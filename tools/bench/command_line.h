/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of tandem-bench.  Main thread.
 */
#ifndef TANDEM_BENCH_COMMAND_LINE_H
#define TANDEM_BENCH_COMMAND_LINE_H

#include "bench.h"
#include "result_document.h"
#include "suite_runner.h"

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NO_DEVICE = 3,
    EXIT_SLOWER = 4
};

struct command {
    struct bench bench;
    struct selection selection;
    enum document_format format;
    const char *from, *compare, *output;
    bool list;
};

/* -1: go on; else the exit status, --help or --version having been printed, or
 * what is wrong said on standard error.  The texts are argv's. */
int options_read(int argc, char **argv, struct command *command);

#endif
