/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum and average pooling. The tensors have the axes [batch, channels, z,
 * y, x]; arrays of three elements describe the axes x, y and z. A work-item
 * computes one element of the output, or with SQUARE_WINDOW four elements along
 * y, whose windows share rows of the input. */
#include "common/params.cl"

struct pool_params {
    uint64_t items;
    uint64_t out_offset, index_offset, in_offset;
    uint64_t volume; /* elements of the input's spatial axes */
    struct fast_divmod space;
    int64_t out_strides[MAX_AXES], in_strides[MAX_AXES];
    int64_t index_strides[MAX_AXES];
    int64_t lengths[3], kernel_size[3], stride[3], dilation[3], begin[3];
    /* An average divides by the number of positions below these limits. */
    int64_t counted[3];
    uint64_t include_pad;
    int64_t out_length; /* of the axis y */
};
PARAMS_SIZE(pool_params, 520);

#define POOL_OUTPUTS 4 /* of a work-item with SQUARE_WINDOW */

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"

/* 1 for the maximum, 2 for the maximum and its index, 3 for the average. */
#ifndef REDUCTION
#define REDUCTION 1
#endif
#define HAS_INDICES (REDUCTION == 2)
#define IS_AVERAGE (REDUCTION == 3)

#if HAS_INDICES
#define INDICES __global long *indices,
#else
#define INDICES
#endif

/* With 2 or 3, windows have this number of elements along the axes x and y, and
 * one along z, without dilation. The stride along y is SQUARE_STRIDE. */
#ifndef SQUARE_WINDOW
#define SQUARE_WINDOW 0
#define SQUARE_STRIDE 1
#endif
#if SQUARE_WINDOW
#define OUTPUTS POOL_OUTPUTS
#define ROWS ((OUTPUTS - 1) * SQUARE_STRIDE + SQUARE_WINDOW)
#define STRIDE_Y SQUARE_STRIDE
#define WINDOW_LENGTH(axis) ((axis) < 2 ? SQUARE_WINDOW : 1)
#define DILATION(axis) 1
#else
#define OUTPUTS 1
#define STRIDE_Y 1
#define WINDOW_LENGTH(axis) ((offset_t)p->kernel_size[axis])
#define DILATION(axis) ((offset_t)p->dilation[axis])
#endif

/* Loops over the positions of a window along an axis. */
#define LOOP_OVER_WINDOW(position, axis, start)                                \
    for (offset_t position = start;                                            \
         position < start + WINDOW_LENGTH(axis) * DILATION(axis);              \
         position += DILATION(axis))

#define IS_INSIDE(position, axis)                                              \
    ((position) >= 0 && (position) < (offset_t)p->lengths[axis])

/* The result of a window without elements inside, before a division. */
#define IDENTITY (IS_AVERAGE ? 0.0f : -INFINITY)

/* Returns true if this value is greater than the maximum so far. NaN is greater
 * than any number. */
static inline bool is_greater(float value, float maximum)
{
    return !(value <= maximum) && maximum == maximum;
}

static inline float combine(float result, float value)
{
#if IS_AVERAGE
    return result + value;
#else
    return is_greater(value, result) ? value : result;
#endif
}

/* Number of the positions of a window that an average counts, along an axis. */
static inline float positions_counted(offset_t start, offset_t size,
                                      offset_t dilation, offset_t limit,
                                      bool include_pad)
{
#if SQUARE_WINDOW
    offset_t first = include_pad ? start : max(start, (offset_t)0);
    return (float)(min(start + size, limit) - first);
#else
    offset_t count = 0;
    for (offset_t k = 0; k < size; ++k, start += dilation)
        count += start < limit && (include_pad || start >= 0);
    return (float)count;
#endif
}
#define POSITIONS_COUNTED(axis, start)                                         \
    positions_counted(start, WINDOW_LENGTH(axis), DILATION(axis),              \
                      (offset_t)p->counted[axis], p->include_pad != 0)

#ifdef BUILD_pool
#if SQUARE_WINDOW
/* Reduces a row of a window, which begins at position `start`. A load does not
 * depend on whether its position is inside, so that all loads can be in flight
 * at once. */
INLINE float reduce_row(__global const float *row, offset_t start,
                        offset_t length, offset_t stride)
{
    float reduced = IDENTITY;
    REPEAT(k, SQUARE_WINDOW)
    {
        offset_t x = start + (offset_t)k;
        float value = row[clamp(x, (offset_t)0, length - 1) * stride];
        bool is_inside = x >= 0 && x < length;
        reduced = combine(reduced, is_inside ? value : IDENTITY);
    }
    return reduced;
}

/* Reduces OUTPUTS windows, of which the first begins at `start`. */
INLINE void reduce_windows(float *results, __global const float *plane,
                           const offset_t *start, const struct pool_params *p)
{
    plane += start[2] * p->in_strides[2];
    float rows[ROWS];
    const offset_t last = (offset_t)p->lengths[1] - 1;
    REPEAT(i, ROWS)
    {
        offset_t y = start[1] + (offset_t)i;
        offset_t nearest = clamp(y, (offset_t)0, last);
        float reduced = reduce_row(plane + nearest * p->in_strides[1], start[0],
                                   (offset_t)p->lengths[0],
                                   (offset_t)p->in_strides[0]);
        rows[i] = y == nearest ? reduced : IDENTITY;
    }
    REPEAT(i, OUTPUTS)
    {
        results[i] = rows[i * SQUARE_STRIDE];
        REPEAT(k, SQUARE_WINDOW - 1)
        results[i] = combine(results[i], rows[i * SQUARE_STRIDE + k + 1]);
    }
}
#endif

#if IS_AVERAGE
/* Scale of the elements of a window whose sum overflows. The elements that
 * SCALE_DOWN flushes to zero are below the rounding error of such a sum. */
#define SCALE_DOWN 0x1p-64f
#define SCALE_UP 0x1p64f

/* Returns the sum of the elements of a window times SCALE_DOWN. Three nested
 * loops would need more registers than the code that always runs. */
INLINE float scaled_sum(__global const float *plane, const offset_t *start,
                        offset_t start_y, const struct pool_params *p)
{
    const ulong columns = (ulong)WINDOW_LENGTH(0);
    const ulong rows = (ulong)WINDOW_LENGTH(1);
    const ulong elements = columns * rows * (ulong)WINDOW_LENGTH(2);
    float sum = 0.0f, error = 0.0f;
    _Pragma("unroll 1") for (ulong n = 0; n < elements; ++n)
    {
        offset_t x = start[0] + (offset_t)(n % columns) * DILATION(0);
        offset_t y = start_y + (offset_t)(n / columns % rows) * DILATION(1);
        offset_t z = start[2] + (offset_t)(n / columns / rows) * DILATION(2);
        bool is_inside = IS_INSIDE(x, 0) && IS_INSIDE(y, 1);
        if (SQUARE_WINDOW == 0)
            is_inside = is_inside && IS_INSIDE(z, 2);
        if (is_inside) {
            float value = plane[x * (offset_t)p->in_strides[0] +
                                y * (offset_t)p->in_strides[1] +
                                z * (offset_t)p->in_strides[2]];
            float term = value * SCALE_DOWN - error, next = sum + term;
            /* Kahan summation, but an infinite element stays infinite. */
            error = isfinite(next) ? (next - sum) - term : 0.0f;
            sum = next;
        }
    }
    return sum;
}
#endif

KERNEL void pool(__global float *out, INDICES __global const float *in,
                 const struct pool_params params)
{
    const struct pool_params *p = &params;
    index_t left = (index_t)get_global_id(0);
    if (left >= p->items)
        return;
    long to = (long)p->out_offset, from = (long)p->in_offset, first = 0;
    offset_t start[3];
#if HAS_INDICES
    long index_to = (long)p->index_offset, plane_number = 0;
#endif
    REPEAT(axis, 5)
    {
        long at = (long)left;
#if HAS_INDICES
        if (axis == 3)
            plane_number = at;
#endif
        if (axis < 4)
            DIVMOD(left, p->space, axis, at);
        if (axis == 1)
            at = first = at * OUTPUTS;
        to += at * p->out_strides[axis];
#if HAS_INDICES
        index_to += at * p->index_strides[axis];
#endif
        if (axis < 3)
            start[axis] = (offset_t)(at * p->stride[axis] - p->begin[axis]);
        else
            from += at * p->in_strides[axis];
    }
    float results[OUTPUTS];
    __global const float *plane = in + from;
#if SQUARE_WINDOW
    reduce_windows(results, plane, start, p);
#else
    results[0] = IDENTITY;
#if HAS_INDICES
    long where = -1;
#elif IS_AVERAGE
    float error = 0.0f;
#endif
    LOOP_OVER_WINDOW(z, 2, start[2])
    LOOP_OVER_WINDOW(y, 1, start[1])
    {
        bool row_is_inside = IS_INSIDE(z, 2) && IS_INSIDE(y, 1);
        offset_t row = z * (offset_t)p->in_strides[2] +
                       y * (offset_t)p->in_strides[1];
        LOOP_OVER_WINDOW(x, 0, start[0])
        {
            bool is_inside = row_is_inside && IS_INSIDE(x, 0);
            offset_t at = row + x * (offset_t)p->in_strides[0];
            float value = is_inside ? plane[at] : IDENTITY;
#if IS_AVERAGE
            /* Kahan summation */
            float term = value - error, next = results[0] + term;
            error = (next - results[0]) - term;
            results[0] = next;
#elif HAS_INDICES
            bool wins = is_inside &&
                        (where < 0 || is_greater(value, results[0]));
            long position =
                ((long)z * p->lengths[1] + (long)y) * p->lengths[0] + (long)x;
            where = wins ? position : where;
            results[0] = wins ? value : results[0];
#else
            results[0] = combine(results[0], value);
#endif
        }
    }
#endif
#if IS_AVERAGE
    float counted =
        POSITIONS_COUNTED(0, start[0]) * POSITIONS_COUNTED(2, start[2]);
    REPEAT(i, OUTPUTS)
    results[i] /= counted *
                  POSITIONS_COUNTED(1, start[1] + (offset_t)i * STRIDE_Y);
#endif
    REPEAT(i, OUTPUTS)
    if (first + i < p->out_length)
        out[to + i * p->out_strides[1]] = results[i];
#if IS_AVERAGE
    /* A sum that is not finite may have overflowed. */
    uint overflows = 0;
    REPEAT(i, OUTPUTS)
    overflows |= isfinite(results[i]) ? 0u : 1u << i;
    _Pragma("unroll 1") for (uint i = 0; overflows >> i != 0; ++i)
    {
        offset_t y = start[1] + (offset_t)i * STRIDE_Y;
        if ((overflows >> i & 1) != 0 && first + i < p->out_length)
            out[to + i * p->out_strides[1]] =
                scaled_sum(plane, start, y, p) /
                (counted * POSITIONS_COUNTED(1, y)) * SCALE_UP;
    }
#endif
#if HAS_INDICES
    indices[index_to] = where < 0 ? -1 : plane_number * (long)p->volume + where;
#endif
}
#endif

#endif
