/* SPDX-License-Identifier: Apache-2.0 */
/* The tune entry of backend.h: what is measured on a device, for the plugin's
 * own section of its profile. */
#ifndef TANDEM_OPENCL_TUNE_TUNE_H
#define TANDEM_OPENCL_TUNE_TUNE_H

#include <tandem/backend.h>

#include "opencl/tune/kernel_timer.h"
#include "opencl/gemm/gemm_selector.h"

/* Where findings go. */
struct findings {
    tandem_tuning_result_fn sink;
    void *user;
};

enum tandem_status tune_device(struct tandem_device *device,
                               uint64_t budget_ns, tandem_tuning_result_fn sink,
                               void *user);

/* tune_gemm_costs.c: the costs of gemm_cost_model.h, of our kernels, or of
 * CLBlast's. TANDEM_OK where the device is well, whatever could not be
 * measured.  all: those too that only some products may take. */
enum tandem_status tune_tiles(struct meter *meter,
                              const struct findings *findings, bool all);
/* times: of how many products were told before, and are now; told where they
 * are no fewer. */
enum tandem_status tune_clblast_times(struct meter *meter,
                                      const struct findings *findings,
                                      uint32_t *times);
/* sm90a_self_test.c: whether patched programs are right
 * (sm90a_self_test_result.h), where there may be any.  What is told last holds,
 * whatever ends the process. */
enum tandem_status tune_patched(struct tandem_device *device,
                                uint64_t budget_ns,
                                const struct findings *findings);
/* selection_report.c: passes findings on, and tells then which kernels they
 * choose for some squares, as gemm.chosen.DTYPE: for people, nobody reads it
 * back. */
struct chosen {
    struct findings findings; /* for the measuring: they pass through here */
    struct findings told;     /* where they go then */
    struct gemm_selector selector; /* with the costs that were found */
};
void chosen_start(struct chosen *chosen, struct tandem_device *device,
                  const struct findings *findings);
void chosen_tell(struct chosen *chosen);
/* clblast_search.c: CLBlast's parameters. */
enum tandem_status tune_search(struct meter *meter,
                               const struct findings *findings);

#endif
