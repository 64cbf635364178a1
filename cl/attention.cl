/* SPDX-License-Identifier: Apache-2.0 */
/* Attention with online softmax: the scores of queries and keys are never
 * stored in global memory. A work-group computes QUERIES queries of one head,
 * and up to VALUE_CHUNKS * CHUNK columns of their results. It visits KEYS keys
 * at a time: it computes their scores, turns these into weights e^(score - max)
 * and adds the weighted values to sums in registers. If the keys raise the
 * maximum of a query's scores, the query's sums are scaled down. Parts of the
 * operands, CHUNK columns wide, are read through local memory.
 *
 * A work-item computes COLUMNS columns of one query, ITEMS_PER_QUERY apart. */
#include "common/attention_scores.cl"

#ifdef __OPENCL_C_VERSION__
#ifndef VALUE_CHUNKS
#define VALUE_CHUNKS 1
#endif
/* 1 to compute only the tiles whose non-finite flag attention_mma has set. */
#ifndef ONLY_NONFINITE
#define ONLY_NONFINITE 0
#endif
/* Unrolled iterations of loops. Tiles that are computed again are rare, so that
 * their kernel is short instead of fast. */
#if ONLY_NONFINITE
#define COLUMNS_AT_ONCE 1
#define PRODUCTS_AT_ONCE 1
#define ROLLED_IF_RARE _Pragma("unroll 1")
#define FOR_EACH_CHUNK FOR_EACH_PART
#define REPEAT_CHUNK REPEAT_PART
#else
#define COLUMNS_AT_ONCE COLUMNS
#define PRODUCTS_AT_ONCE 8
#define ROLLED_IF_RARE
#define FOR_EACH_CHUNK REPEAT
#define REPEAT_CHUNK(chunk, i, count)                                          \
    for (uint i = chunk, once_ = 1; once_ > 0; once_ = 0)
#endif

#define KEYS 32
#define CHUNK 32
#define ITEMS_PER_QUERY (GROUP_SIZE < 8 ? GROUP_SIZE : 8)
#define QUERIES (GROUP_SIZE / ITEMS_PER_QUERY)
#define COLUMNS (CHUNK / ITEMS_PER_QUERY)
/* A padding avoids bank conflicts. */
#define PITCH (CHUNK + 1)
/* COLUMNS is also the number of keys whose weights a work-item makes. */
#if KEYS != CHUNK
#error "KEYS must equal CHUNK"
#endif

/* Loads a part of an operand: `rows` rows from `first_row` on, CHUNK columns
 * from `column` on. Elements outside are 0. */
INLINE void chunk_load(__local float (*to)[PITCH], __global const float *from,
                       uint rows, uint first_row, uint end_row, uint column,
                       uint end_column, const long *strides)
{
    ROLLED_IF_RARE
    for (uint i = get_local_id(0); i < rows * CHUNK; i += GROUP_SIZE) {
        uint y = i / CHUNK, x = i % CHUNK;
        bool inside = first_row + y < end_row && column + x < end_column;
        float value = 0.0f;
        if (inside)
            value = from[(long)(first_row + y) * strides[1] +
                         (long)(column + x) * strides[0]];
        to[y][x] = value;
    }
}

/* Returns the end of the keys that the queries of a tile have. */
INLINE uint key_end(uint first_query, const struct attention_params *p)
{
    uint last = min(first_query + QUERIES, p->queries);
    long end = (long)last + p->past;
    if (p->causal == 0 || end > (long)p->keys)
        return p->keys;
    return end < 0 ? 0 : (uint)end;
}

/* The sum of a query's weights so far, and its largest score so far. Weights
 * are e^(score - largest). */
struct query_state {
    float total, largest;
};

/* Turns the products of a work-item's query, which are in local memory, into
 * scores and then into weights. Returns the factor that earlier weights get. */
INLINE float weights_make(struct query_state *state, __local float *weights,
                          uint x, uint query, uint first_key,
                          __global const MASK_T *mask,
                          const struct attention_params *p)
{
    float next = state->largest, added = 0.0f;
#pragma unroll COLUMNS_AT_ONCE
    for (uint j = 0; j < COLUMNS; ++j) {
        const uint key = x + j * ITEMS_PER_QUERY;
        weights[key] =
            score_mask(weights[key], query, first_key + key, mask, p);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    ROLLED_IF_RARE
    for (uint j = 0; j < KEYS; ++j)
        next = fmax(next, weights[j]);
    barrier(CLK_LOCAL_MEM_FENCE);
    /* All keys so far may be masked. */
    const bool any = next != -INFINITY;
    const float factor = any ? exp(state->largest - next) : 1.0f;
#pragma unroll COLUMNS_AT_ONCE
    for (uint j = 0; j < COLUMNS; ++j) {
        const uint key = x + j * ITEMS_PER_QUERY;
        weights[key] = any ? exp(weights[key] - next) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    ROLLED_IF_RARE
    for (uint j = 0; j < KEYS; ++j)
        added += weights[j];
    state->total = state->total * factor + added;
    state->largest = next;
    return factor;
}

/* Copies strides from the parameters, which are in another address space. */
#define COPY_STRIDES(name)                                                     \
    const long name[4] = {p.name[0], p.name[1], p.name[2], p.name[3]}

KERNEL void attention(__global float *out, __global const float *q,
                      __global const float *k, __global const float *v,
                      __global const MASK_T *mask,
#if ONLY_NONFINITE
                      __global const uint *nonfinite_flags,
#endif
                      const struct attention_params p)
{
    __local float q_chunk[QUERIES][PITCH], chunk[KEYS][PITCH];
    __local float weights[QUERIES][PITCH];
    const uint y = get_local_id(0) / ITEMS_PER_QUERY;
    const uint x = get_local_id(0) % ITEMS_PER_QUERY;
    COPY_STRIDES(q_strides);
    COPY_STRIDES(k_strides);
    COPY_STRIDES(v_strides);
    uint tile = (uint)get_group_id(0);
    uint rest = tile / max(p.query_tiles, 1u);
    const uint first_query = (tile - rest * p.query_tiles) * QUERIES;
    tile = rest / max(p.value_tiles, 1u);
    const uint first_column =
        (rest - tile * p.value_tiles) * (VALUE_CHUNKS * CHUNK);
    const uint image = tile / max(p.heads, 1u), head = tile - image * p.heads;
    const uint key_head = head / max(p.group, 1u);
    const uint query = first_query + y, end = key_end(first_query, &p);
#if ONLY_NONFINITE
    if (nonfinite_flags[p.nonfinite_flags_offset +
                        (image * p.heads + head) * p.row_tiles +
                        first_query / MMA_QUERIES] == 0)
        return;
#endif

    q += (long)p.q_offset + (long)image * q_strides[3] +
         (long)head * q_strides[2];
    k += (long)p.k_offset + (long)image * k_strides[3] +
         (long)key_head * k_strides[2];
    v += (long)p.v_offset + (long)image * v_strides[3] +
         (long)key_head * v_strides[2];
#if MASK != 0
    mask += (long)p.mask_offset + (long)image * p.mask_strides[3] +
            (long)head * p.mask_strides[2];
#endif

    float sums[VALUE_CHUNKS][COLUMNS];
    struct query_state state = {0.0f, -INFINITY};
    REPEAT (i, VALUE_CHUNKS)
        REPEAT (j, COLUMNS)
            sums[i][j] = 0.0f;
    for (uint first = 0; first < end; first += KEYS) {
        float score[COLUMNS];
        REPEAT (j, COLUMNS)
            score[j] = 0.0f;
        for (uint column = 0; column < p.width; column += CHUNK) {
            barrier(CLK_LOCAL_MEM_FENCE);
            chunk_load(q_chunk, q, QUERIES, first_query, p.queries, column,
                       p.width, q_strides);
            chunk_load(chunk, k, KEYS, first, p.keys, column, p.width,
                       k_strides);
            barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll PRODUCTS_AT_ONCE
            for (uint d = 0; d < CHUNK; ++d) {
                float own = q_chunk[y][d];
                REPEAT (j, COLUMNS)
                    score[j] =
                        fma(own, chunk[x + j * ITEMS_PER_QUERY][d], score[j]);
            }
        }
        /* Other items may still read the weights of the keys before. */
        if (p.width == 0)
            barrier(CLK_LOCAL_MEM_FENCE);
        REPEAT (j, COLUMNS)
            weights[y][x + j * ITEMS_PER_QUERY] = score[j];
        const float factor =
            weights_make(&state, weights[y], x, query, first, mask, &p);
        FOR_EACH_CHUNK (now, VALUE_CHUNKS) {
            barrier(CLK_LOCAL_MEM_FENCE);
            chunk_load(chunk, v, KEYS, first, p.keys,
                       first_column + now * CHUNK, p.value_width, v_strides);
            barrier(CLK_LOCAL_MEM_FENCE);
            REPEAT_CHUNK (now, i, VALUE_CHUNKS) {
                REPEAT (j, COLUMNS)
                    sums[i][j] *= factor;
#pragma unroll PRODUCTS_AT_ONCE
                for (uint key = 0; key < KEYS; ++key) {
                    float weight = weights[y][key];
                    REPEAT (j, COLUMNS)
                        sums[i][j] =
                            fma(weight, chunk[key][x + j * ITEMS_PER_QUERY],
                                sums[i][j]);
                }
            }
        }
    }

    const float scale = state.total != 0.0f ? 1.0f / state.total : 0.0f;
    out += (long)p.out_offset + (long)image * p.out_strides[3] +
           (long)head * p.out_strides[2] + (long)query * p.out_strides[1];
    REPEAT (i, VALUE_CHUNKS)
        REPEAT (j, COLUMNS) {
            uint column = first_column + i * CHUNK + x + j * ITEMS_PER_QUERY;
            if (query < p.queries && column < p.value_width)
                out[(long)column * p.out_strides[0]] = sums[i][j] * scale;
        }
}

#endif
