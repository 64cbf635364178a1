/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar on standard error, drawn only if that is a terminal.  Used by
 * one thread. */
#ifndef TOOLS_PROGRESS_BAR_H
#define TOOLS_PROGRESS_BAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    const char *title; /* borrowed */
    bool terminal, verbose;
    /* If not 0, the fraction is the elapsed time divided by this one, because
     * the work reports none. */
    uint64_t expected_ns;
    char step[64];
    double fraction;
    /* The time at which the work was at fraction 0, and at which `fraction` was
     * last set. */
    uint64_t start_ns, fraction_ns;
};

/* verbose: prints a line for each step if there is no bar. */
void progress_begin(struct progress *progress, const char *title, bool verbose);
/* `fraction` of the work in [0, 1] is done; `step` names the current step.  The
 * time left is estimated from the time since the last fraction of 0. */
void progress_show(struct progress *progress, double fraction,
                   const char *step);
/* Draws the bar again, with the time that is left now.  Call it about once per
 * second between calls of progress_show. */
void progress_tick(struct progress *progress);
/* Erases the bar. */
void progress_end(struct progress *progress);

/* Writes the bar's text, which has less than `columns` columns.  left_s is the
 * time left in seconds, or negative if unknown. */
void progress_text(char *out, size_t bytes, size_t columns, const char *title,
                   double fraction, double left_s, const char *step);

#endif
