/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_norm subtracts the mean of a row from its elements and divides them by
 * the standard deviation. rms_norm divides the elements by their root mean
 * square. Both multiply the result by `scale`, and layer_norm adds `bias`.
 * group_norm is layer_norm of rows that consist of several channels, which have
 * one element of `scale` and `bias` each. Every group has the next channels.
 *
 * norm_single_pass reads each row once and keeps it in registers
 * (row_access.cl). Longer rows and rows of several axes are divided into
 * splits. norm_partial_pass stores the moments of each split (moments_combine
 * says what they are). norm_final_pass combines those of all splits of a row.
 *
 * If the squares of a row's elements overflow, the row is computed again with
 * scaled elements (rescaled_sum.cl). The same happens if the squares underflow
 * and epsilon is too small to hide the error.
 */
#include "common/row_params.cl"

struct norm_params {
    struct row_mapping by;
    uint32_t outer_rank, reduced_rank, affine_rank;
    float epsilon;
    uint64_t out_offset, in_offset, scale_offset, bias_offset;
    /* For group_norm: row r belongs to group r % groups, and these are the
     * strides of scale and bias between groups. */
    uint64_t groups;
    int64_t scale_group_stride, bias_group_stride;
    struct fast_divmod outer, reduced, affine;
    int64_t out_strides[MAX_AXES],
        in_strides[MAX_AXES];                        /* strides between rows */
    int64_t out_steps[MAX_AXES], in_steps[MAX_AXES]; /* strides within a row */
    int64_t scale_steps[MAX_AXES], bias_steps[MAX_AXES];
};
PARAMS_SIZE(norm_params, 888);

#ifdef __OPENCL_C_VERSION__
#define ROW_PARAMS struct norm_params
#include "common/row_access.cl"
#include "common/rescaled_sum.cl"

/* 1 for rms_norm, otherwise 0. */
#ifndef RMS
#define RMS 0
#endif
/* 1 for group_norm and instance_norm, otherwise 0. */
#ifndef GROUPED
#define GROUPED 0
#endif

/* ---- scale and bias ---- */

/* Scale and bias of a row: pointers to the buffers, or to the element for which
 * a function is called. */
#if RMS
#define AFFINE_BUFFERS __global const float *restrict scale
#define AFFINE_LIST scale
struct affine {
    __global const float *scale;
};
#else
#define AFFINE_BUFFERS                                                         \
    __global const float *restrict scale, __global const float *restrict bias
#define AFFINE_LIST scale, bias
struct affine {
    __global const float *scale, *bias;
};
#endif

/* Moves the pointers from the start of the buffers to the row's elements. */
INLINE void affine_to_row(struct affine *affine, ulong row,
                          const struct norm_params *p)
{
    long group = 0;
#if GROUPED
    group = (long)((index_t)row % (index_t)p->groups);
#endif
    affine->scale += (long)p->scale_offset + group * p->scale_group_stride;
#if !RMS
    affine->bias += (long)p->bias_offset + group * p->bias_group_stride;
#endif
}

/* Returns the channel of element j of a group. In group_norm, the axes of
 * p->affine are the elements of a channel and the channels. */
static inline index_t channel_of(index_t j, ulong extent, uint multiplier,
                                 uint shift)
{
#if INDEX_64BIT
    return j / extent;
#else
    return fast_divide(j, multiplier, shift);
#endif
}

/* Returns the element of scale or bias for element first + distance of a row
 * with one axis. */
INLINE float affine_at(__global const float *x, const long *steps, long first,
                       long distance, const struct norm_params *p)
{
#if GROUPED
    return x[(long)channel_of((index_t)(first + distance), p->affine.extent[0],
                              p->affine.multiplier[0], p->affine.shift[0]) *
             steps[1]];
#elif ROW_ACCESS == ROW_ACCESS_STRIDED
    return x[(first + distance) * steps[0]];
#else
    return (x + first)[distance];
#endif
}
/* The same for the vector of elements from j on. A vector of group_norm belongs
 * to one channel. */
INLINE float4 affine_vector_at(__global const float *x, const long *steps,
                               long j, const struct norm_params *p)
{
#if GROUPED
    return (float4)(affine_at(x, steps, j, 0, p));
#else
    return vec4_load(x + j);
#endif
}

/* Returns the result for h, the normalized element first + distance. */
INLINE float result(float h, const struct affine *affine, long first,
                    long distance, const struct norm_params *p)
{
    const float scale =
        affine_at(affine->scale, p->scale_steps, first, distance, p);
#if RMS
    return h * scale;
#else
    return fma(h, scale,
               affine_at(affine->bias, p->bias_steps, first, distance, p));
#endif
}
/* Returns the results for the vector of elements from j on. */
INLINE float4 vector_result(float4 h, const struct affine *affine, long j,
                            const struct norm_params *p)
{
    const float4 scale = affine_vector_at(affine->scale, p->scale_steps, j, p);
#if RMS
    return h * scale;
#else
    return fma(h, scale, affine_vector_at(affine->bias, p->bias_steps, j, p));
#endif
}

/* ---- rows with scaled elements ---- */

/* If epsilon is at least this large, squares that underflow are negligible. */
#define MIN_SAFE_EPSILON 0x1p-50f

/* The numbers that normalize the elements x of a row to h: in layer_norm, h is
 * (x * unit - mean) * factor, in rms_norm x * factor * 2^n. */
struct normalization {
    float unit, mean, factor;
    int n;
};

/* Returns the normalization of a row whose elements are scaled by SCALE_DOWN if
 * `rescales` is positive, and by SCALE_UP if it is negative. `mean` and
 * `square`, the mean square of the differences from the mean, are those of the
 * scaled elements. */
static inline struct normalization normalization_of(int rescales, float mean,
                                                    float square, float epsilon)
{
    struct normalization result;
    result.unit = rescales > 0 ? SCALE_DOWN : rescales < 0 ? SCALE_UP : 1.0f;
    result.mean = mean;
    float scaled = epsilon * result.unit * result.unit;
    /* A positive epsilon stays positive, so equal elements do not lead to
     * 0 / 0. */
    if (epsilon > 0.0f)
        scaled = fmax(scaled, 0x1p-126f);
    result.factor = 1.0f / sqrt(square + scaled);
    result.n = RMS ? -SCALE_LOG2 * rescales : 0;
    return result;
}

static inline float normalize(const struct normalization *by, float x)
{
    return RMS ? multiply3_scaled(x, by->factor, 1.0f, by->n)
               : (x * by->unit - by->mean) * by->factor;
}

/* ---- rows that are kept in registers ---- */

/* Stores the result for element c of the lane's vector k. */
INLINE void result_store(const struct own_row *row, uint k, uint c, float h,
                         const struct affine *affine,
                         const struct norm_params *p)
{
    if (row->exists && element_exists(row, k, c))
        element_store(
            row, k, c,
            result(h, affine, lane_first(row), lane_distance(row, k, c), p));
}
/* Stores the results for the lane's vector k of normalized elements. */
INLINE void results_store(const struct own_row *row, uint k, float4 h,
                          const struct affine *affine,
                          const struct norm_params *p)
{
#if ROW_ACCESS == ROW_ACCESS_VEC4
    const long j = element_index(row, k, 0);
    if (row->exists && element_exists(row, k, 0))
        vec4_store(row->out + j, vector_result(h, affine, j, p));
#else
    result_store(row, k, 0, h.s0, affine, p);
    result_store(row, k, 1, h.s1, affine, p);
    result_store(row, k, 2, h.s2, affine, p);
    result_store(row, k, 3, h.s3, affine, p);
#endif
}

/* Returns x - mean for the lane's vector k. Elements that are not in the row
 * stay 0. */
INLINE float4 vector_center(const struct own_row *row, uint k, float4 x,
                            float mean)
{
#if ROW_ACCESS == ROW_ACCESS_VEC4
    return x - (element_exists(row, k, 0) ? mean : 0.0f);
#else
    return x - (float4)(element_exists(row, k, 0) ? mean : 0.0f,
                        element_exists(row, k, 1) ? mean : 0.0f,
                        element_exists(row, k, 2) ? mean : 0.0f,
                        element_exists(row, k, 3) ? mean : 0.0f);
#endif
}

/* Returns the sum of y = x * unit - mean over the lane's elements x, or of y^2
 * if `squares` is true. The elements are read from memory again. */
INLINE float lane_sum_scaled(const struct own_row *row, float unit, float mean,
                             bool squares)
{
    float sum = 0.0f;
    _Pragma("unroll 1") for (uint i = 0; i < 4 * VECTORS_PER_ITEM; ++i)
    {
        if (!element_exists(row, i / 4, i % 4))
            continue;
        const int j = element_index(row, i / 4, i % 4);
        const float y = row->in[j * row->in_step] * unit - mean;
        sum += squares ? y * y : y;
    }
    return sum;
}

#ifdef BUILD_norm_single_pass
KERNEL void norm_single_pass(__global float *out, __global const float *in,
                             AFFINE_BUFFERS, const struct norm_params p)
{
    __local float sums[GROUP_SIZE], squares[GROUP_SIZE];
    __local uint vote_word[1];
    __local float4 staged[STAGED_VECTORS];
    const struct lane_assignment at = row_assign(&p.by, 0);
    const float count = (float)p.by.count;
    struct own_row row = row_find(&at, in, p.in_steps[0], &p);
    struct affine affine = {AFFINE_LIST};
    row_add_output(&row, out, p.out_steps[0], &p);
    affine_to_row(&affine, at.row, &p);
    rows_stage_in(&row, staged, in, &p);
    float4 x[VECTORS_PER_ITEM];
    REPEAT(k, VECTORS_PER_ITEM)
    x[k] = vector_load(&row, k, 0.0f);
    float mean = 0.0f;
    if (!RMS) {
        float4 sum = (float4)(0.0f);
        REPEAT(k, VECTORS_PER_ITEM)
        sum += x[k];
        mean = lanes_sum(sum4(sum), sums, at.lanes, 1) / count;
        REPEAT(k, VECTORS_PER_ITEM)
        x[k] = vector_center(&row, k, x[k], mean);
    }
    float4 square4 = (float4)(0.0f);
    REPEAT(k, VECTORS_PER_ITEM)
    square4 += x[k] * x[k];
    const float square = lanes_sum(sum4(square4), squares, at.lanes, 1);
    const float radicand = square / count + p.epsilon;
    const float factor = 1.0f / sqrt(radicand);
    REPEAT(k, VECTORS_PER_ITEM)
    results_store(&row, k, x[k] * factor, &affine, &p);

    /* Squares that overflow need smaller elements, squares that underflow need
     * larger ones. If the mean is large, differences do not underflow. */
    int rescales = 0;
    if (!isfinite(radicand))
        rescales = 1;
    else if (p.epsilon < MIN_SAFE_EPSILON && square < MIN_EXACT_SUM &&
             fabs(mean) < 0x1p20f)
        rescales = -1;
    struct normalization by = {1.0f, mean, factor, 0};
    if (rows_vote_any(row.exists && rescales != 0, vote_word, at.lanes, 1)) {
        /* A second pass, with scaled elements. Infinity and NaN still reach the
         * results. */
        by = normalization_of(rescales, 0.0f, 0.0f, p.epsilon);
        if (!RMS)
            by.mean = lanes_sum(lane_sum_scaled(&row, by.unit, 0.0f, false),
                                sums, at.lanes, 1) /
                      count;
        const float scaled_square =
            lanes_sum(lane_sum_scaled(&row, by.unit, by.mean, true), squares,
                      at.lanes, 1);
        by = normalization_of(rescales, by.mean, scaled_square / count,
                              p.epsilon);
        /* Without a barrier here, PoCL 3.1 loses `by`. */
        rows_barrier(at.lanes, 1);
    }
    if (row.exists && rescales != 0) {
        _Pragma("unroll 1") for (uint i = 0; i < 4 * VECTORS_PER_ITEM; ++i)
        {
            const uint k = i / 4, c = i % 4;
            if (!element_exists(&row, k, c))
                continue;
            const int j = element_index(&row, k, c);
            element_store(&row, k, c,
                          result(normalize(&by, row.in[j * row.in_step]),
                                 &affine, j, 0, &p));
        }
    }
    rows_stage_out(staged, out, &p);
}
#endif

/* ---- longer rows, and rows of several axes ---- */

#if ROW_ACCESS == ROW_ACCESS_VEC4 || ROW_ACCESS == ROW_ACCESS_STRIDED ||       \
    ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED

/* Offsets of an element from those of the row's first element. */
struct offsets {
    long in, out, scale, bias;
};

/* Returns the offsets of element j. `rolled` chooses ADD_OFFSET_ROLLED. */
INLINE struct offsets element_offsets(long j, bool rolled,
                                      const struct norm_params *p)
{
    struct offsets at = {j, j, j, j};
#if ROW_ACCESS == ROW_ACCESS_STRIDED
    at.in = at.out = 0;
    if (rolled) {
        ADD_OFFSET_ROLLED(at.in, (index_t)j, p->reduced, p->reduced_rank,
                          p->in_steps);
        ADD_OFFSET_ROLLED(at.out, (index_t)j, p->reduced, p->reduced_rank,
                          p->out_steps);
    } else {
        ADD_OFFSET(at.in, (index_t)j, p->reduced, p->reduced_rank, p->in_steps);
        ADD_OFFSET(at.out, (index_t)j, p->reduced, p->reduced_rank,
                   p->out_steps);
    }
#endif
#if ROW_ACCESS == ROW_ACCESS_STRIDED || GROUPED
    at.scale = at.bias = 0;
    if (rolled) {
        ADD_OFFSET_ROLLED(at.scale, (index_t)j, p->affine, p->affine_rank,
                          p->scale_steps);
        ADD_OFFSET_ROLLED(at.bias, (index_t)j, p->affine, p->affine_rank,
                          p->bias_steps);
    } else {
        ADD_OFFSET(at.scale, (index_t)j, p->affine, p->affine_rank,
                   p->scale_steps);
        ADD_OFFSET(at.bias, (index_t)j, p->affine, p->affine_rank,
                   p->bias_steps);
    }
#endif
    return at;
}

/* Returns the result for the normalized element at `at`. */
INLINE float result_at(float h, const struct affine *affine, struct offsets at)
{
#if RMS
    return h * affine->scale[at.scale];
#else
    return fma(h, affine->scale[at.scale], affine->bias[at.bias]);
#endif
}

/* ---- moments of splits ---- */

/* Combines the moments of two sets of elements: x is the number of elements, y
 * the mean (0 in rms_norm), z the sum of squared differences from y, and w the
 * number of rescalings (rescaled_sum.cl). w is -1 if the set is empty. */
static inline float4 moments_combine(float4 a, float4 b)
{
    float n = a.x + b.x;
    float total = max(n, 1.0f);
    float deviation = b.y - a.y;
    return (float4)(n, (a.x * a.y + b.x * b.y) / total,
                    a.z + b.z + deviation * deviation * (a.x * b.x / total),
                    a.w + b.w);
}
/* Returns the moments `a` rescaled from a.w to w rescalings. */
static inline float4 moments_rescale(float4 a, float w)
{
    float unit = a.w == w ? 1.0f : a.w + 1.0f == w ? SCALE_DOWN : 0.0f;
    return (float4)(a.x, a.y * unit, a.z * unit * unit, w);
}
static inline float4 moments_combine_rescaled(float4 a, float4 b)
{
    float w = fmax(a.w, b.w);
    float4 result =
        moments_combine(moments_rescale(a, w), moments_rescale(b, w));
    result.w = w;
    return result;
}
INLINE float4 lanes_combine(float4 own, __local float4 *partials, uint lanes,
                            uint step)
    LANES_COMBINE_BODY(moments_combine, shuffle_xor4)
INLINE float4 lanes_combine_rescaled(float4 own, __local float4 *partials,
                                     uint lanes, uint step)
    LANES_COMBINE_BODY(moments_combine_rescaled, shuffle_xor4)

/* Returns the factor by which a second pass must scale a split's elements,
 * or 1 if 2^35 splits with these moments can be combined precisely without
 * it. */
static inline float moments_wanted_scale(float4 a, float epsilon)
{
    if (!(fabs(a.y) <= 0x1p40f && a.z <= 0x1p90f))
        return SCALE_DOWN;
    return epsilon < MIN_SAFE_EPSILON && fabs(a.y) < 0x1p-45f && a.z < 0x1p-90f
               ? SCALE_UP
               : 1.0f;
}

INLINE float4 moments_of(const float16 *x)
{
    float mean = RMS ? 0.0f : sum16(x) * 0.0625f;
    float16 d = *x - mean;
    d *= d;
    return (float4)(16.0f, mean, sum16(&d), 0.0f);
}
static inline float4 moments_of_one(float x)
{
    return RMS ? (float4)(1.0f, 0.0f, x * x, 0.0f)
               : (float4)(1.0f, x, 0.0f, 0.0f);
}
static inline float4 moments_of_four(float4 x)
{
    float mean = RMS ? 0.0f : sum4(x) * 0.25f;
    float4 d = x - mean;
    return (float4)(4.0f, mean, sum4(d * d), 0.0f);
}

#if ROW_ACCESS == ROW_ACCESS_VEC4
/* Returns the moments of the lane's elements of a split. */
INLINE float4 split_moments(const struct own_row *row,
                            const struct own_split *split,
                            const struct norm_params *p)
{
    const long next = 4 * split_lanes(row);
    float4 own = (float4)(0.0f);
    long j = split->first;
    for (; j + 3 * next < split->end; j += 4 * next) {
        float16 x =
            (float16)(elements4_load(row, j), elements4_load(row, j + next),
                      elements4_load(row, j + 2 * next),
                      elements4_load(row, j + 3 * next));
        own = moments_combine(own, moments_of(&x));
    }
    for (; j < split->end; j += next)
        own = moments_combine(own, moments_of_four(elements4_load(row, j)));
    return own;
}
#else
INLINE float4 split_moments(const struct own_row *row,
                            const struct own_split *split,
                            const struct norm_params *p)
{
    const long lanes = split_lanes(row), next = 16 * lanes;
    float4 own = (float4)(0.0f);
    for (long j = split->first; j < split->end; j += next) {
        if (p->reduced_rank == 1 && j >= 0 && j + 15 * lanes < split->end) {
            float16 x = (float16)(elements4_load(row, j),
                                  elements4_load(row, j + 4 * lanes),
                                  elements4_load(row, j + 8 * lanes),
                                  elements4_load(row, j + 12 * lanes));
            own = moments_combine(own, moments_of(&x));
            continue;
        }
        const long end = min(j + next, split->end);
        for (long i = j; i < end; i += lanes) {
            if (i < 0)
                continue;
            const float x = row->in[element_offsets(i, false, p).in];
            own = moments_combine(own, moments_of_one(x));
        }
    }
    return own;
}
#endif

/* Returns the same for elements that are scaled by `unit`. The lanes can have
 * other elements than in split_moments. */
INLINE float4 split_moments_scaled(const struct own_row *row,
                                   const struct own_split *split, float unit,
                                   const struct norm_params *p)
{
    const long lane_elements = ROW_ACCESS == ROW_ACCESS_VEC4 ? 4 : 1;
    const long begin = split->first - (long)row->lane * lane_elements;
    float4 own = (float4)(0.0f);
    for (long j = begin + (long)row->lane; j < split->end;
         j += split_lanes(row)) {
        if (j < 0)
            continue;
        const float x = row->in[element_offsets(j, true, p).in];
        own = moments_combine(own, moments_of_one(x * unit));
    }
    return own;
}

#ifdef BUILD_norm_partial_pass
KERNEL void norm_partial_pass(__global float4 *partials,
                              __global const float *in,
                              const struct norm_params p)
{
    __local float4 combined[GROUP_SIZE];
    __local uint vote_word[1];
    const struct lane_assignment at =
        lane_assign(p.by.lanes_log2, 0, p.by.splits, p.by.row_groups);
    const struct own_row row = row_find(&at, in, p.in_steps[0], &p);
    const struct own_split split = split_find(&row, at.split, &p.by);
    float4 own =
        lanes_combine(split_moments(&row, &split, &p), combined, at.lanes, 1);
    const float unit =
        own.x > 0.0f ? moments_wanted_scale(own, p.epsilon) : 1.0f;
    if (UNLIKELY(group_vote_any(unit != 1.0f, vote_word))) {
        float4 scaled = (float4)(0.0f);
        if (unit != 1.0f)
            scaled = split_moments_scaled(&row, &split, unit, &p);
        scaled = lanes_combine(scaled, combined, at.lanes, 1);
        scaled.w = unit == SCALE_DOWN ? 1.0f : -1.0f;
        own = unit != 1.0f ? scaled : own;
    }
    if (own.x == 0.0f)
        own.w = -1.0f;
    if (at.lane == 0 && row.exists)
        partials[at.split * p.by.rows + at.row] = own;
}
#endif

/* ---- results of splits ---- */

#if ROW_ACCESS == ROW_ACCESS_VEC4
/* Stores the results for the lane's elements of a split. */
INLINE void split_results_store(const struct own_row *row,
                                const struct own_split *split,
                                const struct affine *affine, float mean,
                                float factor, const struct norm_params *p)
{
    for (long j = split->first; j < split->end; j += 4 * split_lanes(row)) {
        const float4 h = (elements4_load(row, j) - mean) * factor;
        elements4_store(row, j, vector_result(h, affine, j, p));
    }
}
#else
INLINE void split_results_store(const struct own_row *row,
                                const struct own_split *split,
                                const struct affine *affine, float mean,
                                float factor, const struct norm_params *p)
{
    const long lanes = split_lanes(row), next = 8 * lanes;
    const bool is_single_axis =
        (GROUPED || p->affine_rank == 1) && p->reduced_rank == 1;
    for (long j = split->first; j < split->end; j += next) {
        if (is_single_axis && j >= 0 && j + 7 * lanes < split->end) {
            __global const float *in = row->in + j * row->in_step;
            __global float *out = row->out + j * row->out_step;
            float y[8];
            REPEAT(k, 8)
            y[k] = result((in[k * lanes * row->in_step] - mean) * factor,
                          affine, j, k * lanes, p);
            REPEAT(k, 8)
            out[k * lanes * row->out_step] = y[k];
            continue;
        }
        const long end = min(j + next, split->end);
        for (long i = j; i < end; i += lanes) {
            if (i < 0)
                continue;
            const struct offsets at = element_offsets(i, false, p);
            row->out[at.out] =
                result_at((row->in[at.in] - mean) * factor, affine, at);
        }
    }
}
#endif

/* Stores the same for elements that are scaled. */
INLINE void split_results_store_scaled(const struct own_row *row,
                                       const struct own_split *split,
                                       const struct affine *affine,
                                       const struct normalization *by,
                                       const struct norm_params *p)
{
    for (long j = split->first; j < split->end;) {
        if (j >= 0) {
            const struct offsets at = element_offsets(j, true, p);
            row->out[at.out] =
                result_at(normalize(by, row->in[at.in]), affine, at);
        }
        /* The lane's next element follows in its vector, or is in the next
         * vector. */
        const bool in_vector =
            ROW_ACCESS == ROW_ACCESS_VEC4 && ((j - split->first) & 3) != 3;
        j += in_vector                       ? 1
             : ROW_ACCESS == ROW_ACCESS_VEC4 ? 4 * split_lanes(row) - 3
                                             : split_lanes(row);
    }
}

#ifdef BUILD_norm_final_pass
KERNEL void norm_final_pass(__global float *out, __global const float *in,
                            AFFINE_BUFFERS, __global const float4 *partials,
                            const struct norm_params p)
{
    __local float4 combined[GROUP_SIZE];
    __local uint vote_word[1];
    const struct lane_assignment at =
        lane_assign(p.by.lanes_log2, 0, p.by.splits, p.by.row_groups);
    struct own_row row = row_find(&at, in, p.in_steps[0], &p);
    struct affine affine = {AFFINE_LIST};
    row_add_output(&row, out, p.out_steps[0], &p);
    affine_to_row(&affine, at.row, &p);
    float4 own = (float4)(0.0f);
    if (row.exists)
        for (uint i = at.lane; i < p.by.splits; i += at.lanes) {
            float4 moments = partials[i * p.by.rows + at.row];
            /* own.w becomes the number of splits with rescaled elements. */
            moments.w = moments.x > 0.0f && moments.w != 0.0f ? 1.0f : 0.0f;
            own = moments_combine(own, moments);
        }
    own = lanes_combine(own, combined, at.lanes, 1);
    if (UNLIKELY(rows_vote_any(own.w > 0.0f, vote_word, at.lanes, 1))) {
        own = (float4)(0.0f, 0.0f, 0.0f, -1.0f);
        if (row.exists)
            for (uint i = at.lane; i < p.by.splits; i += at.lanes)
                own = moments_combine_rescaled(
                    own, partials[i * p.by.rows + at.row]);
        own = lanes_combine_rescaled(own, combined, at.lanes, 1);
    }
    const int rescales = p.by.count > 0 ? (int)own.w : 0;
    const struct normalization by =
        normalization_of(rescales, own.y, own.z / (float)p.by.count, p.epsilon);
    const struct own_split split = split_find(&row, at.split, &p.by);
    if (rescales == 0)
        split_results_store(&row, &split, &affine, by.mean, by.factor, &p);
    else
        split_results_store_scaled(&row, &split, &affine, &by, &p);
}
#endif
#endif

#endif
