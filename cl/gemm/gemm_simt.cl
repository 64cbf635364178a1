/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM in plain OpenCL C. A work-group of 8 x 16 work-items computes a tile of
 * the result. Each work-item computes ITEM_M x ITEM_N elements of the tile. A
 * k_tile is the part of `a` and `b` for K_TILE steps of k. While one k_tile is
 * multiplied in local memory, the next one is loaded into registers. With
 * PATCHES, `b` are patches of a tensor (patches.cl). */
#ifndef ITEM_M
#define ITEM_M 8
#define ITEM_N 4
#define K_TILE 16
/* Number of elements (1 or 4) per read of `a`, and per read of `b`. */
#define A_VECTOR 1
#define B_VECTOR 1
/* Number of steps of k in one iteration of the unrolled loop. */
#define UNROLL 4
#endif

/* Number of steps of k that are summed before the sums are added to totals in
 * registers. With small tiles, this is a k_tile, so that the rounding errors
 * are those of k / K_TILE + K_TILE additions. 0 if totals would need too many
 * registers, or copies at each barrier on a CPU. The sums are then added to
 * totals in global memory every PARTIAL_TERMS steps. */
#if ITEM_M * ITEM_N <= 16
#define STEPS_PER_TOTAL K_TILE
#elif ITEM_M * ITEM_N <= 32 && !IS_CPU
#define STEPS_PER_TOTAL PARTIAL_TERMS
#else
#define STEPS_PER_TOTAL 0
#endif

#define ITEM_ROWS_PER_GROUP 8
#define ITEM_COLUMNS_PER_GROUP 16
#define TILE_M (ITEM_ROWS_PER_GROUP * ITEM_M)
#define TILE_N (ITEM_COLUMNS_PER_GROUP * ITEM_N)
#ifndef PATCHES
#define PATCHES 0
#endif
#include "gemm/gemm_common.cl"
#if PATCHES
#include "gemm/patches.cl"
#endif

/* Row strides, in elements, of k_tiles in local memory. A padding of four
 * elements avoids bank conflicts in the columns of a k_tile. */
#define A_PITCH (TILE_M + 4)
#define B_PITCH (TILE_N + 4)
#define A_READS (TILE_M * K_TILE / A_VECTOR / GROUP_SIZE)
#define B_READS (TILE_N * K_TILE / B_VECTOR / GROUP_SIZE)

typedef float vector1_t;
typedef float4 vector4_t;
#define VECTOR_T(width) CAT(CAT(vector, width), _t)
#define LOAD(width, from) CAT(LOAD, width)(from)

/* If the operand is MN-major, each row of its k_tile is read in RUNS_PER_LINE
 * runs, each by RUN_LENGTH neighbouring work-items. */
#define RUN_LENGTH(size, width) ((width) == 1 ? 32 : (size) / (width))
#define RUNS_PER_LINE(size, width) ((size) / (width) / RUN_LENGTH(size, width))

/* Position in the k_tile of a work-item's read number `r`: the index along m or
 * n (MN_OF), and the index along k (K_OF). */
#define MN_OF(outer, size, width, r)                                           \
    ((outer) ? (id % RUN_LENGTH(size, width) +                                 \
                (r) % RUNS_PER_LINE(size, width) * RUN_LENGTH(size, width)) *  \
                   (width)                                                     \
             : (id + (r)*GROUP_SIZE) / (K_TILE / (width)))
#define K_OF(outer, size, width, r)                                            \
    ((outer) ? id / RUN_LENGTH(size, width) +                                  \
                   (r) / RUNS_PER_LINE(size, width) *                          \
                       (GROUP_SIZE / RUN_LENGTH(size, width))                  \
             : (id + (r)*GROUP_SIZE) % (K_TILE / (width)) * (width))
#define A_ROW(r) MN_OF(A_MN_MAJOR, TILE_M, A_VECTOR, r)
#define A_K(r) K_OF(A_MN_MAJOR, TILE_M, A_VECTOR, r)
#if PATCHES
/* A work-item reads neighbouring rows of one column. */
#define B_COLUMN(r) (id % TILE_N)
#define B_K(r) (id / TILE_N * B_READS + (r))
#else
#define B_COLUMN(r) MN_OF(B_MN_MAJOR, TILE_N, B_VECTOR, r)
#define B_K(r) K_OF(B_MN_MAJOR, TILE_N, B_VECTOR, r)
#endif

/* Stores `x`, the elements of one read, in the k_tile, which is MN-major. */
#define STORE_READ1(k_tile, outer, o, k, x) k_tile[k][o] = (x)
#define STORE_READ4(k_tile, outer, o, k, x)                                    \
    do {                                                                       \
        if (outer) {                                                           \
            *(__local float4 *)&k_tile[k][o] = (x);                            \
        } else {                                                               \
            k_tile[k][o] = (x).s0;                                             \
            k_tile[(k) + 1][o] = (x).s1;                                       \
            k_tile[(k) + 2][o] = (x).s2;                                       \
            k_tile[(k) + 3][o] = (x).s3;                                       \
        }                                                                      \
    } while (0)
#define STORE_READ(width, k_tile, outer, o, k, x)                              \
    CAT(STORE_READ, width)(k_tile, outer, o, k, x)

/* Defines how a work-item addresses its reads of `a` and `b`. If an MN-major
 * operand needs many scalar reads, they have constant strides from one pointer,
 * which takes the fewest registers; reads past the operand's edge are skipped.
 * For other operands, each read has its own pointer, or an offset if pointers
 * would take too many registers. Reads past the edge load the last element. */
#define A_HAS_CONSTANT_PITCH (A_MN_MAJOR && A_VECTOR == 1 && A_READS > 8)
#define B_HAS_CONSTANT_PITCH                                                   \
    (!PATCHES && B_MN_MAJOR && B_VECTOR == 1 && B_READS > 8)
#define READ_DISTANCE(size, width, r, pitch)                                   \
    ((long)((r) / RUNS_PER_LINE(size, width)) * (pitch) +                      \
     (r) % RUNS_PER_LINE(size, width) * RUN_LENGTH(size, width))
#if (A_HAS_CONSTANT_PITCH ? 0 : A_READS) +                                     \
        (B_HAS_CONSTANT_PITCH || PATCHES ? 0 : B_READS) <=                     \
    4
#define DECLARE_SOURCES(at, reads) __global const AB_T *at[reads]
#define SOURCE_INIT(from, offset) ((from) + (offset))
#define READ_SOURCE(width, from, at) LOAD(width, at)
#define ADVANCE(from, at, reads, step)                                         \
    REPEAT (r_, reads) at[r_] += (step)
#else
#define DECLARE_SOURCES(at, reads) uint at[reads]
#define SOURCE_INIT(from, offset) (offset)
#define READ_SOURCE(width, from, at) LOAD(width, (from) + (at))
#define ADVANCE(from, at, reads, step) from += (step)
#endif
#if A_HAS_CONSTANT_PITCH
#define A_READ(r)                                                              \
    LOAD(A_VECTOR, a + READ_DISTANCE(TILE_M, A_VECTOR, r, a_pitch))
#define A_IN_RANGE(r) (A_ROW(r) <= last_m)
#define A_ADVANCE() a += a_step
#else
#define A_READ(r) READ_SOURCE(A_VECTOR, a, a_source[r])
#define A_IN_RANGE(r) true
#define A_ADVANCE() ADVANCE(a, a_source, A_READS, a_step)
#endif
#if B_HAS_CONSTANT_PITCH
#define B_READ(r)                                                              \
    LOAD(B_VECTOR, b + READ_DISTANCE(TILE_N, B_VECTOR, r, b_pitch))
#define B_IN_RANGE(r) (B_COLUMN(r) <= last_n)
#define B_ADVANCE() b += b_step
#else
#define B_READ(r) READ_SOURCE(B_VECTOR, b, b_source[r])
#define B_IN_RANGE(r) true
#define B_ADVANCE() ADVANCE(b, b_source, B_READS, b_step)
#endif

/* Loads the k_tile at k into registers. Elements past the end of k are 0. */
#define PREFETCH(k_)                                                           \
    do {                                                                       \
        REPEAT (r_, A_READS) {                                                 \
            a_next[r_] = (VECTOR_T(A_VECTOR))(0.0f);                           \
            if ((k_) + A_K(r_) < end && A_IN_RANGE(r_))                        \
                a_next[r_] = A_READ(r_);                                       \
        }                                                                      \
        A_ADVANCE();                                                           \
        PREFETCH_B(k_);                                                        \
    } while (0)
#if PATCHES
#define PREFETCH_B(k_)                                                         \
    do {                                                                       \
        struct patch_row row_ = patch_row_of((k_) + B_K(0), &patches);         \
        REPEAT (r_, B_READS) {                                                 \
            b_next[r_] = 0.0f;                                                 \
            if ((k_) + B_K(r_) < end && patch_is_inside(&window, &row_))       \
                b_next[r_] = LOAD1(b + (window.offset + row_.offset));         \
            patch_row_next(&row_, &patches);                                   \
        }                                                                      \
    } while (0)
#else
#define PREFETCH_B(k_)                                                         \
    do {                                                                       \
        REPEAT (r_, B_READS) {                                                 \
            b_next[r_] = (VECTOR_T(B_VECTOR))(0.0f);                           \
            if ((k_) + B_K(r_) < end && B_IN_RANGE(r_))                        \
                b_next[r_] = B_READ(r_);                                       \
        }                                                                      \
        B_ADVANCE();                                                           \
    } while (0)
#endif

#define STORE_K_TILE(slot_)                                                    \
    do {                                                                       \
        REPEAT (r_, A_READS)                                                   \
            STORE_READ(A_VECTOR, a_tiles[slot_], A_MN_MAJOR, A_ROW(r_),        \
                       A_K(r_), a_next[r_]);                                   \
        REPEAT (r_, B_READS)                                                   \
            STORE_READ(B_VECTOR, b_tiles[slot_], B_MN_MAJOR, B_COLUMN(r_),     \
                       B_K(r_), b_next[r_]);                                   \
    } while (0)

/* Adds the products of `x` and four elements to a row of four sums. */
#define ADD_PRODUCTS(sums, x, four)                                            \
    do {                                                                       \
        (sums)[0] = fma(x, (four).s0, (sums)[0]);                              \
        (sums)[1] = fma(x, (four).s1, (sums)[1]);                              \
        (sums)[2] = fma(x, (four).s2, (sums)[2]);                              \
        (sums)[3] = fma(x, (four).s3, (sums)[3]);                              \
    } while (0)

/* Adds the products of a k_tile to the sums of work-item (y, x). */
INLINE void k_tile_multiply(float (*sum)[ITEM_N],
                            __local const float (*a)[A_PITCH],
                            __local const float (*b)[B_PITCH], uint y, uint x)
{
#pragma unroll UNROLL
    for (uint k = 0; k < K_TILE; ++k) {
        float4 a_own[ITEM_M / 4], b_own[ITEM_N / 4];
        REPEAT (i, ITEM_M / 4)
            a_own[i] = *(__local const float4
                             *)&a[k][i * ITEM_ROWS_PER_GROUP * 4 + y * 4];
        REPEAT (j, ITEM_N / 4)
            b_own[j] = *(__local const float4
                             *)&b[k][j * ITEM_COLUMNS_PER_GROUP * 4 + x * 4];
#if ITEM_N == 4
        /* Statements, because compilers need long to unroll nested loops. */
        REPEAT (i, ITEM_M / 4) {
            ADD_PRODUCTS(sum[i * 4], a_own[i].s0, b_own[0]);
            ADD_PRODUCTS(sum[i * 4 + 1], a_own[i].s1, b_own[0]);
            ADD_PRODUCTS(sum[i * 4 + 2], a_own[i].s2, b_own[0]);
            ADD_PRODUCTS(sum[i * 4 + 3], a_own[i].s3, b_own[0]);
        }
#else
        /* With statements, this takes 1.5 times as long on NVIDIA GPUs. */
        REPEAT (i, ITEM_M)
            REPEAT (j, ITEM_N)
                sum[i][j] = fma(ELEMENT(a_own[i / 4], i % 4),
                                ELEMENT(b_own[j / 4], j % 4), sum[i][j]);
#endif
    }
}

INLINE void sums_clear(float (*sum)[ITEM_N])
{
    REPEAT (i, ITEM_M)
        REPEAT (j, ITEM_N)
            sum[i][j] = 0.0f;
}

/* Adds the sums of a work-item to its totals and clears the sums. */
INLINE void accumulate(float (*total)[ITEM_N], float (*sum)[ITEM_N])
{
    REPEAT (i, ITEM_M)
        REPEAT (j, ITEM_N) {
            total[i][j] += sum[i][j];
            sum[i][j] = 0.0f;
        }
}

/* A tile is stored in passes of ROWS_PER_PASS rows through local memory, to
 * coalesce the accesses to c. In a step, a work-item stores four elements:
 * neighbours in a row if tile_uses_vec4. Otherwise their distance in local
 * memory is GROUP_SIZE, so that neighbouring work-items store neighbouring
 * elements. The same code serves all passes and both cases, because compilers
 * would need much time for copies of it. */
#define ROWS_PER_PASS (ITEM_ROWS_PER_GROUP * 4)
#define STEPS_PER_PASS (ROWS_PER_PASS * TILE_N / 4 / GROUP_SIZE)
#define ROWS_PER_STEP (4 * GROUP_SIZE / TILE_N)
/* A work-item loads all inputs of STEPS_AT_ONCE steps, so that the loads
 * overlap. */
#ifndef STEPS_AT_ONCE
#define STEPS_AT_ONCE 1
#endif
/* Number of copies of the activation in a step. Next to the sums of a large
 * tile, AMD GPUs have too few registers for four copies of a long one. */
#if ITEM_M * ITEM_N >= 128 && STEPS_AT_ONCE == 1
#define ACTIVATION_UNROLL 1
#else
#define ACTIVATION_UNROLL 4
#endif

/* Bodies of accesses to four elements, of which the first `count` exist. With
 * vec4, they are neighbours, and `count` is 0 or 4. Otherwise `stride` is the
 * distance between two of them. They test vec4 first, because it is the same in
 * all work-items; see epilogue_scalar_if. */
#define READ_FOUR(type)                                                        \
    float4 x = (float4)(0.0f);                                                 \
    if (vec4) {                                                                \
        if (count > 0)                                                         \
            x = CAT(type, _to_f32_vec4)(                                       \
                *(__global const CAT(type, _t4) *)from);                       \
        return x;                                                              \
    }                                                                          \
    if (count > 0)                                                             \
        x.s0 = CAT(type, _to_f32)(from[0]);                                    \
    if (count > 1)                                                             \
        x.s1 = CAT(type, _to_f32)(from[stride]);                               \
    if (count > 2)                                                             \
        x.s2 = CAT(type, _to_f32)(from[2 * stride]);                           \
    if (count > 3)                                                             \
        x.s3 = CAT(type, _to_f32)(from[3 * stride]);                           \
    return x
#define WRITE_FOUR(type)                                                       \
    if (vec4) {                                                                \
        if (count > 0)                                                         \
            *(__global CAT(type, _t4) *)to = CAT(type, _from_f32_vec4)(x);     \
        return;                                                                \
    }                                                                          \
    if (count > 0)                                                             \
        to[0] = CAT(type, _from_f32)(x.s0);                                    \
    if (count > 1)                                                             \
        to[stride] = CAT(type, _from_f32)(x.s1);                               \
    if (count > 2)                                                             \
        to[2 * stride] = CAT(type, _from_f32)(x.s2);                           \
    if (count > 3)                                                             \
    to[3 * stride] = CAT(type, _from_f32)(x.s3)
INLINE float4 c_read(__global const C_T *from, bool vec4, uint count,
                     long stride)
{
    READ_FOUR(C_DTYPE);
}
INLINE float4 total_read(__global const float *from, bool vec4, uint count,
                         long stride)
{
    READ_FOUR(f32);
}
INLINE void c_write(__global C_T *to, bool vec4, uint count, long stride,
                    float4 x)
{
    WRITE_FOUR(C_DTYPE);
}
INLINE void total_write(__global float *to, bool vec4, uint count, long stride,
                        float4 x)
{
    WRITE_FOUR(f32);
}

/* The arrays that store_tile reads and writes. */
struct tile_memory {
    __global C_T *c;
    __global const C_T *old, *bias;
    __global float *partial;
};

/* Returns the address of a total of a tile, and sets *line to the row stride in
 * elements. The totals of a split tile are its partial sums. Those of an
 * unsplit tile are in c, or at promoted_offset if c is not f32 or if beta * c
 * still needs the old c (PROMOTES_IN_MEMORY). */
INLINE __global float *totals_address(const struct tile_memory *memory,
                                      const struct tile *tile, uint row,
                                      uint column, uint y, uint x,
                                      const struct gemm_params *p, long *line)
{
    const uint batch = tile->batch;
    if (tile->is_split && p->unsplit_tiles > 0) {
        *line = TILE_N;
        return memory->partial + p->partial_offset + TILE_PARTIAL_OFFSET;
    }
    if (tile->is_split || (p->flags & PROMOTES_IN_MEMORY) != 0) {
        const ulong plane = tile->is_split ? tile->partial_plane : batch;
        *line = p->n;
        return memory->partial +
               (tile->is_split ? p->partial_offset : p->promoted_offset) +
               (plane * p->m + row) * p->n + column;
    }
    *line = p->c_ld;
    return (__global float *)memory->c + C_OFFSET;
}

/* Stores the rows of a pass, which are in `shared`. The pass begins at row
 * `first` of the tile. Adds earlier totals unless is_first. If `last`, these
 * are the results for c, otherwise totals. */
INLINE void store_pass(const struct tile_memory *memory,
                       const struct tile *tile, uint first,
                       __local const float *shared, bool is_first, bool is_last,
                       const struct gemm_params *p)
{
    const bool vec4 = tile_uses_vec4(tile, p);
    const uint rows_apart = GROUP_SIZE / TILE_N;
    const uint at = get_local_id(0) * (vec4 ? 4 : 1);
    const uint y = first + at / TILE_N, x = at % TILE_N;
    const uint row = tile->m * TILE_M + y, column = tile->n * TILE_N + x;
    const uint batch = tile->batch;
    const int left = row < p->m && column < p->n ? (int)(p->m - row) : 0;
    const int max_left = (int)(p->m - tile->m * TILE_M - first);
    long line;
    __global float *total =
        totals_address(memory, tile, row, column, y, x, p, &line);
    __global C_T *c = memory->c + C_OFFSET;
    __global const C_T *old = memory->old + C_OFFSET;
    __global const C_T *bias = memory->bias + BIAS_OFFSET;
    const long bias_stride = vec4 ? p->bias_column : rows_apart * p->bias_row;
    shared += at;
#pragma unroll 1
    for (int from = 0; from < STEPS_PER_PASS * ROWS_PER_STEP && from < max_left;
         from += STEPS_AT_ONCE * ROWS_PER_STEP) {
        float4 value[STEPS_AT_ONCE];
        uint count[STEPS_AT_ONCE];
        REPEAT (i, STEPS_AT_ONCE) {
            const int rows = left - from - i * ROWS_PER_STEP;
            count[i] = rows <= 0 ? 0u
                       : vec4    ? 4u
                                 : (rows + rows_apart - 1) / rows_apart;
            __local const float *own = shared + i * 4 * GROUP_SIZE;
            if (vec4)
                value[i] = *(__local const float4 *)own;
            else
                value[i] = (float4)(own[0], own[GROUP_SIZE],
                                    own[2 * GROUP_SIZE], own[3 * GROUP_SIZE]);
        }
        if (!is_first) {
            REPEAT (i, STEPS_AT_ONCE)
                value[i] += total_read(total + i * ROWS_PER_STEP * line, vec4,
                                       count[i], rows_apart * line);
        }
        if (!is_last || tile->is_split) {
            REPEAT (i, STEPS_AT_ONCE)
                total_write(total + i * ROWS_PER_STEP * line, vec4, count[i],
                            rows_apart * line, value[i]);
        } else {
            REPEAT (i, STEPS_AT_ONCE)
                value[i] *= p->alpha;
            if (p->beta != 0.0f) {
                REPEAT (i, STEPS_AT_ONCE)
                    value[i] += p->beta *
                                c_read(old + i * ROWS_PER_STEP * p->c_ld, vec4,
                                       count[i], rows_apart * p->c_ld);
            }
            if (p->flags & HAS_BIAS) {
                REPEAT (i, STEPS_AT_ONCE)
                    value[i] += c_read(bias + i * ROWS_PER_STEP * p->bias_row,
                                       false, count[i], bias_stride);
            }
            REPEAT (i, STEPS_AT_ONCE) {
                const float *a = p->activation;
                float4 out = value[i];
#pragma unroll ACTIVATION_UNROLL
                for (uint j = 0; j < 4; ++j)
                    out = (float4)(out.s1, out.s2, out.s3,
                                   ACTIVATION(out.s0, a[0], a[1]));
                c_write(c + i * ROWS_PER_STEP * p->c_ld, vec4, count[i],
                        rows_apart * p->c_ld, out);
            }
        }
        const long rows = STEPS_AT_ONCE * ROWS_PER_STEP;
        shared += STEPS_AT_ONCE * 4 * GROUP_SIZE;
        total += rows * line;
        c += rows * p->c_ld;
        old += rows * p->c_ld;
        bias += rows * p->bias_row;
    }
}

/* Stores the sums of a tile; see store_pass. `position` holds tile.m and
 * tile.n. It is in local memory, because compilers otherwise compute all
 * addresses before the loop over k and keep them in registers. */
INLINE void store_tile(const struct tile_memory *memory, struct tile tile,
                       float (*sum)[ITEM_N], __local float *shared,
                       __local const uint *position, uint y, uint x,
                       bool is_first, bool is_last,
                       const struct gemm_params *p)
{
    FOR_EACH_PART (pass, ITEM_M / 4) {
        if (tile.m * TILE_M + pass * ROWS_PER_PASS >= p->m)
            break;
        barrier(CLK_LOCAL_MEM_FENCE);
        REPEAT_PART (pass, i, ITEM_M / 4)
            REPEAT (row, 4)
                REPEAT (j, ITEM_N / 4)
                    *(__local float4 *)(shared + (y * 4 + row) * TILE_N +
                                        j * ITEM_COLUMNS_PER_GROUP * 4 +
                                        x * 4) =
                        (float4)(sum[i * 4 + row][j * 4],
                                 sum[i * 4 + row][j * 4 + 1],
                                 sum[i * 4 + row][j * 4 + 2],
                                 sum[i * 4 + row][j * 4 + 3]);
        barrier(CLK_LOCAL_MEM_FENCE);
        tile.m = position[0];
        tile.n = position[1];
        store_pass(memory, &tile, pass * ROWS_PER_PASS, shared, is_first,
                   is_last, p);
    }
}

/* Declares what PREFETCH_B uses. */
#if PATCHES
#define DECLARE_B_SOURCES()                                                    \
    const struct patches_params patches = all.patches;                         \
    const struct window window = window_of(                                    \
        first_n + B_COLUMN(0), first_n + B_COLUMN(0) < p.n, &patches)
#elif B_HAS_CONSTANT_PITCH
#define DECLARE_B_SOURCES()                                                    \
    const uint last_n =                                                        \
        ((p.n - 1) & ~(B_MN_MAJOR ? B_VECTOR - 1u : 0u)) - first_n;            \
    const long b_step = B_MN_MAJOR ? K_TILE * p.b_ld : K_TILE;                 \
    const long b_pitch =                                                       \
        GROUP_SIZE / RUN_LENGTH(TILE_N, B_VECTOR) * p.b_ld;                    \
    b += OFFSET_AT(B_MN_MAJOR, p.b_ld, first_n, begin);                        \
    b += (long)(B_K(0) * (uint)p.b_ld + B_COLUMN(0))
#else
#define DECLARE_B_SOURCES()                                                    \
    const uint last_n =                                                        \
        ((p.n - 1) & ~(B_MN_MAJOR ? B_VECTOR - 1u : 0u)) - first_n;            \
    const long b_step = B_MN_MAJOR ? K_TILE * p.b_ld : K_TILE;                 \
    b += OFFSET_AT(B_MN_MAJOR, p.b_ld, first_n, begin);                        \
    DECLARE_SOURCES(b_source, B_READS);                                        \
    REPEAT (r, B_READS) {                                                      \
        uint n = min((uint)B_COLUMN(r), last_n), k = B_K(r);                   \
        b_source[r] =                                                          \
            SOURCE_INIT(b, OFFSET_AT(B_MN_MAJOR, (uint)p.b_ld, n, k));         \
    }                                                                          \
    (void)0
#endif

KERNEL void gemm_simt(__global C_T *c, __global float *partial,
                      __global const AB_T *a, __global const AB_T *b,
                      __global const C_T *bias,
                      __global const uint *nonfinite_flags,
#if PATCHES
                      __global const C_T *old_base,
                      const struct patches_gemm_params all)
{
    const struct gemm_params p = all.gemm;
#else
                      __global const C_T *old_base,
                      const struct gemm_params p)
{
#endif
    __local float a_tiles[2][K_TILE][A_PITCH] __attribute__((aligned(16)));
    __local float b_tiles[2][K_TILE][B_PITCH] __attribute__((aligned(16)));
    __local uint position[2];
    uint id = get_local_id(0);
    struct tile tile = tile_assign(get_group_id(0), &p);
    uint first_m = tile.m * TILE_M, first_n = tile.n * TILE_N;
    uint begin = tile.begin, end = tile.end;

    /* `a` and `b` point to the current k_tile. All reads are less than 2^31
     * elements beyond these pointers, so 32-bit offsets are sufficient. Results
     * past the edge of c are not stored. */
    VECTOR_T(A_VECTOR) a_next[A_READS];
    VECTOR_T(B_VECTOR) b_next[B_READS];
    uint last_m = ((p.m - 1) & ~(A_MN_MAJOR ? A_VECTOR - 1u : 0u)) - first_m;
    a += (long)p.a_offset + (long)tile.batch * p.a_batch +
         OFFSET_AT(A_MN_MAJOR, p.a_ld, first_m, begin);
    b += (long)p.b_offset + (long)tile.batch * p.b_batch;
#if A_HAS_CONSTANT_PITCH
    a += (long)(A_K(0) * (uint)p.a_ld + A_ROW(0));
    const long a_pitch = GROUP_SIZE / RUN_LENGTH(TILE_M, A_VECTOR) * p.a_ld;
#else
    DECLARE_SOURCES(a_source, A_READS);
    REPEAT (r, A_READS) {
        uint m = min((uint)A_ROW(r), last_m), k = A_K(r);
        a_source[r] =
            SOURCE_INIT(a, OFFSET_AT(A_MN_MAJOR, (uint)p.a_ld, m, k));
    }
#endif
    DECLARE_B_SOURCES();
    const long a_step = A_MN_MAJOR ? K_TILE * p.a_ld : K_TILE;

    /* A warp is 4 x 8 work-items. They are ordered so that each half of a warp
     * reads few different addresses of local memory. */
    uint lane = id % 32, block = id / 32;
    uint x = block % 2 * 8 + ((lane & 1) | (lane >> 1 & 6));
    uint y = block / 2 * 4 + ((lane >> 1 & 1) | (lane >> 3 & 2));

    /* Work-items whose elements are all past the edge of c do not multiply. */
    const bool has_work = y * 4 < p.m - first_m && x * 4 < p.n - first_n;
    const struct tile_memory memory = {c, OLD(p), bias, partial};
    if (id == 0) {
        position[0] = tile.m;
        position[1] = tile.n;
    }
    for (uint first = begin;;) {
        const uint last = STEPS_PER_TOTAL > 0 || end - first <= PARTIAL_TERMS
                              ? end
                              : first + PARTIAL_TERMS;
        float sum[ITEM_M][ITEM_N], total[ITEM_M][ITEM_N];
        sums_clear(sum);
        sums_clear(total);
        PREFETCH(first);
        STORE_K_TILE(0);
        barrier(CLK_LOCAL_MEM_FENCE);
        uint slot = 0;
        for (uint k = first; k < last; k += K_TILE) {
            const bool has_next = k + K_TILE < last;
            if (has_next)
                PREFETCH(k + K_TILE);
#if STEPS_PER_TOTAL > 0
            if (STEPS_PER_TOTAL == K_TILE ||
                (k - begin) % STEPS_PER_TOTAL == 0)
                accumulate(total, sum);
#endif
            if (has_work)
                k_tile_multiply(sum, a_tiles[slot], b_tiles[slot], y, x);
            if (has_next) {
                slot ^= 1;
                STORE_K_TILE(slot);
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        }
        if (STEPS_PER_TOTAL > 0)
            accumulate(sum, total);
        /* store_tile reuses the memory of a_tiles, which has room for a pass.
         */
        store_tile(&memory, tile, sum, &a_tiles[0][0][0], position, y, x,
                   first == begin, last == end, &p);
        if (last == end)
            break;
        first = last;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
