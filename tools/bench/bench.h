/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench: what its suites share.  Single-threaded.
 *
 * A suite takes turns between ours and a reference, at least nine times each,
 * and reports both medians, their spread and the ratio.
 */
#ifndef TANDEM_BENCH_H
#define TANDEM_BENCH_H

#include "../common/lane.h"
#include "../common/statistics.h"
#include "../common/work.h"

#include <jansson.h>

#define MIN_SAMPLES 9
#define MAX_SAMPLES 99

struct bench {
    uint32_t samples;
    uint64_t seed;
    bool json;
    json_t *rows; /* owned */
    struct tandem_context *context;
    bool failed; /* a check or a call did */
    bool chose;  /* the suite choice ran: it is for all devices at once */

    /* The device that the suites run on. */
    struct lane lane;
    char device[DEVICE_NAME_BYTES];
    const char *suite;
};

/* The time of one operation in ns; negative: it failed. */
typedef double (*bench_fn)(void *argument);

struct bench_pair {
    struct summary ours, theirs;
    bool ok;
};
/* Takes turns; one untimed turn each before. */
struct bench_pair bench_compare(struct bench *bench, bench_fn ours,
                                void *ours_argument, bench_fn theirs,
                                void *theirs_argument);

/* How to print a time: as it is, or as work over it. */
struct bench_unit {
    const char *name; /* "ns", "GB/s", "GFLOP/s" */
    double work;      /* bytes or operations; 0: the time itself */
};
/* One line, and one row of the JSON.  against: what the reference is. */
void bench_row(struct bench *bench, const char *name, const char *against,
               const struct bench_unit *unit, const struct bench_pair *pair);
/* A row of one figure, without a reference. */
void bench_figure(struct bench *bench, const char *name, const char *unit,
                  double value);
/* Complains, and fails the run. */
void bench_fail(struct bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether the device is far slower than a GPU, so that sizes must be small. */
bool bench_small(const struct bench *bench);

/* The suites; each for bench->lane, nothing where it does not apply. */
void suite_launch(struct bench *bench);
void suite_pool(struct bench *bench);
void suite_bandwidth(struct bench *bench);
void suite_gemm(struct bench *bench);
void suite_cpu(struct bench *bench);
void suite_host(struct bench *bench);
void suite_choice(struct bench *bench);

/* ---- results are checked before they are timed ---- */

/* What lane_buffer put at a float's index. */
float seed_value(uint64_t index);
/* Launches work and compares some of its output with its formula. */
bool check_work(struct bench *bench, struct work *work);

#endif
