/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products in plain OpenCL C.  A group computes a tile of the result,
 * 8 rows of work-items by 16, each of which has ITEM_M by ITEM_N elements.
 * While one slice of a and b, SLICE deep, is multiplied in local memory, the
 * next is on its way in registers.
 */
#ifndef ITEM_M
#define ITEM_M 8
#define ITEM_N 4
#define SLICE 16
#endif
/* Elements of a, and of b, read as one: 4 or 1. */
#ifndef A_VECTOR
#define A_VECTOR 1
#endif
#ifndef B_VECTOR
#define B_VECTOR 1
#endif
/* Steps of k whose reads of local memory a compiler may bring forward, for
 * which it needs registers. */
#ifndef UNROLL
#define UNROLL 4
#endif

/* Whether a slice is summed by itself before it joins the rest: of k steps, a
 * sum then has the roundings of k / SLICE + SLICE.  That takes the registers of
 * the sums once more, which larger items do not have: these add their sums to
 * totals in global memory after PARTIAL_TERMS. */
#define APART (ITEM_M * ITEM_N <= 16)

#define ROWS 8
#define COLUMNS 16
#define TILE_M (ROWS * ITEM_M)
#define TILE_N (COLUMNS * ITEM_N)
#include "gemm/gemm_common.cl"

/* Keeps the columns of a slice off one bank. */
#define A_LINE (TILE_M + 4)
#define B_LINE (TILE_N + 4)
#define A_READS (TILE_M * SLICE / A_VECTOR / GROUP)
#define B_READS (TILE_N * SLICE / B_VECTOR / GROUP)

typedef float vector1_t;
typedef float4 vector4_t;
#define VECTOR_T(width) CAT(CAT(vector, width), _t)
#define LOAD(width, from) CAT(LOAD, width)(from)

/* Work-items whose reads lie side by side, where lines lie along m or n, and
 * how many such reads a line takes. */
#define RUN(size, width) ((width) == 1 ? 32 : (size) / (width))
#define RUNS(size, width) ((size) / (width) / RUN(size, width))

/* Where read r of an item lies in a slice: along m or n, and along k. */
#define OUTER_OF(outer, size, width, r)                                        \
    ((outer) ? (id % RUN(size, width) +                                        \
                (r) % RUNS(size, width) * RUN(size, width)) *                  \
                   (width)                                                     \
             : (id + (r)*GROUP) / (SLICE / (width)))
#define DEPTH_OF(outer, size, width, r)                                        \
    ((outer) ? id / RUN(size, width) +                                         \
                   (r) / RUNS(size, width) * (GROUP / RUN(size, width))        \
             : (id + (r)*GROUP) % (SLICE / (width)) * (width))
#define A_ROW(r) OUTER_OF(A_OUTER, TILE_M, A_VECTOR, r)
#define A_DEPTH(r) DEPTH_OF(A_OUTER, TILE_M, A_VECTOR, r)
#define B_COLUMN(r) OUTER_OF(B_OUTER, TILE_N, B_VECTOR, r)
#define B_DEPTH(r) DEPTH_OF(B_OUTER, TILE_N, B_VECTOR, r)

/* Puts what was read into a slice, whose lines lie along m or n. */
#define PUT1(slice, outer, o, k, x) slice[k][o] = (x)
#define PUT4(slice, outer, o, k, x)                                            \
    do {                                                                       \
        if (outer) {                                                           \
            *(__local float4 *)&slice[k][o] = (x);                             \
        } else {                                                               \
            slice[k][o] = (x).s0;                                              \
            slice[(k) + 1][o] = (x).s1;                                        \
            slice[(k) + 2][o] = (x).s2;                                        \
            slice[(k) + 3][o] = (x).s3;                                        \
        }                                                                      \
    } while (0)
#define PUT(width, slice, outer, o, k, x)                                      \
    CAT(PUT, width)(slice, outer, o, k, x)

/* Where an item's reads of an operand are.  Many reads across k, one by one,
 * are fixed distances from one pointer, which takes the fewest registers; what
 * lies past the edge is not read.  Others are at pointers, which are faster,
 * or, where those would take too many registers, at what is to be added to one;
 * past the edge they read the last ones. */
#define A_EVEN (A_OUTER && A_VECTOR == 1 && A_READS > 8)
#define B_EVEN (B_OUTER && B_VECTOR == 1 && B_READS > 8)
#define FAR(size, width, r, pitch)                                             \
    ((long)((r) / RUNS(size, width)) * (pitch) +                               \
     (r) % RUNS(size, width) * RUN(size, width))
#if (A_EVEN ? 0 : A_READS) + (B_EVEN ? 0 : B_READS) <= 4
#define PLACES(at, reads) __global const AB_T *at[reads]
#define PLACE(from, offset) ((from) + (offset))
#define READ(width, from, at) LOAD(width, at)
#define ADVANCE(from, at, reads, step)                                         \
    _Pragma("unroll") for (uint r_ = 0; r_ < (reads); ++r_) at[r_] += (step)
#else
#define PLACES(at, reads) uint at[reads]
#define PLACE(from, offset) (offset)
#define READ(width, from, at) LOAD(width, (from) + (at))
#define ADVANCE(from, at, reads, step) from += (step)
#endif
#if A_EVEN
#define A_READ(r) LOAD(A_VECTOR, a + FAR(TILE_M, A_VECTOR, r, a_pitch))
#define A_INSIDE(r) (A_ROW(r) <= last_m)
#define A_ADVANCE() a += a_step
#else
#define A_READ(r) READ(A_VECTOR, a, a_at[r])
#define A_INSIDE(r) true
#define A_ADVANCE() ADVANCE(a, a_at, A_READS, a_step)
#endif
#if B_EVEN
#define B_READ(r) LOAD(B_VECTOR, b + FAR(TILE_N, B_VECTOR, r, b_pitch))
#define B_INSIDE(r) (B_COLUMN(r) <= last_n)
#define B_ADVANCE() b += b_step
#else
#define B_READ(r) READ(B_VECTOR, b, b_at[r])
#define B_INSIDE(r) true
#define B_ADVANCE() ADVANCE(b, b_at, B_READS, b_step)
#endif

/* Reads the slice from k on; what lies past the end is 0. */
#define FETCH(k_)                                                              \
    do {                                                                       \
        _Pragma("unroll") for (uint r_ = 0; r_ < A_READS; ++r_)                \
        {                                                                      \
            a_next[r_] = (VECTOR_T(A_VECTOR))(0.0f);                           \
            if ((k_) + A_DEPTH(r_) < end && A_INSIDE(r_))                      \
                a_next[r_] = A_READ(r_);                                       \
        }                                                                      \
        A_ADVANCE();                                                           \
        _Pragma("unroll") for (uint r_ = 0; r_ < B_READS; ++r_)                \
        {                                                                      \
            b_next[r_] = (VECTOR_T(B_VECTOR))(0.0f);                           \
            if ((k_) + B_DEPTH(r_) < end && B_INSIDE(r_))                      \
                b_next[r_] = B_READ(r_);                                       \
        }                                                                      \
        B_ADVANCE();                                                           \
    } while (0)

#define STORE(slot_)                                                           \
    do {                                                                       \
        _Pragma("unroll") for (uint r_ = 0; r_ < A_READS; ++r_)                \
            PUT(A_VECTOR, a_slices[slot_], A_OUTER, A_ROW(r_), A_DEPTH(r_),    \
                a_next[r_]);                                                   \
        _Pragma("unroll") for (uint r_ = 0; r_ < B_READS; ++r_)                \
            PUT(B_VECTOR, b_slices[slot_], B_OUTER, B_COLUMN(r_), B_DEPTH(r_), \
                b_next[r_]);                                                   \
    } while (0)

#define PART(v, i)                                                             \
    ((i) == 0 ? (v).s0 : (i) == 1 ? (v).s1 : (i) == 2 ? (v).s2 : (v).s3)

/* Adds the products of a slice to the sums of item (y, x). */
INLINE void multiply(float (*sum)[ITEM_N],
                            __local const float (*a)[A_LINE],
                            __local const float (*b)[B_LINE], uint y, uint x)
{
#pragma unroll UNROLL
    for (uint k = 0; k < SLICE; ++k) {
        float4 a_own[ITEM_M / 4], b_own[ITEM_N / 4];
#pragma unroll
        for (uint i = 0; i < ITEM_M / 4; ++i)
            a_own[i] = *(__local const float4 *)&a[k][i * ROWS * 4 + y * 4];
#pragma unroll
        for (uint j = 0; j < ITEM_N / 4; ++j)
            b_own[j] = *(__local const float4 *)&b[k][j * COLUMNS * 4 + x * 4];
#pragma unroll
        for (uint i = 0; i < ITEM_M; ++i)
#pragma unroll
            for (uint j = 0; j < ITEM_N; ++j)
                sum[i][j] = fma(PART(a_own[i / 4], i % 4),
                                PART(b_own[j / 4], j % 4), sum[i][j]);
    }
}

INLINE void sums_clear(float (*sum)[ITEM_N])
{
#pragma unroll
    for (uint i = 0; i < ITEM_M; ++i)
#pragma unroll
        for (uint j = 0; j < ITEM_N; ++j)
            sum[i][j] = 0.0f;
}

/* Adds sums to others, and begins new ones. */
INLINE void fold(float (*total)[ITEM_N], float (*sum)[ITEM_N])
{
#pragma unroll
    for (uint i = 0; i < ITEM_M; ++i)
#pragma unroll
        for (uint j = 0; j < ITEM_N; ++j) {
            total[i][j] += sum[i][j];
            sum[i][j] = 0.0f;
        }
}

/* Rows of a tile that are stored at a time; rows from one of an item's stores
 * to the next, which is below it, of fours and of single sums; and stores
 * before it is asked whether that was all. */
#define PASS (ROWS * 4)
#define FOURS_STEP (GROUP * 4 / TILE_N)
#define ONES_STEP (GROUP / TILE_N)
#define AT_ONCE 4

/* What an item stores of a pass. */
struct stored {
    uint left;    /* rows from its first to the edge; 0: it is outside */
    uint most;    /* those of all items */
    ulong part;   /* its place in the partials */
    ulong line;   /* from row to row there */
    long c, bias; /* its place in these */
};

INLINE struct stored stored_of(const struct tile *tile, uint first, uint at,
                               const struct product *p)
{
    struct stored s;
    uint y = first + at / TILE_N, x = at % TILE_N;
    uint row = tile->m * TILE_M + y, column = tile->n * TILE_N + x;
    bool some = p->whole > 0;
    s.left = row < p->m && column < p->n ? p->m - row : 0;
    s.most = min(p->m - tile->m * TILE_M - first, (uint)PASS);
    s.line = some ? TILE_N : p->n;
    s.part = p->partial_offset +
             (some ? ((ulong)tile->part * TILE_M + y) * TILE_N + x
                   : ((ulong)tile->plane * p->m + row) * p->n + column);
    s.c = (long)p->c_offset + (long)tile->batch * p->c_batch +
          (long)row * p->c_ld + column;
    s.bias = (long)p->bias_offset + (long)row * p->bias_row +
             (long)column * p->bias_column;
    return s;
}

/* The element at c, from its sum, and its bias; not inside: nothing is read or
 * stored.  What is the same in all items is asked first: the other way round
 * PoCL's vectors store what lies past the edge, too. */
INLINE void put_one(__global C_T *c, __global const C_T *bias, bool inside,
                    float sum, const struct product *p)
{
    float old = 0.0f, added = 0.0f;
    if ((p->flags & HAS_BIAS) != 0 && inside)
        added = C_VALUE(*bias);
    if (p->beta != 0.0f && inside)
        old = C_VALUE(*c);
    sum = finish(sum, old, added, p->alpha, p->beta, p->slope);
    if (inside)
        *c = C_ROUND(sum);
}

/* Four neighbours, as one. */
INLINE void put_four(__global C_T *c, __global const C_T *bias, bool inside,
                     float4 sum, const struct product *p)
{
    float4 old = (float4)(0.0f), added = (float4)(0.0f);
    const long step = p->bias_column;
    if ((p->flags & HAS_BIAS) != 0 && inside)
        added = (float4)(C_VALUE(bias[0]), C_VALUE(bias[step]),
                         C_VALUE(bias[2 * step]), C_VALUE(bias[3 * step]));
    if (p->beta != 0.0f && inside)
        old = C_VALUE4(*(__global const C_T4 *)c);
    sum.s0 = finish(sum.s0, old.s0, added.s0, p->alpha, p->beta, p->slope);
    sum.s1 = finish(sum.s1, old.s1, added.s1, p->alpha, p->beta, p->slope);
    sum.s2 = finish(sum.s2, old.s2, added.s2, p->alpha, p->beta, p->slope);
    sum.s3 = finish(sum.s3, old.s3, added.s3, p->alpha, p->beta, p->slope);
    if (inside)
        *(__global C_T4 *)c = C_ROUND4(sum);
}

/* Rows of a tile from first on, which are in local memory. */
INLINE void store_fours(__global C_T *c, __global float *partial,
                        __global const C_T *bias, const struct tile *tile,
                        uint first, __local const float *shared,
                        const struct product *p)
{
    const struct stored s = stored_of(tile, first, get_local_id(0) * 4, p);
    const long c_step = FOURS_STEP * p->c_ld;
    const long bias_step = FOURS_STEP * p->bias_row;
    const ulong part_step = FOURS_STEP * s.line;
    shared += get_local_id(0) * 4;
    partial += s.part;
    c += s.c;
    bias += s.bias;
    if (tile->parted) {
#pragma unroll 1
        for (uint y = 0; y < s.most; y += FOURS_STEP) {
            if (y < s.left)
                *(__global float4 *)partial = *(__local const float4 *)shared;
            partial += part_step;
            shared += GROUP * 4;
        }
        return;
    }
    for (uint y = 0; y < s.most; y += AT_ONCE * FOURS_STEP) {
#pragma unroll
        for (uint i = 0; i < AT_ONCE; ++i) {
            put_four(c, bias, y + i * FOURS_STEP < s.left,
                     *(__local const float4 *)shared, p);
            c += c_step;
            bias += bias_step;
            shared += GROUP * 4;
        }
    }
}

INLINE void store_ones(__global C_T *c, __global float *partial,
                       __global const C_T *bias, const struct tile *tile,
                       uint first, __local const float *shared,
                       const struct product *p)
{
    const struct stored s = stored_of(tile, first, get_local_id(0), p);
    const long c_step = ONES_STEP * p->c_ld;
    const long bias_step = ONES_STEP * p->bias_row;
    const ulong part_step = ONES_STEP * s.line;
    shared += get_local_id(0);
    partial += s.part;
    c += s.c;
    bias += s.bias;
    if (tile->parted) {
#pragma unroll 1
        for (uint y = 0; y < s.most; y += ONES_STEP) {
            if (y < s.left)
                *partial = *shared;
            partial += part_step;
            shared += GROUP;
        }
        return;
    }
    for (uint y = 0; y < s.most; y += AT_ONCE * ONES_STEP) {
#pragma unroll
        for (uint i = 0; i < AT_ONCE; ++i) {
            put_one(c, bias, y + i * ONES_STEP < s.left, *shared, p);
            c += c_step;
            bias += bias_step;
            shared += GROUP;
        }
    }
}

/* Through local memory, 32 rows at a time, so that neighbours store
 * neighbours. */
INLINE void store_tile(__global C_T *c, __global float *partial,
                              __global const C_T *bias,
                              const struct tile *tile, float (*sum)[ITEM_N],
                              __local float *shared, uint y, uint x,
                              const struct product *p)
{
#pragma unroll
    for (uint i = 0; i < ITEM_M; i += 4) {
        if (tile->m * TILE_M + i * ROWS >= p->m)
            break;
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (uint row = 0; row < 4; ++row)
#pragma unroll
            for (uint j = 0; j < ITEM_N; j += 4)
                *(__local float4 *)(shared + (y * 4 + row) * TILE_N +
                                    j * COLUMNS + x * 4) =
                    (float4)(sum[i + row][j], sum[i + row][j + 1],
                             sum[i + row][j + 2], sum[i + row][j + 3]);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (tile_in_fours(tile, p))
            store_fours(c, partial, bias, tile, i * ROWS, shared, p);
        else
            store_ones(c, partial, bias, tile, i * ROWS, shared, p);
    }
}

/* The address of an item's first total, and in *line the distance of its rows.
 * Totals are kept where the item stores its result, or at saved_offset (SAVES)
 * if that place is not f32 or holds a c that beta still needs. */
INLINE __global float *totals_of(__global C_T *c, __global float *partial,
                                 const struct tile *tile, uint y, uint x,
                                 const struct product *p, long *line)
{
    const uint row = tile->m * TILE_M + y * 4;
    const uint column = tile->n * TILE_N + x * 4;
    if (tile->parted && p->whole > 0) {
        *line = TILE_N;
        return partial + p->partial_offset +
               ((ulong)tile->part * TILE_M + y * 4) * TILE_N + x * 4;
    }
    if (tile->parted || (p->flags & SAVES) != 0) {
        const ulong plane = tile->parted ? tile->plane : tile->batch;
        *line = p->n;
        return partial +
               (tile->parted ? p->partial_offset : p->saved_offset) +
               (plane * p->m + row) * p->n + column;
    }
    *line = p->c_ld;
    return (__global float *)c + (long)p->c_offset +
           (long)tile->batch * p->c_batch + (long)row * p->c_ld + column;
}

/* Rows of sums that take 16 registers, and where an item's row i lies below its
 * first. */
#define BATCH (16 / ITEM_N)
#define DOWN(i) ((i) / 4 * 4 * ROWS + (i) % 4)

/* Adds the sums to the totals and clears them.  The first time there are no
 * totals to read; the last time the sums become the totals.  A batch of rows is
 * read before any of them is written, so that one does not wait for another.
 * edge: rows and columns from the tile's first to the result's last.  It is in
 * local memory because compilers otherwise compute all comparisons with it
 * before the loop and keep them in registers. */
INLINE void totals_add(float (*sum)[ITEM_N], __global float *total, long line,
                       bool first, bool last, const struct tile *tile, uint y,
                       uint x, __local const uint *edge,
                       const struct product *p)
{
    const bool fours = tile_in_fours(tile, p);
    const int rows = (int)(edge[0] - y * 4), columns = (int)(edge[1] - x * 4);
#pragma unroll
    for (int i = 0; i < ITEM_M; i += BATCH) {
        float4 old[BATCH][ITEM_N / 4];
#pragma unroll
        for (int r = 0; r < BATCH; ++r)
#pragma unroll
            for (int j = 0; j < ITEM_N / 4; ++j) {
                const int left = DOWN(i) + r < rows && !first
                                     ? columns - j * 4 * COLUMNS
                                     : 0;
                __global const float *at = total + r * line + j * 4 * COLUMNS;
                old[r][j] = (float4)(0.0f);
                if (fours && left > 0) {
                    old[r][j] = *(__global const float4 *)at;
                } else if (!fours) {
                    old[r][j].s0 = left > 0 ? at[0] : 0.0f;
                    old[r][j].s1 = left > 1 ? at[1] : 0.0f;
                    old[r][j].s2 = left > 2 ? at[2] : 0.0f;
                    old[r][j].s3 = left > 3 ? at[3] : 0.0f;
                }
            }
#pragma unroll
        for (int r = 0; r < BATCH; ++r)
#pragma unroll
            for (int j = 0; j < ITEM_N / 4; ++j) {
                const int left = DOWN(i) + r < rows && !last
                                     ? columns - j * 4 * COLUMNS
                                     : 0;
                __global float *at = total + r * line + j * 4 * COLUMNS;
                const float4 own =
                    old[r][j] +
                    (float4)(sum[i + r][j * 4], sum[i + r][j * 4 + 1],
                             sum[i + r][j * 4 + 2], sum[i + r][j * 4 + 3]);
                if (fours && left > 0) {
                    *(__global float4 *)at = own;
                } else if (!fours) {
                    if (left > 0)
                        at[0] = own.s0;
                    if (left > 1)
                        at[1] = own.s1;
                    if (left > 2)
                        at[2] = own.s2;
                    if (left > 3)
                        at[3] = own.s3;
                }
                sum[i + r][j * 4] = last ? own.s0 : 0.0f;
                sum[i + r][j * 4 + 1] = last ? own.s1 : 0.0f;
                sum[i + r][j * 4 + 2] = last ? own.s2 : 0.0f;
                sum[i + r][j * 4 + 3] = last ? own.s3 : 0.0f;
            }
        total += (DOWN(i + BATCH) - DOWN(i)) * line;
    }
}

KERNEL void product(__global C_T *c, __global float *partial,
                    __global const AB_T *a, __global const AB_T *b,
                    __global const C_T *bias, __global const uint *marks,
                    const struct product p)
{
    __local float a_slices[2][SLICE][A_LINE] __attribute__((aligned(16)));
    __local float b_slices[2][SLICE][B_LINE] __attribute__((aligned(16)));
    __local uint edge[2];
    if ((p.flags & ONLY_NONFINITE_TILES) &&
        marks[p.marks_offset + get_group_id(0)] == 0)
        return;
    uint id = get_local_id(0);
    struct tile tile = tile_of(get_group_id(0), &p);
    uint first_m = tile.m * TILE_M, first_n = tile.n * TILE_N;
    uint begin = tile.begin, end = tile.end;

    /* Nobody stores what comes of rows and columns past the edge.  An operand's
     * slice is at a and b; what an item reads of it is less than 2^31 elements
     * away. */
#if !A_EVEN
    PLACES(a_at, A_READS);
#endif
#if !B_EVEN
    PLACES(b_at, B_READS);
#endif
    VECTOR_T(A_VECTOR) a_next[A_READS];
    VECTOR_T(B_VECTOR) b_next[B_READS];
    const uint last_m = ((p.m - 1) & ~(A_OUTER ? A_VECTOR - 1u : 0u)) - first_m;
    const uint last_n = ((p.n - 1) & ~(B_OUTER ? B_VECTOR - 1u : 0u)) - first_n;
    a += (long)p.a_offset + (long)tile.batch * p.a_batch +
         (A_OUTER ? begin * p.a_ld + first_m : first_m * p.a_ld + begin);
    b += (long)p.b_offset + (long)tile.batch * p.b_batch +
         (B_OUTER ? begin * p.b_ld + first_n : first_n * p.b_ld + begin);
#if A_EVEN
    a += (long)(A_DEPTH(0) * (uint)p.a_ld + A_ROW(0));
    const long a_pitch = GROUP / RUN(TILE_M, A_VECTOR) * p.a_ld;
#else
#pragma unroll
    for (uint r = 0; r < A_READS; ++r) {
        uint o = min((uint)A_ROW(r), last_m), k = A_DEPTH(r);
        a_at[r] = PLACE(a, A_OUTER ? k * (uint)p.a_ld + o
                                   : o * (uint)p.a_ld + k);
    }
#endif
#if B_EVEN
    b += (long)(B_DEPTH(0) * (uint)p.b_ld + B_COLUMN(0));
    const long b_pitch = GROUP / RUN(TILE_N, B_VECTOR) * p.b_ld;
#else
#pragma unroll
    for (uint r = 0; r < B_READS; ++r) {
        uint o = min((uint)B_COLUMN(r), last_n), k = B_DEPTH(r);
        b_at[r] = PLACE(b, B_OUTER ? k * (uint)p.b_ld + o
                                   : o * (uint)p.b_ld + k);
    }
#endif
    const long a_step = A_OUTER ? SLICE * p.a_ld : SLICE;
    const long b_step = B_OUTER ? SLICE * p.b_ld : SLICE;

    /* 32 neighbours are a block of 4 by 8, in an order in which any half of
     * them reads few addresses of local memory. */
    uint lane = id % 32, block = id / 32;
    uint x = block % 2 * 8 + ((lane & 1) | (lane >> 1 & 6));
    uint y = block / 2 * 4 + ((lane >> 1 & 1) | (lane >> 3 & 2));

    float sum[ITEM_M][ITEM_N], total[ITEM_M][ITEM_N];
    sums_clear(sum);
    sums_clear(total);

    /* Of whom all sums are past the edge, has nothing to multiply. */
    const bool busy = y * 4 < p.m - first_m && x * 4 < p.n - first_n;
    const bool totals = !APART && end - begin > PARTIAL_TERMS;
    uint slot = 0;
    FETCH(begin);
    STORE(0);
    if (id == 0) {
        edge[0] = p.m - first_m;
        edge[1] = p.n - first_n;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = begin; k < end; k += SLICE) {
        bool more = k + SLICE < end;
        if (more)
            FETCH(k + SLICE);
        if (APART)
            fold(total, sum);
        if (busy)
            multiply(sum, a_slices[slot], b_slices[slot], y, x);
        if (totals && ((k + SLICE - begin) % PARTIAL_TERMS == 0 || !more)) {
            long line;
            __global float *at = totals_of(c, partial, &tile, y, x, &p, &line);
            totals_add(sum, at, line, k < begin + PARTIAL_TERMS, !more, &tile,
                       y, x, edge, &p);
        }
        if (more) {
            slot ^= 1;
            STORE(slot);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }

    if (APART)
        fold(sum, total);

    /* a's slices have room for 32 rows in every tile. */
    store_tile(c, partial, bias, &tile, sum, &a_slices[0][0][0], y, x, &p);
}
