/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar; see progress_bar.h. */
#include <config.h>

#include "progress_bar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH 30

void progress_begin(struct progress *progress, const char *title, bool verbose)
{
    const char *kind = getenv("TERM");

    memset(progress, 0, sizeof *progress);
    progress->title = title;
    progress->verbose = verbose;
    progress->terminal = isatty(STDERR_FILENO) && kind != NULL &&
                         strcmp(kind, "dumb") != 0;
}

void progress_show(struct progress *progress, double fraction,
                   const char *step)
{
    char bar[BAR_WIDTH + 1];
    int done;

    if (!progress->terminal) {
        if (progress->verbose && strcmp(step, progress->step) != 0)
            fprintf(stderr, "%s: %s\n", progress->title, step);
        snprintf(progress->step, sizeof progress->step, "%s", step);
        return;
    }
    fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    done = (int)(fraction * BAR_WIDTH);
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', (size_t)done);
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r%-10.10s [%s] %3d%% %-24.24s", progress->title, bar,
            (int)(fraction * 100), step);
    fflush(stderr);
}

void progress_end(struct progress *progress)
{
    if (progress->terminal)
        fprintf(stderr, "\r%*s\r", BAR_WIDTH + 46, "");
}
