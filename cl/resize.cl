/* SPDX-License-Identifier: Apache-2.0 */
/* Resizes tensors. Coordinates in the input are fixed-point numbers
 * (resize_coordinates.h), so that the index of a nearest element is exact.
 *
 * resize_nearest copies one element of the input to each element of the output.
 * resize interpolates along one or two axes. Other axes have the same length in
 * input and output. With IS_VEC4, a work-item computes four elements along the
 * innermost axis, which are aligned in the output. */
#include "common/params.cl"

struct resize_nearest_params {
    uint64_t items;
    uint32_t rank, resized_axes; /* bit i is set if axis i is resized */
    uint64_t out_offset, in_offset;
    int64_t rounding, slack;
    uint32_t fraction_bits, extrapolates;
    float extrapolation_value;
    uint32_t reserved;
    struct fast_divmod space;
    int64_t out_strides[MAX_AXES], in_strides[MAX_AXES], lengths[MAX_AXES];
    int64_t starts[MAX_AXES], steps[MAX_AXES];
};
PARAMS_SIZE(resize_nearest_params, 512);

/* The members whose array has two elements describe the interpolated axes; the
 * first of these is the innermost. */
struct resize_params {
    uint64_t items;
    uint64_t out_offset, in_offset;
    int64_t slack;
    uint32_t rank, fraction_bits, extrapolates, reserved;
    float extrapolation_value, cubic_coeff_a;
    uint32_t axes[2];
    int64_t lengths[2], strides[2], starts[2], steps[2];
    int64_t taps_before[2], taps[2];
    float filter_scales[2];
    struct fast_divmod space;
    /* The strides in the input of interpolated axes are 0. */
    int64_t out_strides[MAX_AXES], in_strides[MAX_AXES];
};
PARAMS_SIZE(resize_params, 424);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"

#ifndef IS_VEC4
#define IS_VEC4 0
#endif

/* With IS_VEC4 in resize: 1 if the innermost axis is not interpolated, so that
 * a tap is a vec4. */
#ifndef TAP_IS_VEC4
#define TAP_IS_VEC4 0
#endif

/* The kernel resize interpolates with MODE 1 (linear) or 2 (cubic). */
#ifndef MODE
#define MODE 1
#endif
#ifndef ANTIALIAS
#define ANTIALIAS 0
#endif
/* Number of axes along which the kernel interpolates. */
#ifndef AXES
#define AXES 2
#endif

#define STORED_ELEMENTS (IS_VEC4 ? 4 : 1)

#ifndef EXCLUDE_OUTSIDE
#define EXCLUDE_OUTSIDE 0
#endif

/* The whole part of a coordinate. With 32-bit indices, lengths, offsets and
 * numbers of taps are below 2^30, and fraction_bits is above 32. */
#if INDEX_64BIT
#define WHOLE(coordinate) ((coordinate) >> p.fraction_bits)
#else
#define WHOLE(coordinate) ((int)((coordinate) >> 32) >> (p.fraction_bits - 32))
#endif

static inline bool is_outside(long coordinate, long length, uint bits,
                              long slack)
{
    return coordinate + slack < 0L || coordinate - slack > (length - 1) << bits;
}

#ifdef BUILD_resize_nearest
/* Adds the offset of the element at this coordinate, or number `at` of an axis
 * that is not resized. Sets is_extrapolated if the coordinate is outside. */
#define ADD_NEAREST(from, at, coordinate, axis)                                \
    do {                                                                       \
        offset_t index_ = (offset_t)(at);                                      \
        if (p.resized_axes >> (axis)&1)                                        \
            index_ = clamp((offset_t)WHOLE((coordinate) + p.rounding),         \
                           (offset_t)0, (offset_t)(p.lengths[axis] - 1));      \
        from += index_ * (offset_t)p.in_strides[axis];                         \
        if (p.extrapolates && p.resized_axes >> (axis)&1)                      \
            is_extrapolated |= is_outside(coordinate, p.lengths[axis],         \
                                          p.fraction_bits, p.slack);           \
    } while (0)

KERNEL void resize_nearest(__global float *out, __global const float *in,
                           const struct resize_nearest_params p)
{
    index_t item = (index_t)get_global_id(0);
    if (item >= p.items)
        return;
    index_t left = item;
    long to = (long)p.out_offset, row = (long)p.in_offset, first = 0;
    bool row_is_extrapolated = false;
    REPEAT(axis, MAX_AXES)
    {
        bool is_extrapolated = false;
        if (axis >= p.rank)
            continue;
        long at = (long)left;
        if (axis + 1 < p.rank)
            DIVMOD(left, p.space, axis, at);
        to += at * p.out_strides[axis];
        if (axis == 0)
            first = at * STORED_ELEMENTS;
        else
            ADD_NEAREST(row, at, p.starts[axis] + at * p.steps[axis], axis);
        row_is_extrapolated |= is_extrapolated;
    }
    float values[STORED_ELEMENTS];
    long coordinate = p.starts[0] + first * p.steps[0];
    REPEAT(i, STORED_ELEMENTS)
    {
        bool is_extrapolated = row_is_extrapolated;
        offset_t from = 0;
        ADD_NEAREST(from, first + i, coordinate, 0);
        values[i] = is_extrapolated ? p.extrapolation_value : in[row + from];
        coordinate += p.steps[0];
    }
#if IS_VEC4
    *(__global float4 *)(out + to) =
        (float4)(values[0], values[1], values[2], values[3]);
#else
    out[to] = values[0];
#endif
}
#endif

#ifdef BUILD_resize
#if TAP_IS_VEC4
typedef float4 tap_t;
#else
typedef float tap_t;
#endif

#if ANTIALIAS
#define LOOP_OVER_TAPS(k, axis)                                                \
    for (offset_t k = 0; k < (offset_t)p.taps[axis]; ++k)
#else
#define LOOP_OVER_TAPS(k, axis)                                                \
    _Pragma("unroll") for (offset_t k = 0; k < (MODE == 1 ? 2 : 4); ++k)
#endif

/* The position of an element along an interpolated axis: its first tap, and the
 * signed distance of this tap. */
struct position {
    offset_t first;
    float distance;
    bool is_extrapolated;
};

/* Returns the weight of tap number `place` at this distance. */
static inline float filter(float distance, offset_t place, float a)
{
    float d = fabs(distance);
#if MODE == 1
    return ANTIALIAS ? fmax(1.0f - d, 0.0f) : 1.0f - d;
#else
    float near = (1.0f - d) * (1.0f + d - (a + 2.0f) * d * d);
    float far = a * (d - 1.0f) * (2.0f - d) * (2.0f - d);
#if ANTIALIAS
    return d < 1.0f ? near : d < 2.0f ? far : 0.0f;
#else
    return place == 1 || place == 2 ? near : far;
#endif
#endif
}

#if ANTIALIAS
#define TAPS_BEFORE(axis) p.taps_before[axis]
#else
#define TAPS_BEFORE(axis) (MODE - 1)
#endif

/* The first 32 bits after the point of a coordinate. */
#if INDEX_64BIT
#define FRACTION(coordinate)                                                   \
    (uint)(((ulong)(coordinate) << (64 - p.fraction_bits)) >> 32)
#else
#define FRACTION(coordinate)                                                   \
    ((uint)((coordinate) >> 32) << (64 - p.fraction_bits) |                    \
     (uint)(coordinate) >> (p.fraction_bits - 32))
#endif

/* Returns the number in [0, 1) with these bits after the point. 23 bits become
 * the mantissa of a float in [1, 2), which takes less time than a conversion.
 */
static inline float fraction_to_float(uint fraction)
{
    return as_float(fraction >> 9 | 0x3f800000u) - 1.0f;
}

/* Declares the position of the element at this coordinate. */
#define DECLARE_POSITION(name, coordinate, axis)                               \
    struct position name;                                                      \
    name.first = (offset_t)(WHOLE(coordinate) - TAPS_BEFORE(axis));            \
    name.distance =                                                            \
        -(float)TAPS_BEFORE(axis) - fraction_to_float(FRACTION(coordinate));   \
    name.is_extrapolated =                                                     \
        p.extrapolates &&                                                      \
        is_outside(coordinate, p.lengths[axis], p.fraction_bits, p.slack);

/* Declares the offset of tap k along an axis, and its weight. */
#define DECLARE_TAP(k, position, axis)                                         \
    offset_t index_##axis = (position).first + (k);                            \
    offset_t inside_##axis =                                                   \
        clamp(index_##axis, (offset_t)0, (offset_t)(p.lengths[axis] - 1));     \
    float weight_##axis =                                                      \
        filter(((position).distance + (float)(k)) *                            \
                   (ANTIALIAS ? p.filter_scales[axis] : 1.0f),                 \
               (k), p.cubic_coeff_a);                                          \
    bool counts_##axis = !EXCLUDE_OUTSIDE || inside_##axis == index_##axis;    \
    weight_##axis = counts_##axis ? weight_##axis : 0.0f;                      \
    offset_t offset_##axis = inside_##axis * (offset_t)p.strides[axis];

/* Divides a sum by the sum of its weights, if this may differ from 1. */
#define NORMALIZE(sum, weights)                                                \
    do {                                                                       \
        if (ANTIALIAS || EXCLUDE_OUTSIDE)                                      \
            sum /= (weights) == 0.0f ? 1.0f : (weights);                       \
    } while (0)

/* Interpolates along the first axis. */
#define LINE_SUM(line, in, position)                                           \
    do {                                                                       \
        float weights_ = 0.0f;                                                 \
        LOOP_OVER_TAPS(k_, 0)                                                  \
        {                                                                      \
            DECLARE_TAP(k_, position, 0)                                       \
            tap_t x_ = *(__global const tap_t *)((in) + offset_0);             \
            weights_ += weight_0;                                              \
            line += weight_0 * (counts_0 ? x_ : (tap_t)(0.0f));                \
        }                                                                      \
        NORMALIZE(line, weights_);                                             \
    } while (0)

KERNEL void resize(__global float *out, __global const float *in,
                   const struct resize_params p)
{
    index_t item = (index_t)get_global_id(0);
    if (item >= p.items)
        return;
    index_t left = item;
    long to = (long)p.out_offset, from = (long)p.in_offset;
    long place = 0, outer_place = 0;
    REPEAT(axis, MAX_AXES)
    {
        if (axis >= p.rank)
            continue;
        long at = (long)left;
        if (axis + 1 < p.rank)
            DIVMOD(left, p.space, axis, at);
        to += at * p.out_strides[axis];
        from += at * p.in_strides[axis];
        place = axis == p.axes[0] ? at : place;
        outer_place = axis == p.axes[1] ? at : outer_place;
    }
#if AXES == 2
    long outer_coordinate = p.starts[1] + outer_place * p.steps[1];
    DECLARE_POSITION(outer, outer_coordinate, 1)
#endif
#define RESULTS (TAP_IS_VEC4 ? 1 : STORED_ELEMENTS)
    tap_t values[RESULTS];
    long coordinate = p.starts[0] + place * RESULTS * p.steps[0];
    REPEAT(i, RESULTS)
    {
        DECLARE_POSITION(inner, coordinate, 0)
        coordinate += p.steps[0];
        bool is_extrapolated = inner.is_extrapolated;
        tap_t sum = (tap_t)(0.0f);
#if AXES == 2
        float weights = 0.0f;
        is_extrapolated |= outer.is_extrapolated;
        LOOP_OVER_TAPS(k, 1)
        {
            DECLARE_TAP(k, outer, 1)
            tap_t line = (tap_t)(0.0f);
            LINE_SUM(line, in + from + offset_1, inner);
            weights += weight_1;
            sum += weight_1 * (counts_1 ? line : (tap_t)(0.0f));
        }
        NORMALIZE(sum, weights);
#else
        LINE_SUM(sum, in + from, inner);
#endif
        values[i] = is_extrapolated ? (tap_t)(p.extrapolation_value) : sum;
    }
#if !IS_VEC4
    out[to] = values[0];
#elif TAP_IS_VEC4
    *(__global float4 *)(out + to) = values[0];
#else
    *(__global float4 *)(out + to) =
        (float4)(values[0], values[1], values[2], values[3]);
#endif
}
#endif

#endif
