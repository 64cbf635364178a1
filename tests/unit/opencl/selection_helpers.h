/* SPDX-License-Identifier: Apache-2.0 */
/* What tests ask about the choice of a product's kernel; each has one set of
 * routes. */
#ifndef TANDEM_TESTS_OPENCL_CHOICE_H
#define TANDEM_TESTS_OPENCL_CHOICE_H

#include <check.h>
#include <string.h>

#include "opencl/device/device_enumeration.h"
#include "opencl/gemm/gemm_selector.h"
#include "gemm_helpers.h"

static struct routes routes;

static inline void routes_begin(const struct platform_device *hardware)
{
    memset(&routes, 0, sizeof(routes));
    routes_start(&routes, hardware);
}

static inline struct route choose(const struct tandem_gemm *gemm)
{
    struct route route;
    gemm_selector_compute(&routes, gemm, &route);
    return route;
}

static inline struct route choice(int64_t m, int64_t n, int64_t k)
{
    struct tandem_gemm gemm = product(m, n, k, 1);
    return choose(&gemm);
}

static inline void take(const char *key, const char *value)
{
    ck_assert_msg(costs_take(&routes.costs, key, value), "%s: %s", key, value);
}

#endif
