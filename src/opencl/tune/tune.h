/* SPDX-License-Identifier: Apache-2.0 */
/* The tune entry of backend.h, and the measurements that it runs. */
#ifndef TANDEM_OPENCL_TUNE_TUNE_H
#define TANDEM_OPENCL_TUNE_TUNE_H

#include <tandem/backend.h>

#include "opencl/tune/kernel_timer.h"
#include "opencl/gemm/gemm_selector.h"

/* Receives each tuning result. */
struct tuning_results_sink {
    tandem_tuning_result_fn callback;
    void *user;
};

enum tandem_status tune_device(struct tandem_device *device, uint64_t budget_ns,
                               tandem_tuning_result_fn callback, void *user);

/* ---- tune_gemm_costs.c ---- */

/* A GEMM on operands in the timer's memory. */
struct timed_gemm {
    struct tandem_gemm gemm;
    enum gemm_kernel_id kernel;
    uint64_t bytes; /* that a, b and c take */
    /* The memory holds `copies` matrices b after a. Each launch uses the next
     * one. */
    uint64_t a_bytes, b_bytes;
    uint32_t copies, launches;
};

/* Initializes an f32 GEMM with transposed b. */
void timed_gemm_init(struct timed_gemm *out, const struct kernel_timer *timer,
                     int64_t m, int64_t n, int64_t k, int64_t batch);
/* Enqueues a GEMM with kernel `kernel`, after waiting for its build. */
enum tandem_status gemm_kernel_launch(struct kernel_timer *timer,
                                      const struct tandem_gemm *gemm,
                                      enum gemm_kernel_id kernel);
/* Measures the cost model of our GEMM kernels (gemm_cost_model.h). If
 * `all_kernels` is false, skips kernels that only 16-bit or less accurate GEMM
 * may use. Skips what cannot be measured; returns an error only if the device
 * no longer works. */
enum tandem_status tune_gemm_costs(struct kernel_timer *timer,
                                   const struct tuning_results_sink *sink,
                                   bool all_kernels);

/* tune_clblast_times.c: times CLBlast for several shapes. Reports the times
 * only if there are at least *count of them, and then updates *count. */
enum tandem_status tune_clblast_times(struct kernel_timer *timer,
                                      const struct tuning_results_sink *sink,
                                      uint32_t *count);
/* clblast_search.c: searches for fast CLBlast parameters, and leaves the best
 * ones set in CLBlast. */
enum tandem_status clblast_search_run(struct kernel_timer *timer,
                                      const struct tuning_results_sink *sink);
/* sm90a_self_test.c: runs the self-test of the sm_90a programs if the device
 * may use them. Reports "started" first, so that a crash leaves that result. */
enum tandem_status sm90a_self_test_run(struct tandem_device *device,
                                       uint64_t budget_ns,
                                       const struct tuning_results_sink *sink);

/* ---- selection_report.c ---- */

/* Passes results on, and reports afterwards which kernel they select for some
 * square matrices. The report (gemm.selected.DTYPE) is for people only. */
struct selection_report {
    struct tuning_results_sink input; /* pass this to the measurements */
    struct tuning_results_sink output;
    struct gemm_selector selector; /* with the measured costs */
};
void selection_report_init(struct selection_report *report,
                           struct tandem_device *device,
                           const struct tuning_results_sink *output);
void selection_report_write(struct selection_report *report);

#endif
