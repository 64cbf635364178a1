/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions. Each output is computed by `lanes` work-items of a work-group.
 * Each work-item accumulates some elements with sixteen loads in flight. A tree
 * reduction combines the accumulators in a fixed order and without atomics, so
 * results are reproducible. Example: work-items 0 to 7 compute two outputs.
 *
 *        lanes_interleaved = 0                lanes_interleaved = 1
 *    (neighbours share an output)         (neighbours have different outputs)
 *   out 0: 0 1 2 3   out 1: 4 5 6 7      out 0: 0 2 4 6   out 1: 1 3 5 7
 *
 * If there are few outputs with many elements, the elements of an output are
 * split over several work-groups, and each stores the result of its split. The
 * kernel reduce_combine_splits combines these results in a fixed order. If
 * LAST_GROUP_COMBINES is 1, the last work-group that finishes combines them.
 */
#include "common/params.cl"

/* The strides of the outer axes lead from output to output, those of the
 * reduced axes from element to element of an output. `other` is the second
 * input of a dot product. */
struct reduce_params {
    uint64_t outputs, count; /* count is the number of elements per output */
    uint64_t elements_per_split;
    uint64_t output_groups; /* work-groups for one split of each output */
    uint32_t splits, lanes_log2, lanes_interleaved, is_vec4;
    uint32_t outer_rank, reduced_rank;
    uint64_t out_offset, in_offset, other_offset;
    struct fast_divmod outer, reduced;
    int64_t out_strides[MAX_AXES], in_strides[MAX_AXES];
    int64_t reduced_strides[MAX_AXES], other_strides[MAX_AXES];
};
PARAMS_SIZE(reduce_params, 592);

#ifdef __OPENCL_C_VERSION__
#include "common/accumulators.cl"

/* 1 if the last work-group that finishes combines the splits. */
#ifndef LAST_GROUP_COMBINES
#define LAST_GROUP_COMBINES 0
#endif

/* ---- the terms of a reduction: elements, or products in a dot product ---- */

#if REDUCTION == DOT
#define INPUT_BUFFERS __global const float *in, __global const float *other
#define INPUT_LIST in, other
struct inputs {
    __global const float *in, *other;
};
#else
#define INPUT_BUFFERS __global const float *in
#define INPUT_LIST in
struct inputs {
    __global const float *in;
};
#endif

/* Offsets in the inputs. */
struct offsets {
    long in, other;
};

/* Returns the offsets of element j of the output whose first element is at
 * `first`. */
INLINE struct offsets element_offsets(struct offsets first, index_t j,
                                      const struct reduce_params *p)
{
    ADD_OFFSET(first.in, j, p->reduced, p->reduced_rank, p->reduced_strides);
#if REDUCTION == DOT
    ADD_OFFSET(first.other, j, p->reduced, p->reduced_rank, p->other_strides);
#endif
    return first;
}

INLINE float term_at(const struct inputs *inputs, struct offsets at)
{
#if REDUCTION == DOT
    return inputs->in[at.in] * inputs->other[at.other];
#else
    return inputs->in[at.in];
#endif
}
/* Returns term j of a reduction over one axis, or IDENTITY if j >= end. */
INLINE float axis_term(const struct inputs *inputs, struct offsets first,
                       ulong j, ulong end, const struct reduce_params *p)
{
    first.in += (long)j * p->reduced_strides[0];
    first.other += (long)j * p->other_strides[0];
    return j < end ? term_at(inputs, first) : IDENTITY;
}
/* Returns the four terms j, j + step, ... */
INLINE float4 axis_terms4(const struct inputs *inputs, struct offsets first,
                          ulong j, ulong step, ulong end,
                          const struct reduce_params *p)
{
    return (float4)(axis_term(inputs, first, j, end, p),
                    axis_term(inputs, first, j + step, end, p),
                    axis_term(inputs, first, j + 2 * step, end, p),
                    axis_term(inputs, first, j + 3 * step, end, p));
}
/* Returns the terms of the aligned vector of elements from j on, or a vector of
 * IDENTITY if j >= end. */
INLINE float4 vec4_terms(const struct inputs *inputs, struct offsets first,
                         ulong j, ulong end)
{
    if (j >= end)
        return (float4)(IDENTITY);
    float4 x = *(__global const float4 *)(inputs->in + first.in + j);
#if REDUCTION == DOT
    x *= *(__global const float4 *)(inputs->other + first.other + j);
#endif
    return x;
}

/* ---- the passes over a split ---- */

/* Adds the lane's elements of its split to `own`. */
INLINE void split_accumulate(struct accumulator *own,
                             const struct inputs *inputs,
                             const struct lane_assignment *at,
                             const struct reduce_params *p)
{
    struct offsets first = {(long)p->in_offset, (long)p->other_offset};
    ADD_OFFSET(first.in, (index_t)at->row, p->outer, p->outer_rank,
               p->in_strides);
    const ulong begin = at->split * p->elements_per_split;
    const ulong end = min(begin + p->elements_per_split, p->count);
    const ulong lanes = at->lanes;
    ulong j = begin + at->lane;
    if (p->is_vec4) {
        const ulong vec4_end = begin + (end - begin) / 4 * 4, next = lanes * 4;
        ulong i = begin + at->lane * 4;
        if (i < vec4_end)
            accumulator_start(own, (index_t)i);
        for (; i < vec4_end; i += 4 * next) {
            float4 a = vec4_terms(inputs, first, i, vec4_end);
            float4 b = vec4_terms(inputs, first, i + next, vec4_end);
            float4 c = vec4_terms(inputs, first, i + 2 * next, vec4_end);
            float4 d = vec4_terms(inputs, first, i + 3 * next, vec4_end);
            float16 x = (float16)(a, b, c, d);
            accumulate16(own, &x, (index_t)i, (index_t)next, 1);
        }
        j = vec4_end + at->lane;
        if (j < end)
            accumulator_start(own, (index_t)j);
        for (; j < end; j += lanes)
            accumulate(own, axis_term(inputs, first, j, end, p), (index_t)j);
    }
    if (j < end)
        accumulator_start(own, (index_t)j);
    for (; p->reduced_rank == 1 && j < end; j += 16 * lanes) {
        float16 x =
            (float16)(axis_terms4(inputs, first, j, lanes, end, p),
                      axis_terms4(inputs, first, j + 4 * lanes, lanes, end, p),
                      axis_terms4(inputs, first, j + 8 * lanes, lanes, end, p),
                      axis_terms4(inputs, first, j + 12 * lanes, lanes, end,
                                  p));
        accumulate16(own, &x, (index_t)j, (index_t)(4 * lanes), (index_t)lanes);
    }
    for (; j < end; j += lanes)
        accumulate(own, term_at(inputs, element_offsets(first, (index_t)j, p)),
                   (index_t)j);
}

#if IS_SUM
/* Returns the term at `at` for elements that are scaled by `scale`. */
static inline float scaled_term(const struct inputs *inputs, struct offsets at,
                                int scale)
{
#if REDUCTION == DOT
    return multiply3_scaled(inputs->in[at.in], inputs->other[at.other], 1.0f,
                            2 * SCALE_LOG2 * scale);
#else
    return SUMMAND(inputs->in[at.in] * scale_factor(scale));
#endif
}

/* Adds the lane's elements, scaled by `scale`, to `own`. The code is short
 * rather than fast, and its lanes can have other elements than
 * split_accumulate. */
INLINE void split_accumulate_scaled(struct accumulator *own,
                                    const struct inputs *inputs,
                                    const struct lane_assignment *at,
                                    const struct reduce_params *p, int scale)
{
    long base = (long)p->in_offset;
    ADD_OFFSET_ROLLED(base, (index_t)at->row, p->outer, p->outer_rank,
                      p->in_strides);
    const index_t begin = (index_t)(at->split * p->elements_per_split);
    const index_t end =
        (index_t)min((at->split + 1) * p->elements_per_split, p->count);
    for (index_t j = begin + (index_t)at->lane; j < end;
         j += (index_t)at->lanes) {
        struct offsets element = {base, (long)p->other_offset};
        ADD_OFFSET_ROLLED(element.in, j, p->reduced, p->reduced_rank,
                          p->reduced_strides);
#if REDUCTION == DOT
        ADD_OFFSET_ROLLED(element.other, j, p->reduced, p->reduced_rank,
                          p->other_strides);
#endif
        accumulator_add(own, scaled_term(inputs, element, scale));
    }
}

/* Returns the sum of a split. A second pass adds scaled elements if the sum of
 * the unscaled elements overflows, or is too small to be precise. All
 * work-items of the work-group must call this function. */
INLINE split_result_t split_reduce(const struct inputs *inputs,
                                   const struct lane_assignment *at,
                                   const struct reduce_params *p,
                                   __local float *partials,
                                   __local uint *vote_word)
{
    const bool exists = at->row < p->outputs;
    struct accumulator own;
    accumulator_clear(&own);
    if (exists)
        split_accumulate(&own, inputs, at, p);
    const float sum = lanes_combine(accumulator_partial(&own), partials,
                                    at->lanes, at->step);
    split_result_t result = {sum, 0};
    const int scale = exists ? scale_wanted(sum) : 0;
    if (UNLIKELY(rows_vote_any(scale != 0, vote_word, at->lanes, at->step))) {
        accumulator_clear(&own);
        if (scale != 0)
            split_accumulate_scaled(&own, inputs, at, p, scale);
        const float rescaled = lanes_combine(accumulator_partial(&own),
                                             partials, at->lanes, at->step);
        /* A sum that overflows after SCALE_UP has terms large enough for the
         * unscaled sum to be precise. */
        const bool is_valid = scale < 0 || (scale > 0 && isfinite(rescaled));
        result.sum = is_valid ? rescaled : sum;
        result.scale = is_valid ? scale : 0;
    }
    return result;
}
#else
INLINE split_result_t split_reduce(const struct inputs *inputs,
                                   const struct lane_assignment *at,
                                   const struct reduce_params *p,
                                   __local partial_t *partials,
                                   __local uint *vote_word)
{
    struct accumulator own;
    accumulator_clear(&own);
    if (at->row < p->outputs)
        split_accumulate(&own, inputs, at, p);
    return lanes_combine(accumulator_partial(&own), partials, at->lanes,
                         at->step);
}
#endif

/* ---- the splits of an output ---- */

/* Combines the results of all splits of the work-item's output. */
INLINE split_result_t
splits_combine(__global const split_result_t *split_results,
               const struct lane_assignment *at, const struct reduce_params *p,
               __local split_result_t *lane_results)
{
    split_result_t own = split_empty();
    if (at->row < p->outputs)
        for (uint split = at->lane; split < p->splits; split += at->lanes)
            own =
                split_combine(own, split_results[split * p->outputs + at->row]);
    return lanes_combine_splits(own, lane_results, at->lanes, at->step);
}

/* Stores the value of output number `row`. */
INLINE void output_store(__global result_t *out, ulong row,
                         split_result_t result, const struct reduce_params *p)
{
    long to = (long)p->out_offset;
    ADD_OFFSET(to, (index_t)row, p->outer, p->outer_rank, p->out_strides);
    out[to] = split_value(result, p->count);
}

/* Memory fence for the whole device: every work-group that sees a write after
 * the fence also sees all writes before the fence, even those of other
 * work-items that reached a barrier with this work-item before the fence. */
#if SHUFFLE == 1
#define DEVICE_FENCE __asm__ volatile("membar.gl;" : : : "memory")
#else
#define DEVICE_FENCE mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif
#define GROUP_BARRIER barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

#if LAST_GROUP_COMBINES
/* arrival_counters[i] is the number of finished splits of the outputs of group
 * i, and 0 between launches. Counts this work-group's split as finished.
 * Returns true if the other splits of its outputs are finished, too. */
INLINE bool group_is_last(volatile __global uint *arrival_counters,
                          const struct lane_assignment *at,
                          const struct reduce_params *p, __local uint *is_last)
{
    GROUP_BARRIER;
    if (get_local_id(0) == 0) {
        const ulong outputs = get_group_id(0) - at->split * p->output_groups;
        DEVICE_FENCE;
        *is_last = atomic_inc(arrival_counters + outputs) == p->splits - 1;
        DEVICE_FENCE;
        if (*is_last)
            arrival_counters[outputs] = 0;
    }
    GROUP_BARRIER;
    return *is_last != 0;
}
#define ARRIVAL_COUNTERS volatile __global uint *arrival_counters,
#else
#define ARRIVAL_COUNTERS
#endif

#ifdef BUILD_reduce
KERNEL void reduce(__global result_t *out,
                   __global split_result_t *split_results, INPUT_BUFFERS,
                   ARRIVAL_COUNTERS const struct reduce_params p)
{
    __local partial_t partials[GROUP_SIZE];
    __local uint vote_word[1];
    const struct inputs inputs = {INPUT_LIST};
    const struct lane_assignment at = lane_assign(
        p.lanes_log2, p.lanes_interleaved, p.splits, p.output_groups);
    split_result_t result = split_reduce(&inputs, &at, &p, partials, vote_word);
    const bool stores = at.lane == 0 && at.row < p.outputs;
    if (stores && p.splits > 1)
        split_results[at.split * p.outputs + at.row] = result;
#if LAST_GROUP_COMBINES
    __local uint is_last[1];
    if (!group_is_last(arrival_counters, &at, &p, is_last))
        return;
#if IS_SUM
    __local split_result_t lane_results[GROUP_SIZE];
#else
    __local split_result_t *lane_results = partials;
#endif
    result = splits_combine(split_results, &at, &p, lane_results);
#else
    if (p.splits > 1)
        return;
#endif
    if (stores)
        output_store(out, at.row, result, &p);
}
#endif

#ifdef BUILD_reduce_combine_splits
KERNEL void reduce_combine_splits(__global result_t *out,
                                  __global const split_result_t *split_results,
                                  const struct reduce_params p)
{
    __local split_result_t lane_results[GROUP_SIZE];
    const struct lane_assignment at =
        lane_assign(p.lanes_log2, p.lanes_interleaved, 1, p.output_groups);
    const split_result_t result =
        splits_combine(split_results, &at, &p, lane_results);
    if (at.lane == 0 && at.row < p.outputs)
        output_store(out, at.row, result, &p);
}
#endif

#endif
