/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expected values of reductions, arg reductions, dot, softmax and
 * cross-entropy; see reference.h. Each element of the input belongs to one
 * slot: the elements that are reduced together. Slots are numbered in
 * row-major order of the remaining axes.
 */
#include "reference.h"

#include <math.h>
#include <stdlib.h>

struct slot {
    long double sum, magnitude, exponentials;
    long double product; /* Times 2^exponent. */
    int64_t exponent;
    /* log2 of the product of all finite |x| above 1, and of all nonzero |x|
     * below 1: P and Q of TANDEM_METRIC_PROD. */
    double log2_above, log2_below;
    double max, min, largest; /* The largest finite |x|. */
    int64_t count, max_at, min_at;
    bool nan;
};

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

/* Returns true if a partial product may leave the normal range of f32. */
static bool prod_is_unspecified(const struct slot *slot)
{
    return slot->log2_above > 127.0 || slot->log2_below < -125.0;
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

/*
 * Adds up e^(x - max) for each slot. If max is infinite, the sum is not used.
 */
static void exponentials_add(struct slot *slots, const int64_t *slot_of,
                             const struct dense *in)
{
    for (int64_t i = 0; i < in->elements; i++) {
        struct slot *slot = &slots[slot_of[i]];

        slot->exponentials += expl((long double)dense_real(in, i) - slot->max);
    }
}

static struct slot *slots_gather(const struct reference *call,
                                 const int64_t *slot_of, int64_t count)
{
    const struct dense *in = &call->inputs[0];
    struct slot *slots = must_allocate((uint64_t)count * sizeof(*slots));
    uint32_t id = call->row->id;

    for (int64_t i = 0; i < count; i++)
        slots[i].product = 1.0L;
    for (int64_t i = 0; i < in->elements; i++) {
        double x = dense_real(in, i);
        long double summand = x;

        if (id == TANDEM_OP_SUM_SQUARE || id == TANDEM_OP_L2)
            summand *= summand;
        if (id == TANDEM_OP_DOT)
            summand *= dense_real(&call->inputs[1], i);
        slot_add(&slots[slot_of[i]], x, summand);
        if (id == TANDEM_OP_PROD)
            slot_multiply(&slots[slot_of[i]], x);
    }
    return slots;
}

static double log2_of(int64_t n)
{
    return n > 1 ? log2((double)n) : 0.0;
}

static double log_sum(const struct slot *slot)
{
    if (slot->nan)
        return (double)NAN;
    if (slot->count == 0)
        return (double)-INFINITY;
    if (isinf(slot->max))
        return slot->max;
    return (double)(slot->max + logl(slot->exponentials));
}

static double slot_prod(const struct slot *slot)
{
    int64_t exponent = slot->exponent > 4096    ? 4096
                       : slot->exponent < -4096 ? -4096
                                                : slot->exponent;

    return (double)ldexpl(slot->product, (int)exponent);
}

static double slot_value(uint32_t id, const struct slot *slot,
                         double *out_scale)
{
    long double n = slot->count;

    *out_scale = (double)slot->magnitude;
    switch (id) {
    case TANDEM_OP_MEAN:
        *out_scale = (double)(slot->magnitude / n);
        return (double)(slot->sum / n);
    case TANDEM_OP_PROD:
        return slot_prod(slot);
    case TANDEM_OP_REDUCE_MAX:
        return slot->nan ? (double)NAN : slot->max;
    case TANDEM_OP_REDUCE_MIN:
        return slot->nan ? (double)NAN : slot->min;
    case TANDEM_OP_L2:
        *out_scale = (double)sqrtl(slot->magnitude);
        return (double)sqrtl(slot->sum);
    case TANDEM_OP_LOG_SUM_EXP:
        return log_sum(slot);
    default:
        return (double)slot->sum;
    }
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double slot_tolerance(const struct op_row *row, const struct slot *slot,
                             double real, double scale)
{
    double t = row->tolerance + log2_of(slot->count);

    switch (row->metric) {
    case TANDEM_METRIC_LOG_SUM_EXP:
        return t * REFERENCE_2EPS *
               larger(1.0, larger(fabs(real), slot->largest));
    case TANDEM_METRIC_PROD:
        return (row->tolerance + (double)slot->count) * REFERENCE_2EPS *
               fabs(real);
    default:
        return t * REFERENCE_2EPS * scale;
    }
}

void reference_reduce(const struct reference *call, struct expected *out)
{
    const struct op_row *row = call->row;
    const struct dense *in = &call->inputs[0];
    bool arg = row->op_class == TANDEM_CLASS_ARG_REDUCE;
    uint32_t axes = row->id == TANDEM_OP_DOT ? 1u : (uint32_t)call->ints[0];
    int64_t count;
    int64_t *slot_of = slots_of(in, axes, &count);
    struct slot *slots = slots_gather(call, slot_of, count);

    if (row->id == TANDEM_OP_LOG_SUM_EXP)
        exponentials_add(slots, slot_of, in);
    expected_init(out, arg ? EXPECTED_INTEGER : EXPECTED_REAL, count);
    out->exact = row->metric == TANDEM_METRIC_EXACT;
    out->subnormal_tolerance = REFERENCE_SUBNORMAL;
    if (row->metric == TANDEM_METRIC_PROD)
        out->unspecified = must_allocate((uint64_t)count);
    for (int64_t i = 0; i < count; i++) {
        double scale;

        if (arg) {
            out->integer[i] =
                row->id == TANDEM_OP_ARGMAX ? slots[i].max_at : slots[i].min_at;
            continue;
        }
        out->real[i] = slot_value(row->id, &slots[i], &scale);
        out->tolerance[i] = slot_tolerance(row, &slots[i], out->real[i], scale);
        if (out->unspecified != NULL)
            out->unspecified[i] = prod_is_unspecified(&slots[i]);
    }
    free(slots);
    free(slot_of);
}

/* Returns e^(x - m) / sum, or its logarithm, for one element. */
static double softmax_value(bool logarithm, const struct slot *slot, double x)
{
    long double d = (long double)x - slot->max;

    if (slot->nan || isinf(slot->max))
        return (double)NAN;
    if (logarithm)
        return (double)(d - logl(slot->exponentials));
    return (double)(expl(d) / slot->exponentials);
}

void reference_softmax(const struct reference *call, struct expected *out)
{
    const struct op_row *row = call->row;
    const struct dense *in = &call->inputs[0];
    int64_t axis = call->ints[0] < 0 ? call->ints[0] + in->rank : call->ints[0];
    int64_t count;
    int64_t *slot_of = slots_of(in, 1u << axis, &count);
    struct slot *slots = slots_gather(call, slot_of, count);
    bool logarithm = row->id == TANDEM_OP_LOG_SOFTMAX;

    exponentials_add(slots, slot_of, in);
    expected_init(out, EXPECTED_REAL, in->elements);
    out->subnormal_tolerance = REFERENCE_SUBNORMAL;
    for (int64_t i = 0; i < in->elements; i++) {
        const struct slot *slot = &slots[slot_of[i]];
        double x = dense_real(in, i);
        double r = softmax_value(logarithm, slot, x);
        double t = row->tolerance + log2_of(slot->count);

        out->real[i] = r;
        if (logarithm)
            out->tolerance[i] = t * REFERENCE_2EPS *
                                larger(1.0, larger(fabs(r), slot->largest));
        else
            out->tolerance[i] =
                (t + fabs(x - slot->max)) * REFERENCE_2EPS * fabs(r);
    }
    free(slots);
    free(slot_of);
}

static void loss_row(const struct reference *call, const struct slot *slot,
                     int64_t row, double *out_real, double *out_tolerance)
{
    const struct dense *in = &call->inputs[0];
    int64_t c = in->shape[1];
    int64_t label = dense_integer(&call->inputs[1], row);

    if (label < 0 || label >= c) {
        *out_real = (double)NAN;
        return;
    }
    *out_real = -softmax_value(true, slot, dense_real(in, row * c + label));
    *out_tolerance = (call->row->tolerance + log2_of(c)) * REFERENCE_2EPS *
                     larger(1.0, larger(fabs(*out_real), slot->largest));
}

static void loss_gradient(const struct reference *call, const struct slot *slot,
                          int64_t i, struct expected *out)
{
    const struct dense *in = &call->inputs[0];
    int64_t c = in->shape[1], row = i / c;
    int64_t label = dense_integer(&call->inputs[1], row);
    double x = dense_real(in, i);
    double scale = reference_attribute(call->floats[0]);
    double p = softmax_value(false, slot, x);
    double hot = label == i % c ? 1.0 : 0.0;

    out->real[i] = scale * (p - hot);
    if (label < 0 || label >= c)
        out->real[i] = (double)NAN;
    out->tolerance[i] =
        call->row->tolerance * REFERENCE_2EPS * fabs(scale) *
        ((p > 0.0 ? p * (1.0 + fabs(x - slot->max) / 16.0) : 0.0) + hot);
}

void reference_cross_entropy(const struct reference *call, struct expected *out)
{
    const struct dense *in = &call->inputs[0];
    bool gradient = call->row->id == TANDEM_OP_CROSS_ENTROPY_GRAD;
    int64_t count;
    int64_t *slot_of = slots_of(in, 2u, &count);
    struct slot *slots = slots_gather(call, slot_of, count);

    exponentials_add(slots, slot_of, in);
    expected_init(out, EXPECTED_REAL, gradient ? in->elements : count);
    out->subnormal_tolerance = REFERENCE_SUBNORMAL;
    for (int64_t i = 0; i < out->elements; i++) {
        if (gradient)
            loss_gradient(call, &slots[slot_of[i]], i, out);
        else
            loss_row(call, &slots[i], i, &out->real[i], &out->tolerance[i]);
    }
    free(slots);
    free(slot_of);
}
