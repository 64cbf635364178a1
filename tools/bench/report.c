/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking turns, and what is printed; see bench.h.
 */
#include <config.h>

#include "../common/table.h"
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct bench_pair bench_compare(struct bench *bench, bench_fn ours,
                                void *ours_argument, bench_fn theirs,
                                void *theirs_argument)
{
    double a[MAX_SAMPLES], b[MAX_SAMPLES];
    struct bench_pair pair = {.ok = ours(ours_argument) >= 0 &&
                                    theirs(theirs_argument) >= 0};

    for (uint32_t i = 0; i < bench->samples && pair.ok; i++) {
        /* Who goes first alternates: neither always finds warm caches. */
        if (i % 2 == 0)
            a[i] = ours(ours_argument);
        b[i] = theirs(theirs_argument);
        if (i % 2 != 0)
            a[i] = ours(ours_argument);
        pair.ok = a[i] >= 0 && b[i] >= 0;
    }
    if (!pair.ok)
        return pair;
    pair.ours = summarise(a, bench->samples);
    pair.theirs = summarise(b, bench->samples);
    return pair;
}

static double in_unit(const struct bench_unit *unit, double ns)
{
    return unit->work > 0 ? unit->work / ns : ns;
}

static char *unit_text(char *out, const struct bench_unit *unit, double ns)
{
    if (unit->work <= 0)
        return text_ns(out, ns);
    snprintf(out, TEXT_BYTES, "%.4g %s", unit->work / ns, unit->name);
    return out;
}

void bench_row(struct bench *bench, const char *name, const char *against,
               const struct bench_unit *unit, const struct bench_pair *pair)
{
    char ours[TEXT_BYTES], theirs[TEXT_BYTES];
    double ratio = pair->theirs.median / pair->ours.median;

    if (!pair->ok) {
        bench_fail(bench, "%s: a call failed: %s", name,
                   bench->lane.backend->last_error());
        return;
    }
    /* Speed: above 1 is better than the reference. */
    printf("  %-28s %14s (+-%2.0f%%)  %-22s %14s (+-%2.0f%%)  speed %.3f\n",
           name, unit_text(ours, unit, pair->ours.median),
           50 * pair->ours.spread, against,
           unit_text(theirs, unit, pair->theirs.median),
           50 * pair->theirs.spread, ratio);
    fflush(stdout);
    json_array_append_new(
        bench->rows,
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:i}",
                  "suite", bench->suite, "device", bench->device, "name", name,
                  "against", against, "unit", unit->name, "ours",
                  in_unit(unit, pair->ours.median), "reference",
                  in_unit(unit, pair->theirs.median), "speed_ratio", ratio,
                  "ours_spread", pair->ours.spread, "reference_spread",
                  pair->theirs.spread, "samples", (int)pair->ours.count));
}

void bench_figure(struct bench *bench, const char *name, const char *unit,
                  double value)
{
    printf("  %-28s %.4g %s\n", name, value, unit);
    fflush(stdout);
    json_array_append_new(bench->rows,
                          json_pack("{s:s, s:s, s:s, s:s, s:f}", "suite",
                                    bench->suite, "device", bench->device,
                                    "name", name, "unit", unit, "ours",
                                    value));
}

void bench_fail(struct bench *bench, const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "tandem-bench: %s: %s: ", bench->suite, bench->device);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    bench->failed = true;
}

bool bench_small(const struct bench *bench)
{
    return bench->lane.info.kind == TANDEM_DEVICE_CPU;
}
