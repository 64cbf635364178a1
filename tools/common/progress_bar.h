/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A progress bar on standard error, drawn only where that is a terminal.
 */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>

struct progress {
    const char *title; /* borrowed */
    bool terminal, verbose;
    char step[64];
};

/* verbose: where there is no bar, a line for each step. */
void progress_begin(struct progress *progress, const char *title, bool verbose);
/* fraction in [0, 1]. */
void progress_show(struct progress *progress, double fraction,
                   const char *step);
/* Wipes the bar. */
void progress_end(struct progress *progress);

#endif
