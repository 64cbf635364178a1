/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the measurements of a device. tune_device runs all of them. It is
 * the entry `tune` of the backend's table of functions. */
#ifndef TANDEM_OPENCL_TUNE_TUNE_H
#define TANDEM_OPENCL_TUNE_TUNE_H

#include <tandem/extensions.h>

#include "opencl/tune/kernel_timer.h"
#include "opencl/plan/gemm_selector.h"

/* Receives each tuning result. */
struct tuning_results_sink {
    tandem_tuning_result_fn callback;
    void *user;
};

enum tandem_status tune_device(struct tandem_device *device, uint64_t budget_ns,
                               tandem_tuning_result_fn callback, void *user);

/* ---- tune_gemm_costs.c ---- */

/* A GEMM whose operands are in the scratch memory of a timer. */
struct timed_gemm {
    struct tandem_gemm gemm;
    enum gemm_kernel_id kernel;
    uint64_t bytes; /* total size of a, b and c */
    /* The scratch memory holds a and then `copies` copies of b. Each launch
     * uses the next copy, so that b is not in a cache. */
    uint64_t a_bytes, b_bytes;
    uint32_t copies, launches;
};

/* Initializes an f32 GEMM whose operand b is transposed. */
void timed_gemm_init(struct timed_gemm *out, const struct kernel_timer *timer,
                     int64_t m, int64_t n, int64_t k, int64_t batch);
/* Waits until `kernel` is built, then enqueues a GEMM with it. */
enum tandem_status gemm_kernel_launch(struct kernel_timer *timer,
                                      const struct tandem_gemm *gemm,
                                      enum gemm_kernel_id kernel);
/* Measures the costs of Tandem's GEMM kernels (gemm_cost_model.h). If
 * `all_kernels` is false, skips kernels that only 16-bit and reduced-accuracy
 * GEMMs use. Returns an error only if the device no longer works. */
enum tandem_status tune_gemm_costs(struct kernel_timer *timer,
                                   const struct tuning_results_sink *sink,
                                   bool all_kernels);

/* Times CLBlast for several GEMM shapes and reports the times. */
enum tandem_status tune_clblast_times(struct kernel_timer *timer,
                                      const struct tuning_results_sink *sink);
/* Runs the self-test of the sm_90a programs if the device supports them. First
 * reports "started", which remains the result if the driver crashes. */
enum tandem_status sm90a_self_test_run(struct tandem_device *device,
                                       uint64_t budget_ns,
                                       const struct tuning_results_sink *sink);

#endif
