/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of few queries, whose time is that of reading the keys and values.
 * The keys are split among work-groups, as in flash-decoding. A row is a query
 * of a head. A work-group computes ROWS rows that share keys and values, for
 * the keys of one split. It visits TILE_KEYS keys at a time:
 * - LANES work-items compute the score of a key. Each of them multiplies every
 *   LANES-th vec4 of the key.
 * - Each work-item masks the scores of one key and turns them into weights
 *   e^(score - largest score so far).
 * - Each work-item adds up the weighted values of VALUE_SLOTS-th keys in one
 *   vec4 of columns.
 * The result of a split is its sums of weighted values, its largest score and
 * its sum of weights. attention_merge computes the result from those of all
 * splits. If there is one split, attention_split stores the result itself. */
#include "common/attention_scores.cl"

#ifdef __OPENCL_C_VERSION__
#include "common/lane_reduce.cl"

#ifndef ROWS
#define ROWS 1
#endif
/* Columns of keys, in blocks of 32 elements. */
#ifndef WIDTH_BLOCKS
#define WIDTH_BLOCKS 2
#endif
/* Log2 of the number of vec4 of a value, rounded up. */
#ifndef VALUE_LANES_LOG2
#define VALUE_LANES_LOG2 4
#endif
/* 1 if aligned vec4 loads can read the keys or the values. */
#ifndef K_VEC4
#define K_VEC4 0
#define V_VEC4 0
#endif

#define WIDTH_VEC4 (WIDTH_BLOCKS * 8)
#if SHUFFLE == 1
#define LANES 8
#else
#define LANES 4
#endif
#define KEYS_AT_ONCE 4
/* Unrolled iterations of the loops over columns and values. With more of them,
 * the compilers for AMD and Intel run out of registers. */
#if SHUFFLE == 1
#define STEPS_AT_ONCE 4
#define VALUES_AT_ONCE 8
#else
#define STEPS_AT_ONCE 1
#define VALUES_AT_ONCE 4
#endif
#define SLOTS (GROUP_SIZE / LANES)
#define TILE_KEYS GROUP_SIZE
#define VALUE_LANES (1 << VALUE_LANES_LOG2)
#define VALUE_SLOTS (GROUP_SIZE / VALUE_LANES)
/* Floats of a row's partial result. */
#define PARTIAL_WIDTH (VALUE_LANES * 4)

/* Loads four columns of a row. Columns from end_column on are 0. */
INLINE float4 load_scalars(__global const float *from, uint column,
                           uint end_column, long stride)
{
    float4 x = 0.0f;
    from += (long)column * stride;
    if (column < end_column)
        x.s0 = from[0];
    if (column + 1 < end_column)
        x.s1 = from[stride];
    if (column + 2 < end_column)
        x.s2 = from[stride * 2];
    if (column + 3 < end_column)
        x.s3 = from[stride * 3];
    return x;
}
INLINE float4 load_aligned(__global const float *from, uint column,
                           uint end_column, long stride)
{
    return column < end_column ? *(__global const float4 *)(from + column)
                               : (float4)(0.0f);
}
#if K_VEC4
#define KEY_LOAD load_aligned
#else
#define KEY_LOAD load_scalars
#endif
#if V_VEC4
#define VALUE_LOAD load_aligned
#else
#define VALUE_LOAD load_scalars
#endif

/* A row of a work-group: its head, query and number among all rows. */
struct attention_row {
    uint head, query;
    ulong index;
    bool exists;
};

INLINE struct attention_row row_at(uint row, uint image, uint key_head,
                                   const struct attention_params *p)
{
    struct attention_row at;
    uint queries = max(p->queries, 1u);
    at.exists = row < p->group * queries;
    row = at.exists ? row : 0;
    at.head = key_head * p->group + row / queries;
    at.query = row % queries;
    at.index = ((ulong)image * p->heads + at.head) * queries + at.query;
    return at;
}

INLINE void store_columns(__global float *out, float4 x, uint column,
                          const struct attention_row *at, uint image,
                          const struct attention_params *p)
{
    const long stride = p->out_strides[0];
    out += (long)p->out_offset + (long)image * p->out_strides[3] +
           (long)at->head * p->out_strides[2] +
           (long)at->query * p->out_strides[1] + (long)column * stride;
    if (column < p->value_width)
        out[0] = x.s0;
    if (column + 1 < p->value_width)
        out[stride] = x.s1;
    if (column + 2 < p->value_width)
        out[stride * 2] = x.s2;
    if (column + 3 < p->value_width)
        out[stride * 3] = x.s3;
}

INLINE float inverse_of(float total)
{
    return total != 0.0f ? 1.0f / total : 0.0f;
}

#ifdef BUILD_attention_split
/* Stores in `scores` the products of all rows and TILE_KEYS keys from `first`
 * on. Without shuffles, these are LANES partial sums of each product. */
INLINE void scores_compute(__local float *scores,
                           __local float4 (*q_rows)[WIDTH_VEC4],
                           __global const float *k, uint first,
                           const struct attention_params *p)
{
    const uint lane = get_local_id(0) % LANES, slot = get_local_id(0) / LANES;
    const uint last = max(p->keys, 1u) - 1;
    const long stride = p->k_strides[0];
    for (uint base = slot; base < TILE_KEYS; base += SLOTS * KEYS_AT_ONCE) {
        float sum[KEYS_AT_ONCE][ROWS];
        __global const float *from[KEYS_AT_ONCE];
        REPEAT (i, KEYS_AT_ONCE) {
            from[i] = k + (long)min(first + base + i * SLOTS, last) *
                              p->k_strides[1];
            REPEAT (r, ROWS)
                sum[i][r] = 0.0f;
        }
#pragma unroll STEPS_AT_ONCE
        for (uint step = 0; step < WIDTH_VEC4 / LANES; ++step) {
            const uint x = step * LANES + lane;
            float4 key[KEYS_AT_ONCE];
            REPEAT (i, KEYS_AT_ONCE)
                key[i] = KEY_LOAD(from[i], x * 4, p->width, stride);
            REPEAT (r, ROWS) {
                const float4 own = q_rows[r][x];
                REPEAT (i, KEYS_AT_ONCE) {
                    sum[i][r] = fma(own.s0, key[i].s0, sum[i][r]);
                    sum[i][r] = fma(own.s1, key[i].s1, sum[i][r]);
                    sum[i][r] = fma(own.s2, key[i].s2, sum[i][r]);
                    sum[i][r] = fma(own.s3, key[i].s3, sum[i][r]);
                }
            }
        }
        REPEAT (i, KEYS_AT_ONCE)
            REPEAT (r, ROWS) {
                const uint at = r * TILE_KEYS + base + i * SLOTS;
#if SHUFFLE == 1
                for (uint mask = LANES / 2; mask > 0; mask /= 2)
                    sum[i][r] += shuffle_xor(sum[i][r], mask);
                if (lane == 0)
                    scores[at] = sum[i][r];
#else
                scores[at * LANES + lane] = sum[i][r];
#endif
            }
    }
}

INLINE float score_read(__local const float *scores, uint row, uint key)
{
#if SHUFFLE == 1
    return scores[row * TILE_KEYS + key];
#else
    return sum4(((__local const float4 *)scores)[row * TILE_KEYS + key]);
#endif
}

#define Q_ROW(at)                                                              \
    (q + (long)p.q_offset + (long)image * p.q_strides[3] +                     \
     (long)(at).head * p.q_strides[2] + (long)(at).query * p.q_strides[1])

KERNEL void attention_split(__global float *out, __global float *partial,
                            __global const float *q, __global const float *k,
                            __global const float *v,
                            __global const MASK_T *mask,
                            const struct attention_params p)
{
    __local float4 q_rows[ROWS][WIDTH_VEC4];
    /* Scores, later the sums of one row. */
    __local float4 shared[SHUFFLE == 1 ? (ROWS + 3) / 4 * GROUP_SIZE
                                       : ROWS * GROUP_SIZE];
    __local float weights[ROWS][TILE_KEYS];
    __local float maxima[ROWS][GROUP_SIZE];
    const uint id = get_local_id(0);
    uint index = (uint)get_group_id(0);
    uint rest = index / max(p.splits, 1u);
    const uint split = index - rest * p.splits;
    index = rest / max(p.row_tiles, 1u);
    const uint first_row = (rest - index * p.row_tiles) * ROWS;
    const uint key_heads = max(p.heads / max(p.group, 1u), 1u);
    const uint image = index / key_heads, key_head = index - image * key_heads;
    const uint begin = split * p.split_keys;
    const uint end = min(begin + p.split_keys, p.key_end);
    const uint column = id % VALUE_LANES * 4, value_slot = id / VALUE_LANES;
    const uint last = max(p.keys, 1u) - 1;

    k += (long)p.k_offset + (long)image * p.k_strides[3] +
         (long)key_head * p.k_strides[2];
    v += (long)p.v_offset + (long)image * p.v_strides[3] +
         (long)key_head * p.v_strides[2];
    float total[ROWS], largest[ROWS];
    float4 sum[ROWS];
    REPEAT (r, ROWS) {
        const struct attention_row at =
            row_at(first_row + r, image, key_head, &p);
        for (uint x = id; x < WIDTH_VEC4; x += GROUP_SIZE)
            q_rows[r][x] =
                load_scalars(Q_ROW(at), x * 4, p.width, p.q_strides[0]);
        total[r] = 0.0f;
        largest[r] = -INFINITY;
        sum[r] = 0.0f;
    }
    for (uint first = begin; first < end; first += TILE_KEYS) {
        barrier(CLK_LOCAL_MEM_FENCE);
        scores_compute((__local float *)shared, q_rows, k, first, &p);
        barrier(CLK_LOCAL_MEM_FENCE);
        REPEAT (r, ROWS) {
            const struct attention_row at =
                row_at(first_row + r, image, key_head, &p);
            const float score = score_mask(
                score_read((__local const float *)shared, r, id), at.query,
                first + id,
#if MASK != 0
                mask + (long)p.mask_offset + (long)image * p.mask_strides[3] +
                    (long)at.head * p.mask_strides[2],
#else
                mask,
#endif
                &p);
            const float next =
                fmax(largest[r], lanes_max(score, maxima[r], GROUP_SIZE, 1));
            /* All keys so far may be masked. */
            const bool any = next != -INFINITY;
            const float factor = any ? exp(largest[r] - next) : 1.0f;
            const float weight = any ? exp(score - next) : 0.0f;
            weights[r][id] = weight;
            total[r] = fma(total[r], factor, weight);
            sum[r] *= factor;
            largest[r] = next;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll VALUES_AT_ONCE
        for (uint i = 0; i < TILE_KEYS / VALUE_SLOTS; ++i) {
            const uint key = i * VALUE_SLOTS + value_slot;
            const float4 x =
                VALUE_LOAD(v + (long)min(first + key, last) * p.v_strides[1],
                           column, p.value_width, p.v_strides[0]);
            REPEAT (r, ROWS)
                sum[r] = fma((float4)(weights[r][key]), x, sum[r]);
        }
    }

    REPEAT (r, ROWS) {
        const struct attention_row at =
            row_at(first_row + r, image, key_head, &p);
        barrier(CLK_LOCAL_MEM_FENCE);
        shared[id] = sum[r];
        const float all = lanes_sum(total[r], maxima[r], GROUP_SIZE, 1);
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 x = sum[r];
        for (uint i = 1; i < VALUE_SLOTS; ++i)
            x += shared[id % VALUE_LANES + i * VALUE_LANES];
        if (value_slot == 0 && at.exists) {
            const ulong row = at.index * p.splits + split;
            if (p.splits == 1)
                store_columns(out, x * inverse_of(all), column, &at, image, &p);
            else
                ((__global float4 *)partial)[row * VALUE_LANES + id] = x;
            if (p.splits > 1 && id == 0)
                ((__global float2 *)(partial + p.state_offset))[row] =
                    (float2)(largest[r], all);
        }
    }
}
#endif

#ifdef BUILD_attention_merge
/* A work-group computes one row. */
KERNEL void attention_merge(__global float *out, __global const float *partial,
                            const struct attention_params p)
{
    __local float maxima[GROUP_SIZE], totals[GROUP_SIZE];
    __local float4 shared[GROUP_SIZE];
    const uint id = get_local_id(0);
    const uint column = id % VALUE_LANES * 4, slot = id / VALUE_LANES;
    const uint queries = max(p.queries, 1u), index = (uint)get_group_id(0);
    struct attention_row at;
    at.exists = true;
    at.index = index;
    at.query = index % queries;
    at.head = index / queries % max(p.heads, 1u);
    const uint image = index / queries / max(p.heads, 1u);
    __global const float2 *state =
        (__global const float2 *)(partial + p.state_offset) +
        at.index * p.splits;
    __global const float4 *sums =
        (__global const float4 *)partial + at.index * p.splits * VALUE_LANES;

    float largest = -INFINITY, total = 0.0f;
    for (uint i = id; i < p.splits; i += GROUP_SIZE)
        largest = fmax(largest, state[i].s0);
    largest = lanes_max(largest, maxima, GROUP_SIZE, 1);
    /* All keys may be masked. */
    const float base = largest == -INFINITY ? 0.0f : largest;
    for (uint i = id; i < p.splits; i += GROUP_SIZE)
        total = fma(exp(state[i].s0 - base), state[i].s1, total);
    total = lanes_sum(total, totals, GROUP_SIZE, 1);
    float4 x = 0.0f;
    for (uint i = slot; i < p.splits; i += VALUE_SLOTS)
        x = fma((float4)(exp(state[i].s0 - base)),
                sums[(ulong)i * VALUE_LANES + id % VALUE_LANES], x);
    shared[id] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 1; i < VALUE_SLOTS; ++i)
        x += shared[id % VALUE_LANES + i * VALUE_LANES];
    if (slot == 0)
        store_columns(out, x * inverse_of(total), column, &at, image, &p);
}
#endif

#endif
