/* SPDX-License-Identifier: Apache-2.0 */
/* Compile-time options and types that all kernels share, and the offsets of
 * elements in tensors of up to eight axes.
 *
 * All tested compilers correctly compile kernels that follow these rules:
 * - The parameters of a kernel are one struct, passed by value, without padding
 *   at its end, which rusticl would ignore. Its arrays have one dimension.
 * - A work-item's ID is never the index of an array in this struct or of a
 *   private array, because llvmpipe then reads another element or crashes.
 * - An int converted to long is not compared with a constant, because rusticl
 *   folds this comparison incorrectly. rusticl compiles clamp, max and unsigned
 *   comparisons correctly.
 * - A function with a __local parameter is INLINE. In a function that is not
 *   inlined, PoCL 3.1 can make work-groups that run in parallel use the same
 *   local memory.
 * - A function with a pointer to the parameters is INLINE. If it is not
 *   inlined, llvmpipe reads wrong strides. */
#ifndef TANDEM_INDEXING_CL
#define TANDEM_INDEXING_CL

#include "common/params.cl"

/* The compiler fuses a product and a sum only where the source calls fma. */
#pragma OPENCL FP_CONTRACT OFF

/* A program contains one kernel: the compiler gets the macro BUILD_<kernel>. A
 * file with several kernels has each of them between #ifdef and #endif, because
 * NVIDIA's compiler takes up to four times as long for all kernels of a file.
 * Functions that a program does not use cost only 2% of the time. */

/* Number of work-items in a work-group, a power of two. */
#ifndef GROUP_SIZE
#define GROUP_SIZE 256
#endif
/* How neighbouring work-items exchange values: 0 means through local memory, 1
 * means by shuffles within NVIDIA's warps, 2 means by shuffles of
 * cl_intel_subgroups. */
#ifndef SHUFFLE
#define SHUFFLE 0
#endif
#ifndef IS_CPU
#define IS_CPU 0
#endif
/* 1 for 64-bit indices and offsets, for tensors of at least 2^31 elements. */
#ifndef INDEX_64BIT
#define INDEX_64BIT 0
#endif

/* index_t holds the index of an element, offset_t an offset in elements. */
#if INDEX_64BIT
typedef ulong index_t;
typedef long offset_t;
#else
typedef uint index_t;
typedef int offset_t;
#endif

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
/* An unrolled loop over i from 0 to count - 1. */
#define REPEAT(i, count)                                                       \
    _Pragma("unroll") for (uint i = 0; i < (count); ++i)
/* A loop over parts of an array that is in registers, which must have constant
 * indices. FOR_EACH_PART(part, count) begins a loop that is not unrolled. In
 * it, REPEAT_PART(part, i, count) executes a statement with i as a constant
 * that equals `part`. Only this statement is repeated, because compilers need
 * long for long code. (They would replace i if it were compared with `part`.)
 */
#define FOR_EACH_PART(part, count)                                             \
    _Pragma("unroll 1") for (uint part = 0, part##_bit = 1; part < (count);    \
                             ++part, part##_bit <<= 1)
#define REPEAT_PART(part, i, count)                                            \
    REPEAT (i, count)                                                          \
        if (part##_bit >> i & 1u)
/* Forces inlining. Without this attribute, Intel's compiler does not inline a
 * function that several kernels of a file use, and each call needs a stack. */
#define INLINE __attribute__((always_inline)) static inline
#define KERNEL __kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1)))

static inline uint fast_divide(uint n, uint multiplier, uint shift)
{
    return (mul_hi(n, multiplier) + n) >> shift;
}

/* Divides index by the extent of an axis. Sets coordinate to the remainder. */
#if INDEX_64BIT
#define DIVMOD(index, space, axis, coordinate)                                 \
    do {                                                                       \
        ulong rest_ = (index) / (space).extent[axis];                          \
        coordinate = (long)((index) - rest_ * (space).extent[axis]);           \
        index = rest_;                                                         \
    } while (0)
#else
#define DIVMOD(index, space, axis, coordinate)                                 \
    do {                                                                       \
        uint rest_ =                                                           \
            fast_divide(index, (space).multiplier[axis], (space).shift[axis]); \
        coordinate = (long)((index)-rest_ * (uint)(space).extent[axis]);       \
        index = rest_;                                                         \
    } while (0)
#endif

/* Adds the offset of element number `start` of a tensor to `offset`. */
#define ADD_OFFSET(offset, start, space, rank, strides)                        \
    ADD_OFFSET_LOOP("unroll", offset, start, space, rank, strides)
/* Like ADD_OFFSET, for code that rarely runs. On NVIDIA, the loop stays rolled,
 * because the compiler would hoist its constants into code that always runs.
 * Elsewhere, it is unrolled to keep indexed arrays in registers. */
#if SHUFFLE == 1
#define ADD_OFFSET_ROLLED(offset, start, space, rank, strides)                 \
    ADD_OFFSET_LOOP("unroll 1", offset, start, space, rank, strides)
#else
#define ADD_OFFSET_ROLLED ADD_OFFSET
#endif
#define ADD_OFFSET_LOOP(loop, offset, start, space, rank, strides)             \
    do {                                                                       \
        index_t left_ = (start);                                               \
        if ((rank) == 1) {                                                     \
            offset += (long)left_ * (strides)[0];                              \
            break;                                                             \
        }                                                                      \
        _Pragma(loop) for (uint axis_ = 0; axis_ < MAX_AXES; ++axis_)          \
        {                                                                      \
            if (axis_ >= (rank))                                               \
                continue;                                                      \
            long at_ = (long)left_;                                            \
            if (axis_ + 1 < (rank))                                            \
                DIVMOD(left_, space, axis_, at_);                              \
            offset += at_ * (strides)[axis_];                                  \
        }                                                                      \
    } while (0)

/* The plane, and the first column and row in this plane, of a work-group's
 * tile. */
struct tile_position {
    index_t plane, column, row;
};

/* Tiles are numbered row by row in each plane. A tile count of 0 (no tiles) is
 * raised to 1, because a compiler may hoist the division, and CPUs trap on a
 * division by 0. */
static inline struct tile_position tile_position(ulong tiles_per_row,
                                                 ulong tiles_per_plane,
                                                 uint tile_columns,
                                                 uint tile_rows)
{
    const index_t per_row = (index_t)max(tiles_per_row, (ulong)1);
    const index_t per_plane = (index_t)max(tiles_per_plane, (ulong)1);
    const index_t tile = (index_t)get_group_id(0);
    struct tile_position at;
    at.plane = tile / per_plane;
    const index_t in_plane = tile - at.plane * per_plane;
    const index_t tile_row = in_plane / per_row;
    at.column = (in_plane - tile_row * per_row) * tile_columns;
    at.row = tile_row * tile_rows;
    return at;
}

/* Tells NVIDIA's compiler that `x` is rarely true. Other compilers get no hint,
 * because a hint makes PoCL 3.1 lose values that are live across barriers. */
#if SHUFFLE == 1
#define UNLIKELY(x) __builtin_expect((x), 0)
#else
#define UNLIKELY(x) (x)
#endif

#endif
