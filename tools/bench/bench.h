/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations that all suites of tandem-bench share.  Single-threaded.
 *
 * A suite lists its rows (row_list.h).  To measure a row on a device, Tandem
 * and the reference implementations run in alternating rounds.  Their times are
 * one row of the result (result_document.h).
 */
#ifndef TANDEM_BENCH_H
#define TANDEM_BENCH_H

#include "../common/clock.h"
#include "../common/device_session.h"
#include "../common/resident_op.h"
#include "../common/statistics.h"
#include "row_list.h"

#include <jansson.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define MIN_SAMPLES 9
#define MAX_SAMPLES 99

/* Options for opening devices, from --open-option=KEY=VALUE on the command line
 * (tandem_open_options in backend.h). */
#define MAX_OPEN_OPTIONS 32u
struct open_options {
    uint32_t count;
    const char *keys[MAX_OPEN_OPTIONS],
        *values[MAX_OPEN_OPTIONS]; /* borrowed */
};

struct raw_opencl; /* raw_opencl.h */

struct bench {
    uint32_t samples;
    uint64_t seed;
    enum scale scale; /* of the current device */
    json_t *document; /* the result; owned */
    json_t *rows;     /* rows of the result; borrowed from `document` */
    struct open_options open_options;
    struct tandem_context *context;
    bool failed; /* a check or a call failed */

    /* The device that the suites run on.  If the library chooses the device,
     * `device` is TANDEM_ANY_DEVICE and `session` is zero. */
    struct device_session session;
    uint32_t device;
    char device_text[DEVICE_NAME_BYTES]; /* "opencl", "any" */
    struct raw_opencl *raw_opencl;       /* owned; see raw_opencl_of */

    const struct row *row; /* being measured */
};

/* Returns true if the suites run on a device of this backend. */
bool bench_on(const struct bench *bench, const char *backend);

/* ---- suites ---- */

struct suite {
    const char *name;
    const char *backend; /* the only backend it measures, or NULL for all */
    bool any; /* also runs with the device that the library chooses */
    const char *about;
    void (*list)(struct list *list);
    /* Measures bench->row and calls bench_compare, bench_scalar,
     * bench_unavailable or bench_fail. */
    void (*run)(struct bench *bench);
};
#define SUITE_COUNT 12
extern const struct suite suites[SUITE_COUNT];

void launch_list(struct list *list);
void launch_run(struct bench *bench);
void transfer_list(struct list *list);
void transfer_run(struct bench *bench);
void bandwidth_list(struct list *list);
void bandwidth_run(struct bench *bench);
void operators_list(struct list *list);
void operators_run(struct bench *bench);
void gemm_list(struct list *list);
void gemm_run(struct bench *bench);
void layers_list(struct list *list);
void layers_run(struct bench *bench);
void networks_list(struct list *list);
void networks_run(struct bench *bench);
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

/* Runs the work `count` times.  Returns the time of one run in ns, or a
 * negative value on failure. */
typedef double (*bench_fn)(void *argument, uint64_t count);

/* Calls `run` `count` times, then `wait` unless it is NULL.  Returns like
 * bench_fn.  The function is inline, so that a short run is not timed with an
 * indirect call. */
static inline double time_runs(void *argument, uint64_t count,
                               bool (*run)(void *), bool (*wait)(void *))
{
    uint64_t start = clock_now_ns();

    for (uint64_t i = 0; i < count; i++)
        if (!run(argument))
            return -1;
    if (wait != NULL && !wait(argument))
        return -1;
    return (double)(clock_now_ns() - start) / (double)count;
}

/* Defines a bench_fn that calls time_runs.  A semicolon follows. */
#define BENCH_FN(name, run, wait)                                              \
    double name(void *argument, uint64_t count)                                \
    {                                                                          \
        return time_runs(argument, count, run, wait);                          \
    }                                                                          \
    _Static_assert(1, "")

struct implementation {
    const char *name; /* "Tandem", "CLBlast" */
    bench_fn run;
    void *argument;
};

#define MAX_IMPLEMENTATIONS 5
struct comparison {
    const char *unit;        /* "ns", "GB/s", "GFLOP/s" */
    double work_amount;      /* bytes or operations; 0 to report the time */
    const char *upper_bound; /* implementation at the hardware limit, or NULL */
    uint64_t max_iterations; /* in a round; 0 means the default */
    json_t *error; /* errors against float64, or NULL; bench_compare takes it */
    size_t count;
    struct implementation
        implementations[MAX_IMPLEMENTATIONS]; /* Tandem first */
};
void comparison_add(struct comparison *comparison, const char *name,
                    bench_fn run, void *argument);
/* [blocks] Runs each implementation once, then all in alternating rounds, and
 * adds the result row. */
void bench_compare(struct bench *bench, struct comparison *comparison);

/* Times of an implementation that the caller measured; see bench_times. */
struct times {
    const char *name;
    double *ns; /* bench_times sorts them */
    size_t count;
};
/* Adds a result row with these times and returns it.  `name` is its name, or
 * NULL for the name of bench->row.  upper_bound: see struct comparison. */
json_t *bench_times(struct bench *bench, const char *name,
                    const char *upper_bound, const struct times *times,
                    size_t count);
/* Adds a result row with one number. */
void bench_scalar(struct bench *bench, const char *name, const char *unit,
                  double value);
/* Adds a result row with the reason why there is nothing to measure. */
void bench_unavailable(struct bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a result row with an error, prints the error, and sets bench->failed. */
void bench_fail(struct bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- a copy as the reference (copy_baseline.c) ---- */

/* Returns "memcpy" or "device copy". */
const char *copy_baseline_name(const struct bench *bench);
/* Adds to the comparison a copy without Tandem that reads and writes `bytes`
 * bytes in all, and runs the comparison.  The copy is memcpy, or
 * clEnqueueCopyBuffer on an OpenCL device. */
void copy_baseline_comparison(struct bench *bench,
                              struct comparison *comparison, double bytes);

/* ---- operators on data in device memory (row_operator.c) ---- */

/* Builds the case of a row, without a device.  If the operator does not exist
 * or cannot have the shape, adds a result row with the reason and returns
 * false. */
bool bench_case(struct bench *bench, const struct row *row, struct op_case *c);
/* Creates the operator of bench->row in `work`.  Fails like bench_case, also if
 * the device does not support the operator. */
bool bench_resident_op(struct bench *bench, struct resident_op *work);
/* A bench_fn whose argument is a struct resident_op. */
double resident_op_run(void *work, uint64_t count);

/* ---- results are checked before they are timed (result_check.c) ---- */

/* Returns element `index` of an f32 buffer of device_session_buffer. */
float seed_value(uint64_t index);
/* Returns element `index` of an integer operand of bench_resident_op, in
 * [0, limit).  If `limit` is a power of two, any `limit` consecutive elements
 * have all values once, and neighbours differ widely. */
int32_t seed_index(uint64_t index, int64_t limit);

/* Reads `count` elements of an output, from element `first`. */
typedef bool (*read_fn)(void *argument, uint32_t output, uint64_t first,
                        uint64_t count, double *out);
/* Compares the first and the last elements of each output with the expected
 * values for inputs of seed_value and seed_index.  If one is wrong or cannot be
 * read, fails the row and returns false. */
bool check_outputs(struct bench *bench, const struct op_case *c, read_fn read,
                   void *argument);
/* Launches the operator once and calls check_outputs. */
bool check_resident_op(struct bench *bench, struct resident_op *work);

#endif
