/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of the attention kernels, and the scores after softcap and
 * mask. */
#ifndef TANDEM_ATTENTION_SCORES_CL
#define TANDEM_ATTENTION_SCORES_CL

#include "common/params.cl"

struct attention_params {
    uint64_t q_offset, k_offset, v_offset, mask_offset, out_offset;
    /* Strides of the last axis, rows (queries or keys), heads and batch. */
    int64_t q_strides[4], k_strides[4], v_strides[4], out_strides[4];
    int64_t mask_strides[4]; /* the last axis are keys */
    int64_t past;
    uint32_t heads, group; /* group: heads of q for each head of k and v */
    uint32_t queries, keys, width, value_width;
    uint32_t query_tiles, value_tiles;
    float scale, softcap;
    /* Offset of the non-finite flags in the temporary buffer, in uints. */
    uint32_t causal, nonfinite_flags_offset;
    /* attention_split.cl: number of splits of the keys, keys of a split (a
     * multiple of the keys of a tile), and end of the keys of the last query.
     * row_tiles is the number of tiles of the rows that share keys, or the
     * number of query tiles of attention_mma. */
    uint32_t splits, split_keys, key_end, row_tiles;
    /* Offset of the maxima and sums in the temporary buffer, in floats. */
    uint64_t state_offset;
};
PARAMS_SIZE(attention_params, 280);

/* Queries of a work-group of attention_mma. */
#define MMA_QUERIES 64

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"
#include "common/math.cl"

/* The mask: 0 for none, 1 for floats, 2 for bools. */
#ifndef MASK
#define MASK 0
#endif
#if MASK == 2
#define MASK_T uchar
#else
#define MASK_T float
#endif

/* Returns a score after softcap and mask, -INFINITY for a masked key. */
INLINE float score_mask(float score, uint query, uint key,
                        __global const MASK_T *mask,
                        const struct attention_params *p)
{
    bool visible = key < p->keys && query < p->queries;
    if (p->causal)
        visible = visible && (long)key <= (long)query + p->past;
    score *= p->scale;
    if (p->softcap > 0.0f)
        score = p->softcap * tanh_fast(score / p->softcap);
#if MASK != 0
    if (visible) {
        MASK_T entry = mask[(long)query * p->mask_strides[1] +
                            (long)key * p->mask_strides[0]];
#if MASK == 2
        visible = entry != 0;
#else
        visible = entry != -INFINITY;
        score += entry;
#endif
    }
#endif
    return visible ? score : -INFINITY;
}

#endif
#endif
