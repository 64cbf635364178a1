/* SPDX-License-Identifier: Apache-2.0 */
/* Product of a matrix `w` and a few vectors `x`. Its speed is limited by the
 * time to read `w` once. A lane group is LANES work-items (lanes) that multiply
 * the same ITEM_ROWS rows of `w` by VECTOR_COUNT vectors, each lane for a part
 * of k. Example of lane groups in a work-group of eight work-items:
 *
 *   W_MN_MAJOR = 0: neighbours along k    W_MN_MAJOR = 1: neighbours along rows
 *   group 0: 0 1 2 3  group 1: 4 5 6 7    group 0: 0 2 4 6  group 1: 1 3 5 7
 *   (ITEM_ROWS rows, 4 of k per step)     (4 rows, 1 of k per step)
 *
 * `w` is loaded into registers one k_tile ahead of its use, and so is `x` if it
 * is a single vector. Several vectors are copied to local memory. A tree
 * reduction in local memory adds up the sums of a lane group. */
#include "common/lane_reduce.cl"
#include "gemm/gemm_common.cl"

#ifndef VECTOR_COUNT
#define VECTOR_COUNT 4
#define LANES 32
#define K_UNROLL 2
#define ITEM_ROWS 4
/* Number of elements (1 or 4) per read of `w`, and per read of `x`. */
#define W_VECTOR 1
#define X_VECTOR 1
#endif
/* 1 to load `w` with a streaming hint, because no element is read twice. */
#ifndef STREAM
#define STREAM 0
#endif
/* In gemm_params, matrix `w` is operand `a`, and the vectors `x` are `b`. */
#define W_MN_MAJOR A_MN_MAJOR
#define X_MN_MAJOR B_MN_MAJOR

#define LANE_GROUPS (GROUP_SIZE / LANES)
#define GROUP_ROWS (LANE_GROUPS * ITEM_ROWS)

/* In local memory, the k_tile of `x` is MN-major if `w` is MN-major, else
 * K-major. Padding avoids bank conflicts if `x` has the other layout in global
 * memory. */
#if W_MN_MAJOR
#define ITEM_LOADS 1
#define K_TILE (LANES * K_UNROLL)
#define LANE_STRIDE LANE_GROUPS
#define X_PITCH (VECTOR_COUNT % 8 == 0 ? VECTOR_COUNT + 4 : VECTOR_COUNT)
#define X_FLOATS (K_TILE * X_PITCH)
#define X_INDEX(row, k) ((k)*X_PITCH + (row))
#else
#define ITEM_LOADS ITEM_ROWS
#define K_TILE (LANES * 4 * K_UNROLL)
#define LANE_STRIDE 1
#define X_PITCH (K_TILE + (X_MN_MAJOR ? 4 : 0))
#define X_FLOATS (VECTOR_COUNT * X_PITCH)
#define X_INDEX(row, k) ((row)*X_PITCH + (k))
#endif

/* ---- vectors x ---- */

#if VECTOR_COUNT > 1
#define X_LOADS (VECTOR_COUNT * K_TILE / X_VECTOR)
#define X_LOADS_PER_ITEM ((X_LOADS + GROUP_SIZE - 1) / GROUP_SIZE)
#if X_VECTOR == 4
typedef float4 x_t;
#define X_LOAD LOAD4
#else
typedef float x_t;
#define X_LOAD LOAD1
#endif

/* Position in the k_tile of a work-item's read number `r`: its vector and its
 * index along k. Reads are coalesced. If reads of four elements are transposed
 * when they are stored, pairs of neighbouring work-items read along k. */
#if X_MN_MAJOR
#define X_ROW(r) ((id + (r)*GROUP_SIZE) % (VECTOR_COUNT / X_VECTOR) * X_VECTOR)
#define X_K(r) ((id + (r)*GROUP_SIZE) / (VECTOR_COUNT / X_VECTOR))
#else
#if W_MN_MAJOR && X_VECTOR == 4
#define X_ROW(r) ((id + (r)*GROUP_SIZE) / 2 % VECTOR_COUNT)
#define X_K(r)                                                                 \
    ((id + (r)*GROUP_SIZE) / (2 * VECTOR_COUNT) * 8 +                          \
     (id + (r)*GROUP_SIZE) % 2 * 4)
#else
#define X_ROW(r) ((id + (r)*GROUP_SIZE) / (K_TILE / X_VECTOR))
#define X_K(r) ((id + (r)*GROUP_SIZE) % (K_TILE / X_VECTOR) * X_VECTOR)
#endif
#endif
#define X_IN_RANGE(r)                                                          \
    (X_LOADS % GROUP_SIZE == 0 || id + (r)*GROUP_SIZE < X_LOADS)

/* Loads the k_tile of x at k. Elements past the end of k are 0. */
#define X_PREFETCH(k_)                                                         \
    do {                                                                       \
        REPEAT (r_, X_LOADS_PER_ITEM) {                                        \
            x_next[r_] = (x_t)(0.0f);                                          \
            if (X_IN_RANGE(r_) && (k_) + X_K(r_) < end)                        \
                x_next[r_] = X_LOAD(x + x_offset[r_]);                         \
        }                                                                      \
        x += x_step;                                                           \
    } while (0)

#if X_VECTOR == 1
#define X_STORE_VECTOR(to, v) *(to) = (v)
#elif X_MN_MAJOR == W_MN_MAJOR
#define X_STORE_VECTOR(to, v) *(__local float4 *)(to) = (v)
#else
#define X_STORE_VECTOR(to, v)                                                  \
    do {                                                                       \
        (to)[0] = (v).s0;                                                      \
        (to)[X_PITCH] = (v).s1;                                                \
        (to)[2 * X_PITCH] = (v).s2;                                            \
        (to)[3 * X_PITCH] = (v).s3;                                            \
    } while (0)
#endif
#define X_STORE(slot_)                                                         \
    do {                                                                       \
        REPEAT (r_, X_LOADS_PER_ITEM) {                                        \
            if (X_IN_RANGE(r_))                                                \
                X_STORE_VECTOR(shared + (slot_)*X_FLOATS +                     \
                                   X_INDEX(X_ROW(r_), X_K(r_)),                \
                               x_next[r_]);                                    \
        }                                                                      \
    } while (0)
#endif

/* ---- matrix w ---- */

/* W_K is the index along k of element `j` of a load in unrolled step `u`.
 * W_OFFSET is the offset in `w` of element `j` of load `i` in step `u`. */
#if W_MN_MAJOR
#define W_K(u, j) ((u)*LANES + lane)
#define W_OFFSETS 4
#define W_OFFSET(u, i, j) (w_offset[j] + (u)*LANES * (uint)p.a_ld)
#else
#if W_VECTOR == 4
#define W_K(u, j) (((u)*LANES + lane) * 4 + (j))
#else
#define W_K(u, j) (((u)*4 + (j)) * LANES + lane)
#endif
#define W_OFFSETS ITEM_LOADS
#define W_OFFSET(u, i, j) (w_offset[i] + W_K(u, j))
#endif

#if STREAM && W_VECTOR == 4 && !defined EMULATED
/* Return four elements, or 0 if they do not exist. The load is predicated in
 * the assembler, because a branch for each of many loads takes the compiler
 * long. */
INLINE float4 f32_stream4(__global const float *from, bool exists)
{
    float4 x;
    __asm__ volatile("{ .reg .pred exists; setp.ne.u32 exists, %5, 0; "
                     "mov.f32 %0, 0f00000000; mov.f32 %1, 0f00000000; "
                     "mov.f32 %2, 0f00000000; mov.f32 %3, 0f00000000; "
                     "@exists ld.global.cs.v4.f32 {%0, %1, %2, %3}, [%4]; }"
                     : "=&f"(x.s0), "=&f"(x.s1), "=&f"(x.s2), "=&f"(x.s3)
                     : "l"(from), "r"((uint)exists));
    return x;
}
INLINE ushort4 ushort_stream4(__global const ushort *from, bool exists)
{
    uint2 x;
    __asm__ volatile("{ .reg .pred exists; setp.ne.u32 exists, %3, 0; "
                     "mov.u32 %0, 0; mov.u32 %1, 0; "
                     "@exists ld.global.cs.v2.u32 {%0, %1}, [%2]; }"
                     : "=&r"(x.s0), "=&r"(x.s1)
                     : "l"(from), "r"((uint)exists));
    return as_ushort4(x);
}
#define f16_stream4(from, exists)                                              \
    f16_to_f32_vec4(ushort_stream4(from, exists))
#define bf16_stream4(from, exists)                                             \
    bf16_to_f32_vec4(ushort_stream4(from, exists))
#define W_LOAD4 CAT(AB_DTYPE, _stream4)
#else
#define W_LOAD4(from, exists) ((exists) ? LOAD4(from) : (float4)(0.0f))
#endif
#if W_VECTOR == 4
#define W_LOAD(k_, u, i)                                                       \
    W_LOAD4(w + W_OFFSET(u, i, 0), (k_) + W_K(u, 0) < end)
#else
#define W_LOAD_SCALAR(k_, u, i, j)                                             \
    ((k_) + W_K(u, j) < end ? LOAD1(w + W_OFFSET(u, i, j)) : 0.0f)
#define W_LOAD(k_, u, i)                                                       \
    (float4)(W_LOAD_SCALAR(k_, u, i, 0), W_LOAD_SCALAR(k_, u, i, 1),           \
             W_LOAD_SCALAR(k_, u, i, 2), W_LOAD_SCALAR(k_, u, i, 3))
#endif

#define W_LOAD_STEP(k_, u)                                                     \
    REPEAT (i_, ITEM_LOADS)                                                    \
        w_values[u][i_] = W_LOAD(k_, u, i_)

/* If there is a single vector `x`, its elements are loaded into registers. */
#define X_LD (X_MN_MAJOR ? (uint)p.b_ld : 1u)
#define X_LOAD_SCALAR(k_, u, j)                                                \
    ((k_) + W_K(u, j) < end ? LOAD1(x + W_K(u, j) * X_LD) : 0.0f)
#if W_MN_MAJOR
#define X_LOAD_STEP(k_, u) (float4)(X_LOAD_SCALAR(k_, u, 0))
#elif X_VECTOR == 4 && W_VECTOR == 4
#define X_LOAD_STEP(k_, u)                                                     \
    ((k_) + W_K(u, 0) < end ? LOAD4(x + W_K(u, 0)) : (float4)(0.0f))
#else
#define X_LOAD_STEP(k_, u)                                                     \
    (float4)(X_LOAD_SCALAR(k_, u, 0), X_LOAD_SCALAR(k_, u, 1),                 \
             X_LOAD_SCALAR(k_, u, 2), X_LOAD_SCALAR(k_, u, 3))
#endif

/* The elements of `x` for one step, in registers or in local memory. */
#if VECTOR_COUNT == 1
typedef float4 step_x_t;
#else
typedef __local const float *step_x_t;
#endif

/* Returns the elements of vector s at four steps of k. */
INLINE float4 x_along_k(step_x_t x_values, uint s)
{
#if VECTOR_COUNT == 1
    return x_values;
#elif W_VECTOR == 4
    return *(__local const float4 *)(x_values + s * X_PITCH);
#else
    x_values += s * X_PITCH;
    return (float4)(x_values[0], x_values[LANES], x_values[2 * LANES],
                    x_values[3 * LANES]);
#endif
}

/* Returns the elements of four vectors, from vector s on, at one step of k. */
INLINE float4 x_across_k(step_x_t x_values, uint s)
{
#if VECTOR_COUNT == 1
    return x_values;
#else
    return *(__local const float4 *)(x_values + s);
#endif
}

/* Adds the products of a step to the sums. A step is four rows by one element
 * along k if `w` is MN-major, else ITEM_ROWS rows by four elements. */
INLINE void step_add(float (*sum)[VECTOR_COUNT], const float4 *w_values,
                     step_x_t x_values)
{
#if W_MN_MAJOR
#pragma unroll
    for (uint s = 0; s < VECTOR_COUNT; s += 4) {
        float4 v = x_across_k(x_values, s);
        REPEAT (i, 4)
            REPEAT (j, (VECTOR_COUNT < 4 ? VECTOR_COUNT : 4))
                sum[i][s + j] =
                    fma(ELEMENT(w_values[0], i), ELEMENT(v, j), sum[i][s + j]);
    }
#else
    REPEAT (s, VECTOR_COUNT) {
        float4 v = x_along_k(x_values, s);
        REPEAT (i, ITEM_ROWS) {
            float x = fma(w_values[i].s0, v.s0, sum[i][s]);
            x = fma(w_values[i].s1, v.s1, x);
            x = fma(w_values[i].s2, v.s2, x);
            sum[i][s] = fma(w_values[i].s3, v.s3, x);
        }
    }
#endif
}

/* Number of steps of k in which a work-item adds PARTIAL_TERMS products to each
 * sum. Variants with many sums have no registers for totals, so the host gives
 * them at most PARTIAL_DEPTH steps of k (gemv_plan.c: has_totals). */
#define PARTIAL_DEPTH (PARTIAL_TERMS * LANES)
#define HAS_TOTALS                                                             \
    (VECTOR_COUNT == 1 || (!W_MN_MAJOR && (VECTOR_COUNT < 16 || W_VECTOR == 4)))

INLINE void sums_clear(float (*sum)[VECTOR_COUNT])
{
    REPEAT (i, ITEM_ROWS)
        REPEAT (s, VECTOR_COUNT)
            sum[i][s] = 0.0f;
}

INLINE void totals_add(float (*total)[VECTOR_COUNT], float (*sum)[VECTOR_COUNT])
{
    REPEAT (i, ITEM_ROWS)
        REPEAT (s, VECTOR_COUNT) {
            total[i][s] += sum[i][s];
            sum[i][s] = 0.0f;
        }
}

/* ---- reduction of a lane group ---- */

/* If the device has warps, shuffles add up the sums of the lanes in a warp.
 * PARTIALS_LEFT partial sums per lane group remain, each in one lane. */
#if SHUFFLE == 1 && LANE_STRIDE < 32
#if LANES * LANE_STRIDE > 32
#define WARP_ITEMS 32
#else
#define WARP_ITEMS (LANES * LANE_STRIDE)
#endif
#define PARTIALS_LEFT (LANES * LANE_STRIDE / WARP_ITEMS)
#else
#define PARTIALS_LEFT LANES
#endif
#define X_TILE_FLOATS (VECTOR_COUNT == 1 ? 0 : 2 * X_FLOATS)
#define EXCHANGE_SLOTS (LANE_GROUPS * ((PARTIALS_LEFT + 1) / 2))
/* Number of vectors whose sums go through local memory at the same time. */
#define VECTORS_AT_ONCE                                                        \
    (VECTOR_COUNT <= 4 ||                                                      \
             X_TILE_FLOATS >= EXCHANGE_SLOTS * ITEM_ROWS * VECTOR_COUNT        \
         ? VECTOR_COUNT                                                        \
         : 4)
#define MAX(a, b) ((a) > (b) ? (a) : (b))
/* 1 if one work-item adds up all partial sums of a row, 0 if a tree does. */
#if VECTOR_COUNT == 1 && PARTIALS_LEFT > 1 && PARTIALS_LEFT <= 16
#define ADDS_DIRECTLY 1
#define PARTIAL_FLOATS (PARTIALS_LEFT * GROUP_ROWS)
#else
#define ADDS_DIRECTLY 0
#define PARTIAL_FLOATS                                                         \
    MAX(EXCHANGE_SLOTS * ITEM_ROWS * VECTORS_AT_ONCE,                          \
        GROUP_ROWS * VECTOR_COUNT)
#endif
#define SHARED_FLOATS MAX(X_TILE_FLOATS, PARTIAL_FLOATS)

/* Adds up the partial sums of a lane group with a tree reduction in local
 * memory. The work-item whose partial_index is 0 gets the totals in `sum`. */
INLINE void partials_combine(float (*sum)[VECTOR_COUNT], __local float *shared,
                             uint lane_group, uint partial_index)
{
    for (uint half_ = PARTIALS_LEFT / 2; half_ > 0; half_ /= 2)
#pragma unroll
        for (uint first = 0; first < VECTOR_COUNT; first += VECTORS_AT_ONCE) {
            uint exchange_pitch = LANE_GROUPS * half_;
            __local float *exchange =
                shared + lane_group * half_ + partial_index % half_;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (partial_index >= half_ && partial_index < 2 * half_)
                REPEAT (i, ITEM_ROWS)
                    REPEAT (s, VECTORS_AT_ONCE)
                        exchange[(i * VECTORS_AT_ONCE + s) * exchange_pitch] =
                            sum[i][first + s];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (partial_index < half_)
                REPEAT (i, ITEM_ROWS)
                    REPEAT (s, VECTORS_AT_ONCE)
                        sum[i][first + s] +=
                            exchange[(i * VECTORS_AT_ONCE + s) *
                                     exchange_pitch];
        }
}

/* Index of row i of this work-item's lane group in the work-group's tile. */
#if W_MN_MAJOR && W_VECTOR == 1
#define GROUP_ROW(i) ((i)*LANE_GROUPS + lane_group)
#else
#define GROUP_ROW(i) (lane_group * ITEM_ROWS + (i))
#endif

/* Adds up the partial sums of each row. A work-item adds up the rows that it
 * stores in store_block, so no barrier is needed before store_block. */
INLINE void partials_add(float (*sum)[VECTOR_COUNT], __local float *shared,
                         uint lane_group, uint partial_index)
{
    if (partial_index < PARTIALS_LEFT)
        REPEAT (i, ITEM_ROWS)
            shared[partial_index * GROUP_ROWS + GROUP_ROW(i)] = sum[i][0];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint row = get_local_id(0); row < GROUP_ROWS; row += GROUP_SIZE) {
        float row_total = shared[row];
#pragma unroll
        for (uint i = 1; i < PARTIALS_LEFT; ++i)
            row_total += shared[i * GROUP_ROWS + row];
        shared[row] = row_total;
    }
}

#if defined WARP_ITEMS && PARTIALS_LEFT == 1 && VECTOR_COUNT > 1
/* Adds up the sums of a lane group, which is part of a warp, and leaves the
 * totals in local memory. In each step, two lanes exchange half of their sums,
 * so that in the end each lane has other totals. */
#define SUMS (ITEM_ROWS * VECTOR_COUNT)
INLINE void lane_group_reduce(float (*sum)[VECTOR_COUNT], __local float *shared,
                              uint lane_group, uint lane)
{
    float *all = &sum[0][0];
    REPEAT (step, 5)
        if (WARP_ITEMS >> (step + 1) >= LANE_STRIDE)
            sums_exchange(all, SUMS >> step, WARP_ITEMS >> (step + 1));
    barrier(CLK_LOCAL_MEM_FENCE);
    if (SUMS >= LANES || lane % (LANES / min(SUMS, LANES)) == 0)
        REPEAT (i, (SUMS + LANES - 1) / LANES) {
            const uint at = lane * SUMS / LANES + i;
            shared[GROUP_ROW(at / VECTOR_COUNT) * VECTOR_COUNT +
                   at % VECTOR_COUNT] = all[i];
        }
    barrier(CLK_LOCAL_MEM_FENCE);
}
#else
/* Adds up the sums of a lane group and leaves the totals in local memory. */
INLINE void lane_group_reduce(float (*sum)[VECTOR_COUNT], __local float *shared,
                              uint lane_group, uint lane)
{
    uint partial_index = lane;
#ifdef WARP_ITEMS
#pragma unroll
    for (uint mask = WARP_ITEMS / 2; mask >= LANE_STRIDE; mask /= 2)
        REPEAT (i, ITEM_ROWS)
            REPEAT (s, VECTOR_COUNT)
                sum[i][s] += shuffle_xor(sum[i][s], mask);
    /* The index LANES marks a lane that holds no partial sum. */
    partial_index = lane % (LANES / PARTIALS_LEFT) == 0
                        ? lane / (LANES / PARTIALS_LEFT)
                        : LANES;
#endif
#if ADDS_DIRECTLY
    partials_add(sum, shared, lane_group, partial_index);
#else
    partials_combine(sum, shared, lane_group, partial_index);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (partial_index == 0)
        REPEAT (i, ITEM_ROWS)
            REPEAT (s, VECTOR_COUNT)
                shared[GROUP_ROW(i) * VECTOR_COUNT + s] = sum[i][s];
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}
#endif

/* Stores the totals, which are in local memory, with coalesced writes. */
INLINE void store_block(__global C_T *c, __global float *partial,
                        __global const C_T *old, __global const C_T *bias,
                        struct tile tile,
                        __local const float *shared,
                        const struct gemm_params *p)
{
    bool swapped = (p->flags & OPERANDS_SWAPPED) != 0;
    for (uint at = get_local_id(0); at < GROUP_ROWS * VECTOR_COUNT;
         at += GROUP_SIZE) {
        uint r = swapped ? at % GROUP_ROWS : at / VECTOR_COUNT;
        uint s = swapped ? at / GROUP_ROWS : at % VECTOR_COUNT;
        float sum = shared[r * VECTOR_COUNT + s];
        r += tile.m * GROUP_ROWS;
        s += tile.n * VECTOR_COUNT;
        uint row = swapped ? s : r, column = swapped ? r : s;
        if (row >= p->m || column >= p->n)
            continue;
        if (p->flags & STORES_PARTIALS)
            partial[p->partial_offset + MATRIX_PARTIAL_OFFSET(&tile)] = sum;
        else
            epilogue_scalar(c, old, bias, tile.batch, row, column, sum, p);
    }
}

KERNEL void gemv(__global C_T *c, __global float *partial,
                 __global const AB_T *w, __global const AB_T *x,
                 __global const C_T *bias,
                 __global const C_T *old_base,
                 const struct gemm_params p)
{
    __local float shared[SHARED_FLOATS] __attribute__((aligned(16)));
    uint id = get_local_id(0);
    struct tile tile = tile_assign(get_group_id(0), &p);
    uint begin = tile.begin, end = tile.end;
    bool swapped = (p.flags & OPERANDS_SWAPPED) != 0;
    uint first = tile.m * GROUP_ROWS, first_x = tile.n * VECTOR_COUNT;
    uint rows = (swapped ? p.n : p.m) - first;
#if VECTOR_COUNT > 1
    uint rows_x = (swapped ? p.m : p.n) - first_x;
#endif
    uint lane = W_MN_MAJOR ? id / LANE_GROUPS : id % LANES;
    uint lane_group = W_MN_MAJOR ? id % LANE_GROUPS : id / LANES;

    /* Reads past the last row load that row. Their results are not stored. All
     * reads are less than 2^31 elements beyond the k_tile's start. */
    uint w_offset[W_OFFSETS];
    float4 w_values[K_UNROLL][ITEM_LOADS];
    w += (long)p.a_offset + (long)tile.batch * p.a_batch +
         OFFSET_AT(W_MN_MAJOR, p.a_ld, first, begin);
    x += (long)p.b_offset + (long)tile.batch * p.b_batch +
         OFFSET_AT(X_MN_MAJOR, p.b_ld, first_x, begin);
    const long w_step = W_MN_MAJOR ? K_TILE * p.a_ld : K_TILE;
    const long x_step = X_MN_MAJOR ? K_TILE * p.b_ld : K_TILE;
    REPEAT (i, W_OFFSETS)
        w_offset[i] =
            OFFSET_AT(W_MN_MAJOR, (uint)p.a_ld,
                      min((uint)GROUP_ROW(i), rows - 1), W_MN_MAJOR ? lane : 0);
#if W_MN_MAJOR && W_VECTOR == 4
    w_offset[0] = lane * (uint)p.a_ld + min((uint)GROUP_ROW(0), rows - 4);
#endif
#if VECTOR_COUNT == 1
    float4 x_values[K_UNROLL];
#else
    uint x_offset[X_LOADS_PER_ITEM];
    x_t x_next[X_LOADS_PER_ITEM];
    REPEAT (r, X_LOADS_PER_ITEM) {
        uint row = min((uint)X_ROW(r), rows_x - (X_MN_MAJOR ? X_VECTOR : 1));
        uint k = X_K(r);
        x_offset[r] = OFFSET_AT(X_MN_MAJOR, (uint)p.b_ld, row, k);
    }
#endif
    float sum[ITEM_ROWS][VECTOR_COUNT], total[ITEM_ROWS][VECTOR_COUNT];
    sums_clear(sum);
    sums_clear(total);
    REPEAT (u, K_UNROLL)
        W_LOAD_STEP(begin, u);
#if VECTOR_COUNT == 1
    REPEAT (u, K_UNROLL)
        x_values[u] = X_LOAD_STEP(begin, u);
    for (uint k = begin; k < end; k += K_TILE) {
        w += w_step;
        x += x_step;
        REPEAT (u, K_UNROLL) {
            step_add(sum, w_values[u], x_values[u]);
            W_LOAD_STEP(k + K_TILE, u);
            x_values[u] = X_LOAD_STEP(k + K_TILE, u);
        }
        if (HAS_TOTALS && (k + K_TILE) % PARTIAL_DEPTH == 0)
            totals_add(total, sum);
    }
#else
    uint slot = 0;
    X_PREFETCH(begin);
    X_STORE(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = begin; k < end; k += K_TILE) {
        bool has_next = k + K_TILE < end;
        if (has_next)
            X_PREFETCH(k + K_TILE);
        w += w_step;
        REPEAT (u, K_UNROLL) {
            step_add(sum, w_values[u],
                     shared + slot * X_FLOATS + X_INDEX(0, W_K(u, 0)));
            W_LOAD_STEP(k + K_TILE, u);
        }
        if (has_next) {
            slot ^= 1;
            X_STORE(slot);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (HAS_TOTALS && (k + K_TILE) % PARTIAL_DEPTH == 0)
            totals_add(total, sum);
    }
#endif
    if (HAS_TOTALS)
        totals_add(sum, total);
    lane_group_reduce(sum, shared, lane_group, lane);
    store_block(c, partial, OLD(p), bias, tile, shared, &p);
}
