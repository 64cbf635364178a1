/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar; see progress_bar.h. */
#include <config.h>

#include "progress_bar.h"

#include "clock.h"
#include "text_wrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH 30
#define MIN_BAR_WIDTH 5
#define LINE_BYTES 128
/* No time is estimated from less progress than this. */
#define MIN_FRACTION 0.05
#define MIN_ELAPSED_NS (2 * NS_PER_S)
/* Work that takes longer than expected stays at this fraction. */
#define MAX_FRACTION 0.99

void progress_begin(struct progress *progress, const char *title, bool verbose)
{
    const char *kind = getenv("TERM");

    memset(progress, 0, sizeof *progress);
    progress->title = title;
    progress->verbose = verbose;
    progress->terminal =
        isatty(STDERR_FILENO) && kind != NULL && strcmp(kind, "dumb") != 0;
    progress->start_ns = progress->fraction_ns = clock_now_ns();
}

/* Writes ", 12 s left", or nothing if left_s is negative. */
static void left_text(char *out, size_t bytes, double left_s)
{
    if (left_s < 0)
        out[0] = '\0';
    else if (left_s < 90)
        snprintf(out, bytes, ", %.0f s left", left_s < 1 ? 1 : left_s);
    else
        snprintf(out, bytes, ", %.0f min left", left_s / 60);
}

void progress_text(char *out, size_t bytes, size_t columns, const char *title,
                   double fraction, double left_s, const char *step)
{
    char bar[BAR_WIDTH + 1], left[32], tail[96];
    int width, done;

    left_text(left, sizeof left, left_s);
    snprintf(tail, sizeof tail, "%3d%% %.24s%s", (int)(fraction * 100), step,
             left);
    /* The title has 10 columns.  The last column stays empty, because some
     * terminals begin a new line after it. */
    width = (int)columns - 1 - (int)(10 + sizeof " [] " - 1 + strlen(tail));
    width = width > BAR_WIDTH ? BAR_WIDTH : width;
    width = width < MIN_BAR_WIDTH ? MIN_BAR_WIDTH : width;
    done = (int)(fraction * width);
    memset(bar, '.', (size_t)width);
    memset(bar, '#', (size_t)done);
    bar[width] = '\0';
    snprintf(out, bytes < columns ? bytes : columns, "%-10.10s [%s] %s", title,
             bar, tail);
}

static void progress_draw(const struct progress *progress, double left_s,
                          const char *step)
{
    char line[LINE_BYTES];

    progress_text(line, sizeof line, output_columns(stderr), progress->title,
                  progress->fraction, left_s, step);
    /* ESC [ K erases the rest of the line. */
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
}

/* Returns the time left in seconds, or -1 if it is unknown. */
static double progress_left_s(const struct progress *progress, uint64_t now)
{
    double total = (double)progress->expected_ns;

    if (progress->expected_ns == 0) {
        if (progress->fraction < MIN_FRACTION ||
            now - progress->start_ns < MIN_ELAPSED_NS)
            return -1;
        total = (double)(progress->fraction_ns - progress->start_ns) /
                progress->fraction;
    }
    total -= (double)(now - progress->start_ns);
    return total < 0 ? 0 : total / (double)NS_PER_S;
}

void progress_tick(struct progress *progress)
{
    const uint64_t now = clock_now_ns();
    const uint64_t elapsed = now - progress->start_ns;

    if (!progress->terminal)
        return;
    if (progress->expected_ns > 0)
        progress->fraction = (double)elapsed / (double)progress->expected_ns;
    if (progress->fraction > MAX_FRACTION)
        progress->fraction = MAX_FRACTION;
    if (progress->expected_ns > 0 && elapsed >= progress->expected_ns)
        progress_draw(progress, -1, "finishing");
    else
        progress_draw(progress, progress_left_s(progress, now), progress->step);
}

void progress_show(struct progress *progress, double fraction, const char *step)
{
    if (!progress->terminal && progress->verbose &&
        strcmp(step, progress->step) != 0)
        fprintf(stderr, "%s: %s\n", progress->title, step);
    snprintf(progress->step, sizeof progress->step, "%s", step);
    progress->fraction_ns = clock_now_ns();
    progress->fraction = fraction > 0 ? fraction : 0;
    if (fraction <= 0)
        progress->start_ns = progress->fraction_ns;
    progress_tick(progress);
}

void progress_end(struct progress *progress)
{
    if (progress->terminal)
        fputs("\r\033[K", stderr);
}
