/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary embeddings. A work-item rotates a pair of elements of a row, which is
 * one token of one head, or copies an element that is not rotated. A negative
 * position counts from the end. A position out of range gives NaN. */
#include "common/params.cl"

struct rotary_params {
    uint64_t items;
    uint64_t x_offset, out_offset, cos_offset, sin_offset, position_offset;
    int64_t x_strides[4], out_strides[4]; /* the innermost axis first */
    /* Strides of the last axis, tokens or positions, and batch. */
    int64_t cos_strides[3], sin_strides[3];
    int64_t position_strides[2]; /* of tokens and batch */
    int64_t length;              /* number of positions in cos and sin */
    uint64_t pairs;              /* of a row */
    int64_t step, distance; /* from pair to pair, and within a pair */
    struct fast_divmod space; /* items of a row, tokens, heads, batch */
};
PARAMS_SIZE(rotary_params, 336);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"

/* 1 if there are positions, which have the type POSITION. */
#ifndef INDEXED
#define INDEXED 0
#define POSITION int
#endif

KERNEL void rotary_embedding(__global float *out, __global const float *x,
                             __global const float *cos_cache,
                             __global const float *sin_cache,
                             __global const POSITION *positions,
                             const struct rotary_params p)
{
    index_t item = (index_t)get_global_id(0);
    if (item >= p.items)
        return;
    long column, token, head, image;
    DIVMOD(item, p.space, 0, column);
    DIVMOD(item, p.space, 1, token);
    DIVMOD(item, p.space, 2, head);
    image = (long)item;
    x += (long)p.x_offset + token * p.x_strides[1] + head * p.x_strides[2] +
         image * p.x_strides[3];
    out += (long)p.out_offset + token * p.out_strides[1] +
           head * p.out_strides[2] + image * p.out_strides[3];
    if ((ulong)column >= p.pairs) {
        column += (long)p.pairs;
        out[column * p.out_strides[0]] = x[column * p.x_strides[0]];
        return;
    }
    long row = token;
    bool is_in_range = true;
#if INDEXED
    row = (long)positions[(long)p.position_offset +
                          token * p.position_strides[0] +
                          image * p.position_strides[1]];
    row += (row >> 63) & p.length;
    is_in_range = (ulong)row < (ulong)p.length;
#endif
    float c = NAN, s = NAN;
    if (is_in_range) {
        c = cos_cache[(long)p.cos_offset + column * p.cos_strides[0] +
                      row * p.cos_strides[1] + image * p.cos_strides[2]];
        s = sin_cache[(long)p.sin_offset + column * p.sin_strides[0] +
                      row * p.sin_strides[1] + image * p.sin_strides[2]];
    }
    const long first = column * p.step, second = first + p.distance;
    const float a = x[first * p.x_strides[0]], b = x[second * p.x_strides[0]];
    out[first * p.out_strides[0]] = a * c - b * s;
    out[second * p.out_strides[0]] = a * s + b * c;
}

#endif
