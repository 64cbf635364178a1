/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on the tensor cores of NVIDIA GPUs from compute capability 8.0 on,
 * nearly as accurate as f32 arithmetic. The scores are never stored in memory,
 * as in FlashAttention-2. A work-group computes MMA_QUERIES queries of one
 * head, and a warp 16 of them. The work-group visits KEYS keys at a time. While
 * it computes their scores, it copies their values to local memory; while it
 * adds the weighted values, it copies the next keys.
 *
 * An f32 number x is the sum of a TF32 number `high` with 11 significant bits,
 * and `low`. The product of x and y is high(x) * high(y), in TF32, plus
 * low(x) * y + x * low(y), for which x, y and their low parts are rounded to
 * bf16. This rounding changes a product by at most 2^-18 of its value, and on
 * average by less than 2^-21. bf16 takes half the time of TF32 and has the same
 * range. A sum on tensor cores, which truncate sums, covers only 16 products,
 * and these sums are added up in f32.
 *
 * A result is not finite if an operand is infinite or NaN. The work-group then
 * sets the non-finite flag of its tile, and attention.cl's kernel computes the
 * tile again. Rows of q, k and v are aligned vec4. */
#include "common/attention_scores.cl"

#ifdef __OPENCL_C_VERSION__
#include "nvidia/ptx_sm80.cl"

/* Columns of keys and of values, in blocks of 32 elements. */
#ifndef WIDTH_BLOCKS
#define WIDTH_BLOCKS 2
#define VALUE_BLOCKS 2
#endif
/* 1 if a softcap changes the scores. */
#ifndef HAS_SOFTCAP
#define HAS_SOFTCAP 0
#endif
/* 1 if aligned vec4 stores can write the result. */
#ifndef OUT_VEC4
#define OUT_VEC4 0
#endif

#define WIDTH (WIDTH_BLOCKS * 32)
#define VALUE_WIDTH (VALUE_BLOCKS * 32)
#define KEYS 64
/* 1 if the scale of the scores cannot include the factor LOG2_E. */
#if HAS_SOFTCAP || MASK
#define SCALES_TWICE 1
#else
#define SCALES_TWICE 0
#endif
/* Scores and results are in blocks of 8 columns. */
#define KEY_BLOCKS (KEYS / 8)
#define OUT_BLOCKS (VALUE_WIDTH / 8)
/* Number of blocks that are multiplied at the same time. */
#define BLOCKS_AT_ONCE 4
/* A padding avoids bank conflicts. */
#define K_PITCH (WIDTH + 4)
#define V_PITCH (VALUE_WIDTH + 4)
#define LOG2_E 1.44269504f

/* Starts the asynchronous copies of `rows` rows from `first` on. A row has
 * `columns` columns in memory and `width` columns in local memory. Rows after
 * row `last` are copies of this row. */
INLINE void rows_copy(uint to, __global const float *from, uint rows,
                      uint width, uint columns, uint first, uint last,
                      long row_stride)
{
    const uint lanes = width <= 32 ? 8 : width <= 64 ? 16 : 32;
    const uint step = GROUP_SIZE / lanes, row = get_local_id(0) / lanes;
    const uint x = get_local_id(0) % lanes * 4;
    const uint bytes = x < columns ? 16u : 0u;
    if (x >= width)
        return;
    to += (row * (width + 4) + x) * 4;
    from += x;
    if (first + rows <= last + 1) {
        from += (long)(first + row) * row_stride;
        REPEAT (r, rows / step) {
            copy_async(to + r * step * (width + 4) * 4, from, bytes);
            from += (long)step * row_stride;
        }
    } else {
#pragma unroll 1
        for (uint r = 0; r < rows / step; ++r)
            copy_async(to + r * step * (width + 4) * 4,
                       from + (long)min(first + row + r * step, last) *
                                  row_stride,
                       bytes);
    }
}

/* Returns low(x) and sets `high`, whose lower 13 bits the tensor cores
 * ignore. */
static inline float split(uint x, uint *high)
{
    *high = x + 0x1000u;
    return as_float(x) - as_float(*high & 0xffffe000u);
}

/* A block of `a` with 16 rows by 16 steps: the high parts of two blocks with 8
 * steps, and the numbers and their low parts as pairs of bf16. */
struct split_block {
    uint high[2][4], rounded[4], low[4];
};

static inline void block_split(struct split_block *out, uint (*x)[4])
{
    REPEAT (s, 2)
        REPEAT (e, 2) {
            const uint first = x[s][e], second = x[s][e + 2];
            const float low = split(first, &out->high[s][e]);
            out->low[s * 2 + e] =
                bf16_pair(low, split(second, &out->high[s][e + 2]));
            out->rounded[s * 2 + e] =
                bf16_pair(as_float(first), as_float(second));
        }
}

/* Adds the products of a block of `a` and of BLOCKS_AT_ONCE blocks of `b`, with
 * 8 columns by 16 steps each. A pair of bf16 has the steps s and s + 4 of 8
 * steps of TF32. */
static inline void blocks_multiply(float (*sum)[4], const struct split_block *a,
                                   uint (*b)[4])
{
    float part[BLOCKS_AT_ONCE][4];
    uint high[BLOCKS_AT_ONCE][4], low[BLOCKS_AT_ONCE][2];
    REPEAT (j, BLOCKS_AT_ONCE) {
        uint rounded[2];
        REPEAT (s, 2) {
            const uint first = b[j][s * 2], second = b[j][s * 2 + 1];
            const float own = split(first, &high[j][s * 2]);
            low[j][s] = bf16_pair(own, split(second, &high[j][s * 2 + 1]));
            rounded[s] = bf16_pair(as_float(first), as_float(second));
        }
        mma_bf16_multiply(part[j], a->low, rounded);
    }
    REPEAT (j, BLOCKS_AT_ONCE)
        mma_bf16_accumulate(part[j], a->rounded, low[j]);
    REPEAT (j, BLOCKS_AT_ONCE)
        mma_accumulate(part[j], a->high[0], high[j]);
    REPEAT (j, BLOCKS_AT_ONCE)
        mma_accumulate(part[j], a->high[1], high[j] + 2);
    REPEAT (j, BLOCKS_AT_ONCE)
        REPEAT (e, 4)
            sum[j][e] += part[j][e];
}

/* Computes the scores of a warp's queries. A work-item has the scores of the
 * queries lane / 4 (elements 0 and 1) and lane / 4 + 8 (elements 2 and 3) and
 * of two adjacent keys of each block. */
INLINE void scores_compute(float (*score)[4], uint q_from, uint k_from)
{
    REPEAT (n, KEY_BLOCKS)
        REPEAT (e, 4)
            score[n][e] = 0.0f;
#pragma unroll 1
    for (uint d = 0; d < WIDTH; d += 16) {
        uint x[2][4];
        struct split_block a;
        REPEAT (s, 2)
            load_matrices(x[s], q_from + (d + s * 8) * 4);
        block_split(&a, x);
        REPEAT (n, KEY_BLOCKS / BLOCKS_AT_ONCE) {
            uint k[BLOCKS_AT_ONCE][4];
            REPEAT (j, BLOCKS_AT_ONCE)
                load_matrices(
                    k[j],
                    k_from + ((n * BLOCKS_AT_ONCE + j) * 8 * K_PITCH + d) * 4);
            blocks_multiply(score + n * BLOCKS_AT_ONCE, &a, k);
        }
    }
}

/* Adds the weighted values. The scores of a block become a block of `a`, whose
 * step s is key 2 * s for s < 4 and key 2 * s - 7 for others, because the
 * work-item that has two keys in a block of scores has the steps lane % 4 and
 * lane % 4 + 4 in a block of `a`. Column c of block j of the sums is column
 * 4 * c + j of 32 columns, so that a work-item loads and stores vec4. */
INLINE void values_add(float (*sum)[4], float (*weight)[4], uint v_from)
{
    FOR_EACH_PART (now, KEYS / 16) {
        uint y[2][4];
        struct split_block a;
        REPEAT_PART (now, c, KEYS / 16)
            REPEAT (s, 2)
                REPEAT (e, 4)
                    y[s][e] = as_uint(weight[c * 2 + s][e % 2 * 2 + e / 2]);
        block_split(&a, y);
        REPEAT (block, VALUE_BLOCKS) {
            uint v[BLOCKS_AT_ONCE][4];
            REPEAT (e, 4) {
                uint x[4];
                load_4_words(x, v_from + ((now * 16 + e / 2 * 8 + e % 2) *
                                              V_PITCH +
                                          block * 32) *
                                             4);
                REPEAT (j, BLOCKS_AT_ONCE)
                    v[j][e] = x[j];
            }
            blocks_multiply(sum + block * BLOCKS_AT_ONCE, &a, v);
        }
    }
}

/* The queries of a work-item, lane / 4 and lane / 4 + 8 of a warp: end of
 * their keys, their masks, their largest scores so far, and the sums of the
 * work-item's weights. Scores are logarithms to base 2. */
struct item_queries {
    uint key_end[2];
    __global const MASK_T *mask[2];
    float largest[2], total[2];
};

/* Applies scale, softcap and mask. `key` is the work-item's first key. `ends`
 * is true if some of the keys are after the last key of a query. */
INLINE void scores_mask(float (*score)[4], const struct item_queries *of,
                        uint key, bool ends, const struct attention_params *p)
{
#if HAS_SOFTCAP
    const float inverse = 1.0f / p->softcap;
#endif
    const float scale = p->scale * (SCALES_TWICE ? 1.0f : LOG2_E);
    REPEAT (n, KEY_BLOCKS)
        REPEAT (e, 4) {
            float x = score[n][e] * scale;
#if HAS_SOFTCAP
            x = p->softcap * tanh_fast(x * inverse);
#endif
#if MASK != 0
            const MASK_T entry =
                of->mask[e / 2][(long)min(key + n * 8 + e % 2, p->keys - 1) *
                                p->mask_strides[0]];
#if MASK == 2
            x = entry != 0 ? x : -INFINITY;
#else
            x = entry != -INFINITY ? x + entry : -INFINITY;
#endif
#endif
            score[n][e] = SCALES_TWICE ? x * LOG2_E : x;
        }
    if (ends)
        REPEAT (n, KEY_BLOCKS)
            REPEAT (e, 4)
                if (key + n * 8 + e % 2 >= of->key_end[e / 2])
                    score[n][e] = -INFINITY;
}

/* Turns scores into weights. Scales the sums down if the largest scores have
 * changed. */
INLINE void weights_make(float (*score)[4], float (*sum)[4],
                         struct item_queries *of)
{
    REPEAT (h, 2) {
        float next = of->largest[h], added = 0.0f;
        REPEAT (n, KEY_BLOCKS)
            next = fmax(next, fmax(score[n][h * 2], score[n][h * 2 + 1]));
        next = fmax(next, warp_shuffle_xor(next, 1));
        next = fmax(next, warp_shuffle_xor(next, 2));
        /* All keys so far may be masked. */
        const float base = next == -INFINITY ? 0.0f : next;
        const float factor = FAST_EXP2(of->largest[h] - base);
        REPEAT (n, KEY_BLOCKS)
            REPEAT (e, 2) {
                score[n][h * 2 + e] = FAST_EXP2(score[n][h * 2 + e] - base);
                added += score[n][h * 2 + e];
            }
        REPEAT (n, OUT_BLOCKS)
            REPEAT (e, 2)
                sum[n][h * 2 + e] *= factor;
        of->total[h] = fma(of->total[h], factor, added);
        of->largest[h] = next;
    }
}

/* Stores one of the work-item's queries. Returns false if a result is not
 * finite. */
INLINE bool query_store(__global float *out, float (*sum)[4], uint h,
                        float total, bool exists,
                        const struct attention_params *p)
{
    const float scale = total != 0.0f ? 1.0f / total : 0.0f;
    float all = 0.0f; /* infinity * 0 is NaN */
    REPEAT (block, VALUE_BLOCKS)
        REPEAT (e, 2) {
            const uint column =
                block * 32 + get_local_id(0) % 4 * 8 + e * 4;
            float x[4];
            REPEAT (j, 4) {
                x[j] = sum[block * 4 + j][h * 2 + e] * scale;
                all = fma(x[j], 0.0f, all);
            }
            if (!exists || column >= p->value_width)
                continue;
#if OUT_VEC4
            *(__global float4 *)(out + column) =
                (float4)(x[0], x[1], x[2], x[3]);
#else
            REPEAT (j, 4)
                out[(long)(column + j) * p->out_strides[0]] = x[j];
#endif
        }
    return all == 0.0f;
}

/* Returns the end of the keys of a query. */
INLINE uint query_key_end(uint query, const struct attention_params *p)
{
    const long end = (long)query + 1 + p->past;
    if (p->causal == 0 || end > (long)p->keys)
        return p->keys;
    return end < 0 ? 0 : (uint)end;
}

KERNEL void attention_mma(__global float *out, __global const float *q,
                          __global const float *k, __global const float *v,
                          __global const MASK_T *mask,
                          __global uint *nonfinite_flags,
                          const struct attention_params p)
{
    __local float q_tile[MMA_QUERIES * K_PITCH] __attribute__((aligned(256)));
    __local float k_tile[KEYS * K_PITCH] __attribute__((aligned(256)));
    __local float v_tile[KEYS * V_PITCH] __attribute__((aligned(256)));
    __local uint nonfinite;
    const uint q_base = address_of((__local void *)q_tile);
    const uint k_base = address_of((__local void *)k_tile);
    const uint v_base = address_of((__local void *)v_tile);
    const uint id = get_local_id(0), warp = id / 32, lane = id % 32;
    const uint rest = (uint)get_group_id(0) / p.row_tiles;
    /* The last queries of a causal call have most keys and come first. */
    const uint first_query =
        (p.row_tiles - 1 - ((uint)get_group_id(0) - rest * p.row_tiles)) *
        MMA_QUERIES;
    const uint image = rest / p.heads, head = rest - image * p.heads;
    const uint key_head = head / p.group;
    const uint last_query = p.queries - 1, last_key = p.keys - 1;
    const uint warp_query = first_query + warp * 16;
    const uint end =
        query_key_end(min(first_query + MMA_QUERIES - 1, last_query), &p);

    q += (long)p.q_offset + (long)image * p.q_strides[3] +
         (long)head * p.q_strides[2];
    k += (long)p.k_offset + (long)image * p.k_strides[3] +
         (long)key_head * p.k_strides[2];
    v += (long)p.v_offset + (long)image * p.v_strides[3] +
         (long)key_head * p.v_strides[2];
    out += (long)p.out_offset + (long)image * p.out_strides[3] +
           (long)head * p.out_strides[2];
    float sum[OUT_BLOCKS][4];
    struct item_queries of;
    REPEAT (n, OUT_BLOCKS)
        REPEAT (e, 4)
            sum[n][e] = 0.0f;
    REPEAT (h, 2) {
        const uint query = min(warp_query + h * 8 + lane / 4, last_query);
        of.key_end[h] = query_key_end(query, &p);
        of.mask[h] = mask;
#if MASK != 0
        of.mask[h] += (long)p.mask_offset + (long)image * p.mask_strides[3] +
                      (long)head * p.mask_strides[2] +
                      (long)query * p.mask_strides[1];
#endif
        of.largest[h] = -INFINITY;
        of.total[h] = 0.0f;
    }
    const uint full_end = query_key_end(min(warp_query, last_query), &p);
    const uint q_from =
        q_base + ((warp * 16 + lane % 16) * K_PITCH + lane / 16 * 4) * 4;
    const uint k_from = k_base + (lane % 8 * K_PITCH + lane / 8 * 4) * 4;
    const uint v_from = v_base + (lane % 4 * 2 * V_PITCH + lane / 4 * 4) * 4;
    if (id == 0)
        nonfinite = 0;

    rows_copy(q_base, q, MMA_QUERIES, WIDTH, p.width, first_query, last_query,
              p.q_strides[1]);
    rows_copy(k_base, k, KEYS, WIDTH, p.width, 0, last_key, p.k_strides[1]);
    copies_commit();
    for (uint first = 0; first < end; first += KEYS) {
        float score[KEY_BLOCKS][4];
        copies_wait(0);
        rows_copy(v_base, v, KEYS, VALUE_WIDTH, p.value_width, first, last_key,
                  p.v_strides[1]);
        copies_commit();
        scores_compute(score, q_from, k_from);
        scores_mask(score, &of, first + lane % 4 * 2, first + KEYS > full_end,
                    &p);
        weights_make(score, sum, &of);
        copies_wait(0);
        if (first + KEYS < end)
            rows_copy(k_base, k, KEYS, WIDTH, p.width, first + KEYS, last_key,
                      p.k_strides[1]);
        copies_commit();
        values_add(sum, score, v_from);
    }
    copies_wait(0);

    bool finite = true;
    REPEAT (h, 2) {
        const uint query = warp_query + h * 8 + lane / 4;
        float total = of.total[h];
        total += warp_shuffle_xor(total, 1);
        total += warp_shuffle_xor(total, 2);
        finite = query_store(out + (long)query * p.out_strides[1], sum, h,
                             total, query <= last_query, &p) &&
                 finite;
    }
    if (!finite)
        nonfinite = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id == 0)
        nonfinite_flags[p.nonfinite_flags_offset + rest * p.row_tiles +
                        first_query / MMA_QUERIES] = nonfinite;
}

#endif
