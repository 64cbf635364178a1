/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes softmax, log_softmax, cross-entropy and its gradient over one axis.
 *
 * softmax_single_pass reads each row once and keeps it in registers
 * (row_access.cl). Longer rows are split: softmax_partial_pass stores the
 * largest element of each split and the split's sum of e^(x - largest).
 * softmax_final_pass combines these values of all splits of a row.
 */
#include "common/row_params.cl"

struct softmax_params {
    struct row_mapping by;
    uint32_t outer_rank;
    float scale;
    uint64_t out_offset, in_offset, label_offset;
    int64_t in_stride, out_stride, label_stride;
    struct fast_divmod outer;
    int64_t out_strides[MAX_AXES], in_strides[MAX_AXES];
};
PARAMS_SIZE(softmax_params, 360);

#ifdef __OPENCL_C_VERSION__
#define ROW_PARAMS struct softmax_params
#include "common/row_access.cl"

#define SOFTMAX 1
#define LOG_SOFTMAX 2
#define LOSS 3
#define GRADIENT 4
#ifndef FORM
#define FORM SOFTMAX
/* 1 for the cross-entropy gradient if the loss scale exceeds 16. */
#define LARGE_LOSS_SCALE 0
/* The integer type of the class labels. */
#define LABEL int
#endif
#define HAS_LABELS (FORM == LOSS || FORM == GRADIENT)
#if HAS_LABELS
#define LABEL_BUFFER __global const LABEL *labels,
#else
#define LABEL_BUFFER
#endif

/* ---- values of a row ---- */

/* One value for a row, or four values for four rows. */
#if ROW_ACCESS == ROW_ACCESS_VEC4_COLUMNS
typedef float4 row_value_t;
#define ROW_VALUE_SHUFFLE shuffle_xor4
#define VEC4_MAX(x) (x)
#define VEC4_SUM(x) (x)
#else
typedef float row_value_t;
#define ROW_VALUE_SHUFFLE shuffle_xor
#define VEC4_MAX(x) max4(x)
#define VEC4_SUM(x) sum4(x)
#endif
INLINE row_value_t row_max(row_value_t own, __local row_value_t *partials,
                           uint lanes, uint step)
    LANES_COMBINE_BODY(fmax, ROW_VALUE_SHUFFLE)
INLINE row_value_t row_sum(row_value_t own, __local row_value_t *partials,
                           uint lanes, uint step)
    LANES_COMBINE_BODY(VALUE_ADD, ROW_VALUE_SHUFFLE)

/* The values of a row with which its results are computed. */
struct row_values {
    row_value_t largest; /* the largest element */
    /* The logarithm of the sum of e^(x - largest) for log_softmax, otherwise
     * the factor of e^(x - largest). */
    row_value_t log_sum_or_factor;
    long label;          /* the index of the row's class */
    bool is_label_valid; /* false: all results are NaN */
};

static inline row_value_t log_sum_or_factor_of(row_value_t sum, float scale)
{
    return FORM == LOG_SOFTMAX ? log(sum)
                               : (LARGE_LOSS_SCALE ? scale : 1.0f) / sum;
}

#if HAS_LABELS
INLINE void row_values_add_label(struct row_values *values,
                                 const struct own_row *row,
                                 __global const LABEL *labels,
                                 const struct softmax_params *p)
{
    values->label = -1;
    if (row->exists)
        values->label = (long)
            labels[(long)p->label_offset + (long)row->index * p->label_stride];
    values->is_label_valid = (ulong)values->label < p->by.count;
}
#endif

/* The function exps returns e^(x - largest), or its fourth root if the loss
 * scale is large: the scale can lift a result into the normal range even if
 * e^(x - largest) and its square root are subnormal. */
INLINE float4 exponents(float4 x, row_value_t largest)
{
    return LARGE_LOSS_SCALE ? 0.25f * (x - largest) : x - largest;
}
INLINE float4 exps(float4 x, row_value_t largest)
{
    return exp(exponents(x, largest));
}
/* Returns e^(x - largest) for a result `e` of the function exps. */
INLINE float4 terms_of(float4 e)
{
    return LARGE_LOSS_SCALE ? e * e * (e * e) : e;
}

/* Returns the results for the elements x with the indices j, j + step, ... The
 * argument `e` is the result of exps for x. */
INLINE float4 results(float4 x, float4 e, long j, long step,
                      const struct row_values *values,
                      const struct softmax_params *p)
{
#if FORM == LOG_SOFTMAX
    return x - values->largest - values->log_sum_or_factor;
#elif FORM == GRADIENT
    const float at_label = LARGE_LOSS_SCALE ? p->scale : 1.0f;
    const float4 subtracted =
        (float4)(j == values->label ? at_label : 0.0f,
                 j + step == values->label ? at_label : 0.0f,
                 j + 2 * step == values->label ? at_label : 0.0f,
                 j + 3 * step == values->label ? at_label : 0.0f);
    const float4 y =
        LARGE_LOSS_SCALE
            ? e * values->log_sum_or_factor * e * e * e - subtracted
            : p->scale * (e * values->log_sum_or_factor - subtracted);
    return values->is_label_valid ? y : (float4)(NAN);
#else
    return e * values->log_sum_or_factor;
#endif
}

#if FORM == LOSS
/* Stores the loss of a row. The sum is that of e^(x - largest). */
INLINE void loss_store(const struct own_row *row,
                       const struct row_values *values, float sum)
{
    if (row->lane == 0 && row->exists)
        *row->out = values->is_label_valid
                        ? log(sum) - (row->in[values->label * row->in_step] -
                                      values->largest)
                        : NAN;
}
#endif

/* ---- rows that are kept in registers ---- */

#ifdef BUILD_softmax_single_pass
/* Returns exps for the lane's vector k. Elements that no lane has, which is
 * known when compiling, are 0. */
INLINE float4 vector_exps(float4 x, uint k, row_value_t largest)
{
#if ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
    x = exponents(x, largest);
    return (float4)(IN_LANE(k, 0) ? exp(x.s0) : 0.0f,
                    IN_LANE(k, 1) ? exp(x.s1) : 0.0f,
                    IN_LANE(k, 2) ? exp(x.s2) : 0.0f,
                    IN_LANE(k, 3) ? exp(x.s3) : 0.0f);
#else
    return exps(x, largest);
#endif
}

/* 1 if the results of exps replace the elements in the registers. Otherwise
 * they are computed again. */
#define KEEPS_EXPS                                                             \
    (FORM != LOG_SOFTMAX && FORM != LOSS && VECTORS_PER_ITEM <= 16)

KERNEL void softmax_single_pass(__global float *out, __global const float *in,
                                LABEL_BUFFER const struct softmax_params p)
{
    __local row_value_t maxima[GROUP_SIZE], sums[GROUP_SIZE];
    __local float4 staged[STAGED_VECTORS];
    const struct lane_assignment at = row_assign(&p.by, p.by.lanes_interleaved);
    struct own_row row = row_find(&at, in, p.in_stride, &p);
    row_add_output(&row, out, p.out_stride, &p);
    rows_stage_in(&row, staged, in, &p);
    float4 x[VECTORS_PER_ITEM];
    REPEAT(k, VECTORS_PER_ITEM)
    x[k] = vector_load(&row, k, -INFINITY);
    float4 highest = x[0];
    REPEAT(k, VECTORS_PER_ITEM)
    highest = fmax(highest, x[k]);
    struct row_values values;
    values.largest = row_max(VEC4_MAX(highest), maxima, at.lanes, at.step);
    float4 terms = (float4)(0.0f);
    REPEAT(k, VECTORS_PER_ITEM)
    {
        const float4 e = vector_exps(x[k], k, values.largest);
        terms += terms_of(e);
        if (KEEPS_EXPS)
            x[k] = e;
    }
    const row_value_t sum = row_sum(VEC4_SUM(terms), sums, at.lanes, at.step);
#if HAS_LABELS
    row_values_add_label(&values, &row, labels, &p);
#endif
#if FORM == LOSS
    loss_store(&row, &values, sum);
#else
    values.log_sum_or_factor = log_sum_or_factor_of(sum, p.scale);
    REPEAT(k, VECTORS_PER_ITEM)
    {
        const float4 e = KEEPS_EXPS ? x[k] : exps(x[k], values.largest);
        const long step = lane_distance(&row, k, 1) - lane_distance(&row, k, 0);
        vector_store(
            &row, k,
            results(x[k], e, element_index(&row, k, 0), step, &values, &p));
    }
    rows_stage_out(staged, out, &p);
#endif
}
#endif

/* ---- longer rows ---- */

#if ROW_ACCESS != ROW_ACCESS_LOCAL_MEMORY &&                                   \
    ROW_ACCESS != ROW_ACCESS_VEC4_COLUMNS

/* Combines two parts of a row. In `a` and `b`, x is the maximum of the part,
 * and y is the sum of e^(element - x). An empty part has the maximum -infinity.
 * If an element is +infinity, y and all results of the row are NaN. */
static inline float2 softmax_combine(float2 a, float2 b)
{
    float largest = fmax(a.x, b.x);
    return (float2)(largest,
                    (a.x == largest ? a.y : a.y * exp(a.x - largest)) +
                        (b.x == largest ? b.y : b.y * exp(b.x - largest)));
}
INLINE float2 lanes_combine(float2 own, __local float2 *partials, uint lanes,
                            uint step)
    LANES_COMBINE_BODY(softmax_combine, shuffle_xor2)

/* A lane's sixteen elements from j on, as four vectors that are `next`
 * elements apart. */
struct elements16 {
    float4 a, b, c, d;
    bool is_complete; /* false if some elements are not in the split */
};

/* Elements that are not in the split are -infinity. */
INLINE struct elements16 elements16_load(const struct own_row *row, long j,
                                         long next, long end)
{
    struct elements16 x;
    x.is_complete = j >= 0 && j + 3 * next + 3 * SPLIT_DISTANCE(row) < end;
    if (x.is_complete) {
        x.a = elements4_load(row, j);
        x.b = elements4_load(row, j + next);
        x.c = elements4_load(row, j + 2 * next);
        x.d = elements4_load(row, j + 3 * next);
    } else {
        x.a = elements4_load_if(row, j, end, -INFINITY);
        x.b = elements4_load_if(row, j + next, end, -INFINITY);
        x.c = elements4_load_if(row, j + 2 * next, end, -INFINITY);
        x.d = elements4_load_if(row, j + 3 * next, end, -INFINITY);
    }
    return x;
}

#ifdef BUILD_softmax_partial_pass
KERNEL void softmax_partial_pass(__global float2 *partials,
                                 __global const float *in,
                                 const struct softmax_params p)
{
    __local float2 combined[GROUP_SIZE];
    const struct lane_assignment at = lane_assign(
        p.by.lanes_log2, p.by.lanes_interleaved, p.by.splits, p.by.row_groups);
    const struct own_row row = row_find(&at, in, p.in_stride, &p);
    const struct own_split split = split_find(&row, at.split, &p.by);
    const long next = 4 * split_lanes(&row);
    float2 own = (float2)(-INFINITY, 0.0f);
    for (long j = split.first; j < split.end; j += 4 * next) {
        const struct elements16 vectors =
            elements16_load(&row, j, next, split.end);
        const float16 x = (float16)(vectors.a, vectors.b, vectors.c, vectors.d);
        float highest = max16(&x);
        if (highest > own.x) {
            own.y *= exp(own.x - highest);
            own.x = highest;
        }
        /* If the maximum own.x is +infinity, infinity - infinity makes the sum
         * NaN. If own.x is -infinity, `shift` is 0, so the sum stays finite. */
        float shift = own.x == -INFINITY ? 0.0f : own.x;
        own.y += sum16_exp(&x, shift);
    }
    own = lanes_combine(own, combined, at.lanes, at.step);
    if (at.lane == 0 && row.exists)
        partials[at.split * p.by.rows + at.row] = own;
}
#endif

#ifdef BUILD_softmax_final_pass
/* Returns the results for the elements x: j, j + SPLIT_DISTANCE, ... */
INLINE float4 split_results(const struct own_row *row, float4 x, long j,
                            const struct row_values *values,
                            const struct softmax_params *p)
{
    return results(x, exps(x, values->largest), j, SPLIT_DISTANCE(row), values,
                   p);
}
INLINE void results4_store(const struct own_row *row, float4 x, long j,
                           const struct row_values *values,
                           const struct softmax_params *p)
{
    elements4_store(row, j, split_results(row, x, j, values, p));
}
/* Stores only the results whose index is from 0 to end - 1. */
INLINE void results4_store_if(const struct own_row *row, float4 x, long j,
                              long end, const struct row_values *values,
                              const struct softmax_params *p)
{
    elements4_store_if(row, j, end, split_results(row, x, j, values, p));
}

KERNEL void softmax_final_pass(__global float *out, __global const float *in,
                               LABEL_BUFFER __global const float2 *partials,
                               const struct softmax_params p)
{
    __local float2 combined[GROUP_SIZE];
    const struct lane_assignment at = lane_assign(
        p.by.lanes_log2, p.by.lanes_interleaved, p.by.splits, p.by.row_groups);
    struct own_row row = row_find(&at, in, p.in_stride, &p);
    row_add_output(&row, out, p.out_stride, &p);
    float2 own = (float2)(-INFINITY, 0.0f);
    if (row.exists)
        for (uint i = at.lane; i < p.by.splits; i += at.lanes)
            own = softmax_combine(own, partials[i * p.by.rows + at.row]);
    own = lanes_combine(own, combined, at.lanes, at.step);
    struct row_values values;
    values.largest = own.x;
#if HAS_LABELS
    row_values_add_label(&values, &row, labels, &p);
#endif
#if FORM == LOSS
    loss_store(&row, &values, own.y);
#else
    values.log_sum_or_factor = log_sum_or_factor_of(own.y, p.scale);
    const struct own_split split = split_find(&row, at.split, &p.by);
    const long next = 4 * split_lanes(&row);
    for (long j = split.first; j < split.end; j += 4 * next) {
        const struct elements16 x = elements16_load(&row, j, next, split.end);
        if (x.is_complete) {
            results4_store(&row, x.a, j, &values, &p);
            results4_store(&row, x.b, j + next, &values, &p);
            results4_store(&row, x.c, j + 2 * next, &values, &p);
            results4_store(&row, x.d, j + 3 * next, &values, &p);
        } else {
            const long end = split.end;
            results4_store_if(&row, x.a, j, end, &values, &p);
            results4_store_if(&row, x.b, j + next, end, &values, &p);
            results4_store_if(&row, x.c, j + 2 * next, end, &values, &p);
            results4_store_if(&row, x.d, j + 3 * next, end, &values, &p);
        }
    }
#endif
}
#endif
#endif

#endif
