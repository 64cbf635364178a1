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

/* 1 if the products of each k_tile are summed separately and then added to
 * totals in registers. The rounding errors are then those of k / K_TILE +
 * K_TILE additions. 0 if the totals would need too many registers, so that sums
 * are added to totals in global memory every PARTIAL_TERMS steps of k. */
#define ACCUMULATE_PER_K_TILE (ITEM_M * ITEM_N <= 16)

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
        REPEAT (i, ITEM_M)
            REPEAT (j, ITEM_N)
                sum[i][j] = fma(ELEMENT(a_own[i / 4], i % 4),
                                ELEMENT(b_own[j / 4], j % 4), sum[i][j]);
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

/* A pass stores ROWS_PER_PASS rows of a tile. A work-item makes STORES_AT_ONCE
 * stores between two tests for the end of the pass. */
#define ROWS_PER_PASS (ITEM_ROWS_PER_GROUP * 4)
#ifndef STORES_AT_ONCE
#define STORES_AT_ONCE 4
#endif

/* Position of the sums that a work-item stores in a pass. */
struct store_position {
    uint left;     /* rows from the first sum to the end of c; 0 outside c */
    uint max_left; /* largest `left` of all work-items */
    ulong partial; /* offset in the partials */
    ulong line;    /* elements from one row of partials to the next */
    long c, bias;  /* offsets in c and bias */
};

INLINE struct store_position store_position_get(const struct tile *tile,
                                                uint first, uint at,
                                                const struct gemm_params *p)
{
    struct store_position s;
    uint y = first + at / TILE_N, x = at % TILE_N;
    uint row = tile->m * TILE_M + y, column = tile->n * TILE_N + x;
    uint batch = tile->batch;
    bool is_tile_partial = p->unsplit_tiles > 0;
    s.left = row < p->m && column < p->n ? p->m - row : 0;
    s.max_left = min(p->m - tile->m * TILE_M - first, (uint)ROWS_PER_PASS);
    s.line = is_tile_partial ? TILE_N : p->n;
    s.partial = p->partial_offset + (is_tile_partial
                                         ? TILE_PARTIAL_OFFSET
                                         : MATRIX_PARTIAL_OFFSET(tile));
    s.c = C_OFFSET;
    s.bias = BIAS_OFFSET;
    return s;
}

/* Stores the rows of a pass, which are in local memory. The pass begins at row
 * `first` of the tile. Each store has `width` elements, 4 or 1. */
INLINE void store_rows(__global C_T *c, __global float *partial,
                       __global const C_T *old, __global const C_T *bias,
                       const struct tile *tile,
                       uint first, __local const float *shared,
                       const uint width, const struct gemm_params *p)
{
    const struct store_position s =
        store_position_get(tile, first, get_local_id(0) * width, p);
    const uint row_step = GROUP_SIZE * width / TILE_N;
    const long c_step = row_step * p->c_ld;
    const long bias_step = row_step * p->bias_row;
    const ulong partial_step = row_step * s.line;
    shared += get_local_id(0) * width;
    partial += s.partial;
    c += s.c;
    old += s.c;
    bias += s.bias;
    if (tile->is_split) {
#pragma unroll 1
        for (uint y = 0; y < s.max_left; y += row_step) {
            if (y < s.left && width == 4)
                *(__global float4 *)partial = *(__local const float4 *)shared;
            else if (y < s.left)
                *partial = *shared;
            partial += partial_step;
            shared += GROUP_SIZE * width;
        }
        return;
    }
    for (uint y = 0; y < s.max_left; y += STORES_AT_ONCE * row_step) {
        REPEAT (i, STORES_AT_ONCE) {
            const bool inside = y + i * row_step < s.left;
            if (width == 4)
                epilogue_vec4_if(c, old, bias, inside,
                                 *(__local const float4 *)shared, p);
            else
                epilogue_scalar_if(c, old, bias, inside, *shared, p);
            c += c_step;
            old += c_step;
            bias += bias_step;
            shared += GROUP_SIZE * width;
        }
    }
}

/* Stores a tile through local memory, 32 rows at a time, to coalesce writes. */
INLINE void store_tile(__global C_T *c, __global float *partial,
                              __global const C_T *old,
                              __global const C_T *bias,
                              const struct tile *tile, float (*sum)[ITEM_N],
                              __local float *shared, uint y, uint x,
                              const struct gemm_params *p)
{
#pragma unroll
    for (uint i = 0; i < ITEM_M; i += 4) {
        if (tile->m * TILE_M + i * ITEM_ROWS_PER_GROUP >= p->m)
            break;
        barrier(CLK_LOCAL_MEM_FENCE);
        REPEAT (row, 4)
#pragma unroll
            for (uint j = 0; j < ITEM_N; j += 4)
                *(__local float4 *)(shared + (y * 4 + row) * TILE_N +
                                    j * ITEM_COLUMNS_PER_GROUP + x * 4) =
                    (float4)(sum[i + row][j], sum[i + row][j + 1],
                             sum[i + row][j + 2], sum[i + row][j + 3]);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (tile_uses_vec4(tile, p))
            store_rows(c, partial, old, bias, tile, i * ITEM_ROWS_PER_GROUP,
                       shared, 4, p);
        else
            store_rows(c, partial, old, bias, tile, i * ITEM_ROWS_PER_GROUP,
                       shared, 1, p);
    }
}

/* Returns the address of a work-item's first total, and sets *line to the row
 * stride in elements. The totals of a split tile are stored as its partial
 * sums. Those of an unsplit tile are stored in c, or at promoted_offset if c is
 * not f32 or if beta * c still needs the old c (PROMOTES_IN_MEMORY). */
INLINE __global float *totals_address(__global C_T *c, __global float *partial,
                                      const struct tile *tile, uint y, uint x,
                                      const struct gemm_params *p, long *line)
{
    const uint row = tile->m * TILE_M + y * 4;
    const uint column = tile->n * TILE_N + x * 4;
    if (tile->is_split && p->unsplit_tiles > 0) {
        *line = TILE_N;
        return partial + p->partial_offset +
               ((ulong)tile->partial_tile * TILE_M + y * 4) * TILE_N + x * 4;
    }
    if (tile->is_split || (p->flags & PROMOTES_IN_MEMORY) != 0) {
        const ulong plane = tile->is_split ? tile->partial_plane : tile->batch;
        *line = p->n;
        return partial +
               (tile->is_split ? p->partial_offset : p->promoted_offset) +
               (plane * p->m + row) * p->n + column;
    }
    *line = p->c_ld;
    return (__global float *)c + (long)p->c_offset +
           (long)tile->batch * p->c_batch + (long)row * p->c_ld + column;
}

/* ROWS_PER_BATCH rows have 16 sums, which take 16 registers. ROW_DISTANCE(i) is
 * the number of tile rows from a work-item's first row to its row i. */
#define ROWS_PER_BATCH (16 / ITEM_N)
#define ROW_DISTANCE(i) ((i) / 4 * 4 * ITEM_ROWS_PER_GROUP + (i) % 4)

/* Adds the sums to the totals in global memory and clears the sums. If `first`
 * is true, stores the sums as the first totals. If `last` is true, leaves the
 * totals in `sum` instead. `edge` holds the numbers of rows and columns from
 * the tile's first element to the end of c. It is in local memory, because
 * compilers otherwise hoist all comparisons out of the loop and keep their
 * results in registers. */
INLINE void totals_add(float (*sum)[ITEM_N], __global float *total, long line,
                       bool first, bool last, const struct tile *tile, uint y,
                       uint x, __local const uint *edge,
                       const struct gemm_params *p)
{
    const bool uses_vec4 = tile_uses_vec4(tile, p);
    const int rows = (int)(edge[0] - y * 4), columns = (int)(edge[1] - x * 4);
#pragma unroll
    for (int i = 0; i < ITEM_M; i += ROWS_PER_BATCH) {
        /* Loading all rows before storing the first lets the loads overlap. */
        float4 old[ROWS_PER_BATCH][ITEM_N / 4];
#pragma unroll
        for (int r = 0; r < ROWS_PER_BATCH; ++r)
#pragma unroll
            for (int j = 0; j < ITEM_N / 4; ++j) {
                const int left = ROW_DISTANCE(i) + r < rows && !first
                                     ? columns - j * 4 * ITEM_COLUMNS_PER_GROUP
                                     : 0;
                __global const float *at =
                    total + r * line + j * 4 * ITEM_COLUMNS_PER_GROUP;
                old[r][j] = (float4)(0.0f);
                if (uses_vec4 && left > 0) {
                    old[r][j] = *(__global const float4 *)at;
                } else if (!uses_vec4) {
                    old[r][j].s0 = left > 0 ? at[0] : 0.0f;
                    old[r][j].s1 = left > 1 ? at[1] : 0.0f;
                    old[r][j].s2 = left > 2 ? at[2] : 0.0f;
                    old[r][j].s3 = left > 3 ? at[3] : 0.0f;
                }
            }
#pragma unroll
        for (int r = 0; r < ROWS_PER_BATCH; ++r)
#pragma unroll
            for (int j = 0; j < ITEM_N / 4; ++j) {
                const int left = ROW_DISTANCE(i) + r < rows && !last
                                     ? columns - j * 4 * ITEM_COLUMNS_PER_GROUP
                                     : 0;
                __global float *at =
                    total + r * line + j * 4 * ITEM_COLUMNS_PER_GROUP;
                const float4 own =
                    old[r][j] +
                    (float4)(sum[i + r][j * 4], sum[i + r][j * 4 + 1],
                             sum[i + r][j * 4 + 2], sum[i + r][j * 4 + 3]);
                if (uses_vec4 && left > 0) {
                    *(__global float4 *)at = own;
                } else if (!uses_vec4) {
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
        total += (ROW_DISTANCE(i + ROWS_PER_BATCH) - ROW_DISTANCE(i)) * line;
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
    __local uint edge[2];
    if ((p.flags & ONLY_NONFINITE_TILES) &&
        nonfinite_flags[p.nonfinite_flags_offset + get_group_id(0)] == 0)
        return;
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

    float sum[ITEM_M][ITEM_N], total[ITEM_M][ITEM_N];
    sums_clear(sum);
    sums_clear(total);

    /* Work-items whose elements are all past the edge of c do not multiply. */
    const bool has_work = y * 4 < p.m - first_m && x * 4 < p.n - first_n;
    bool uses_totals = !ACCUMULATE_PER_K_TILE && end - begin > PARTIAL_TERMS;
    uint slot = 0;
    PREFETCH(begin);
    STORE_K_TILE(0);
    if (id == 0) {
        edge[0] = p.m - first_m;
        edge[1] = p.n - first_n;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = begin; k < end; k += K_TILE) {
        bool has_next = k + K_TILE < end;
        if (has_next)
            PREFETCH(k + K_TILE);
        if (ACCUMULATE_PER_K_TILE)
            accumulate(total, sum);
        if (has_work)
            k_tile_multiply(sum, a_tiles[slot], b_tiles[slot], y, x);
        if (uses_totals &&
            ((k + K_TILE - begin) % PARTIAL_TERMS == 0 || !has_next)) {
            long line;
            __global float *at =
                totals_address(c, partial, &tile, y, x, &p, &line);
            totals_add(sum, at, line, k < begin + PARTIAL_TERMS, !has_next,
                       &tile, y, x, edge, &p);
        }
        if (has_next) {
            slot ^= 1;
            STORE_K_TILE(slot);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }

    if (ACCUMULATE_PER_K_TILE)
        accumulate(sum, total);

    /* store_tile reuses the memory of a_tiles, which has room for 32 rows. */
    store_tile(c, partial, OLD(p), bias, &tile, sum, &a_tiles[0][0][0], y, x,
               &p);
}
