/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of few queries, whose time is that of reading the keys and values.
 * The keys are split among work-groups, as in flash-decoding. A row is a query
 * of a head. A work-group computes ROWS rows that share keys and values, for
 * the keys of one split. It visits TILE_KEYS keys at a time:
 * - LANES work-items compute the score of a key. Each of them multiplies every
 *   LANES-th vec4 of the key.
 * - The work-items share the rows: each masks the scores of a row's keys and
 *   turns them into weights e^(score - largest score so far).
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
#define WEIGHTS_AT_ONCE 2
#else
#define STEPS_AT_ONCE 1
#define VALUES_AT_ONCE 4
#define WEIGHTS_AT_ONCE 1
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
#define SUMS (KEYS_AT_ONCE * ROWS)
#if SHUFFLE == 1
/* Adds up the partial sums of LANES work-items and stores the totals in
 * `scores`. */
INLINE void sums_store(__local float *scores, float *sum, uint lane, uint key)
{
    sums_exchange(sum, SUMS, 4);
    sums_exchange(sum, SUMS / 2, 2);
    sums_exchange(sum, SUMS / 4, 1);
    if (SUMS < LANES && lane % (LANES / min(SUMS, LANES)) != 0)
        return;
    REPEAT (i, (SUMS + LANES - 1) / LANES) {
        const uint at = lane * SUMS / LANES + i;
        scores[at % ROWS * TILE_KEYS + key + at / ROWS * SLOTS] = sum[i];
    }
}
#else
INLINE void sums_store(__local float *scores, float *sum, uint lane, uint key)
{
    REPEAT (i, SUMS)
        scores[(i % ROWS * TILE_KEYS + key + i / ROWS * SLOTS) * LANES + lane] =
            sum[i];
}
#endif

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
#pragma unroll 1
    for (uint base = slot; base < TILE_KEYS; base += SLOTS * KEYS_AT_ONCE) {
        float sum[SUMS];
        __global const float *from[KEYS_AT_ONCE];
        REPEAT (i, KEYS_AT_ONCE)
            from[i] = k + (long)min(first + base + i * SLOTS, last) *
                              p->k_strides[1];
        REPEAT (i, SUMS)
            sum[i] = 0.0f;
#pragma unroll STEPS_AT_ONCE
        for (uint step = 0; step < WIDTH_VEC4 / LANES; ++step) {
            const uint x = step * LANES + lane;
            float4 key[KEYS_AT_ONCE];
            REPEAT (i, KEYS_AT_ONCE)
                key[i] = KEY_LOAD(from[i], x * 4, p->width, stride);
            REPEAT (r, ROWS) {
                const float4 own = q_rows[r][x];
                REPEAT (i, KEYS_AT_ONCE) {
                    float own_sum = sum[i * ROWS + r];
                    own_sum = fma(own.s0, key[i].s0, own_sum);
                    own_sum = fma(own.s1, key[i].s1, own_sum);
                    own_sum = fma(own.s2, key[i].s2, own_sum);
                    sum[i * ROWS + r] = fma(own.s3, key[i].s3, own_sum);
                }
            }
        }
        sums_store(scores, sum, lane, base);
    }
}

/* The score of a key, of which each work-item reads and writes its own. */
#if SHUFFLE == 1
#define SCORE(row, key) scores[(row) * TILE_KEYS + (key)]
#define SCORE_READ(row, key) SCORE(row, key)
#else
#define SCORE(row, key) scores[((row) * TILE_KEYS + (key)) * LANES]
#define SCORE_READ(row, key)                                                   \
    sum4(*(__local const float4 *)&SCORE(row, key))
#endif

/* The row whose weights a work-item makes, and the state of this row: the
 * largest score so far, and the sum of the work-item's weights. */
struct row_weights {
    struct attention_row at;
    uint row, lane;
    float largest, total;
};
#define ROW_LANES (GROUP_SIZE / ROWS)

/* Turns the scores of a tile into weights. Stores the factor that earlier
 * weights of each row get in `factors`. */
INLINE void weights_make(struct row_weights *of,
                         __local float (*weights)[ROWS], __local float *factors,
                         __local float *scores, __local float *maxima,
                         __global const MASK_T *mask, uint first,
                         const struct attention_params *p)
{
    float next = of->largest;
#pragma unroll WEIGHTS_AT_ONCE
    for (uint i = 0; i < ROWS; ++i) {
        const uint key = i * ROW_LANES + of->lane;
        const float score = score_mask(SCORE_READ(of->row, key), of->at.query,
                                       first + key, mask, p);
        SCORE(of->row, key) = score;
        next = fmax(next, score);
    }
    next = lanes_max(next, maxima, ROW_LANES, 1);
    /* All keys so far may be masked. */
    const float base = next == -INFINITY ? 0.0f : next;
    const float factor = next == -INFINITY ? 1.0f : exp(of->largest - base);
    float total = of->total * factor;
#pragma unroll WEIGHTS_AT_ONCE
    for (uint i = 0; i < ROWS; ++i) {
        const uint key = i * ROW_LANES + of->lane;
        const float weight = exp(SCORE(of->row, key) - base);
        weights[key][of->row] = weight;
        total += weight;
    }
    if (of->lane == 0)
        factors[of->row] = factor;
    of->total = total;
    of->largest = next;
}

/* Stores the rows of a work-group, or the sums of their split, after adding up
 * the sums of the value slots. */
INLINE void rows_store(__global float *out, __global float *partial,
                       const float4 *sum, __local float4 *shared,
                       __local const float2 *states, uint first_row, uint image,
                       uint key_head, uint split,
                       const struct attention_params *p)
{
    const uint id = get_local_id(0), x = id % VALUE_LANES;
    FOR_EACH_PART (row, ROWS) {
        const struct attention_row at =
            row_at(first_row + row, image, key_head, p);
        barrier(CLK_LOCAL_MEM_FENCE);
        REPEAT_PART (row, r, ROWS)
            shared[id] = sum[r];
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 total = shared[x];
#pragma unroll 4
        for (uint i = 1; i < VALUE_SLOTS; ++i)
            total += shared[x + i * VALUE_LANES];
        if (id < VALUE_LANES && at.exists) {
            const ulong to = at.index * p->splits + split;
            const float2 state = states[row];
            if (p->splits == 1)
                store_columns(out, total * inverse_of(state.s1), x * 4, &at,
                              image, p);
            else
                ((__global float4 *)partial)[to * VALUE_LANES + id] = total;
            if (p->splits > 1 && id == 0)
                ((__global float2 *)(partial + p->state_offset))[to] = state;
        }
    }
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
    __local float weights[TILE_KEYS][ROWS] __attribute__((aligned(16)));
    __local float maxima[GROUP_SIZE], factors[ROWS];
    __local float2 states[ROWS];
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
#pragma unroll 1
    for (uint i = id; i < ROWS * WIDTH_VEC4; i += GROUP_SIZE) {
        const struct attention_row at =
            row_at(first_row + i / WIDTH_VEC4, image, key_head, &p);
        q_rows[i / WIDTH_VEC4][i % WIDTH_VEC4] = load_scalars(
            Q_ROW(at), i % WIDTH_VEC4 * 4, p.width, p.q_strides[0]);
    }
    struct row_weights of = {.row = id / ROW_LANES, .lane = id % ROW_LANES};
    of.at = row_at(first_row + of.row, image, key_head, &p);
    of.largest = -INFINITY;
    of.total = 0.0f;
#if MASK != 0
    mask += (long)p.mask_offset + (long)image * p.mask_strides[3] +
            (long)of.at.head * p.mask_strides[2];
#endif
    float4 sum[ROWS];
    REPEAT (r, ROWS)
        sum[r] = 0.0f;
    /* Work-items whose columns do not exist add up other columns, so that no
     * load is conditional. Their results are not stored. */
#if V_VEC4
    v += column < p.value_width ? column : 0;
#define VALUE_LOAD(from) (*(__global const float4 *)(from))
#else
    long offset[4];
    REPEAT (e, 4)
        offset[e] = (long)min(column + e, max(p.value_width, 1u) - 1) *
                    p.v_strides[0];
#define VALUE_LOAD(from)                                                       \
    (float4)((from)[offset[0]], (from)[offset[1]], (from)[offset[2]],          \
             (from)[offset[3]])
#endif
    for (uint first = begin; first < end; first += TILE_KEYS) {
        barrier(CLK_LOCAL_MEM_FENCE);
        scores_compute((__local float *)shared, q_rows, k, first, &p);
        barrier(CLK_LOCAL_MEM_FENCE);
        weights_make(&of, weights, factors, (__local float *)shared, maxima,
                     mask, first, &p);
        barrier(CLK_LOCAL_MEM_FENCE);
        REPEAT (r, ROWS)
            sum[r] *= factors[r];
#pragma unroll VALUES_AT_ONCE
        for (uint i = 0; i < TILE_KEYS / VALUE_SLOTS; ++i) {
            const uint key = i * VALUE_SLOTS + value_slot;
            const float4 x =
                VALUE_LOAD(v + (long)min(first + key, last) * p.v_strides[1]);
            REPEAT (r, ROWS)
                sum[r] = fma((float4)(weights[key][r]), x, sum[r]);
        }
    }

    barrier(CLK_LOCAL_MEM_FENCE);
    const float all = lanes_sum(of.total, maxima, ROW_LANES, 1);
    if (of.lane == 0)
        states[of.row] = (float2)(of.largest, all);
    rows_store(out, partial, sum, shared, states, first_row, image, key_head,
               split, &p);
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
