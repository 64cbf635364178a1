/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products through wgmma, on NVIDIA GPUs of compute capability 9.0: of
 * f16, bf16, f32 cut to TF32, and of f32 as pairs of halves or of TF32 numbers,
 * all packed by pack.cl, whose blocks lie as wgmma wants them.
 *
 * The driver's compiler does not know the instructions of sm_90a.  So they
 * stand in comments that begin with //@, with their operands, which get into
 * the program's PTX; src/opencl/nvidia/patch.c makes instructions of them
 * there, and docs/wgmma.md says how that is kept safe.  Without it this file
 * builds, and multiplies nothing.
 *
 * A warp group copies slices to local memory, STAGES ahead; two others have 64
 * rows of the tile each.  Of pairs, low high + high low + high high is summed.
 * Tensor cores truncate when they add, so of pairs they add one slice only, in
 * one of two sets of registers; the other's sums meanwhile are added as f32.
 *
 * Of pairs of halves, a tile with rows or columns that are not finite is left
 * to product.cl's kernel; of pairs of TF32 numbers, one whose sums are not
 * finite: the kernel that runs after this one computes the tiles that are
 * marked.
 */
#ifndef TILE_M
#define TILE_M 128
#define TILE_N 128
#endif
#include "matrix.cl"
#include "nvidia/packed.cl"

#define IS_PAIR (FORMAT == FORMAT_PAIR || FORMAT == FORMAT_SPLIT)
#define LINE 128
#if FORMAT == FORMAT_SPLIT
#define SLICE 16
#elif FORMAT == FORMAT_PAIR || FORMAT == FORMAT_TF32
#define SLICE 32
#else
#define SLICE 64
#endif
#define A_STAGE (TILE_M * LINE)
#define B_STAGE (TILE_N * LINE)
/* As many as 192 KiB of local memory hold. */
#ifndef STAGES
#define STAGES (1536 / (TILE_M + TILE_N))
#endif
#define PACKED_BLOCK (PACKED_ROWS * LINE)
/* Of a warp group, which has several blocks of 64 rows where there are no
 * pairs, and sums of an item in each. */
#define BLOCKS (TILE_M / 128)
#define SUMS (TILE_N / 2)
#define OUT_LINE (TILE_N + 8)
/* Two warp groups that multiply, and two that do not, one of which is only
 * there so that a group is a power of two. */
#define CONSUMERS 256
/* 40 registers, and 216: together half of all, for half of the work-items. */
#define FEW_REGISTERS 40
#define MANY_REGISTERS 216

#define REPEAT(i, count)                                                       \
    _Pragma("unroll") for (uint i = 0; i < (count); ++i)

/* ---- instructions of every compute capability 9.0 ---- */

static inline uint address_of(__local const void *at)
{
    return (uint)(ulong)at;
}

static inline void barrier_start(uint at, uint arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(arrivals)
                 : "memory");
}

static inline void barrier_arrive(uint at)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at) : "memory");
}

/* Arrives, and has the barrier wait for bytes that are copied, too. */
static inline void barrier_expect(uint at, uint bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at),
                 "r"(bytes)
                 : "memory");
}

static inline void barrier_wait(uint at, uint parity)
{
    uint done;
    do
        asm volatile("{ .reg .pred done;\n"
                     "mbarrier.try_wait.parity.shared.b64 done, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, done; }"
                     : "=r"(done)
                     : "r"(at), "r"(parity)
                     : "memory");
    while (done == 0);
}

/* The work-items that multiply wait for each other. */
static inline void consumers_wait(void)
{
    asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory");
}

static inline void copy_bulk(uint to, __global const void *from, uint bytes,
                             uint barrier_at)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
                 "bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier_at)
                 : "memory");
}

/* ---- those of sm_90a ---- */

/* A warp group's registers. */
#define REGISTERS(change, count)                                               \
    asm volatile("//@ setmaxnreg." change ".sync.aligned.u32 %0;" ::"n"(count) \
                 : "memory")

/* Operands i to i + 31, and so on. */
#define OUT8(d, i)                                                             \
    "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]),          \
        "+f"(d[(i) + 4]), "+f"(d[(i) + 5]), "+f"(d[(i) + 6]), "+f"(d[(i) + 7])
#define OUT32(d, i)                                                            \
    OUT8(d, i), OUT8(d, (i) + 8), OUT8(d, (i) + 16), OUT8(d, (i) + 24)
#define NAMES32                                                                \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,"   \
    "%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define NAMES64                                                                \
    NAMES32                                                                    \
    ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,"    \
    "%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#if TILE_N == 64
#define COLUMNS "n64"
#define OUT(d) OUT32(d, 0)
#define NAMES NAMES32
#define INPUTS "%32, %33, %34"
#define PENDING "%32"
#else
#define COLUMNS "n128"
#define OUT(d) OUT32(d, 0), OUT32(d, 32)
#define NAMES NAMES64
#define INPUTS "%64, %65, %66"
#define PENDING "%64"
#endif
#if FORMAT == FORMAT_TF32 || FORMAT == FORMAT_SPLIT
#define SHAPE "m64" COLUMNS "k8.f32.tf32.tf32 {"
#define SIGNS ", 1, 1;"
#elif FORMAT == FORMAT_BF16
#define SHAPE "m64" COLUMNS "k16.f32.bf16.bf16 {"
#define SIGNS ", 1, 1, 0, 0;"
#else
#define SHAPE "m64" COLUMNS "k16.f32.f16.f16 {"
#define SIGNS ", 1, 1, 0, 0;"
#endif

/* d = a b, or (add) d += a b, of 64 lines of a and TILE_N of b, 32 bytes along
 * k: begins it.  add: 0 or 1. */
#define MULTIPLY(d, a, b, add)                                                 \
    asm volatile("//@ wgmma.mma_async.sync.aligned." SHAPE NAMES "}, " INPUTS  \
                     SIGNS                                                     \
                 : OUT(d)                                                      \
                 : "l"(a), "l"(b), "n"(add)                                    \
                 : "memory")
#define MULTIPLY_BEGIN()                                                       \
    asm volatile("//@ wgmma.fence.sync.aligned;" ::: "memory")
#define MULTIPLY_COMMIT()                                                      \
    asm volatile("//@ wgmma.commit_group.sync.aligned;" ::: "memory")
/* Until all but the newest pending commits are done, d's among these. */
#define MULTIPLY_WAIT(d, pending)                                              \
    asm volatile("//@ wgmma.wait_group.sync.aligned " PENDING ";"              \
                 : OUT(d)                                                      \
                 : "n"(pending)                                                \
                 : "memory")

/* Lines of 128 bytes whose pieces lie as pack.cl puts them, from a local
 * address on: eight of them are 1024 bytes.  Sixteen bytes are 1. */
static inline ulong matrix_at(uint address)
{
    return (ulong)(address >> 4 & 0x3fff) | (ulong)1 << 16 | (ulong)64 << 32 |
           (ulong)1 << 62;
}

/* ---- a slice's products ---- */

/* Highs are at 0 and 2, lows at 4 and 6. */
#define PAIRS_MULTIPLY(d, a, b)                                                \
    do {                                                                       \
        MULTIPLY_BEGIN();                                                      \
        MULTIPLY(d, (a) + 4, b, 0);                                            \
        MULTIPLY(d, (a) + 6, (b) + 2, 1);                                      \
        MULTIPLY(d, a, (b) + 4, 1);                                            \
        MULTIPLY(d, (a) + 2, (b) + 6, 1);                                      \
        MULTIPLY(d, a, b, 1);                                                  \
        MULTIPLY(d, (a) + 2, (b) + 2, 1);                                      \
        MULTIPLY_COMMIT();                                                     \
    } while (0)
#define LINES_MULTIPLY(d, a, b)                                                \
    do {                                                                       \
        MULTIPLY_BEGIN();                                                      \
        REPEAT (part_, 4)                                                      \
            REPEAT (i_, BLOCKS)                                                \
                MULTIPLY(d[i_], (a) + i_ * (64 * LINE >> 4) + part_ * 2,       \
                         (b) + part_ * 2, 1);                                  \
        MULTIPLY_COMMIT();                                                     \
    } while (0)
#define LINES_WAIT(d, pending)                                                 \
    do {                                                                       \
        REPEAT (i_, BLOCKS)                                                    \
            MULTIPLY_WAIT(d[i_], pending);                                     \
    } while (0)

/* A stage, and which time it comes. */
#define STAGE_NEXT()                                                           \
    do {                                                                       \
        if (++stage == STAGES) {                                               \
            stage = 0;                                                         \
            parity ^= 1;                                                       \
        }                                                                      \
    } while (0)
#define STAGE_WAIT() barrier_wait(full + stage * 8, parity)
#define STAGE_DONE(which) barrier_arrive(empty + (which)*8)
#define A_AT() (a_from + stage * (A_STAGE >> 4))
#define B_AT() (b_from + stage * (B_STAGE >> 4))
#define SUMS_ADD(d)                                                            \
    REPEAT (i_, SUMS)                                                          \
        sum[0][i_] += d[i_]

#if IS_PAIR
/* Sets that are under way when the loop goes round would make the assembler
 * wait after each instruction. */
#define ALL_MULTIPLY()                                                         \
    do {                                                                       \
        float even[SUMS], odd[SUMS];                                           \
        REPEAT (i_, SUMS)                                                      \
            even[i_] = odd[i_] = 0.0f;                                         \
        uint left = count;                                                     \
        for (; left > 1; left -= 2) {                                          \
            uint first = stage;                                                \
            STAGE_WAIT();                                                      \
            PAIRS_MULTIPLY(even, A_AT(), B_AT());                              \
            STAGE_NEXT();                                                      \
            uint second = stage;                                               \
            STAGE_WAIT();                                                      \
            PAIRS_MULTIPLY(odd, A_AT(), B_AT());                               \
            STAGE_NEXT();                                                      \
            MULTIPLY_WAIT(even, 1);                                            \
            STAGE_DONE(first);                                                 \
            SUMS_ADD(even);                                                    \
            MULTIPLY_WAIT(odd, 0);                                             \
            STAGE_DONE(second);                                                \
            SUMS_ADD(odd);                                                     \
        }                                                                      \
        if (left > 0) {                                                        \
            STAGE_WAIT();                                                      \
            PAIRS_MULTIPLY(even, A_AT(), B_AT());                              \
            MULTIPLY_WAIT(even, 0);                                            \
            SUMS_ADD(even);                                                    \
        }                                                                      \
    } while (0)
#else
#define ALL_MULTIPLY()                                                         \
    do {                                                                       \
        uint before = stage;                                                   \
        for (uint left = count; left > 0; --left) {                            \
            STAGE_WAIT();                                                      \
            LINES_MULTIPLY(sum, A_AT(), B_AT());                               \
            LINES_WAIT(sum, 1);                                              \
            if (left < count)                                                  \
                STAGE_DONE(before);                                            \
            before = stage;                                                    \
            STAGE_NEXT();                                                      \
        }                                                                      \
        LINES_WAIT(sum, 0);                                                  \
    } while (0)
#endif

/* ---- copies ---- */

/* Slices of an operand's rows: whole blocks, or parts of one.  step: from one
 * block of rows to the next. */
static inline void rows_copy(uint to, __global const uchar *from, uint rows,
                             ulong step, uint barrier_at)
{
    if (rows <= PACKED_ROWS)
        copy_bulk(to, from, rows * LINE, barrier_at);
    else
        for (uint i = 0; i < rows / PACKED_ROWS; ++i)
            copy_bulk(to + i * PACKED_BLOCK, from + i * step, PACKED_BLOCK,
                      barrier_at);
}

/* The first slice of rows from first on. */
static inline ulong rows_at(uint first, uint begin, uint slices)
{
    return ((ulong)(first / PACKED_ROWS) * slices + begin / SLICE) *
               PACKED_BLOCK +
           first % PACKED_ROWS * LINE;
}

static inline void slices_copy(uint a_to, uint b_to, __global const uchar *a,
                               __global const uchar *b, uint count, ulong step,
                               uint full, uint empty)
{
    uint stage = 0, parity = 1;
    for (uint i = 0; i < count; ++i) {
        barrier_wait(empty + stage * 8, parity);
        barrier_expect(full + stage * 8, A_STAGE + B_STAGE);
        rows_copy(a_to + stage * A_STAGE, a, TILE_M, step, full + stage * 8);
        rows_copy(b_to + stage * B_STAGE, b, TILE_N, step, full + stage * 8);
        a += PACKED_BLOCK;
        b += PACKED_BLOCK;
        STAGE_NEXT();
    }
}

/* ---- sums ---- */

#if FORMAT == FORMAT_PAIR
/* The sums of a row and a column whose scales are to be taken back. */
static inline float unscaled(float x, int exponent)
{
    /* Below, all is 0. */
    exponent = max(exponent, -252);
    int some = exponent / 2;
    return x * as_float((some + 127) << 23) *
           as_float((exponent - some + 127) << 23);
}

/* Whether all rows and columns of the tile are finite. */
static inline bool scales_finite(__global const int *a_scales,
                                 __global const int *b_scales,
                                 __local uint *missed)
{
    for (uint i = get_local_id(0); i < TILE_M + TILE_N; i += GROUP)
        if ((i < TILE_M ? a_scales[i] : b_scales[i - TILE_M]) == NOT_FINITE)
            *missed = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    return *missed == 0;
}
#endif

static inline bool four_finite(float4 x)
{
    return isfinite(x.s0) && isfinite(x.s1) && isfinite(x.s2) &&
           isfinite(x.s3);
}

/* Through local memory, so that neighbours store neighbours, and activations
 * are compiled once. */
INLINE void store_tile(__global C_T *c, __global float *partial,
                       __global const C_T *bias, const struct tile *tile,
                       float (*sum)[SUMS], __local float *out,
                       __global const int *a_scales,
                       __global const int *b_scales, __local uint *missed,
                       const struct product *p)
{
    uint id = get_local_id(0);
    uint row = id / 128 * (TILE_M / 2) + id % 128 / 32 * 16 + id % 32 / 4;
    uint column = id % 4 * 2;
    REPEAT (i, BLOCKS)
        REPEAT (j, TILE_N / 8)
            REPEAT (h, 2)
                *(__local float2 *)(out + (row + i * 64 + h * 8) * OUT_LINE +
                                    column + j * 8) =
                    (float2)(sum[i][j * 4 + h * 2], sum[i][j * 4 + h * 2 + 1]);
    consumers_wait();
    for (uint at = id; at < TILE_M * (TILE_N / 4); at += CONSUMERS) {
        uint y = at / (TILE_N / 4), x = at % (TILE_N / 4) * 4;
        float4 four = *(__local const float4 *)(out + y * OUT_LINE + x);
#if FORMAT == FORMAT_PAIR
        int4 scale = a_scales[y] + *(__global const int4 *)(b_scales + x);
        four.s0 = unscaled(four.s0, scale.s0);
        four.s1 = unscaled(four.s1, scale.s1);
        four.s2 = unscaled(four.s2, scale.s2);
        four.s3 = unscaled(four.s3, scale.s3);
#elif FORMAT == FORMAT_SPLIT
        if (!four_finite(four))
            *missed = 1;
        four = four * (1.0f / SPLIT_SCALE) * (1.0f / SPLIT_SCALE);
#endif
        store_sums(c, partial, bias, tile, y, x, four, p);
    }
}

KERNEL void wgmma(__global C_T *c, __global float *partial,
                  __global const uchar *a, __global const uchar *b,
                  __global const C_T *bias, __global uint *marks,
                  const struct product p)
{
    /* Eight lines are put in order by their addresses. */
    __local uchar shared[STAGES * (A_STAGE + B_STAGE)]
        __attribute__((aligned(1024)));
    __local ulong barriers[2 * STAGES];
    __local uint missed;
    const uint id = get_local_id(0);
    const uint a_to = address_of(shared), b_to = a_to + STAGES * A_STAGE;
    const uint full = address_of(barriers), empty = full + STAGES * 8;
    const struct tile tile = tile_of(get_group_id(0), &p);
    const uint first_m = tile.m * TILE_M, first_n = tile.n * TILE_N;
    const uint slices = (p.k + SLICE - 1) / SLICE;
    const uint count = (tile.end - tile.begin + SLICE - 1) / SLICE;
    __global const int *a_scales = 0, *b_scales = 0;
    if (id == 0) {
        missed = 0;
        REPEAT (i, STAGES) {
            barrier_start(full + i * 8, 1);
            barrier_start(empty + i * 8, CONSUMERS);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    a += (p.a_offset + (ulong)tile.batch * p.a_batch) * BYTES;
    b += (p.b_offset + (ulong)tile.batch * p.b_batch) * BYTES;
#if FORMAT == FORMAT_PAIR
    a_scales = (__global const int *)(a + p.a_ld * BYTES) + first_m;
    b_scales = (__global const int *)(b + p.b_ld * BYTES) + first_n;
    const bool finite = scales_finite(a_scales, b_scales, &missed);
    if (id == 0)
        marks[p.marks_offset + get_group_id(0)] = !finite;
    if (!finite)
        return;
#endif
    if (id >= CONSUMERS) {
        REGISTERS("dec", FEW_REGISTERS);
        if (id == CONSUMERS)
            slices_copy(a_to, b_to, a + rows_at(first_m, tile.begin, slices),
                        b + rows_at(first_n, tile.begin, slices), count,
                        (ulong)slices * PACKED_BLOCK, full, empty);
        return;
    }
    REGISTERS("inc", MANY_REGISTERS);
    const ulong a_from = matrix_at(a_to + id / 128 * (A_STAGE / 2));
    const ulong b_from = matrix_at(b_to);
    float sum[BLOCKS][SUMS];
    REPEAT (i, BLOCKS)
        REPEAT (j, SUMS)
            sum[i][j] = 0.0f;
    uint stage = 0, parity = 0;
    ALL_MULTIPLY();
    /* Nobody reads the stages any more. */
    consumers_wait();
    store_tile(c, partial, bias, &tile, sum, (__local float *)shared, a_scales,
               b_scales, &missed, &p);
#if FORMAT == FORMAT_SPLIT
    consumers_wait();
    if (id == 0)
        marks[p.marks_offset + get_group_id(0)] = missed;
#endif
}
