/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring one device in a child process: a time budget, shared out among
 * the steps; what was found, for the answer and for the profile.
 *
 * Compiling does not count against the budget: it happens once, takes as long
 * as it takes, and larger sizes would be dropped for it.
 */
#ifndef CL_PROBE_MEASURE_H
#define CL_PROBE_MEASURE_H

#include "../common/resident_op.h"
#include "device_job.h"

#define COMPILE_SAMPLES 32

struct calibration_run {
    bool quick;
    struct device_session session;
    struct tandem_profile *profile; /* owned */
    struct child_link *link;        /* borrowed */
    json_t *result;                 /* owned */
    struct timing_plan plan;
    uint64_t max_bytes; /* of all operands of one measurement */

    uint64_t budget_ns; /* not yet used */
    double weight_left; /* of the steps not yet begun */
    double weight_all;
    uint64_t step_start_ns, step_compile_ns;
    uint64_t deadline_ns;         /* of the present step */
    uint64_t compile_deadline_ns; /* from then on nothing more is compiled */

    /* Of operators met for the first time. */
    double compile_ns[COMPILE_SAMPLES];
    bool prebuilt; /* all but the first */
    size_t compile_count;
};

/* Begins a step with its share of the budget; ends it. */
void step_begin(struct calibration_run *calibration, double weight,
                const char *name);
void step_end(struct calibration_run *calibration);
/* ns left of the step's share; 0 when it is used up. */
uint64_t step_left_ns(const struct calibration_run *calibration);

/* Whether compilers have taken so long that what needs another is left out. */
bool calibration_is_late(const struct calibration_run *calibration);

/* Times work; its compile extends the step.  fresh: the operator was not used
 * before.  expected_ns: what one launch should take; 0 unknown. */
enum tandem_status calibration_time(struct calibration_run *calibration,
                                    struct resident_op *work, bool fresh,
                                    double expected_ns, struct timing *out);

/* What was found, into the answer and the profile. */
void calibration_add_scalar(struct calibration_run *calibration,
                            const char *name, double ns);
void calibration_add_point(struct calibration_run *calibration,
                           const char *curve, double x, double ns);
void calibration_add_gemm_point(struct calibration_run *calibration, int64_t m,
                                int64_t n, int64_t k, double ns);
/* What could not be measured, and why: the plugin's last message. */
void calibration_skip(struct calibration_run *calibration, const char *what);
/* Likewise, where a call of the plugin failed: TANDEM_OK, or its status where
 * nothing more can be had of the device. */
enum tandem_status calibration_op_failed(struct calibration_run *calibration,
                                         const char *what,
                                         enum tandem_status status);
/* The operator that a curve, or "launch" or "gemm", was measured with; NULL:
 * the device serves none. */
void calibration_set_operator(struct calibration_run *calibration,
                              const char *what, const char *op);

/* The steps.  A status that is not TANDEM_OK ends the device: a step that the
 * device does not serve is skipped with TANDEM_OK. */
enum tandem_status measure_scalars(struct calibration_run *calibration);
enum tandem_status measure_transfers(struct calibration_run *calibration);
enum tandem_status measure_curves(struct calibration_run *calibration);
enum tandem_status measure_products(struct calibration_run *calibration);
enum tandem_status measure_tuning(struct calibration_run *calibration);

/* precompilation.c: before a driver is touched.  false: nothing was compiled.
 */
bool kernels_precompile(const struct device_job_request *request,
                        struct child_link *link);

/* Weights of the steps, as they share the budget. */
#define WEIGHT_SCALARS 1.0
#define WEIGHT_TRANSFER 0.7 /* each of four */
#define WEIGHT_CURVE 1.0    /* each of nine */
#define WEIGHT_PRODUCTS 5.0

/* tuning_measurement.c, child process: runs the plugin's tune for at most
 * budget_ns and stores each result in the profile and in out_found.  Saves the
 * profile after each result if `save` is true.  A device that has nothing to
 * tune adds no results. */
enum tandem_status tune_run(struct device_session *session,
                            struct tandem_profile *profile, uint64_t budget_ns,
                            bool save, json_t *out_found);

#endif
