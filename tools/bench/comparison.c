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

/* Minimum time of a round in ns; short work is repeated. */
static const double round_ns[SCALES] = {1e5, 2e6, 2e6};

#define MAX_REPEATS 2000 /* repeats of the work in one round */
#define SLOW_NS 2e8 /* work that takes longer gets only MIN_SAMPLES rounds */
#define SUCCESSIVE_ROUNDS 3u /* of an implementation, before the next one */

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

json_t *bench_times(struct bench *bench, const char *name,
                    const char *upper_bound, const struct times *times,
                    size_t count)
{
    json_t *row = row_begin(bench, name, "measured"),
           *implementations = json_array();

    json_object_set_new(row, "unit", json_string("ns"));
    json_object_set_new(row, "implementations", implementations);
    for (size_t i = 0; i < count; i++) {
        const size_t samples = times[i].count;
        const double median = quantile(times[i].ns, samples, 0.5);
        const double iqr = quantile(times[i].ns, samples, 0.75) -
                           quantile(times[i].ns, samples, 0.25);

        json_array_append_new(
            implementations,
            json_pack("{s:s, s:f, s:f, s:i}", "name", times[i].name, "ns",
                      median, "iqr_ratio", median > 0 ? iqr / median : 0,
                      "samples", (int)samples));
    }
    if (upper_bound != NULL)
        json_object_set_new(row, "upper_bound", json_string(upper_bound));
    return row;
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

/* ---- rounds ---- */

struct round_times {
    const struct implementation *implementation;
    uint64_t count; /* repeats of the work in a round */
    double ns[MAX_SAMPLES];
};

static double run_round(const struct round_times *times)
{
    return times->implementation->run(times->implementation->argument,
                                      times->count);
}

/* Runs the work until it needs no further compilation or allocation, and sets
 * the repeats in a round.  Returns the time of the last round, or a negative
 * value on failure. */
static double warm_up(struct round_times *times, double min_ns,
                      uint64_t max_count)
{
    double once;

    times->count = 1;
    once = run_round(times);
    if (once >= 0)
        once = run_round(times);
    while (once >= 0 && times->count < max_count &&
           once * (double)times->count < min_ns / 2) {
        double wanted = min_ns / fmax(once, 1);

        times->count = wanted > 8.0 * (double)times->count
                           ? 8 * times->count
                           : (uint64_t)wanted + 1;
        if (times->count > max_count)
            times->count = max_count;
        once = run_round(times);
    }
    return once < 0 ? -1 : once * (double)times->count;
}

/* Measures rounds `first` to `end` of one implementation.  A round before them
 * does not count; it brings caches and clock frequencies into the state of this
 * implementation. */
static bool run_rounds(struct round_times *times, uint32_t first, uint32_t end)
{
    double ns = run_round(times);

    for (uint32_t i = first; i < end && ns >= 0; i++)
        ns = times->ns[i] = run_round(times);
    return ns >= 0;
}

/* Measures all rounds.  The implementation that begins changes.  Returns the
 * name of the implementation that failed, or NULL. */
static const char *run_all_rounds(struct round_times *times, size_t count,
                                  uint32_t samples)
{
    for (uint32_t i = 0; i < samples; i += SUCCESSIVE_ROUNDS)
        for (size_t j = 0; j < count; j++) {
            struct round_times *t = &times[(i / SUCCESSIVE_ROUNDS + j) % count];
            uint32_t end = i + SUCCESSIVE_ROUNDS;

            if (!run_rounds(t, i, end < samples ? end : samples))
                return t->implementation->name;
        }
    return NULL;
}

static void comparison_row(struct bench *bench, struct comparison *comparison,
                           struct round_times *rounds, uint32_t samples)
{
    struct times times[MAX_IMPLEMENTATIONS];
    json_t *row;

    for (size_t i = 0; i < comparison->count; i++)
        times[i] = (struct times){comparison->implementations[i].name,
                                  rounds[i].ns, samples};
    row = bench_times(bench, NULL, comparison->upper_bound, times,
                      comparison->count);
    json_object_set_new(row, "unit", json_string(comparison->unit));
    if (comparison->work_amount > 0)
        json_object_set_new(row, "work_amount",
                            json_real(comparison->work_amount));
    if (comparison->error != NULL)
        json_object_set(row, "error", comparison->error);
}

void bench_compare(struct bench *bench, struct comparison *comparison)
{
    static struct round_times rounds[MAX_IMPLEMENTATIONS];
    uint64_t max_count = comparison->max_iterations > 0
                             ? comparison->max_iterations
                             : MAX_REPEATS;
    uint32_t samples = bench->samples;
    const char *failed = NULL;

    for (size_t i = 0; i < comparison->count && failed == NULL; i++) {
        double ns;

        rounds[i].implementation = &comparison->implementations[i];
        ns = warm_up(&rounds[i], round_ns[bench->scale], max_count);
        if (ns < 0)
            failed = comparison->implementations[i].name;
        if (ns > SLOW_NS)
            samples = MIN_SAMPLES;
    }
    if (failed == NULL)
        failed = run_all_rounds(rounds, comparison->count, samples);
    if (failed == NULL)
        comparison_row(bench, comparison, rounds, samples);
    else
        bench_fail(bench, "a call of %s failed: %s; %s", failed,
                   bench->session.backend != NULL
                       ? bench->session.backend->last_error()
                       : "",
                   tandem_last_error());
    json_decref(comparison->error);
    comparison->error = NULL;
}
