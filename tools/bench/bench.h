/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations that all suites of tandem-bench share.  Single-threaded.
 *
 * A suite lists its rows (row_list.h).  To measure a row on a device, Tandem
 * and reference implementations run in alternating rounds.  Their times are one
 * JSON object of the result (result_document.h).
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
    enum scale scale; /* of the current device */
    json_t *rows;     /* rows of the result; owned */
    struct open_options open_options;
    struct tandem_context *context;
    bool failed;       /* a check or a call failed */
    bool print_points; /* the suite placement prints each point */

    /* The device that the suites run on.  If the library chooses the device,
     * `device` is TANDEM_ANY_DEVICE and `session` is zero. */
    struct device_session session;
    uint32_t device;
    char device_text[DEVICE_NAME_BYTES]; /* "opencl", "any" */
    struct raw_opencl *raw_opencl;       /* owned; see raw_opencl_of */

    const struct row *row; /* being measured */
};

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

/* Runs the work `count` times.  Returns the time of one run in ns, or a
 * negative value on failure. */
typedef double (*bench_fn)(void *argument, uint64_t count);

struct implementation {
    const char *name; /* "Tandem", "CLBlast" */
    bench_fn run;
    void *argument;
};

#define MAX_IMPLEMENTATIONS 5
struct comparison {
    const char *unit;   /* "ns", "GB/s", "GFLOP/s" */
    double work_amount; /* bytes or operations; 0 to report the time */
    const char
        *upper_bound; /* implementation that runs at the hardware limit */
    uint64_t max_iterations; /* in a round; 0 for as many as fit */
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
/* Adds a result row with these times.  `name` is its name, or NULL for the name
 * of bench->row.  upper_bound: see struct comparison. */
void bench_times(struct bench *bench, const char *name, const char *upper_bound,
                 const struct times *times, size_t count);
/* Adds a result row with one number. */
void bench_scalar(struct bench *bench, const char *name, const char *unit,
                  double value);
/* Adds a result row with the reason why there is nothing to measure. */
void bench_unavailable(struct bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a result row with an error, prints the error, and sets bench->failed. */
void bench_fail(struct bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- operators on data in device memory ---- */

/* Creates the row's operator in `work`.  If the operator does not exist or the
 * device does not support it, adds a result row with the reason and returns
 * false. */
bool bench_resident_op(struct bench *bench, struct resident_op *work);
/* Builds the case of the row, without a device.  Fails like bench_resident_op.
 */
bool bench_case(struct bench *bench, struct op_case *c);
/* A bench_fn whose argument is a struct resident_op. */
double resident_op_run(void *work, uint64_t count);

bool bench_on_opencl(const struct bench *bench);
bool bench_on_cpu_plugin(const struct bench *bench);

/* ---- results are checked before they are timed ---- */

/* Returns element `index` of an f32 buffer of device_session_buffer. */
float seed_value(uint64_t index);
/* Returns element `index` of an integer operand of bench_resident_op, in
 * [0, limit).  If `limit` is a power of two, any `limit` consecutive elements
 * have all values once, and neighbours differ widely. */
int32_t seed_index(uint64_t index, int64_t limit);
/* Launches the operator and compares some elements with check_value. */
bool check_resident_op(struct bench *bench, struct resident_op *work);
/* Returns true if `value` is right for element `index` of output 0, for inputs
 * of seed_value and seed_index.  Sets *out_expected to the expected value. */
bool check_value(const struct op_case *c, uint64_t index, double value,
                 double *out_expected);

#endif
