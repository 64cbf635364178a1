/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernel computes a matrix product: CLBlast's, or one of ours, in which
 * tiles, over how many splits of k.  By costs, measured where the profile has
 * them.
 */
#ifndef TANDEM_OPENCL_GEMM_GEMM_SELECTOR_H
#define TANDEM_OPENCL_GEMM_GEMM_SELECTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tandem/backend.h>

#include "opencl/gemm/gemm_cost_model.h"

struct platform_device;

struct gemm_selection {
    bool clblast;
    enum gemm_kernel_id tile; /* where it is not CLBlast's */
    struct split_k division;
};

/* A route that was chosen, with all that the choice depends on: written by one
 * thread at a time, read by any without a lock.  What was read while turn was
 * odd, or has changed, is nothing. */
#define SELECTION_KEY_WORDS 6u
#define SELECTION_WORDS                                                        \
    (SELECTION_KEY_WORDS + (sizeof(struct gemm_selection) + 7) / 8)
struct selection_cache_entry {
    _Atomic uint32_t sequence;
    _Atomic uint64_t words[SELECTION_WORDS];
};
#define SELECTION_CACHE_LOG2 6u

/* A device's.  But for disabled_kernels and the memos, nothing changes after
 * open. */
struct gemm_selector {
    struct gemm_cost_model cost_model;
    uint32_t compute_units; /* compute units */
    bool prefer_clblast; /* nothing is built in of our kernels here */
    bool deterministic;  /* by the open key deterministic */
    bool forced; /* by the open key test.gemm_kernel: forced_selection */
    struct gemm_selection forced_selection;
    /* Bits of tiles that this driver cannot run; from DISABLED_16BIT_SHIFT on,
     * those with operands of 16 bits. */
    _Atomic uint64_t disabled_kernels;
    uint32_t sm90a_kernels; /* bits of those that only wait for
                               gemm_selector_enable_sm90a */
    struct selection_cache_entry cache[1u << SELECTION_CACHE_LOG2];
};
#define DISABLED_16BIT_SHIFT 32u

void gemm_selector_init(struct gemm_selector *selector,
                        const struct platform_device *hardware);
/* Permits the kernels of sm_90a programs, whose self-test has passed on this
 * driver (sm90a_self_test_result.h).  None is selected before this call. */
void gemm_selector_enable_sm90a(struct gemm_selector *selector);
/* The value of the open key test.gemm_kernel: clblast, or
 * TILE[:SPLITS[:TILES]], where TILES are in splits; false where it is neither.
 */
bool gemm_selector_force(struct gemm_selector *selector, const char *value);
/* gemm is supported and not empty.  Any thread.  A route by CLBlast for what
 * CLBlast does not take: none of the tiles does, either. */
void gemm_selector_compute(struct gemm_selector *selector,
                           const struct tandem_gemm *gemm,
                           struct gemm_selection *out_selection);
/* gemm_selector_compute, which takes microseconds, or what it said before. */
void gemm_selector_choose(struct gemm_selector *selector,
                          const struct tandem_gemm *gemm,
                          struct gemm_selection *out_selection);
/* The fastest of our tiles, where CLBlast is out of the question; by CLBlast
 * where none of them serves. */
void gemm_selector_choose_without_clblast(struct gemm_selector *selector,
                                          const struct tandem_gemm *gemm,
                                          struct gemm_selection *out_selection);
/* Notes that the route's tile does not run here, for products like gemm. */
void gemm_selector_disable(struct gemm_selector *selector,
                           const struct tandem_gemm *gemm,
                           const struct gemm_selection *selection);

#endif
