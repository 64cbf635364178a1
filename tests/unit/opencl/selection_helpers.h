/* SPDX-License-Identifier: Apache-2.0 */
/* What tests ask about the choice of a product's kernel; each has one set of
 * gemm_selector. */
#ifndef TANDEM_TESTS_OPENCL_CHOICE_H
#define TANDEM_TESTS_OPENCL_CHOICE_H

#include <check.h>
#include <string.h>

#include "opencl/device/device_enumeration.h"
#include "opencl/gemm/gemm_selector.h"
#include "gemm_helpers.h"

static struct gemm_selector selector;

static inline void routes_begin(const struct platform_device *hardware)
{
    memset(&selector, 0, sizeof(selector));
    gemm_selector_init(&selector, hardware);
}

static inline struct gemm_selection choose(const struct tandem_gemm *gemm)
{
    struct gemm_selection selection;
    gemm_selector_compute(&selector, gemm, &selection);
    return selection;
}

static inline struct gemm_selection choice(int64_t m, int64_t n, int64_t k)
{
    struct tandem_gemm gemm = product(m, n, k, 1);
    return choose(&gemm);
}

static inline void take(const char *key, const char *value)
{
    ck_assert_msg(gemm_cost_model_parse(&selector.cost_model, key, value),
                  "%s: %s", key, value);
}

#endif
