/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects what computes a GEMM: CLBlast, or one of our kernels with a certain
 * split-K, by predicted time. Any thread.
 */
#ifndef TANDEM_OPENCL_GEMM_GEMM_SELECTOR_H
#define TANDEM_OPENCL_GEMM_GEMM_SELECTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tandem/backend.h>

#include "opencl/gemm/gemm_cost_model.h"

struct platform_device;

struct gemm_selection {
    bool clblast;               /* CLBlast instead of `kernel` */
    enum gemm_kernel_id kernel; /* one of ours */
    struct split_k split;
};

/* Entry of the selection cache: a key and the selection. Seqlock: one thread at
 * a time writes, and readers take no lock. A reader discards what it read if
 * `sequence` was odd or changed meanwhile. */
#define SELECTION_KEY_WORDS 6u
#define SELECTION_WORDS                                                        \
    (SELECTION_KEY_WORDS + (sizeof(struct gemm_selection) + 7) / 8)
struct selection_cache_entry {
    _Atomic uint32_t sequence;
    _Atomic uint64_t words[SELECTION_WORDS];
};
#define SELECTION_CACHE_LOG2 6u

/* One per device. Only disabled_kernels and the cache change after the device
 * was opened. */
struct gemm_selector {
    struct gemm_cost_model cost_model;
    uint32_t compute_units;
    bool prefer_clblast; /* the built-in costs do not fit this device */
    bool deterministic;  /* open key deterministic */
    bool forced;         /* open key test.gemm_kernel sets forced_selection */
    struct gemm_selection forced_selection;
    /* Bit i is set if the driver cannot run kernel i. Bit i +
     * DISABLED_16BIT_SHIFT is set if it cannot run kernel i with 16-bit
     * matrices. */
    _Atomic uint64_t disabled_kernels;
    uint32_t sm90a_kernels; /* a bit for each kernel of sm_90a programs */
    struct selection_cache_entry cache[1u << SELECTION_CACHE_LOG2];
};
#define DISABLED_16BIT_SHIFT 32u

void gemm_selector_init(struct gemm_selector *selector,
                        const struct platform_device *hardware);
/* Enables the kernels of sm_90a programs, which are disabled at first. Call it
 * if their self-test has passed with this driver. */
void gemm_selector_enable_sm90a(struct gemm_selector *selector);
/* Sets the selection to the value of the open key test.gemm_kernel: clblast, or
 * KERNEL[:SPLITS[:TILES]], where TILES is the number of split tiles. Returns
 * false for any other value. */
bool gemm_selector_force(struct gemm_selector *selector, const char *value);
/* Selects what computes `gemm`, which must be valid and not empty. If nothing
 * supports it, the result is CLBlast. */
void gemm_selector_compute(struct gemm_selector *selector,
                           const struct tandem_gemm *gemm,
                           struct gemm_selection *out);
/* Like gemm_selector_compute(), which takes microseconds, with a cache. */
void gemm_selector_choose(struct gemm_selector *selector,
                          const struct tandem_gemm *gemm,
                          struct gemm_selection *out);
/* Selects the fastest of our kernels. If none supports `gemm`, the result is
 * CLBlast. */
void gemm_selector_choose_without_clblast(struct gemm_selector *selector,
                                          const struct tandem_gemm *gemm,
                                          struct gemm_selection *out);
/* Disables a kernel that does not run here, for GEMMs with the types of `gemm`.
 */
void gemm_selector_disable(struct gemm_selector *selector,
                           const struct tandem_gemm *gemm,
                           enum gemm_kernel_id kernel);
bool gemm_has_epilogue(const struct tandem_gemm *gemm);

#endif
