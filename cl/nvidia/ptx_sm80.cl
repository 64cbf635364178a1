/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor-core instructions of NVIDIA GPUs from compute capability 8.0 on.
 * Addresses are byte addresses in local memory. All work-items of a warp must
 * call these functions together. */
#ifndef TANDEM_PTX_SM80_CL
#define TANDEM_PTX_SM80_CL

#include "nvidia/operand_formats.cl"

#ifdef EMULATED
/* The emulator that the tests use defines these functions. */
uint address_of(__local const void *at);
void copy_async(uint to, __global const void *from, uint bytes);
void copy_word_async(uint to, __global const void *from, uint bytes);
void copies_commit(void);
void load_matrices(uint *out, uint from);
void load_matrices_transposed(uint *out, uint from);
void emulated_mma(uint format, float *sum, const uint *a, const uint *b,
                  uint add);
#define mma_multiply(sum, a, b) emulated_mma(FORMAT, sum, a, b, 0)
#define mma_accumulate(sum, a, b) emulated_mma(FORMAT, sum, a, b, 1)
#define mma_bf16_multiply(sum, a, b) emulated_mma(FORMAT_BF16, sum, a, b, 0)
#define mma_bf16_accumulate(sum, a, b) emulated_mma(FORMAT_BF16, sum, a, b, 1)
uint bf16_pair(float low, float high);
float shuffle_xor(float x, uint mask);
#define warp_shuffle_xor shuffle_xor
uint load_word(uint from);
void load_2_words(uint *out, uint from);
void load_4_words(uint *out, uint from);
#define copies_wait(pending) barrier(CLK_LOCAL_MEM_FENCE)

#else
static inline uint address_of(__local const void *at)
{
    return (uint)(ulong)at;
}

/* Starts to copy `bytes` bytes. The copy is padded with zeros to 16 bytes. */
static inline void copy_async(uint to, __global const void *from, uint bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from), "r"(bytes)
                 : "memory");
}

/* The same for 4 bytes. */
static inline void copy_word_async(uint to, __global const void *from,
                                   uint bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to),
                 "l"(from), "r"(bytes)
                 : "memory");
}

static inline void copies_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most `pending` copy groups per work-item are in flight. */
#define copies_wait(pending)                                                   \
    do {                                                                       \
        asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");     \
        barrier(CLK_LOCAL_MEM_FENCE);                                          \
    } while (0)

static inline uint load_word(uint from)
{
    uint out;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(out) : "r"(from) : "memory");
    return out;
}

static inline void load_2_words(uint *out, uint from)
{
    asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];"
                 : "=r"(out[0]), "=r"(out[1])
                 : "r"(from)
                 : "memory");
}

static inline void load_4_words(uint *out, uint from)
{
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(from)
                 : "memory");
}

/* Loads four blocks of 8 lines by 16 bytes. Eight work-items pass the addresses
 * of one block's lines. From each block, a work-item gets the four bytes of
 * line lane / 4 that begin at byte lane % 4 * 4. */
static inline void load_matrices(uint *out, uint from)
{
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
        : "r"(from)
        : "memory");
}

/* Like load_matrices, but transposes blocks of 8 x 8 two-byte elements. */
static inline void load_matrices_transposed(uint *out, uint from)
{
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
        : "r"(from)
        : "memory");
}

#if FORMAT == FORMAT_TF32
#define MMA "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
#elif FORMAT == FORMAT_BF16
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
#else
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
#endif

/* mma_multiply computes sum = a * b, and mma_accumulate sum += a * b, for 16
 * rows of `a`, 8 columns of `b` and 32 bytes along k. */
static inline void mma_multiply(float *sum, const uint *a, const uint *b)
{
    asm(MMA "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),
          "f"(0.0f));
}
static inline void mma_accumulate(float *sum, const uint *a, const uint *b)
{
    asm(MMA "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Returns the value of x in work-item `lane ^ mask` of the warp. */
static inline float warp_shuffle_xor(float x, uint mask)
{
    float out;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=f"(out)
                 : "f"(x), "r"(mask));
    return out;
}

/* Rounds two numbers to bf16. `low` is in the lower half of the result. */
static inline uint bf16_pair(float low, float high)
{
    uint out;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
    return out;
}

/* Like mma_multiply and mma_accumulate, for pairs of bf16 numbers. */
#define MMA_BF16 "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
static inline void mma_bf16_multiply(float *sum, const uint *a, const uint *b)
{
    asm(MMA_BF16 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),
          "f"(0.0f));
}
static inline void mma_bf16_accumulate(float *sum, const uint *a,
                                       const uint *b)
{
    asm(MMA_BF16 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

#endif
