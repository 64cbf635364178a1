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
/* Elements read as one: 4 or 1. */
#ifndef VECTOR
#define VECTOR 1
#endif
/* Steps of k whose reads of local memory a compiler may bring forward, for
 * which it needs registers. */
#ifndef UNROLL
#define UNROLL 4
#endif

#define ROWS 8
#define COLUMNS 16
#define TILE_M (ROWS * ITEM_M)
#define TILE_N (COLUMNS * ITEM_N)
#include "matrix.cl"

/* Keeps the columns of a slice off one bank. */
#define A_LINE (TILE_M + 4)
#define B_LINE (TILE_N + 4)
#define A_READS (TILE_M * SLICE / VECTOR / GROUP)
#define B_READS (TILE_N * SLICE / VECTOR / GROUP)

#if VECTOR == 4
typedef float4 vector_t;
#define LOAD LOAD4
#else
typedef float vector_t;
#define LOAD LOAD1
#endif

/* Where read r of an item lies in a slice: along m or n, and along k. */
#if VECTOR == 4
#define OUTER_OF(outer, size, r)                                               \
    ((outer) ? (id + (r)*GROUP) % ((size) / 4) * 4                             \
             : (id + (r)*GROUP) / (SLICE / 4))
#define DEPTH_OF(outer, size, r)                                               \
    ((outer) ? (id + (r)*GROUP) / ((size) / 4)                                 \
             : (id + (r)*GROUP) % (SLICE / 4) * 4)
#else
#define OUTER_OF(outer, size, r)                                               \
    ((outer) ? (id + (r)*GROUP) % (size) : (id + (r)*GROUP) / SLICE)
#define DEPTH_OF(outer, size, r)                                               \
    ((outer) ? (id + (r)*GROUP) / (size) : (id + (r)*GROUP) % SLICE)
#endif

/* Puts what was read into a slice, whose lines lie along m or n. */
#if VECTOR == 4
#define PUT(slice, outer, o, k, x)                                             \
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
#else
#define PUT(slice, outer, o, k, x) slice[k][o] = (x)
#endif

/* Where an item's reads of an operand are: pointers, which are faster, or,
 * where those would take too many registers, what is to be added to one. */
#if A_READS + B_READS <= 4
#define PLACES(at, reads) __global const AB_T *at[reads]
#define PLACE(from, offset) ((from) + (offset))
#define READ(from, at) LOAD(at)
#define ADVANCE(from, at, reads, step)                                         \
    _Pragma("unroll") for (uint r_ = 0; r_ < (reads); ++r_) at[r_] += (step)
#else
#define PLACES(at, reads) uint at[reads]
#define PLACE(from, offset) (offset)
#define READ(from, at) LOAD((from) + (at))
#define ADVANCE(from, at, reads, step) from += (step)
#endif

/* Reads the slice from k on; what lies past the end is 0. */
#define FETCH(k_)                                                              \
    do {                                                                       \
        _Pragma("unroll") for (uint r_ = 0; r_ < A_READS; ++r_)                \
        {                                                                      \
            a_next[r_] = (vector_t)(0.0f);                                     \
            if ((k_) + DEPTH_OF(A_OUTER, TILE_M, r_) < end)                    \
                a_next[r_] = READ(a, a_at[r_]);                                \
        }                                                                      \
        ADVANCE(a, a_at, A_READS, a_step);                                     \
        _Pragma("unroll") for (uint r_ = 0; r_ < B_READS; ++r_)                \
        {                                                                      \
            b_next[r_] = (vector_t)(0.0f);                                     \
            if ((k_) + DEPTH_OF(B_OUTER, TILE_N, r_) < end)                    \
                b_next[r_] = READ(b, b_at[r_]);                                \
        }                                                                      \
        ADVANCE(b, b_at, B_READS, b_step);                                     \
    } while (0)

#define STORE(slot_)                                                           \
    do {                                                                       \
        _Pragma("unroll") for (uint r_ = 0; r_ < A_READS; ++r_)                \
            PUT(a_slices[slot_], A_OUTER, OUTER_OF(A_OUTER, TILE_M, r_),       \
                DEPTH_OF(A_OUTER, TILE_M, r_), a_next[r_]);                    \
        _Pragma("unroll") for (uint r_ = 0; r_ < B_READS; ++r_)                \
            PUT(b_slices[slot_], B_OUTER, OUTER_OF(B_OUTER, TILE_N, r_),       \
                DEPTH_OF(B_OUTER, TILE_N, r_), b_next[r_]);                    \
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

/* Through local memory, 32 rows at a time, so that neighbours store
 * neighbours. */
INLINE void store_tile(__global C_T *c, __global float *partial,
                              __global const C_T *bias,
                              const struct tile *tile, float (*sum)[ITEM_N],
                              __local float *shared, uint y, uint x,
                              const struct product *p)
{
    uint id = get_local_id(0);
#pragma unroll
    for (uint i = 0; i < ITEM_M; i += 4) {
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
        bool fours = tile_in_fours(tile, p);
        for (uint at = fours ? id * 4 : id; at < ROWS * 4 * TILE_N;
             at += fours ? GROUP * 4 : GROUP) {
            uint row = i * ROWS + at / TILE_N, column = at % TILE_N;
            if (fours)
                store_four(c, partial, bias, tile, row, column,
                           *(__local const float4 *)(shared + at), p);
            else
                store_one(c, partial, bias, tile, row, column, shared[at], p);
        }
    }
}

KERNEL void product(__global C_T *c, __global float *partial,
                    __global const AB_T *a, __global const AB_T *b,
                    __global const C_T *bias, __global const uint *marks,
                    const struct product p)
{
    __local float a_slices[2][SLICE][A_LINE] __attribute__((aligned(16)));
    __local float b_slices[2][SLICE][B_LINE] __attribute__((aligned(16)));
    if ((p.flags & ONLY_MARKED) && marks[p.marks_offset + get_group_id(0)] == 0)
        return;
    uint id = get_local_id(0);
    struct tile tile = tile_of(get_group_id(0), &p);
    uint first_m = tile.m * TILE_M, first_n = tile.n * TILE_N;
    uint begin = tile.begin, end = tile.end;

    /* Rows and columns past the edge read the last ones; nobody stores what
     * comes of it.  An operand's slice is at a and b; what an item reads of it
     * is less than 2^31 elements away. */
    PLACES(a_at, A_READS);
    PLACES(b_at, B_READS);
    vector_t a_next[A_READS], b_next[B_READS];
    const uint last_m = ((p.m - 1) & ~(A_OUTER ? VECTOR - 1u : 0u)) - first_m;
    const uint last_n = ((p.n - 1) & ~(B_OUTER ? VECTOR - 1u : 0u)) - first_n;
    a += (long)p.a_offset + (long)tile.batch * p.a_batch +
         (A_OUTER ? begin * p.a_ld + first_m : first_m * p.a_ld + begin);
    b += (long)p.b_offset + (long)tile.batch * p.b_batch +
         (B_OUTER ? begin * p.b_ld + first_n : first_n * p.b_ld + begin);
#pragma unroll
    for (uint r = 0; r < A_READS; ++r) {
        uint o = min((uint)OUTER_OF(A_OUTER, TILE_M, r), last_m);
        uint k = DEPTH_OF(A_OUTER, TILE_M, r);
        a_at[r] = PLACE(a, A_OUTER ? k * (uint)p.a_ld + o
                                   : o * (uint)p.a_ld + k);
    }
#pragma unroll
    for (uint r = 0; r < B_READS; ++r) {
        uint o = min((uint)OUTER_OF(B_OUTER, TILE_N, r), last_n);
        uint k = DEPTH_OF(B_OUTER, TILE_N, r);
        b_at[r] = PLACE(b, B_OUTER ? k * (uint)p.b_ld + o
                                   : o * (uint)p.b_ld + k);
    }
    const long a_step = A_OUTER ? SLICE * p.a_ld : SLICE;
    const long b_step = B_OUTER ? SLICE * p.b_ld : SLICE;

    /* 32 neighbours are a block of 4 by 8, in an order in which any half of
     * them reads few addresses of local memory. */
    uint lane = id % 32, block = id / 32;
    uint x = block % 2 * 8 + ((lane & 1) | (lane >> 1 & 6));
    uint y = block / 2 * 4 + ((lane >> 1 & 1) | (lane >> 3 & 2));

    float sum[ITEM_M][ITEM_N];
#pragma unroll
    for (uint i = 0; i < ITEM_M; ++i)
#pragma unroll
        for (uint j = 0; j < ITEM_N; ++j)
            sum[i][j] = 0.0f;

    uint slot = 0;
    FETCH(begin);
    STORE(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = begin; k < end; k += SLICE) {
        bool more = k + SLICE < end;
        if (more)
            FETCH(k + SLICE);
        multiply(sum, a_slices[slot], b_slices[slot], y, x);
        if (more) {
            slot ^= 1;
            STORE(slot);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }

    /* a's slices have room for 32 rows in every tile. */
    store_tile(c, partial, bias, &tile, sum, &a_slices[0][0][0], y, x, &p);
}
