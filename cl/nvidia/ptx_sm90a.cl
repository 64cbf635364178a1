/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of compute capability 9.0 for gemm_wgmma.cl. Some are written as
 * PTX comments, which src/opencl/program/nvidia/ptx_rewrite.c replaces. */
#ifndef TANDEM_PTX_SM90A_CL
#define TANDEM_PTX_SM90A_CL

#include "nvidia/ptx_sm80.cl"

#ifdef EMULATED
/* The emulator that the tests use defines these functions. */
uint shared_window(__local const void *at);
void mbarrier_init(uint at, uint arrivals);
void mbarrier_arrive(uint at);
void mbarrier_arrive_expect(uint at, uint bytes);
void mbarrier_wait(uint at, uint parity);
void consumers_barrier(uint items);
bool consumers_vote(uint items, uint x);
void warp_sync(void);
uint multiprocessor_count(void);
void copy_bulk(uint to, __global const void *from, uint bytes, uint barrier_at);
void tensor_map_release(void);
void tensor_map_acquire(__global const uint *map);
void copy_tensor_box(uint to, __global const uint *map, uint k, uint row,
                     uint plane, uint barrier_at);
void copies_arrive(uint barrier_at);
void emulated_wgmma(uint format, float *sum, ulong a, ulong b, uint columns,
                    uint mn_major, uint add);
#define address_of(at) shared_window(at)
#define consumers_wait() consumers_barrier(CONSUMERS)
#define consumers_any(x) consumers_vote(CONSUMERS, x)
#define copies_end() ((void)0)
#define shared_memory_fence() ((void)0)
#define SET_REGISTERS(change, count) ((void)0)
#define WGMMA(d, a, b, add)                                                    \
    emulated_wgmma(FORMAT, d, a, b, TILE_N,                                    \
                   (A_LAYOUT == LAYOUT_MN_MAJOR) |                             \
                       (B_LAYOUT == LAYOUT_MN_MAJOR) << 1,                     \
                   add)
#define WGMMA_FENCE() ((void)0)
#define WGMMA_COMMIT() ((void)0)
#define WGMMA_WAIT(d, pending) ((void)(d))

#else
/* ---- instructions of sm_90 ---- */

static inline void mbarrier_init(uint at, uint arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(arrivals)
                 : "memory");
}

/* Arrives at a barrier, but only in the first work-item of each warp. */
static inline void mbarrier_arrive(uint at)
{
    asm volatile("{ .reg .pred own;\n"
                 "setp.eq.u32 own, %1, 0;\n"
                 "@own mbarrier.arrive.shared.b64 _, [%0]; }" ::"r"(at),
                 "r"((uint)get_local_id(0) % 32)
                 : "memory");
}

/* Arrives at a barrier, which then also waits for the copy of `bytes` bytes. */
static inline void mbarrier_arrive_expect(uint at, uint bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at),
                 "r"(bytes)
                 : "memory");
}

static inline void mbarrier_wait(uint at, uint parity)
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

/* Waits until all consumer work-items have called this function. */
static inline void consumers_wait(void)
{
    asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory");
}

/* Like consumers_wait, but returns true if any consumer's `x` is not 0. */
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

static inline void warp_sync(void)
{
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

static inline uint multiprocessor_count(void)
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

/* Makes this work-item's writes to tensor maps visible to the copies that it
 * starts after tensor_map_acquire. */
static inline void tensor_map_release(void)
{
    asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
}
static inline void tensor_map_acquire(__global const uint *map)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(
                     map)
                 : "memory");
}

/* Starts to copy the box (k, row, plane) of the operand that `map`
 * describes. */
static inline void copy_tensor_box(uint to, __global const uint *map, uint k,
                                   uint row, uint plane, uint barrier_at)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile."
                 "mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
                 "[%5];" ::"r"(to),
                 "l"(map), "r"(k), "r"(row), "r"(plane), "r"(barrier_at)
                 : "memory");
}

/* Arrives at a barrier when this work-item's earlier copies have completed. */
static inline void copies_arrive(uint barrier_at)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(
                     barrier_at)
                 : "memory");
}

/* Waits until this work-item's copies have completed. */
static inline void copies_end(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* Makes work-items' writes to local memory visible to bulk copies and wgmma. */
static inline void shared_memory_fence(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- instructions of sm_90a ---- */

/* Changes a warp group's number of registers per work-item to `count`. */
#define SET_REGISTERS(change, count)                                           \
    asm volatile("//@ setmaxnreg." change ".sync.aligned.u32 %0;" ::"n"(count) \
                 : "memory")

/* Elements i to i + 7, or i to i + 31, of the array `d` as operands of asm. */
#define SUM_OPERANDS8(d, i)                                                    \
    "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]),          \
        "+f"(d[(i) + 4]), "+f"(d[(i) + 5]), "+f"(d[(i) + 6]), "+f"(d[(i) + 7])
#define SUM_OPERANDS32(d, i)                                                   \
    SUM_OPERANDS8(d, i), SUM_OPERANDS8(d, (i) + 8),                            \
        SUM_OPERANDS8(d, (i) + 16), SUM_OPERANDS8(d, (i) + 24)
#define REGISTERS32                                                            \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,"   \
    "%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define REGISTERS64                                                            \
    REGISTERS32                                                                \
    ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,"    \
    "%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#if TILE_N == 64
#define WGMMA_COLUMNS "n64"
#define SUM_OPERANDS(d) SUM_OPERANDS32(d, 0)
#define SUM_REGISTERS REGISTERS32
#define INPUT_OPERANDS "%32, %33, %34"
#define PENDING_OPERAND "%32"
#else
#define WGMMA_COLUMNS "n128"
#define SUM_OPERANDS(d) SUM_OPERANDS32(d, 0), SUM_OPERANDS32(d, 32)
#define SUM_REGISTERS REGISTERS64
#define INPUT_OPERANDS "%64, %65, %66"
#define PENDING_OPERAND "%64"
#endif
#if FORMAT == FORMAT_TF32 || FORMAT == FORMAT_3XTF32
#define WGMMA_SHAPE "m64" WGMMA_COLUMNS "k8.f32.tf32.tf32 {"
#define WGMMA_MODIFIERS ", 1, 1;"
#else
#if FORMAT == FORMAT_BF16
#define WGMMA_SHAPE "m64" WGMMA_COLUMNS "k16.f32.bf16.bf16 {"
#else
#define WGMMA_SHAPE "m64" WGMMA_COLUMNS "k16.f32.f16.f16 {"
#endif
/* The last two modifiers are 1 if `a` or `b`, respectively, is MN-major. */
#if A_LAYOUT == LAYOUT_MN_MAJOR && B_LAYOUT == LAYOUT_MN_MAJOR
#define WGMMA_MODIFIERS ", 1, 1, 1, 1;"
#elif A_LAYOUT == LAYOUT_MN_MAJOR
#define WGMMA_MODIFIERS ", 1, 1, 1, 0;"
#elif B_LAYOUT == LAYOUT_MN_MAJOR
#define WGMMA_MODIFIERS ", 1, 1, 0, 1;"
#else
#define WGMMA_MODIFIERS ", 1, 1, 0, 0;"
#endif
#endif

/* Starts d = a * b, or d += a * b if `add` is 1, for 64 rows of `a`, TILE_N
 * columns of `b` and 32 bytes along k. */
#define WGMMA(d, a, b, add)                                                    \
    asm volatile("//@ wgmma.mma_async.sync.aligned." WGMMA_SHAPE SUM_REGISTERS \
                 "}, " INPUT_OPERANDS WGMMA_MODIFIERS                          \
                 : SUM_OPERANDS(d)                                             \
                 : "l"(a), "l"(b), "n"(add)                                    \
                 : "memory")
#define WGMMA_FENCE()                                                          \
    asm volatile("//@ wgmma.fence.sync.aligned;" ::: "memory")
#define WGMMA_COMMIT()                                                         \
    asm volatile("//@ wgmma.commit_group.sync.aligned;" ::: "memory")
/* Waits until at most `pending` committed groups of products are in flight. The
 * values in `d` are only valid when none of its products is in flight. */
#define WGMMA_WAIT(d, pending)                                                 \
    asm volatile("//@ wgmma.wait_group.sync.aligned " PENDING_OPERAND ";"      \
                 : SUM_OPERANDS(d)                                             \
                 : "n"(pending)                                                \
                 : "memory")

#endif

/* Returns the wgmma descriptor of a matrix at a local-memory address. The
 * descriptor's unit is 16 bytes. The lines of the matrix have 128 bytes and are
 * swizzled as pack_operands.cl writes them. Eight lines take 1024 bytes. In an
 * MN-major operand, the next 64 elements of the lines are 8 KiB further on. */
static inline ulong matrix_descriptor(uint address, uint layout)
{
    return (ulong)(address >> 4 & 0x3fff) |
           (ulong)(layout == LAYOUT_MN_MAJOR ? MN_MAJOR_BLOCK >> 4 : 1) << 16 |
           (ulong)64 << 32 | (ulong)1 << 62;
}
/* Distance from one step of k to the next, in the descriptor's unit. */
#define STEP_DISTANCE(layout)                                                  \
    ((layout) == LAYOUT_MN_MAJOR ? 16 * LINE_BYTES >> 4 : 2)

#endif
