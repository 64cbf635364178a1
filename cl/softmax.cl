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
#define IN_STEP p.in_stride
#define OUT_STEP p.out_stride
#define IDENTITY -INFINITY
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

#if FORM == LOSS || FORM == GRADIENT
#define LABELS __global const LABEL *labels,
#define DECLARE_LABEL                                                          \
    long label =                                                               \
        inside ? (long)labels[p.label_offset + (long)at.row * p.label_stride]  \
               : -1;                                                           \
    bool valid = (ulong)label < p.by.count;
#else
#define LABELS
#define DECLARE_LABEL
#endif

/* Declares log_sum for log_softmax, else the factor of a row's results. */
#if FORM == LOG_SOFTMAX
#define DECLARE_FACTOR(sum) row_value_t log_sum = log(sum);
#elif LARGE_LOSS_SCALE
#define DECLARE_FACTOR(sum) row_value_t factor = p.scale / (sum);
#else
#define DECLARE_FACTOR(sum) row_value_t factor = 1.0f / (sum);
#endif
/* TERM(EXP(x)) is e^(x - largest), which is summed over the row. EXP(x) is the
 * same value, or its fourth root if the loss scale is large: the scale can lift
 * a result into the normal range even if e^(x - largest) and its square root
 * are subnormal. */
#if LARGE_LOSS_SCALE
#define EXP(x) exp(0.25f * ((x) - largest))
#define TERM(e) ((e) * (e) * ((e) * (e)))
#else
#define EXP(x) exp((x) - largest)
#define TERM(e) (e)
#endif
/* The result for element j. x is the value of the element, and e is EXP(x). */
#if FORM == LOG_SOFTMAX
#define RESULT(x, e, j) ((x - largest) - log_sum)
#elif FORM == GRADIENT && !LARGE_LOSS_SCALE
#define RESULT(x, e, j)                                                        \
    (valid ? p.scale * (e * factor - ((long)(j) == label ? 1.0f : 0.0f)) : NAN)
#elif FORM == GRADIENT
#define RESULT(x, e, j)                                                        \
    (valid ? gradient(e, factor, (long)(j) == label ? p.scale : 0.0f) : NAN)
static inline float gradient(float e, float factor, float label_term)
{
    return e * factor * e * e * e - label_term;
}
#else
#define RESULT(x, e, j) ((e)*factor)
#endif
/* 1 if EXP(x) replaces x in its register, so that it is computed once. */
#define STORES_EXP                                                             \
    (FORM != LOG_SOFTMAX && FORM != LOSS && VECTORS_PER_ITEM <= 16)
#if STORES_EXP
#define RESULT_SCALAR(x, j) RESULT(x, x, j)
#else
#define RESULT_SCALAR(x, j) RESULT(x, EXP(x), j)
#endif
#if ROW_ACCESS == ROW_ACCESS_VEC4_COLUMNS
#define RESULT_VEC4(x, j) RESULT_SCALAR(x, j)
#else
#define RESULT_VEC4(x, j) VEC4_OF(RESULT_SCALAR, x, j)
#endif

/* ---- rows that are kept in registers ---- */

#define UPDATE_MAX(k) highest = fmax(highest, CAT(x, k));
#if ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
#define ADD_ONE(x, k, c)                                                       \
    if (IN_LANE(k, c)) {                                                       \
        float e = EXP(x.s##c);                                                 \
        terms.s##c += TERM(e);                                                 \
        x.s##c = STORES_EXP ? e : x.s##c;                                      \
    }
#define ADD(k)                                                                 \
    ADD_ONE(CAT(x, k), k, 0) ADD_ONE(CAT(x, k), k, 1)                          \
    ADD_ONE(CAT(x, k), k, 2) ADD_ONE(CAT(x, k), k, 3)
#elif STORES_EXP
#define ADD(k)                                                                 \
    CAT(x, k) = EXP(CAT(x, k));                                                \
    terms += TERM(CAT(x, k));
#else
#define ADD(k) terms += exp(CAT(x, k) - largest);
#endif

#ifdef BUILD_softmax_single_pass
KERNEL void softmax_single_pass(__global float *out, __global const float *in,
                                LABELS const struct softmax_params p)
{
    __local row_value_t maxima[GROUP_SIZE], sums[GROUP_SIZE];
    STAGE_DECLARE
    struct lane_assignment at = LANE_ASSIGNMENT(p.by.lanes_interleaved);
    DECLARE_ROW
    uint count = ROW_COUNT;
    STAGE_ROWS_IN
    LOAD_ROW
    float4 highest = x0, terms = (float4)(0.0f);
    EACH(UPDATE_MAX)
    row_value_t largest = ROW_MAX(highest, maxima);
    EACH(ADD)
    row_value_t sum = ROW_SUM(terms, sums);
    DECLARE_LABEL
#if FORM == LOSS
    if (at.lane == 0 && inside)
        out[to] =
            valid ? log(sum) - (in[from + label * IN_STEP] - largest) : NAN;
#else
    DECLARE_FACTOR(sum)
    EACH(STORE)
    STAGE_ROWS_OUT
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

/* LOAD4 and STORE4 access four elements of the row that are DISTANCE apart. */
#if ROW_ACCESS == ROW_ACCESS_VEC4
#define DISTANCE 1
#define LOAD4(j) LOAD_VEC4(in, from + (j))
#define STORE4(x, j) VEC4_AT(out, to + (j)) = VEC4_OF(SPLIT_RESULT, x, j);
#else
#define DISTANCE SPLIT_LANES
#define LOAD4(j)                                                               \
    (float4)(IN_AT(j), IN_AT((j) + DISTANCE), IN_AT((j) + 2 * DISTANCE),       \
             IN_AT((j) + 3 * DISTANCE))
#define STORE4(x, j)                                                           \
    OUT_AT(j) = SPLIT_RESULT(x.s0, j);                                         \
    OUT_AT((j) + DISTANCE) = SPLIT_RESULT(x.s1, (j) + DISTANCE);               \
    OUT_AT((j) + 2 * DISTANCE) = SPLIT_RESULT(x.s2, (j) + 2 * DISTANCE);       \
    OUT_AT((j) + 3 * DISTANCE) = SPLIT_RESULT(x.s3, (j) + 3 * DISTANCE);
#endif
#define IN_SPLIT(j) ((j) >= 0 && (j) < end)
#define LOAD_IF(j) (IN_SPLIT(j) ? IN_AT(j) : -INFINITY)
#define LOAD4_IF(j)                                                            \
    (float4)(LOAD_IF(j), LOAD_IF((j) + DISTANCE), LOAD_IF((j) + 2 * DISTANCE), \
             LOAD_IF((j) + 3 * DISTANCE))
#define STORE_IF(x, j)                                                         \
    if (IN_SPLIT(j))                                                           \
        OUT_AT(j) = SPLIT_RESULT(x, j);
#define STORE4_IF(x, j)                                                        \
    STORE_IF(x.s0, j) STORE_IF(x.s1, (j) + DISTANCE)                           \
    STORE_IF(x.s2, (j) + 2 * DISTANCE) STORE_IF(x.s3, (j) + 3 * DISTANCE)
#define SPLIT_RESULT(x, j) RESULT(x, EXP(x), j)

/* Loads a work-item's next sixteen elements, from j on, as vectors a to d. */
#define LOAD_16                                                                \
    float4 a, b, c, d;                                                         \
    bool is_complete = j >= 0 && j + 3 * next + 3 * DISTANCE < end;            \
    if (is_complete) {                                                         \
        a = LOAD4(j), b = LOAD4(j + next);                                     \
        c = LOAD4(j + 2 * next), d = LOAD4(j + 3 * next);                      \
    } else {                                                                   \
        a = LOAD4_IF(j), b = LOAD4_IF(j + next);                               \
        c = LOAD4_IF(j + 2 * next), d = LOAD4_IF(j + 3 * next);                \
    }

#ifdef BUILD_softmax_partial_pass
KERNEL void softmax_partial_pass(__global float2 *partials,
                                 __global const float *in,
                                 const struct softmax_params p)
{
    __local float2 combined[GROUP_SIZE];
    struct lane_assignment at = lane_assign(
        p.by.lanes_log2, p.by.lanes_interleaved, p.by.splits, p.by.row_groups);
    long from = (long)p.in_offset;
    bool inside = at.row < p.by.rows;
    if (inside)
        ADD_OFFSET(from, (index_t)at.row, p.outer, p.outer_rank, p.in_strides);
    DECLARE_INPUT_SHIFT
    DECLARE_SPLIT
    const long next = 4 * SPLIT_LANES;
    float2 own = (float2)(-INFINITY, 0.0f);
    for (; j < end; j += 4 * next) {
        LOAD_16
        float16 x = (float16)(a, b, c, d);
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
    if (at.lane == 0 && inside)
        partials[at.split * p.by.rows + at.row] = own;
}
#endif

#ifdef BUILD_softmax_final_pass
KERNEL void softmax_final_pass(__global float *out, __global const float *in,
                               LABELS __global const float2 *partials,
                               const struct softmax_params p)
{
    __local float2 combined[GROUP_SIZE];
    struct lane_assignment at = lane_assign(
        p.by.lanes_log2, p.by.lanes_interleaved, p.by.splits, p.by.row_groups);
    DECLARE_ROW
    float2 own = (float2)(-INFINITY, 0.0f);
    if (inside)
        for (uint i = at.lane; i < p.by.splits; i += at.lanes)
            own = softmax_combine(own, partials[i * p.by.rows + at.row]);
    own = lanes_combine(own, combined, at.lanes, at.step);
    float largest = own.x;
    DECLARE_LABEL
#if FORM == LOSS
    if (at.lane == 0 && inside)
        out[to] =
            valid ? log(own.y) - (in[from + label * IN_STEP] - largest) : NAN;
#else
    DECLARE_FACTOR(own.y)
    DECLARE_SPLIT
    const long next = 4 * SPLIT_LANES;
    for (; j < end; j += 4 * next) {
        LOAD_16
        if (is_complete) {
            STORE4(a, j) STORE4(b, j + next)
            STORE4(c, j + 2 * next) STORE4(d, j + 3 * next)
        } else {
            STORE4_IF(a, j) STORE4_IF(b, j + next)
            STORE4_IF(c, j + 2 * next) STORE4_IF(d, j + 3 * next)
        }
    }
#endif
}
#endif
#endif

#endif
