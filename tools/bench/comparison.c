/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs implementations in alternating rounds, and adds result rows; see
 * bench.h.
 */
#include <config.h>

#include "bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Time that a round repeats short work for, in ns. */
static const double turn_ns[SCALES] = {1e5, 2e6, 2e6};

#define MAX_REPEATS 2000 /* repeats of the work in one round */
#define SLOW_NS 2e8 /* work that takes longer gets only MIN_SAMPLES rounds */

void comparison_add(struct comparison *comparison, const char *name,
                    bench_fn run, void *argument)
{
    if (comparison->count < MAX_IMPLEMENTATIONS)
        comparison->implementations[comparison->count++] =
            (struct implementation){name, run, argument};
}

/* ---- rows ---- */

static json_t *row_begin(struct bench *bench, const char *name,
                         const char *status)
{
    json_t *row = row_json(bench->row);

    if (name != NULL)
        json_object_set_new(row, "name", json_string(name));
    json_object_set_new(row, "device", json_string(bench->device_text));
    json_object_set_new(row, "status", json_string(status));
    json_array_append_new(bench->rows, row);
    return row;
}

static json_t *side_json(const char *name, double *ns, size_t count)
{
    struct summary s = summarise(ns, count);

    return json_pack("{s:s, s:f, s:f, s:i}", "name", name, "ns", s.median,
                     "iqr_ratio", s.spread, "samples", (int)s.count);
}

void bench_times(struct bench *bench, const char *name, const char *limit,
                 const struct times *times, size_t count)
{
    json_t *row = row_begin(bench, name, "measured"),
           *implementations = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            implementations,
            side_json(times[i].name, times[i].ns, times[i].count));
    json_object_set_new(row, "unit", json_string("ns"));
    json_object_set_new(row, "implementations", implementations);
    if (limit != NULL)
        json_object_set_new(row, "upper_bound", json_string(limit));
}

void bench_scalar(struct bench *bench, const char *name, const char *unit,
                  double value)
{
    json_t *row = row_begin(bench, name, "scalar");

    json_object_set_new(row, "unit", json_string(unit));
    json_object_set_new(row, "value", json_real(value));
}

static void row_reason(struct bench *bench, const char *status,
                       const char *format, va_list arguments)
{
    json_t *row = row_begin(bench, NULL, status);
    char text[400];

    vsnprintf(text, sizeof text, format, arguments);
    json_object_set_new(row, "reason", json_string(text));
    if (strcmp(status, "failed") == 0)
        fprintf(stderr, "tandem-bench: %s: %s: %s: %s\n", bench->row->suite,
                bench->device_text, bench->row->name, text);
}

void bench_unavailable(struct bench *bench, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    row_reason(bench, "unavailable", format, arguments);
    va_end(arguments);
}

void bench_fail(struct bench *bench, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    row_reason(bench, "failed", format, arguments);
    va_end(arguments);
    bench->failed = true;
}

/* ---- turns ---- */

struct round_times {
    const struct implementation *implementation;
    uint64_t count; /* repeats of the work in a round */
    double ns[MAX_SAMPLES];
};

/* Runs the work until it needs no further compilation or allocation, and sets
 * the repeats in a round.  Returns the time of the last run, negative on
 * failure. */
static double warm_up(struct round_times *turns, double fill_ns, uint64_t most)
{
    const struct implementation *implementation = turns->implementation;
    double once = implementation->run(implementation->argument, 1);

    turns->count = 1;
    if (once >= 0)
        once = implementation->run(implementation->argument, 1);
    while (once >= 0 && turns->count < most &&
           once * (double)turns->count < fill_ns / 2) {
        double wanted = fill_ns / fmax(once, 1);

        turns->count = wanted > 8.0 * (double)turns->count
                           ? 8 * turns->count
                           : (uint64_t)wanted + 1;
        if (turns->count > most)
            turns->count = most;
        once = implementation->run(implementation->argument, turns->count);
    }
    return once < 0 ? -1 : once * (double)turns->count;
}

/* Successive rounds of one implementation. */
#define STAY 3u

/* Measures rounds `first` to `end` of one implementation.  A run before them
 * does not count; it brings caches and clock frequencies into this
 * implementation's state. */
static bool take_turn(struct round_times *t, uint32_t first, uint32_t end)
{
    double ns = t->implementation->run(t->implementation->argument, t->count);

    for (uint32_t i = first; i < end && ns >= 0; i++)
        ns = t->ns[i] =
            t->implementation->run(t->implementation->argument, t->count);
    return ns >= 0;
}

/* Runs all rounds.  The first implementation of a round changes. */
static const char *take_turns(struct round_times *turns, size_t count,
                              uint32_t samples)
{
    for (uint32_t i = 0; i < samples; i += STAY)
        for (size_t j = 0; j < count; j++) {
            struct round_times *t = &turns[(i / STAY + j) % count];
            uint32_t end = i + STAY < samples ? i + STAY : samples;

            if (!take_turn(t, i, end))
                return t->implementation->name;
        }
    return NULL;
}

static void comparison_row(struct bench *bench, struct comparison *comparison,
                           struct round_times *turns, uint32_t samples)
{
    struct times times[MAX_IMPLEMENTATIONS];
    json_t *row;

    for (size_t i = 0; i < comparison->count; i++)
        times[i] = (struct times){comparison->implementations[i].name,
                                  turns[i].ns, samples};
    bench_times(bench, NULL, comparison->upper_bound, times, comparison->count);
    row = json_array_get(bench->rows, json_array_size(bench->rows) - 1);
    json_object_set_new(row, "unit", json_string(comparison->unit));
    if (comparison->work_amount > 0)
        json_object_set_new(row, "work_amount",
                            json_real(comparison->work_amount));
    if (comparison->error != NULL)
        json_object_set(row, "error", comparison->error);
}

void bench_compare(struct bench *bench, struct comparison *comparison)
{
    static struct round_times turns[MAX_IMPLEMENTATIONS];
    uint64_t most = comparison->max_iterations > 0 ? comparison->max_iterations
                                                   : MAX_REPEATS;
    uint32_t samples = bench->samples;
    const char *failed = NULL;

    for (size_t i = 0; i < comparison->count && failed == NULL; i++) {
        double ns;

        turns[i].implementation = &comparison->implementations[i];
        ns = warm_up(&turns[i], turn_ns[bench->scale], most);
        if (ns < 0)
            failed = comparison->implementations[i].name;
        if (ns > SLOW_NS)
            samples = MIN_SAMPLES;
    }
    if (failed == NULL)
        failed = take_turns(turns, comparison->count, samples);
    if (failed == NULL)
        comparison_row(bench, comparison, turns, samples);
    else
        bench_fail(bench, "a call of %s failed: %s; %s", failed,
                   bench->session.backend != NULL
                       ? bench->session.backend->last_error()
                       : "",
                   tandem_last_error());
    json_decref(comparison->error);
    comparison->error = NULL;
}
