/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calibration of one device, in a child process.  The steps share a time budget
 * and store their measurements in the result, which has the members "scalars",
 * "curves", "gemm" and "tuning" of a profile, and "missing", the names of the
 * parts that are not finished.
 *
 * Time spent compiling kernels does not count against the budget.  Otherwise a
 * slow compiler would leave no time for large sizes.
 */
#ifndef CL_PROBE_CALIBRATION_TIMING_H
#define CL_PROBE_CALIBRATION_TIMING_H

#include "../common/resident_op.h"
#include "device_job.h"
#include "machine_load.h"

#define COMPILE_SAMPLES 32
#define MAX_SPREADS 1024 /* more timings are not counted */

/* Names of the parts that are not curves. */
#define PART_SCALARS "alloc, launch, sync"
#define PART_GEMM "gemm"
#define PART_TUNING "tuning"

struct calibration_run {
    bool quick;
    struct device_session session;
    struct child_link *link; /* borrowed */
    json_t *result;          /* owned */
    struct timing_plan plan;
    uint64_t max_bytes; /* limit for the operands of one measurement together */

    uint64_t budget_ns; /* not used by the finished steps */
    double weight_left; /* sum of the weights of the steps not yet begun */
    double weight_all;
    const char *step; /* name of the current step */
    uint64_t step_start_ns, step_compile_ns;
    uint64_t compile_total_ns; /* of all steps and of precompilation.c */
    uint64_t deadline_ns;      /* of the current step */
    uint64_t
        compile_deadline_ns; /* measurements that need a compiler end then */

    /* Compile times of operators that were used for the first time. */
    double compile_ns[COMPILE_SAMPLES];
    bool prebuilt; /* precompilation.c compiled all kernels except the first */
    size_t compile_count;

    /* Spreads of the timings; see struct timing. */
    double spreads[MAX_SPREADS];
    size_t spread_count;
    struct cpu_delay delay; /* when the measurements began */
};

/* Begin and end a step.  Its share of the remaining budget is `weight` divided
 * by weight_left.  If `status` is TANDEM_OK, the step is a finished part of the
 * calibration. */
void step_begin(struct calibration_run *calibration, double weight,
                const char *name);
void step_end(struct calibration_run *calibration, enum tandem_status status);
/* Removes the part from the result's list of missing parts, and sends the
 * result to the parent, which keeps it if this process ends early. */
void calibration_finish_part(struct calibration_run *calibration,
                             const char *part);
/* Returns the time left in the step's share of the budget, or 0. */
uint64_t step_left_ns(const struct calibration_run *calibration);

/* Returns true after compile_deadline_ns.  Sizes that need a further kernel are
 * then skipped. */
bool calibration_is_late(const struct calibration_run *calibration);

/* Times an operator, and extends the step by its compile time.  `fresh` is true
 * if the operator was not used before.  expected_ns is the expected time of one
 * launch, or 0 if unknown. */
enum tandem_status calibration_time(struct calibration_run *calibration,
                                    struct resident_op *work, bool fresh,
                                    double expected_ns, struct timing *out);

/* Returns the name of curve `i` of a profile, or NULL after the last one. */
const char *calibration_curve(size_t i);

/* Store a measurement in the result. */
void calibration_add_scalar(struct calibration_run *calibration,
                            const char *name, double ns);
void calibration_add_point(struct calibration_run *calibration,
                           const char *curve, double x, double ns);
void calibration_add_gemm_point(struct calibration_run *calibration, int64_t m,
                                int64_t n, int64_t k, double ns);
/* Records that `what` could not be measured, with the plugin's last error. */
void calibration_skip(struct calibration_run *calibration, const char *what);
/* Like calibration_skip, after a call of the plugin returned `status`.  Returns
 * `status` if the device cannot be used further, else TANDEM_OK. */
enum tandem_status calibration_op_failed(struct calibration_run *calibration,
                                         const char *what,
                                         enum tandem_status status);
/* Records with which operator a curve, or "launch" or "gemm", was measured;
 * NULL if the device supports none. */
void calibration_set_operator(struct calibration_run *calibration,
                              const char *what, const char *op);

/* The steps.  A status other than TANDEM_OK ends the calibration of the device.
 * A step that the device does not support returns TANDEM_OK. */
enum tandem_status measure_scalars(struct calibration_run *calibration);
enum tandem_status measure_transfers(struct calibration_run *calibration);
enum tandem_status measure_curves(struct calibration_run *calibration);
enum tandem_status measure_products(struct calibration_run *calibration);
enum tandem_status measure_tuning(struct calibration_run *calibration);

/* precompilation.c: compiles the kernels of the calibration.  Must be called
 * before this process loads a driver.  Opens the device and closes it again, so
 * that compile processes do not disturb the measurement.  Returns false if it
 * compiled nothing. */
bool kernels_precompile(const struct device_job_request *request,
                        struct child_link *link);

/* Weights of the steps' shares of the budget. */
#define WEIGHT_SCALARS 1.0
#define WEIGHT_TRANSFER 0.7 /* for each of four transfer curves */
#define WEIGHT_CURVE 1.0    /* for each of nine cost classes */
#define WEIGHT_PRODUCTS 5.0

/* tuning_measurement.c: runs the plugin's tune for at most budget_ns and adds
 * each result to out_found.  Calls on_found(user) after each.  A device that
 * has nothing to tune adds no results. */
typedef void (*tune_found_fn)(void *user, const char *key, const char *value);
enum tandem_status tune_run(struct device_session *session, uint64_t budget_ns,
                            json_t *out_found, tune_found_fn on_found,
                            void *user);
/* Like tune_run.  Saves each result in the profile at once. */
enum tandem_status tune_and_save(struct device_session *session,
                                 struct tandem_profile *profile,
                                 uint64_t budget_ns, json_t *out_found);

#endif
