/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of a matrix w with few rows of x, which take as long as reading w
 * once.  A work-item has the sums of ITEM rows of w with NARROW rows of x, over
 * every LANES-th piece of k; the items of a set differ in the piece.
 *
 *   W_OUTER 0: neighbours lie along k   1: along the rows
 *
 *   set 0: 0 1 2 3   set 1: 4 5 6 7     set 0: 0 2 4 6   set 1: 1 3 5 7
 *   (ITEM rows, four of k a turn)       (four rows, one of k a turn)
 *
 * Each element of w goes from memory into registers, a slice of k, DEPTH deep,
 * ahead of its use; so does x where it is one row, otherwise a group's slice
 * of it goes into local memory.  What the lanes of a set have summed is joined
 * by a tree.
 */
#include "common/lane_reduce.cl"
#include "gemm/gemm_common.cl"

#ifndef NARROW
#define NARROW 4
#define LANES 32
#define TURNS 2
#define ITEM 4
#endif
/* Elements of w, and of x, that are read as one: 4 or 1. */
#ifndef VECTOR
#define VECTOR 1
#endif
#ifndef X_VECTOR
#define X_VECTOR 1
#endif
/* 1: w passes NVIDIA's caches as what nobody reads again. */
#ifndef STREAM
#define STREAM 0
#endif
/* In the struct, w is a and x is b. */
#define W_OUTER A_OUTER
#define X_OUTER B_OUTER

#define SETS (GROUP / LANES)
#define ROWS (SETS * ITEM)

/* Slices of x lie as they are read: along k, or k by k; lines that are written
 * across are kept off one bank. */
#if W_OUTER
#define LINES 1
#define DEPTH (LANES * TURNS)
#define STEP SETS
#define X_LINE (NARROW % 8 == 0 ? NARROW + 4 : NARROW)
#define X_FLOATS (DEPTH * X_LINE)
#define X_PLACE(row, k) ((k)*X_LINE + (row))
#else
#define LINES ITEM
#define DEPTH (LANES * 4 * TURNS)
#define STEP 1
#define X_LINE (DEPTH + (X_OUTER ? 4 : 0))
#define X_FLOATS (NARROW * X_LINE)
#define X_PLACE(row, k) ((row)*X_LINE + (k))
#endif

/* ---- x ---- */

#if NARROW > 1
#define X_PIECES (NARROW * DEPTH / X_VECTOR)
#define X_READS ((X_PIECES + GROUP - 1) / GROUP)
#if X_VECTOR == 4
typedef float4 x_t;
#define X_LOAD LOAD4
#else
typedef float x_t;
#define X_LOAD LOAD1
#endif

/* Where read r of an item lies in a slice: neighbours in memory are neighbours,
 * or where fours are written across, pairs of fours. */
#if X_OUTER
#define X_ROW(r) ((id + (r)*GROUP) % (NARROW / X_VECTOR) * X_VECTOR)
#define X_DEEP(r) ((id + (r)*GROUP) / (NARROW / X_VECTOR))
#else
#if W_OUTER && X_VECTOR == 4
#define X_ROW(r) ((id + (r)*GROUP) / 2 % NARROW)
#define X_DEEP(r)                                                              \
    ((id + (r)*GROUP) / (2 * NARROW) * 8 + (id + (r)*GROUP) % 2 * 4)
#else
#define X_ROW(r) ((id + (r)*GROUP) / (DEPTH / X_VECTOR))
#define X_DEEP(r) ((id + (r)*GROUP) % (DEPTH / X_VECTOR) * X_VECTOR)
#endif
#endif
#define X_MINE(r) (X_PIECES % GROUP == 0 || id + (r)*GROUP < X_PIECES)

/* Reads the slice from k on; what lies past the end is 0. */
#define X_FETCH(k_)                                                            \
    do {                                                                       \
        _Pragma("unroll") for (uint r_ = 0; r_ < X_READS; ++r_)                \
        {                                                                      \
            x_next[r_] = (x_t)(0.0f);                                          \
            if (X_MINE(r_) && (k_) + X_DEEP(r_) < end)                         \
                x_next[r_] = X_LOAD(x + x_at[r_]);                             \
        }                                                                      \
        x += x_step;                                                           \
    } while (0)

#if X_VECTOR == 1
#define X_PUT(to, v) *(to) = (v)
#elif X_OUTER == W_OUTER
#define X_PUT(to, v) *(__local float4 *)(to) = (v)
#else
#define X_PUT(to, v)                                                           \
    do {                                                                       \
        (to)[0] = (v).s0;                                                      \
        (to)[X_LINE] = (v).s1;                                                 \
        (to)[2 * X_LINE] = (v).s2;                                             \
        (to)[3 * X_LINE] = (v).s3;                                             \
    } while (0)
#endif
#define X_STORE(slot_)                                                         \
    do {                                                                       \
        _Pragma("unroll") for (uint r_ = 0; r_ < X_READS; ++r_)                \
        {                                                                      \
            if (X_MINE(r_))                                                    \
                X_PUT(shared + (slot_)*X_FLOATS +                              \
                          X_PLACE(X_ROW(r_), X_DEEP(r_)),                      \
                      x_next[r_]);                                             \
        }                                                                      \
    } while (0)
#endif

/* ---- w ---- */

/* Which k of a slice element j of an item's turn u has, and where it lies. */
#if W_OUTER
#define W_DEEP(u, j) ((u)*LANES + lane)
#define W_PLACES 4
#define W_PLACE(u, i, j) (w_at[j] + (u)*LANES * (uint)p.a_ld)
#else
#if VECTOR == 4
#define W_DEEP(u, j) (((u)*LANES + lane) * 4 + (j))
#else
#define W_DEEP(u, j) (((u)*4 + (j)) * LANES + lane)
#endif
#define W_PLACES LINES
#define W_PLACE(u, i, j) (w_at[i] + W_DEEP(u, j))
#endif

#if STREAM && VECTOR == 4
INLINE float4 f32_stream4(__global const float *from)
{
    float4 x;
    __asm__ volatile("ld.global.cs.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(x.s0), "=f"(x.s1), "=f"(x.s2), "=f"(x.s3)
                     : "l"(from));
    return x;
}
INLINE ushort4 words_stream4(__global const ushort *from)
{
    uint2 x;
    __asm__ volatile("ld.global.cs.v2.u32 {%0, %1}, [%2];"
                     : "=r"(x.s0), "=r"(x.s1)
                     : "l"(from));
    return as_ushort4(x);
}
#define f16_stream4(from) f16_value4(words_stream4(from))
#define bf16_stream4(from) bf16_value4(words_stream4(from))
#define W_LOAD4 CAT(AB_DTYPE, _stream4)
#else
#define W_LOAD4 LOAD4
#endif
#if VECTOR == 4
#define W_LOAD(k_, u, i)                                                       \
    ((k_) + W_DEEP(u, 0) < end ? W_LOAD4(w + W_PLACE(u, i, 0))                 \
                               : (float4)(0.0f))
#else
#define W_ONE(k_, u, i, j)                                                     \
    ((k_) + W_DEEP(u, j) < end ? LOAD1(w + W_PLACE(u, i, j)) : 0.0f)
#define W_LOAD(k_, u, i)                                                       \
    (float4)(W_ONE(k_, u, i, 0), W_ONE(k_, u, i, 1), W_ONE(k_, u, i, 2),       \
             W_ONE(k_, u, i, 3))
#endif

/* Where x is one row, what of it belongs to a turn. */
#define X_LD (X_OUTER ? (uint)p.b_ld : 1u)
#define X_ONE(k_, u, j)                                                        \
    ((k_) + W_DEEP(u, j) < end ? LOAD1(x + W_DEEP(u, j) * X_LD) : 0.0f)
#if W_OUTER
#define X_TURN(k_, u) (float4)(X_ONE(k_, u, 0))
#elif X_VECTOR == 4 && VECTOR == 4
#define X_TURN(k_, u)                                                          \
    ((k_) + W_DEEP(u, 0) < end ? LOAD4(x + W_DEEP(u, 0)) : (float4)(0.0f))
#else
#define X_TURN(k_, u)                                                          \
    (float4)(X_ONE(k_, u, 0), X_ONE(k_, u, 1), X_ONE(k_, u, 2),                \
             X_ONE(k_, u, 3))
#endif

#define PART(v, i)                                                             \
    ((i) == 0 ? (v).s0 : (i) == 1 ? (v).s1 : (i) == 2 ? (v).s2 : (v).s3)

/* A turn's part of x. */
#if NARROW == 1
typedef float4 turn_x;
#else
typedef __local const float *turn_x;
#endif

/* Row s of x, at four of k. */
INLINE float4 turn_along(turn_x own, uint s)
{
#if NARROW == 1
    return own;
#elif VECTOR == 4
    return *(__local const float4 *)(own + s * X_LINE);
#else
    own += s * X_LINE;
    return (float4)(own[0], own[LANES], own[2 * LANES], own[3 * LANES]);
#endif
}

/* Four rows of x from s on, at one of k. */
INLINE float4 turn_across(turn_x own, uint s)
{
#if NARROW == 1
    return own;
#else
    return *(__local const float4 *)(own + s);
#endif
}

/* Adds the products of a turn: of ITEM rows by four of k, or of four rows by
 * one of k. */
INLINE void turn_add(float (*sum)[NARROW], const float4 *wide, turn_x own)
{
#if W_OUTER
#pragma unroll
    for (uint s = 0; s < NARROW; s += 4) {
        float4 v = turn_across(own, s);
#pragma unroll
        for (uint i = 0; i < 4; ++i)
#pragma unroll
            for (uint j = 0; j < (NARROW < 4 ? NARROW : 4); ++j)
                sum[i][s + j] =
                    fma(PART(wide[0], i), PART(v, j), sum[i][s + j]);
    }
#else
#pragma unroll
    for (uint s = 0; s < NARROW; ++s) {
        float4 v = turn_along(own, s);
#pragma unroll
        for (uint i = 0; i < ITEM; ++i) {
            float x = fma(wide[i].s0, v.s0, sum[i][s]);
            x = fma(wide[i].s1, v.s1, x);
            x = fma(wide[i].s2, v.s2, x);
            sum[i][s] = fma(wide[i].s3, v.s3, x);
        }
    }
#endif
}

/* The depth of k in which an item adds PARTIAL_TERMS products to each sum.
 * Variants with many sums have no registers for totals: the host splits k so
 * that each group gets at most PARTIAL_DEPTH of it (gemv_plan.c: has_totals).
 */
#define PARTIAL_DEPTH (PARTIAL_TERMS * LANES)
#define TOTALS (NARROW == 1 || (!W_OUTER && (NARROW < 16 || VECTOR == 4)))

INLINE void sums_clear(float (*sum)[NARROW])
{
#pragma unroll
    for (uint i = 0; i < ITEM; ++i)
#pragma unroll
        for (uint s = 0; s < NARROW; ++s)
            sum[i][s] = 0.0f;
}

INLINE void totals_add(float (*total)[NARROW], float (*sum)[NARROW])
{
#pragma unroll
    for (uint i = 0; i < ITEM; ++i)
#pragma unroll
        for (uint s = 0; s < NARROW; ++s) {
            total[i][s] += sum[i][s];
            sum[i][s] = 0.0f;
        }
}

/* ---- the sums of a set ---- */

/* Through warps first, where there are any: what is left is PARTS_LEFT parts
 * of each set, and the first of the items that have the same one holds it. */
#if SHUFFLE == 1 && STEP < 32
#if LANES * STEP > 32
#define WARP_ITEMS 32
#else
#define WARP_ITEMS (LANES * STEP)
#endif
#define PARTS_LEFT (LANES * STEP / WARP_ITEMS)
#else
#define PARTS_LEFT LANES
#endif
#if NARROW == 1
#define SLICES 0
#else
#define SLICES (2 * X_FLOATS)
#endif
#define HALF_PLACES (SETS * ((PARTS_LEFT + 1) / 2))
/* Rows of x whose sums go through local memory together. */
#if NARROW <= 4
#define TOGETHER NARROW
#else
#define TOGETHER (SLICES >= HALF_PLACES * ITEM * NARROW ? NARROW : 4)
#endif
#define MOST(a, b) ((a) > (b) ? (a) : (b))
/* Few parts of one row are summed at once, with one barrier. */
#if NARROW == 1 && PARTS_LEFT > 1 && PARTS_LEFT <= 16
#define AT_ONCE 1
#define PART_FLOATS (PARTS_LEFT * ROWS)
#else
#define AT_ONCE 0
#define PART_FLOATS MOST(HALF_PLACES * ITEM * TOGETHER, ROWS * NARROW)
#endif
#define SHARED_FLOATS MOST(SLICES, PART_FLOATS)

/* The lower half of the parts adds the upper one, until one is left. */
INLINE void parts_join(float (*sum)[NARROW], __local float *shared,
                              uint set, uint part)
{
    for (uint half_ = PARTS_LEFT / 2; half_ > 0; half_ /= 2)
#pragma unroll
        for (uint first = 0; first < NARROW; first += TOGETHER) {
            uint places = SETS * half_;
            __local float *place = shared + set * half_ + part % half_;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (part >= half_ && part < 2 * half_)
#pragma unroll
                for (uint i = 0; i < ITEM; ++i)
#pragma unroll
                    for (uint s = 0; s < TOGETHER; ++s)
                        place[(i * TOGETHER + s) * places] =
                            sum[i][first + s];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (part < half_)
#pragma unroll
                for (uint i = 0; i < ITEM; ++i)
#pragma unroll
                    for (uint s = 0; s < TOGETHER; ++s)
                        sum[i][first + s] +=
                            place[(i * TOGETHER + s) * places];
        }
}

/* Which of a group's rows item i of a set has. */
#if W_OUTER && VECTOR == 1
#define ROW_OF(i) ((i)*SETS + set)
#else
#define ROW_OF(i) (set * ITEM + (i))
#endif

/* The parts of each row, one after the other; who sums a row stores it, too. */
INLINE void parts_sum(float (*sum)[NARROW], __local float *shared, uint set,
                      uint part)
{
    if (part < PARTS_LEFT)
#pragma unroll
        for (uint i = 0; i < ITEM; ++i)
            shared[part * ROWS + ROW_OF(i)] = sum[i][0];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint row = get_local_id(0); row < ROWS; row += GROUP) {
        float all = shared[row];
#pragma unroll
        for (uint i = 1; i < PARTS_LEFT; ++i)
            all += shared[i * ROWS + row];
        shared[row] = all;
    }
}

/* Leaves the sums in local memory, row by row. */
INLINE void sets_join(float (*sum)[NARROW], __local float *shared,
                             uint set, uint lane)
{
    uint part = lane;
#ifdef WARP_ITEMS
#pragma unroll
    for (uint mask = WARP_ITEMS / 2; mask >= STEP; mask /= 2)
#pragma unroll
        for (uint i = 0; i < ITEM; ++i)
#pragma unroll
            for (uint s = 0; s < NARROW; ++s)
                sum[i][s] += from_lane(sum[i][s], mask);
    /* The others take no part from here on. */
    part = lane % (LANES / PARTS_LEFT) == 0 ? lane / (LANES / PARTS_LEFT)
                                            : LANES;
#endif
#if AT_ONCE
    parts_sum(sum, shared, set, part);
#else
    parts_join(sum, shared, set, part);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part == 0)
#pragma unroll
        for (uint i = 0; i < ITEM; ++i)
#pragma unroll
            for (uint s = 0; s < NARROW; ++s)
                shared[ROW_OF(i) * NARROW + s] = sum[i][s];
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}

/* From local memory, so that neighbours store neighbours. */
INLINE void store_block(__global C_T *c, __global float *partial,
                               __global const C_T *bias, struct tile tile,
                               __local const float *shared,
                               const struct product *p)
{
    bool swapped = (p->flags & SWAPPED) != 0;
    for (uint at = get_local_id(0); at < ROWS * NARROW; at += GROUP) {
        uint r = swapped ? at % ROWS : at / NARROW;
        uint s = swapped ? at / ROWS : at % NARROW;
        float sum = shared[r * NARROW + s];
        r += tile.m * ROWS;
        s += tile.n * NARROW;
        uint row = swapped ? s : r, column = swapped ? r : s;
        if (row >= p->m || column >= p->n)
            continue;
        if (p->flags & PARTS)
            partial[p->partial_offset +
                    ((ulong)tile.plane * p->m + row) * p->n + column] = sum;
        else
            finish1(c, bias, tile.batch, row, column, sum, p);
    }
}

KERNEL void skinny(__global C_T *c, __global float *partial,
                   __global const AB_T *w, __global const AB_T *x,
                   __global const C_T *bias, const struct product p)
{
    __local float shared[SHARED_FLOATS] __attribute__((aligned(16)));
    uint id = get_local_id(0);
    struct tile tile = tile_of(get_group_id(0), &p);
    uint begin = tile.begin, end = tile.end;
    bool swapped = (p.flags & SWAPPED) != 0;
    uint first = tile.m * ROWS, first_x = tile.n * NARROW;
    uint rows = (swapped ? p.n : p.m) - first;
#if NARROW > 1
    uint rows_x = (swapped ? p.m : p.n) - first_x;
#endif
    uint lane = W_OUTER ? id / SETS : id % LANES;
    uint set = W_OUTER ? id % SETS : id / LANES;

    /* Rows past the last read it again; nobody stores what comes of it.  What
     * an item reads of a slice is less than 2^31 elements away. */
    uint w_at[W_PLACES];
    float4 wide[TURNS][LINES];
    w += (long)p.a_offset + (long)tile.batch * p.a_batch +
         (W_OUTER ? begin * p.a_ld + first : first * p.a_ld + begin);
    x += (long)p.b_offset + (long)tile.batch * p.b_batch +
         (X_OUTER ? begin * p.b_ld + first_x : first_x * p.b_ld + begin);
    const long w_step = W_OUTER ? DEPTH * p.a_ld : DEPTH;
    const long x_step = X_OUTER ? DEPTH * p.b_ld : DEPTH;
#pragma unroll
    for (uint i = 0; i < W_PLACES; ++i)
        w_at[i] = W_OUTER ? lane * (uint)p.a_ld +
                                min((uint)ROW_OF(i), rows - 1)
                          : min((uint)ROW_OF(i), rows - 1) * (uint)p.a_ld;
#if W_OUTER && VECTOR == 4
    w_at[0] = lane * (uint)p.a_ld + min((uint)ROW_OF(0), rows - 4);
#endif
#if NARROW == 1
    float4 own_x[TURNS];
#else
    uint x_at[X_READS];
    x_t x_next[X_READS];
#pragma unroll
    for (uint r = 0; r < X_READS; ++r) {
        uint row = min((uint)X_ROW(r), rows_x - (X_OUTER ? X_VECTOR : 1));
        uint k = X_DEEP(r);
        x_at[r] = X_OUTER ? k * (uint)p.b_ld + row : row * (uint)p.b_ld + k;
    }
#endif
    float sum[ITEM][NARROW], total[ITEM][NARROW];
    sums_clear(sum);
    sums_clear(total);
#pragma unroll
    for (uint u = 0; u < TURNS; ++u)
#pragma unroll
        for (uint i = 0; i < LINES; ++i)
            wide[u][i] = W_LOAD(begin, u, i);
#if NARROW == 1
#pragma unroll
    for (uint u = 0; u < TURNS; ++u)
        own_x[u] = X_TURN(begin, u);
    for (uint k = begin; k < end; k += DEPTH) {
        w += w_step;
        x += x_step;
#pragma unroll
        for (uint u = 0; u < TURNS; ++u) {
            turn_add(sum, wide[u], own_x[u]);
#pragma unroll
            for (uint i = 0; i < LINES; ++i)
                wide[u][i] = W_LOAD(k + DEPTH, u, i);
            own_x[u] = X_TURN(k + DEPTH, u);
        }
        if (TOTALS && (k + DEPTH) % PARTIAL_DEPTH == 0)
            totals_add(total, sum);
    }
#else
    uint slot = 0;
    X_FETCH(begin);
    X_STORE(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = begin; k < end; k += DEPTH) {
        bool more = k + DEPTH < end;
        if (more)
            X_FETCH(k + DEPTH);
        w += w_step;
#pragma unroll
        for (uint u = 0; u < TURNS; ++u) {
            turn_add(sum, wide[u],
                     shared + slot * X_FLOATS + X_PLACE(0, W_DEEP(u, 0)));
#pragma unroll
            for (uint i = 0; i < LINES; ++i)
                wide[u][i] = W_LOAD(k + DEPTH, u, i);
        }
        if (more) {
            slot ^= 1;
            X_STORE(slot);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (TOTALS && (k + DEPTH) % PARTIAL_DEPTH == 0)
            totals_add(total, sum);
    }
#endif
    if (TOTALS)
        totals_add(sum, total);
    sets_join(sum, shared, set, lane);
    store_block(c, partial, bias, tile, shared, &p);
}
