/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where f32 ends: results whose partial results may overflow or be subnormal in
 * some order of summing, though the result itself is neither.  See judge.h.
 */
#include "judge.h"

#include "conformance/number.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is known of the elements that are reduced to one. */
struct extent {
    double large, small; /* log2 of the products of those above, below 1 */
    double sum;          /* of the summands' magnitudes */
    int64_t count;
};

static int64_t *slots_find(const struct dense *in, uint32_t axes)
{
    int64_t *slots = must_allocate((uint64_t)in->elements * sizeof(*slots));
    int64_t index[TANDEM_MAX_RANK] = {0}, step[TANDEM_MAX_RANK] = {0};
    int64_t count = 1;

    for (uint32_t axis = in->rank; axis-- > 0;) {
        if (axes >> axis & 1u)
            continue;
        step[axis] = count;
        count *= in->shape[axis];
    }
    for (int64_t i = 0; i < in->elements; i++) {
        for (uint32_t axis = 0; axis < in->rank; axis++)
            slots[i] += index[axis] * step[axis];
        index_next(in->rank, in->shape, index);
    }
    return slots;
}

static void extent_add(struct extent *extent, double factor, double summand)
{
    double size = fabs(factor);

    if (size > 1.0 && isfinite(size))
        extent->large += log2(size);
    if (size > 0.0 && size < 1.0)
        extent->small += log2(size);
    if (isfinite(summand))
        extent->sum += fabs(summand);
    extent->count++;
}

static bool extent_leaves(const struct extent *extent, uint32_t id)
{
    if (id == TANDEM_OP_PROD)
        return extent->large >= 127.99 || extent->small <= -125.0;
    return extent->sum >= 0.999 * (double)FLT_MAX;
}

/* A summand that is a product may be flushed where it is subnormal. */
static bool summand_is_product(uint32_t id)
{
    return id == TANDEM_OP_SUM_SQUARE || id == TANDEM_OP_DOT;
}

static void reduction_find(const struct problem *p, const struct dense *inputs,
                           struct expected *expected, bool *outside)
{
    uint32_t id = p->row->id;
    uint32_t axes = id == TANDEM_OP_DOT ? 1u : (uint32_t)p->ints[0];
    int64_t *slots = slots_find(&inputs[0], axes);
    struct extent *extents =
        must_allocate((uint64_t)expected->elements * sizeof(*extents));

    for (int64_t i = 0; i < inputs[0].elements; i++) {
        double x = dense_real(&inputs[0], i), summand = x;

        if (id == TANDEM_OP_SUM_SQUARE)
            summand = x * x;
        if (id == TANDEM_OP_DOT)
            summand = x * dense_real(&inputs[1], i);
        extent_add(&extents[slots[i]], x, summand);
    }
    for (int64_t i = 0; i < expected->elements; i++) {
        outside[i] = extent_leaves(&extents[i], id);
        if (summand_is_product(id))
            expected->tolerance[i] +=
                (double)extents[i].count * (double)FLT_MIN;
    }
    free(extents);
    free(slots);
}

/* The sum of magnitudes, from the tolerance that is relative to it. */
static void product_find(const struct problem *p, struct expected *expected,
                         bool *outside)
{
    const struct tandem_gemm *gemm = &p->gemm;
    double size = fabs(gemm->alpha) < 1.0 ? fabs(gemm->alpha) : 1.0;
    double k = (double)gemm->k;
    double relative = (p->row->tolerance + 2.0 * sqrt(k)) * REFERENCE_2EPS;

    for (int64_t i = 0; i < expected->elements; i++) {
        double scale = expected->tolerance[i] / relative;

        outside[i] = size > 0.0 && scale / size > 0.5 * (double)FLT_MAX;
        expected->tolerance[i] +=
            (k + 2.0) * fmax(fabs(gemm->alpha), 1.0) * (double)FLT_MIN;
    }
}

void range_find(const struct problem *problem, const struct dense *inputs,
                struct expected *expected, bool **out_outside)
{
    uint32_t id = problem->row->id;
    bool sums = id == TANDEM_OP_SUM || id == TANDEM_OP_SUM_SQUARE ||
                id == TANDEM_OP_PROD || id == TANDEM_OP_DOT;

    if (!sums && id != TANDEM_OP_GEMM)
        return;
    *out_outside = must_allocate((uint64_t)expected->elements);
    if (sums)
        reduction_find(problem, inputs, expected, *out_outside);
    else
        product_find(problem, expected, *out_outside);
}
