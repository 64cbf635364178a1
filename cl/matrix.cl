/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernels of matrix products share: their parameters, which tile of
 * the result a group computes, and what is done to a sum before it is stored.
 */
#ifndef TANDEM_MATRIX_CL
#define TANDEM_MATRIX_CL

#ifndef TANDEM_EMBEDDED
#include "common.cl"
#endif

/* What is done last, to every element. */
#ifndef ACTIVATION
#define ACTIVATION op_none
#endif
/* What c and bias, and a and b, are made of: f32, f16 or bf16 (common.cl). */
#ifndef C_DTYPE
#define C_DTYPE f32
#endif
#ifndef AB_DTYPE
#define AB_DTYPE f32
#endif
#define C_T CAT(C_DTYPE, _t)
#define C_T4 CAT(C_DTYPE, _t4)
#define C_VALUE CAT(C_DTYPE, _value)
#define C_VALUE4 CAT(C_DTYPE, _value4)
#define C_ROUND CAT(C_DTYPE, _round)
#define C_ROUND4 CAT(C_DTYPE, _round4)
#define AB_T CAT(AB_DTYPE, _t)
/* 1: a's, or b's, neighbours in memory lie along m, or n; 0: along k. */
#ifndef A_OUTER
#define A_OUTER 0
#endif
#ifndef B_OUTER
#define B_OUTER 1
#endif

/* c = ACTIVATION(alpha a b + beta c + bias), row-major, for each batch.  k may
 * be cut into chunks, whose sums go to the partials, plane elements for each
 * chunk, and join_parts makes c of them. */
struct product {
    ulong a_offset, b_offset, c_offset, bias_offset;
    ulong partial_offset, marks_offset;
    ulong plane; /* batch m n */
    long a_ld, b_ld, c_ld, a_batch, b_batch, c_batch;
    long bias_row, bias_column; /* strides of bias: 1 or 0 */
    uint m, n, k, chunk;
    uint tiles_m, tiles_n, splits, batch;
    float alpha, beta, slope;
    uint flags;
    uint lanes_log2, reserved; /* of join_parts: work-items that share a sum */
};

/* Elements of operands as numbers: one, and four that are aligned. */
#define LOAD1(from) CAT(AB_DTYPE, _value)(*(from))
#define LOAD4(from)                                                            \
    CAT(AB_DTYPE, _value4)(*(__global const CAT(AB_DTYPE, _t4) *)(from))

#define HAS_BIAS 1u
/* Four elements of c, and of the partials, are read and written as one. */
#define C_VECTOR 2u
/* Groups whose mark is 0 have nothing to do: strict.cl did it. */
#define ONLY_MARKED 4u
/* Sums go to the partials. */
#define PARTS 8u
/* skinny.cl: c's rows are those of the second operand. */
#define SWAPPED 16u

static inline float finish(float sum, float old, float bias, float alpha,
                           float beta, float slope)
{
    float x = alpha * sum;
    if (beta != 0.0f)
        x += beta * old;
    return ACTIVATION(x + bias, slope, 0.0f);
}

/* Rows of tiles whose groups run side by side, so that they share what they
 * read. */
#define BAND 8u

/* What a group computes, counted down the columns of a band: tile (m, n) of a
 * batch's result, over a split of k. */
struct tile {
    uint m, n, batch, split, plane;
};

static inline struct tile tile_of(uint group, uint tiles_m, uint tiles_n,
                                  uint batches)
{
    struct tile at;
    uint tiles = max(tiles_m * tiles_n, 1u), columns = max(tiles_n, 1u);
    at.plane = group / tiles;
    at.split = at.plane / max(batches, 1u);
    at.batch = at.plane - at.split * batches;
    uint tile = group - at.plane * tiles;
    uint band = tile / (BAND * columns);
    uint within = tile - band * BAND * columns;
    uint rows = max(min(BAND, tiles_m - band * BAND), 1u);
    at.n = within / rows;
    at.m = band * BAND + within - at.n * rows;
    return at;
}

/* The element (row, column) of a batch, from its sum; old and bias are read
 * where they count. */
static inline void finish1(__global C_T *c, __global const C_T *bias,
                           uint batch, uint row, uint column, float sum,
                           const struct product *p)
{
    float old = 0.0f, added = 0.0f;
    c += (long)p->c_offset + (long)batch * p->c_batch + (long)row * p->c_ld +
         column;
    if (p->flags & HAS_BIAS)
        added = C_VALUE(bias[(long)p->bias_offset + (long)row * p->bias_row +
                             (long)column * p->bias_column]);
    if (p->beta != 0.0f)
        old = C_VALUE(*c);
    *c = C_ROUND(finish(sum, old, added, p->alpha, p->beta, p->slope));
}

/* Four neighbours, as one. */
static inline void finish4(__global C_T *c, __global const C_T *bias,
                           uint batch, uint row, uint column, float4 sum,
                           const struct product *p)
{
    float4 old = (float4)(0.0f), added = (float4)(0.0f);
    c += (long)p->c_offset + (long)batch * p->c_batch + (long)row * p->c_ld +
         column;
    if (p->flags & HAS_BIAS) {
        long step = p->bias_column;
        bias += (long)p->bias_offset + (long)row * p->bias_row +
                (long)column * step;
        added = (float4)(C_VALUE(bias[0]), C_VALUE(bias[step]),
                         C_VALUE(bias[2 * step]), C_VALUE(bias[3 * step]));
    }
    if (p->beta != 0.0f)
        old = C_VALUE4(*(__global const C_T4 *)c);
    old.s0 = finish(sum.s0, old.s0, added.s0, p->alpha, p->beta, p->slope);
    old.s1 = finish(sum.s1, old.s1, added.s1, p->alpha, p->beta, p->slope);
    old.s2 = finish(sum.s2, old.s2, added.s2, p->alpha, p->beta, p->slope);
    old.s3 = finish(sum.s3, old.s3, added.s3, p->alpha, p->beta, p->slope);
    *(__global C_T4 *)c = C_ROUND4(old);
}

/* Four sums of a row, as far as the row goes, to c or to the partials. */
static inline void store_sums(__global C_T *c, __global float *partial,
                              __global const C_T *bias, struct tile tile,
                              uint row, uint column, float4 sum,
                              const struct product *p)
{
    if (row >= p->m || column >= p->n)
        return;
    if (p->flags & PARTS) {
        partial += p->partial_offset +
                   ((ulong)tile.plane * p->m + row) * p->n + column;
        if (p->flags & C_VECTOR) {
            *(__global float4 *)partial = sum;
            return;
        }
        partial[0] = sum.s0;
        if (column + 1 < p->n)
            partial[1] = sum.s1;
        if (column + 2 < p->n)
            partial[2] = sum.s2;
        if (column + 3 < p->n)
            partial[3] = sum.s3;
        return;
    }
    if (p->flags & C_VECTOR) {
        finish4(c, bias, tile.batch, row, column, sum, p);
        return;
    }
    finish1(c, bias, tile.batch, row, column, sum.s0, p);
    if (column + 1 < p->n)
        finish1(c, bias, tile.batch, row, column + 1, sum.s1, p);
    if (column + 2 < p->n)
        finish1(c, bias, tile.batch, row, column + 2, sum.s2, p);
    if (column + 3 < p->n)
        finish1(c, bias, tile.batch, row, column + 3, sum.s3, p);
}

#endif
