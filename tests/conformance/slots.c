/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that are reduced together; see slots.h. */
#include "slots.h"

#include <math.h>
#include <stdlib.h>

/* Returns the slot of each element; *out_count is the number of slots. */
static int64_t *slots_of(const struct dense *in, uint32_t axes,
                         int64_t *out_count)
{
    int64_t *slots = must_allocate((uint64_t)in->elements * sizeof(*slots));
    int64_t index[TANDEM_MAX_RANK] = {0}, step[TANDEM_MAX_RANK] = {0};

    *out_count = 1;
    for (uint32_t axis = in->rank; axis-- > 0;) {
        if (axes & (1u << axis))
            continue;
        step[axis] = *out_count;
        *out_count *= in->shape[axis];
    }
    for (int64_t i = 0; i < in->elements; i++) {
        for (uint32_t axis = 0; axis < in->rank; axis++)
            slots[i] += index[axis] * step[axis];
        index_next(in->rank, in->shape, index);
    }
    return slots;
}

static void slot_multiply(struct slot *slot, double x)
{
    double size = fabs(x);
    int exponent = 0;

    slot->product = frexpl(slot->product * x, &exponent);
    if (isfinite(slot->product))
        slot->exponent += exponent;
    if (size > 1.0 && isfinite(size))
        slot->log2_above += log2(size);
    if (size > 0.0 && size < 1.0)
        slot->log2_below += log2(size);
}

static void slot_add(struct slot *slot, double x, long double summand)
{
    slot->sum += summand;
    slot->magnitude += fabsl(summand);
    if (isfinite(x) && fabs(x) > slot->largest)
        slot->largest = fabs(x);
    if (isnan(x)) {
        if (!slot->nan)
            slot->max_at = slot->min_at = slot->count;
        slot->nan = true;
    } else if (!slot->nan) {
        if (slot->count == 0 || x > slot->max)
            slot->max_at = slot->count;
        if (slot->count == 0 || x < slot->min)
            slot->min_at = slot->count;
    }
    if (slot->count == 0 || x > slot->max)
        slot->max = x;
    if (slot->count == 0 || x < slot->min)
        slot->min = x;
    slot->count++;
}

void slots_init(struct slots *slots, const struct call *call,
                const struct dense *in, uint32_t axes, bool exponentials)
{
    const uint32_t id = call->row->id;

    slots->of_element = slots_of(in, axes, &slots->count);
    slots->all = must_allocate((uint64_t)slots->count * sizeof(*slots->all));
    for (int64_t i = 0; i < slots->count; i++)
        slots->all[i].product = 1.0L;
    for (int64_t i = 0; i < in->elements; i++) {
        double x = dense_real(in, i);
        long double summand = x;

        if (id == TANDEM_OP_SUM_SQUARE || id == TANDEM_OP_L2)
            summand *= summand;
        if (id == TANDEM_OP_DOT)
            summand *= dense_real(&in[1], i);
        slot_add(&slots->all[slots->of_element[i]], x, summand);
        if (id == TANDEM_OP_PROD)
            slot_multiply(&slots->all[slots->of_element[i]], x);
    }
    /* If max is infinite, the sum is not used. */
    for (int64_t i = 0; exponentials && i < in->elements; i++) {
        struct slot *slot = &slots->all[slots->of_element[i]];

        slot->exponentials += expl((long double)dense_real(in, i) - slot->max);
    }
}

void slots_finish(struct slots *slots)
{
    free(slots->all);
    free(slots->of_element);
}
