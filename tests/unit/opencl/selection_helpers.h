/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the tests of the GEMM kernel selection share. Each test
 * program has one gemm_selector.
 */
#ifndef TANDEM_TESTS_OPENCL_SELECTION_HELPERS_H
#define TANDEM_TESTS_OPENCL_SELECTION_HELPERS_H

#include <check.h>
#include <string.h>

#include "opencl/device/device_enumeration.h"
#include "opencl/plan/gemm_selector.h"
#include "gemm_helpers.h"

static struct gemm_selector selector;

static inline void selector_reset(const struct platform_device *hardware)
{
    memset(&selector, 0, sizeof(selector));
    gemm_selector_init(&selector, hardware);
}

static inline struct gemm_selection
select_kernel(const struct tandem_gemm *gemm)
{
    struct gemm_selection selection;
    gemm_selector_compute(&selector, gemm, &selection);
    return selection;
}

static inline struct gemm_selection select_kernel_for(int64_t m, int64_t n,
                                                      int64_t k)
{
    struct tandem_gemm gemm = gemm_new(m, n, k, 1);
    return select_kernel(&gemm);
}

static inline void cost_set(const char *key, const char *value)
{
    ck_assert_msg(gemm_cost_model_parse(&selector.cost_model, key, value),
                  "%s: %s", key, value);
}

#endif
