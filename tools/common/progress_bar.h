/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar on standard error, drawn only if that is a terminal. */
#ifndef TOOLS_PROGRESS_BAR_H
#define TOOLS_PROGRESS_BAR_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *title; /* borrowed */
    bool terminal, verbose;
    /* If not 0, the fraction is the elapsed time divided by this one, because
     * the work reports none. */
    uint64_t expected_ns;
    char step[64];
};

/* verbose: prints a line for each step if there is no bar. */
void progress_begin(struct progress *progress, const char *title, bool verbose);
/* `fraction` of the work in [0, 1] is done; `step` names the current step. */
void progress_show(struct progress *progress, double fraction,
                   const char *step);
/* Erases the bar. */
void progress_end(struct progress *progress);

#endif
