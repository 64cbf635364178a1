/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products through wgmma, on NVIDIA GPUs of compute capability 9.0: of
 * f16, bf16, f32 cut to TF32, and of f32 as pairs of halves or of TF32 numbers.
 * Operands are packed by pack.cl, whose blocks lie as wgmma wants them, unless
 * they are halves, or lie along k, in whole pieces of sixteen bytes.
 *
 * The driver's compiler does not know the instructions of sm_90a.  So they
 * stand in comments that begin with //@, with their operands, which get into
 * the program's PTX; src/opencl/nvidia/patch.c makes instructions of them
 * there, and docs/wgmma.md says how that is kept safe.  Without it this file
 * builds, and multiplies nothing.
 *
 * Two warp groups copy slices to local memory, STAGES ahead; two others have
 * half of the tile's rows each.  Of pairs, low high + high low + high high is
 * summed.  Tensor cores truncate when they add, so of pairs they add one slice
 * only, in one of two sets of registers; the other's sums meanwhile are added
 * as f32.  Of halves they add LONGEST slices; TF32's digits are too few for it
 * to matter.
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
#ifndef A_LIES
#define A_LIES LIES_PACKED
#define B_LIES LIES_PACKED
#endif
#define PIECE (16 / BYTES)
/* Barriers count the copies of all work-items that make some, and those of
 * blocks. */
#define ANY_DIRECT (A_LIES != LIES_PACKED || B_LIES != LIES_PACKED)
#define ANY_PACKED (A_LIES == LIES_PACKED || B_LIES == LIES_PACKED)
#define COPIES ((ANY_DIRECT ? COPIERS : 0) + (ANY_PACKED ? 1 : 0))
#define PACKED_BYTES                                                           \
    ((A_LIES == LIES_PACKED ? A_STAGE : 0) +                                   \
     (B_LIES == LIES_PACKED ? B_STAGE : 0))
/* As many as 192 KiB of local memory hold. */
#ifndef STAGES
#define STAGES (1536 / (TILE_M + TILE_N))
#endif
#define PACKED_BLOCK (PACKED_ROWS * LINE)
/* Sixty-four elements of all lines across k. */
#define ACROSS_BLOCK (64 * LINE)
#define LONGEST 8
/* Of a warp group, which has several blocks of 64 rows where it adds up in one
 * set of registers, and sums of an item in each. */
#define BLOCKS (TILE_M / 128)
#define SUMS (TILE_N / 2)
/* What a warp stores at a time: eight rows of so many columns. */
#define OUT_COLUMNS 64
#define OUT_LINE (OUT_COLUMNS + 8)
#define OUT_ROUNDS (BLOCKS * 2 * (TILE_N / OUT_COLUMNS))
#define CONSUMERS 256
#define COPIERS 256
/* Together half of all registers, for half of the work-items. */
#if ANY_DIRECT
#define FEW_REGISTERS 56
#else
#define FEW_REGISTERS 40
#endif
#define MANY_REGISTERS (256 - FEW_REGISTERS)

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

/* Likewise; whether x is not 0 for any of them. */
static inline bool consumers_any(uint x)
{
    uint any;
    asm volatile("{ .reg .pred own, all;\n"
                 "setp.ne.u32 own, %1, 0;\n"
                 "bar.red.or.pred all, 1, %2, own;\n"
                 "selp.u32 %0, 1, 0, all; }"
                 : "=r"(any)
                 : "r"(x), "n"(CONSUMERS)
                 : "memory");
    return any != 0;
}

static inline void warp_wait(void)
{
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

static inline uint multiprocessors(void)
{
    uint out;
    asm("mov.u32 %0, %%nsmid;" : "=r"(out));
    return out;
}

static inline void copy_bulk(uint to, __global const void *from, uint bytes,
                             uint barrier_at)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
                 "bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier_at)
                 : "memory");
}

/* Starts to copy sixteen bytes, of which the first are read and the others
 * are 0. */
static inline void copy_async(uint to, __global const void *from, uint bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from), "r"(bytes)
                 : "memory");
}

/* Arrives once this work-item's copies are there. */
static inline void copies_arrive(uint barrier_at)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(
                     barrier_at)
                 : "memory");
}

/* What work-items wrote, and copied, to local memory is there for bulk copies
 * and wgmma, too. */
static inline void memory_show(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
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
#else
#if FORMAT == FORMAT_BF16
#define SHAPE "m64" COLUMNS "k16.f32.bf16.bf16 {"
#else
#define SHAPE "m64" COLUMNS "k16.f32.f16.f16 {"
#endif
/* Which operands do not lie along k. */
#if A_LIES == LIES_ACROSS && B_LIES == LIES_ACROSS
#define SIGNS ", 1, 1, 1, 1;"
#elif A_LIES == LIES_ACROSS
#define SIGNS ", 1, 1, 1, 0;"
#elif B_LIES == LIES_ACROSS
#define SIGNS ", 1, 1, 0, 1;"
#else
#define SIGNS ", 1, 1, 0, 0;"
#endif
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
 * address on: eight of them are 1024 bytes; of lines across k, those of the
 * next 64 elements are 8 KiB further on.  Sixteen bytes are 1. */
static inline ulong matrix_at(uint address, uint lies)
{
    return (ulong)(address >> 4 & 0x3fff) |
           (ulong)(lies == LIES_ACROSS ? ACROSS_BLOCK >> 4 : 1) << 16 |
           (ulong)64 << 32 | (ulong)1 << 62;
}
/* From one 32 bytes, or sixteen lines across k, to the next. */
#define PART(lies) ((lies) == LIES_ACROSS ? 16 * LINE >> 4 : 2)

/* ---- a slice's products ---- */

/* There is one slice at least. */

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
#define PART_MULTIPLY(d, a, b, part, add)                                      \
    REPEAT (i_, BLOCKS)                                                        \
        MULTIPLY(d[i_],                                                        \
                 (a) + i_ * (64 * LINE >> 4) + (part)*PART(A_LIES),            \
                 (b) + (part)*PART(B_LIES), add)
/* add: 0 or 1, whether d holds something yet. */
#define LINES_MULTIPLY(d, a, b, add)                                           \
    do {                                                                       \
        MULTIPLY_BEGIN();                                                      \
        PART_MULTIPLY(d, a, b, 0, add);                                        \
        REPEAT (part_, 3)                                                      \
            PART_MULTIPLY(d, a, b, part_ + 1, 1);                              \
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
#define STAGE_WAIT()                                                           \
    do {                                                                       \
        barrier_wait(full + stage * 8, parity);                                \
        if (ANY_DIRECT)                                                        \
            memory_show();                                                     \
    } while (0)
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
            STAGE_DONE(stage);                                                 \
            STAGE_NEXT();                                                      \
            SUMS_ADD(even);                                                    \
        }                                                                      \
    } while (0)
#elif FORMAT == FORMAT_TF32
#define ALL_MULTIPLY()                                                         \
    do {                                                                       \
        uint before = stage;                                                   \
        STAGE_WAIT();                                                          \
        LINES_MULTIPLY(sum, A_AT(), B_AT(), 0);                                \
        STAGE_NEXT();                                                          \
        for (uint left = count; left > 1; --left) {                            \
            STAGE_WAIT();                                                      \
            LINES_MULTIPLY(sum, A_AT(), B_AT(), 1);                            \
            LINES_WAIT(sum, 1);                                                \
            STAGE_DONE(before);                                                \
            before = stage;                                                    \
            STAGE_NEXT();                                                      \
        }                                                                      \
        LINES_WAIT(sum, 0);                                                    \
        STAGE_DONE(before);                                                    \
    } while (0)
#else
/* One of LONGEST slices, after the first. */
#define NEXT_MULTIPLY()                                                        \
    do {                                                                       \
        STAGE_WAIT();                                                          \
        LINES_MULTIPLY(part, A_AT(), B_AT(), 1);                               \
        LINES_WAIT(part, 1);                                                   \
        STAGE_DONE(before);                                                    \
        before = stage;                                                        \
        STAGE_NEXT();                                                          \
    } while (0)
#define ALL_MULTIPLY()                                                         \
    do {                                                                       \
        float part[1][SUMS];                                                   \
        REPEAT (i_, SUMS)                                                      \
            part[0][i_] = 0.0f;                                                \
        uint left = count;                                                     \
        for (; left > 0; left -= left < LONGEST ? 1 : LONGEST) {               \
            uint before = stage;                                               \
            STAGE_WAIT();                                                      \
            LINES_MULTIPLY(part, A_AT(), B_AT(), 0);                           \
            STAGE_NEXT();                                                      \
            if (left >= LONGEST)                                               \
                REPEAT (slice_, LONGEST - 1)                                   \
                    NEXT_MULTIPLY();                                           \
            LINES_WAIT(part, 0);                                               \
            STAGE_DONE(before);                                                \
            SUMS_ADD(part[0]);                                                 \
        }                                                                      \
    } while (0)
#endif

/* ---- copies ---- */

/* A slice of packed rows: whole blocks, or a part of one.  step: from one
 * block of rows to the next. */
static inline void blocks_copy(uint to, __global const uchar *from, uint rows,
                               ulong step, uint barrier_at)
{
    if (rows <= PACKED_ROWS)
        copy_bulk(to, from, rows * LINE, barrier_at);
    else
        for (uint i = 0; i < rows / PACKED_ROWS; ++i)
            copy_bulk(to + i * PACKED_BLOCK, from + i * step, PACKED_BLOCK,
                      barrier_at);
}

/* A slice of size rows as they lie, of depth steps of k.  Rows past the edge
 * are the last ones; nobody stores what comes of them. */
static inline void lines_copy(uint to, __global const uchar *from, uint lies,
                              uint size, uint rows, ulong line_bytes,
                              uint depth)
{
    uint id = get_local_id(0) - CONSUMERS, line = id / 8, at = id % 8;
    uint bytes = at * PIECE < depth ? min((depth - at * PIECE) * BYTES, 16u)
                                    : 0;
    to += line * LINE + (at ^ (line & 7)) * 16;
    REPEAT (r, size * 8 / COPIERS) {
        uint row = r * (COPIERS / 8) + line;
        if (lies == LIES_ALONG) {
            copy_async(to + r * (COPIERS / 8 * LINE),
                       from + min(row, rows - 1) * line_bytes + at * 16, bytes);
        } else {
            uint first = row / 64 * 64 + at * PIECE;
            copy_async(to + r * (COPIERS / 8 * LINE),
                       from + row % 64 * line_bytes +
                           min(first, rows - PIECE) * BYTES,
                       row % 64 < depth ? 16 : 0);
        }
    }
}

/* Where an operand's rows from first on begin, and what comes after a slice. */
static inline ulong slices_at(uint lies, uint first, ulong line_bytes,
                              uint begin, uint slices)
{
    if (lies == LIES_PACKED)
        return ((ulong)(first / PACKED_ROWS) * slices + begin / SLICE) *
                   PACKED_BLOCK +
               first % PACKED_ROWS * LINE;
    return lies == LIES_ACROSS ? begin * line_bytes + first * BYTES
                               : first * line_bytes + begin * BYTES;
}
static inline ulong slice_step(uint lies, ulong line_bytes)
{
    return lies == LIES_PACKED   ? PACKED_BLOCK
           : lies == LIES_ACROSS ? SLICE * line_bytes
                                 : LINE;
}

#define OPERAND_COPY(to, from, lies, size, rows, line_bytes)                   \
    do {                                                                       \
        if (lies != LIES_PACKED)                                               \
            lines_copy(to, from, lies, size, rows, line_bytes, depth);         \
        else if (leads)                                                        \
            blocks_copy(to, from, size, blocks_step, full + stage * 8);        \
        (from) += slice_step(lies, line_bytes);                                \
    } while (0)

/* A tile's slices, by the work-items that do not multiply; turn: the next
 * stage, and which time it comes. */
INLINE void slices_copy(uint a_to, uint b_to, __global const uchar *a,
                        __global const uchar *b, const struct tile *tile,
                        uint full, uint empty, uint2 *turn,
                        const struct product *p)
{
    const bool leads = get_local_id(0) == CONSUMERS;
    const uint first_m = tile->m * TILE_M, first_n = tile->n * TILE_N;
    const uint slices = (p->k + SLICE - 1) / SLICE;
    const ulong blocks_step = (ulong)slices * PACKED_BLOCK;
    const ulong a_line = p->a_ld * BYTES, b_line = p->b_ld * BYTES;
    uint stage = turn->s0, parity = turn->s1;
    a += slices_at(A_LIES, first_m, a_line, tile->begin, slices);
    b += slices_at(B_LIES, first_n, b_line, tile->begin, slices);
    if (!ANY_DIRECT && !leads)
        return;
    for (uint k = tile->begin; k < tile->end; k += SLICE) {
        const uint depth = tile->end - k;
        barrier_wait(empty + stage * 8, parity);
        if (ANY_PACKED && leads)
            barrier_expect(full + stage * 8, PACKED_BYTES);
        OPERAND_COPY(a_to + stage * A_STAGE, a, A_LIES, TILE_M, p->m - first_m,
                     a_line);
        OPERAND_COPY(b_to + stage * B_STAGE, b, B_LIES, TILE_N, p->n - first_n,
                     b_line);
        if (ANY_DIRECT)
            copies_arrive(full + stage * 8);
        STAGE_NEXT();
    }
    *turn = (uint2)(stage, parity);
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

/* Of a row of the tile, or a column; every work-item has one. */
static inline int scale_read(__global const uchar *a, __global const uchar *b,
                             const struct tile *tile, const struct product *p)
{
    uint id = get_local_id(0);
    if (id < TILE_M)
        return ((__global const int *)(a + p->a_ld * BYTES))[tile->m * TILE_M +
                                                             id];
    if (id < TILE_M + TILE_N)
        return ((__global const int *)(b +
                                       p->b_ld * BYTES))[tile->n * TILE_N +
                                                         id - TILE_M];
    return 0;
}
#endif

static inline bool four_finite(float4 x)
{
    return isfinite(x.s0) && isfinite(x.s1) && isfinite(x.s2) &&
           isfinite(x.s3);
}

/* Through local memory of each warp's, so that neighbours store neighbours, and
 * activations are compiled a few times alone.  Whether all sums were finite. */
INLINE bool store_tile(__global C_T *c, __global float *partial,
                       __global const C_T *bias, const struct tile *tile,
                       float (*sum)[SUMS], __local float *out,
                       __local const int *scales, const struct product *p)
{
    uint id = get_local_id(0), lane = id % 32;
    uint first = id / 128 * (TILE_M / 2) + id % 128 / 32 * 16;
    bool finite = true;
    __local float *own = out + lane / 4 * OUT_LINE + lane % 4 * 2;
    REPEAT (round, OUT_ROUNDS) {
        const uint block = round / 2 / (TILE_N / OUT_COLUMNS);
        const uint column = round / 2 % (TILE_N / OUT_COLUMNS) * OUT_COLUMNS;
        REPEAT (j, OUT_COLUMNS / 8) {
            const uint at = column / 2 + j * 4 + round % 2 * 2;
            *(__local float2 *)(own + j * 8) =
                (float2)(sum[block][at], sum[block][at + 1]);
        }
        warp_wait();
        const uint row = first + block * 64 + round % 2 * 8;
#pragma unroll 1
        for (uint at = lane; at < 8 * OUT_COLUMNS / 4; at += 32) {
            uint y = at / (OUT_COLUMNS / 4), x = at % (OUT_COLUMNS / 4) * 4;
            float4 four = *(__local const float4 *)(out + y * OUT_LINE + x);
            y += row;
            x += column;
#if FORMAT == FORMAT_PAIR
            int4 scale =
                scales[y] + *(__local const int4 *)(scales + TILE_M + x);
            four.s0 = unscaled(four.s0, scale.s0);
            four.s1 = unscaled(four.s1, scale.s1);
            four.s2 = unscaled(four.s2, scale.s2);
            four.s3 = unscaled(four.s3, scale.s3);
#elif FORMAT == FORMAT_SPLIT
            finite = finite && four_finite(four);
            four = four * (1.0f / SPLIT_SCALE) * (1.0f / SPLIT_SCALE);
#endif
            store_sums(c, partial, bias, tile, y, x, four, p);
        }
        warp_wait();
    }
    return finite;
}

/* A group has every so manieth tile, so that the next one's slices are copied
 * while one is stored: as many groups as there are multiprocessors have work,
 * since one fills a multiprocessor. */
KERNEL void wgmma(__global C_T *c, __global float *partial,
                  __global const uchar *a_all, __global const uchar *b_all,
                  __global const C_T *bias, __global uint *marks,
                  const struct product p)
{
    /* Eight lines are put in order by their addresses. */
    __local uchar shared[STAGES * (A_STAGE + B_STAGE)]
        __attribute__((aligned(1024)));
    __local float out[CONSUMERS / 32 * 8 * OUT_LINE]
        __attribute__((aligned(16)));
    __local ulong barriers[2 * STAGES];
    __local int scales[FORMAT == FORMAT_PAIR ? TILE_M + TILE_N : 4]
        __attribute__((aligned(16)));
    const uint id = get_local_id(0);
    const uint a_to = address_of(shared), b_to = a_to + STAGES * A_STAGE;
    const uint full = address_of(barriers), empty = full + STAGES * 8;
    const uint groups = p.whole + p.parted * p.splits;
    const uint step = min((uint)get_num_groups(0), multiprocessors());
    if (get_group_id(0) >= step)
        return;
    if (id == 0) {
        REPEAT (i, STAGES) {
            barrier_start(full + i * 8, COPIES);
            barrier_start(empty + i * 8, CONSUMERS);
        }
        memory_show();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id >= CONSUMERS) {
        REGISTERS("dec", FEW_REGISTERS);
        uint2 turn = (uint2)(0, 1);
        for (uint at = get_group_id(0); at < groups; at += step) {
            const struct tile tile = tile_of(at, &p);
            slices_copy(
                a_to, b_to,
                a_all + (p.a_offset + (ulong)tile.batch * p.a_batch) * BYTES,
                b_all + (p.b_offset + (ulong)tile.batch * p.b_batch) * BYTES,
                &tile, full, empty, &turn, &p);
        }
        /* Their memory is not another group's while they are under way. */
        if (ANY_DIRECT)
            asm volatile("cp.async.wait_all;" ::: "memory");
        return;
    }
    REGISTERS("inc", MANY_REGISTERS);
    const ulong a_from = matrix_at(a_to + id / 128 * (A_STAGE / 2), A_LIES);
    const ulong b_from = matrix_at(b_to, B_LIES);
    uint stage = 0, parity = 0;
    float sum[BLOCKS][SUMS];
    REPEAT (i, BLOCKS)
        REPEAT (j, SUMS)
            sum[i][j] = 0.0f;
    for (uint at = get_group_id(0); at < groups; at += step) {
        const struct tile tile = tile_of(at, &p);
        const uint count = (tile.end - tile.begin + SLICE - 1) / SLICE;
        bool missed = false;
#if FORMAT != FORMAT_TF32
        REPEAT (j, SUMS)
            sum[0][j] = 0.0f;
#endif
#if FORMAT == FORMAT_PAIR
        const int scale = scale_read(
            a_all + (p.a_offset + (ulong)tile.batch * p.a_batch) * BYTES,
            b_all + (p.b_offset + (ulong)tile.batch * p.b_batch) * BYTES, &tile,
            &p);
#endif
        ALL_MULTIPLY();
#if FORMAT == FORMAT_PAIR
        /* Nobody needs the last tile's any more. */
        consumers_wait();
        if (id < TILE_M + TILE_N)
            scales[id] = scale;
        missed = consumers_any(scale == NOT_FINITE);
#endif
        if (!missed)
            missed = !store_tile(c, partial, bias, &tile, sum,
                                 out + id / 32 * 8 * OUT_LINE, scales, &p);
#if FORMAT == FORMAT_SPLIT
        missed = consumers_any(missed);
#endif
#if IS_PAIR
        if (id == 0)
            marks[p.marks_offset + at] = missed;
#endif
    }
}
