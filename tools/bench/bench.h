/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench: what its suites share.  Single-threaded.
 *
 * A suite lists its rows (row_list.h); a row, measured on a device, is a
 * comparison: ours and its references run in alternating rounds, and one JSON
 * object of the result (result_document.h) says what each took.
 */
#ifndef TANDEM_BENCH_H
#define TANDEM_BENCH_H

#include "../common/device_session.h"
#include "../common/statistics.h"
#include "../common/resident_op.h"
#include "row_list.h"
#include "open_options.h"

#include <jansson.h>

#define MIN_SAMPLES 9
#define MAX_SAMPLES 99

struct raw_opencl; /* raw_opencl.h */

struct bench {
    uint32_t samples;
    uint64_t seed;
    enum scale scale; /* of the device that is measured */
    json_t *rows;     /* of the result; owned */
    struct open_options open_options;
    struct tandem_context *context;
    bool failed; /* a check or a call did */
    bool print_points; /* the suite placement prints each */

    /* The device that the suites run on; without one, the library's choice
     * among all: lane is then zero, device TANDEM_ANY_DEVICE. */
    struct device_session session;
    uint32_t device;
    char device_text[DEVICE_NAME_BYTES]; /* "opencl", "any" */
    struct raw_opencl *raw_opencl;       /* see raw_opencl_of; owned */

    const struct row *row; /* under way */
};

/* ---- suites ---- */

struct suite {
    const char *name;
    const char *backend; /* the only one that it measures; NULL: each */
    bool any;            /* measures the library's choice, too */
    const char *about;
    void (*list)(struct list *list);
    /* Measures bench->row: a bench_compare, bench_scalar, bench_unavailable or
     * bench_fail of it. */
    void (*run)(struct bench *bench);
};
#define SUITE_COUNT 9
extern const struct suite suites[SUITE_COUNT];
const struct suite *suite_find(const char *name);

void launch_list(struct list *list);
void launch_run(struct bench *bench);
void transfer_list(struct list *list);
void transfer_run(struct bench *bench);
void bandwidth_list(struct list *list);
void bandwidth_run(struct bench *bench);
void gemm_list(struct list *list);
void gemm_run(struct bench *bench);
void cold_start_list(struct list *list);
void cold_start_run(struct bench *bench);
void user_cases_list(struct list *list);
void user_cases_run(struct bench *bench);
void allocator_list(struct list *list);
void allocator_run(struct bench *bench);
void small_ops_list(struct list *list);
void small_ops_run(struct bench *bench);
void placement_list(struct list *list);
void placement_run(struct bench *bench);

/* ---- comparisons ---- */

/* Does the work count times; ns of one.  Negative: it failed. */
typedef double (*bench_fn)(void *argument, uint64_t count);

struct implementation {
    const char *name; /* "Tandem", "CLBlast" */
    bench_fn run;
    void *argument;
};

#define MAX_IMPLEMENTATIONS 5
struct comparison {
    const char *unit;   /* "ns", "GB/s", "GFLOP/s" */
    double work_amount; /* bytes or operations; 0: the result is the time */
    const char *upper_bound; /* the implementation at the hardware limit */
    uint64_t max_iterations; /* of a round; 0: as many as fill it */
    json_t *error;           /* how far results are from float64; NULL; taken */
    size_t count;
    struct implementation implementations[MAX_IMPLEMENTATIONS]; /* ours first */
};
void comparison_add(struct comparison *comparison, const char *name,
                    bench_fn run, void *argument);
/* The implementations warm up, then run in alternating rounds. */
void bench_compare(struct bench *bench, struct comparison *comparison);

/* Times taken elsewhere, as an implementation of the row; see bench_times. */
struct times {
    const char *name;
    double *ns; /* sorted by this */
    size_t count;
};
/* A result row of the name name (NULL: the row's) from times; upper_bound
 * as in a comparison. */
void bench_times(struct bench *bench, const char *name, const char *upper_bound,
                 const struct times *times, size_t count);
/* A result row of one number. */
void bench_scalar(struct bench *bench, const char *name, const char *unit,
                  double value);
/* A result row that says why there is nothing to measure. */
void bench_unavailable(struct bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A result row that says what went wrong; complains, and fails the run. */
void bench_fail(struct bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- operators on resident data ---- */

/* work for the row's operator; false, having said why, where there is no such
 * operator or the device does not serve it. */
bool bench_resident_op(struct bench *bench, struct resident_op *work);
/* Likewise what the row asks for as a case, on no device. */
bool bench_case(struct bench *bench, struct op_case *c);
/* A bench_fn over a work. */
double resident_op_run(void *work, uint64_t count);

bool bench_on_opencl(const struct bench *bench);
bool bench_on_cpu_plugin(const struct bench *bench);

/* ---- results are checked before they are timed ---- */

/* What device_session_buffer put at a float's index. */
float seed_value(uint64_t index);
/* What bench_resident_op put at an index of integers in [0, limit): where limit
 * is a power of two each once before one comes again, next ones far apart. */
int32_t seed_index(uint64_t index, int64_t limit);
/* Launches work and compares some of its outputs with their formula. */
bool check_resident_op(struct bench *bench, struct resident_op *work);
/* Whether value is what the formula gives at index of output 0 from inputs of
 * seed_value and seed_index. */
bool check_value(const struct op_case *c, uint64_t index, double value,
                 double *out_expected);

#endif
