/* SPDX-License-Identifier: Apache-2.0 */
/* Selects CLBlast, or one of the plugin's own kernels and its split-K, for a
 * GEMM: the one with the smallest predicted time. Any thread may call these
 * functions. */
#ifndef TANDEM_OPENCL_PLAN_GEMM_SELECTOR_H
#define TANDEM_OPENCL_PLAN_GEMM_SELECTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tandem/backend.h>

#include "opencl/plan/gemm_cost_model.h"

struct platform_device;

/* The selector of one device. After the device is open, only disabled_kernels
 * changes. */
struct gemm_selector {
    struct gemm_cost_model cost_model;
    uint32_t compute_units;
    bool prefer_clblast; /* the built-in kernel costs do not fit the device */
    bool deterministic;  /* option passed to open */
    bool forced;         /* the option test.gemm_kernel is set */
    struct gemm_selection forced_selection;
    /* Bit i is set if the driver cannot run kernel i, and bit i +
     * DISABLED_16BIT_SHIFT if it cannot run kernel i with 16-bit matrices. */
    _Atomic uint64_t disabled_kernels;
    uint32_t sm90a_kernels; /* bit i: kernel i is part of an sm_90a program */
};
#define DISABLED_16BIT_SHIFT 32u

void gemm_selector_init(struct gemm_selector *selector,
                        const struct platform_device *hardware);
/* Enables the kernels of sm_90a programs, which are disabled at first. The
 * self-test of these programs must have passed with this driver. */
void gemm_selector_enable_sm90a(struct gemm_selector *selector);
/* Forces the selection that `value` of the option test.gemm_kernel requests:
 * clblast, or KERNEL[:SPLITS[:TILES]], where TILES is the number of tiles to
 * split. Returns false for any other value. */
bool gemm_selector_force(struct gemm_selector *selector, const char *value);
/* Selects a kernel or CLBlast for `gemm`, which must be valid and not empty. If
 * no kernel supports `gemm`, the result is CLBlast. */
void gemm_selector_compute(struct gemm_selector *selector,
                           const struct tandem_gemm *gemm,
                           struct gemm_selection *out);
/* Returns true if the predicted times of selections are from measured costs. */
bool gemm_selector_predicts(const struct gemm_selector *selector);
/* Selects a kernel of the plugin for a GEMM, whose operand `b` are patches
 * (gemm_plan.h) if `patches` is set.  Adds to the predicted time that of a
 * kernel that reads and writes `bytes` bytes, unless this is 0.  Returns false
 * if there is no kernel. */
bool gemm_selector_choose_own(struct gemm_selector *selector,
                              const struct tandem_gemm *gemm, bool patches,
                              uint64_t bytes, struct gemm_selection *out);
/* Selects CLBlast, unless avoids_clblast is set, or a kernel for the operator
 * GEMM.  Returns false if no kernel supports it. */
bool gemm_selector_choose_any(struct gemm_selector *selector,
                              const struct tandem_gemm *gemm,
                              bool avoids_clblast, struct gemm_selection *out);
/* Disables a kernel that failed. If `gemm` has 16-bit matrices, disables it
 * only for GEMMs with 16-bit matrices, otherwise for all GEMMs. */
void gemm_selector_disable(struct gemm_selector *selector,
                           const struct tandem_gemm *gemm,
                           enum gemm_kernel_id kernel);

#endif
