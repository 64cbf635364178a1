/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes out[i] = OP(in0[i], in1[i], in2[i]) for each i, with broadcasting.
 *
 * elementwise_contiguous needs operands that are contiguous or have one
 * element. elementwise_strided supports any strides. elementwise_transposed is
 * for inputs that are contiguous along another axis than the output. It copies
 * these inputs through local memory in tiles to coalesce all accesses.
 *
 * In the first two kernels, a work-item computes a vector of four elements if
 * all operands are aligned to vectors. If not, it computes four elements that
 * are GROUP_SIZE apart, and each work-group begins at an output cache line.
 */
#include "common/params.cl"

/* Operand 0 is the output. If bit k of `immediate` is set, operand k is a
 * constant whose bits are value[k]. If bit k of `broadcast` is set, operand k
 * has one element. The parameters of an operator with one input are floats,
 * whose bits are value[2] and value[3].
 * The output begins `misalignment` elements after a cache-line boundary. */
struct contiguous_params {
    uint64_t elements;
    uint32_t immediate, broadcast;
    uint32_t misalignment, reserved;
    uint64_t value[4];
    uint64_t offset[4];
};
PARAMS_SIZE(contiguous_params, 88);

struct strided_params {
    uint64_t items; /* number of vectors if VECTOR is 1, else of elements */
    uint32_t rank, immediate, broadcast, misalignment;
    uint64_t value[4];
    uint64_t offset[4];
    struct fast_divmod space;
    int64_t
        strides[4 * MAX_AXES]; /* strides of operand 0, then operand 1, ... */
};
PARAMS_SIZE(strided_params, 472);

/* Axis 0 is contiguous in the output, axis 1 in transposed inputs. */
struct transposed_params {
    uint64_t columns, rows; /* extents of axis 0 and axis 1 */
    uint64_t tiles_per_row, tiles_per_plane;
    uint32_t rank, immediate, broadcast, reserved; /* broadcast along axis 0 */
    uint64_t value[4];
    uint64_t offset[4];
    int64_t column_strides[4], row_strides[4]; /* strides along axes 0 and 1 */
    struct fast_divmod space; /* extents of axes 2 and higher */
    int64_t strides[4 * MAX_AXES];
};
PARAMS_SIZE(transposed_params, 560);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"
#include "common/operators.cl"

/* The kernel to compile. */
#define CONTIGUOUS 1
#define STRIDED 2
#define TRANSPOSED 3
#ifndef SHAPE
#define SHAPE CONTIGUOUS
/* The operator, its number of inputs, and the element types of all operands. */
#define OP op_add
#define INPUTS 2
#define OUT float
#define IN0 float
#define IN1 float
/* 1 if all operands are accessed as aligned vectors of four elements. */
#define VECTOR 1
/* 1 if OP has a fast path for ordinary inputs (math.cl). */
#define HAS_FAST_PATH 0
#endif
/* Bit k is set if input k is contiguous along axis 1 instead of axis 0. */
#ifndef TRANSPOSED_INPUTS
#define TRANSPOSED_INPUTS 0
#endif
/* Side of a tile, in elements. If VECTOR is 1 and one input is transposed, 64
 * is faster than 32. */
#if VECTOR && (TRANSPOSED_INPUTS & (TRANSPOSED_INPUTS - 1)) == 0
#define TILE 64u
#else
#define TILE 32u
#endif

/* The operator of a copy. It returns its operand, which can have any type. */
#define op_move(x, a, b) (x)

/* Offsets in elements: s0 is for the output, s1 to s3 are for the inputs. */
#if INDEX_64BIT
typedef long4 offsets_t;
#else
typedef int4 offsets_t;
#endif

/* EACH_INPUT(F) expands to F(k) for each input k. */
#if INPUTS == 1
#define INPUT_BUFFERS __global const IN0 *in0
#define APPLY(j) OP((IN0)x0 j, BITS_float(p.value[2]), BITS_float(p.value[3]))
#define EACH_INPUT(F) F(0)
#elif INPUTS == 2
#define INPUT_BUFFERS __global const IN0 *in0, __global const IN1 *in1
#define APPLY(j) OP((IN0)x0 j, (IN1)x1 j)
#define EACH_INPUT(F) F(0) F(1)
#else
#define INPUT_BUFFERS                                                          \
    __global const IN0 *in0, __global const IN1 *in1, __global const IN2 *in2
#define APPLY(j) OP((IN0)x0 j, (IN1)x1 j, (IN2)x2 j)
#define EACH_INPUT(F) F(0) F(1) F(2)
#endif
#define IS_IMMEDIATE(k) (p.immediate >> (k + 1) & 1u)
#define IS_BROADCAST(k) (p.broadcast >> (k + 1) & 1u)
/* Converts bits to an element. */
#define BITS_float(bits) as_float((uint)(bits))
#define BITS_int(bits) ((int)(bits))
#define BITS_long(bits) ((long)(bits))
#define BITS_uchar(bits) ((uchar)(bits))
#define BITS_ushort(bits) ((ushort)(bits))
#define BITS_uint(bits) ((uint)(bits))
#define BITS_ulong(bits) ((ulong)(bits))
#define FROM_BITS(type) CAT(BITS_, type)
#define IMMEDIATE(k) FROM_BITS(CAT(IN, k))(p.value[k + 1])
#define VEC4(type) CAT(type, 4)

/* Declares y, the vector of OP's results for the vectors x0, x1 and x2. If one
 * of the four elements needs OP's slow path, all four use the slow path. */
#if HAS_FAST_PATH
#define NEEDS_SLOW_PATH(j) CAT(OP, _needs_slow_path)(INPUTS_AT(j))
/* pow_simple computes pow with certain constant exponents in few operations. */
#if INPUTS == 1
#define INPUTS_AT(j) x0 j, 0.0f, 0.0f
#define IS_SIMPLE_POWER false
#define SIMPLE_POWER x0
#else
#define INPUTS_AT(j) x0 j, x1 j
#define IS_SIMPLE_POWER (IS_IMMEDIATE(1) && POW_IS_SIMPLE(IMMEDIATE(1)))
#define SIMPLE_POWER pow_simple(x0, IMMEDIATE(1))
#endif
#define FAST(j) CAT(OP, _fast)(INPUTS_AT(j))
#define RESULTS(y)                                                             \
    VEC4(OUT) y;                                                               \
    if (IS_SIMPLE_POWER)                                                       \
        y = SIMPLE_POWER;                                                      \
    else if (NEEDS_SLOW_PATH(.s0) || NEEDS_SLOW_PATH(.s1) ||                   \
             NEEDS_SLOW_PATH(.s2) || NEEDS_SLOW_PATH(.s3))                     \
        y = (VEC4(OUT))(APPLY(.s0), APPLY(.s1), APPLY(.s2), APPLY(.s3));       \
    else                                                                       \
        y = (VEC4(OUT))(FAST(.s0), FAST(.s1), FAST(.s2), FAST(.s3));
#else
#define RESULTS(y)                                                             \
    VEC4(OUT)                                                                  \
    y = (VEC4(OUT))(APPLY(.s0), APPLY(.s1), APPLY(.s2), APPLY(.s3));
#endif

/* Loads four elements of input k from `pointer` on as one vector. */
#define LOAD_VECTOR(k, pointer)                                                \
    (IS_IMMEDIATE(k)   ? (VEC4(CAT(IN, k)))(IMMEDIATE(k))                      \
     : IS_BROADCAST(k) ? (VEC4(CAT(IN, k)))(*(pointer))                        \
                       : *(__global const VEC4(CAT(IN, k)) *)(pointer))

/* Macros that load or store four elements, j = 0 to 3, if CONDITION(j) is true.
 * ELEMENT(k, j) belongs to input k, TARGET(j) to the output. */
#define LOAD_IF(k, j, CONDITION) (CONDITION(j) ? ELEMENT(k, j) : (CAT(IN, k))0)
#define LOAD_VEC4(k, CONDITION)                                                \
    VEC4(CAT(IN, k))                                                           \
    CAT(x, k) = (VEC4(CAT(IN, k)))(                                            \
        LOAD_IF(k, 0, CONDITION), LOAD_IF(k, 1, CONDITION),                    \
        LOAD_IF(k, 2, CONDITION), LOAD_IF(k, 3, CONDITION));
#define LOAD_ALWAYS(k) LOAD_VEC4(k, ALWAYS)
#define LOAD_IN_RANGE(k) LOAD_VEC4(k, IN_RANGE)
#define STORE_IF(j, CONDITION, y)                                              \
    if (CONDITION(j))                                                          \
        TARGET(j) = y.s##j;
#define STORE_VEC4(CONDITION, y)                                               \
    STORE_IF(0, CONDITION, y)                                                  \
    STORE_IF(1, CONDITION, y)                                                  \
    STORE_IF(2, CONDITION, y)                                                  \
    STORE_IF(3, CONDITION, y)
#define ALWAYS(j) true
/* Applies OP to the four elements of each input that LOAD loads. Stores element
 * j of the results if CONDITION(j) is true. */
#define COMPUTE_VEC4(LOAD, CONDITION)                                          \
    EACH_INPUT(LOAD)                                                           \
    RESULTS(z_)                                                                \
    STORE_VEC4(CONDITION, z_)

/* Index of a work-item's first element if its elements are GROUP_SIZE apart. */
#define FIRST_ELEMENT                                                          \
    ((index_t)get_group_id(0) * (4 * GROUP_SIZE) + get_local_id(0) -           \
     p.misalignment)

#if SHAPE == CONTIGUOUS
KERNEL void elementwise_contiguous(__global OUT *out, INPUT_BUFFERS,
                                   const struct contiguous_params p)
{
#if VECTOR
    index_t i = (index_t)get_global_id(0) * 4;
    const uint step = 1;
#else
    index_t i = FIRST_ELEMENT;
    const uint step = GROUP_SIZE;
#endif
    index_t elements = (index_t)p.elements;
#define POINTER(k)                                                             \
    __global const CAT(IN, k) * CAT(from, k) =                                 \
        CAT(in, k) +                                                           \
        ((long)p.offset[k + 1] + (IS_BROADCAST(k) ? 0 : (offset_t)i));
    EACH_INPUT(POINTER)
    __global OUT *to = out + ((long)p.offset[0] + (offset_t)i);
#define IN_RANGE(j) (i + (j)*step < elements)
#define ELEMENT(k, j)                                                          \
    (IS_IMMEDIATE(k) ? IMMEDIATE(k)                                            \
                     : CAT(from, k)[IS_BROADCAST(k) ? 0 : (j)*step])
#define TARGET(j) to[(j)*step]
#define LOAD_AT(k) VEC4(CAT(IN, k)) CAT(x, k) = LOAD_VECTOR(k, CAT(from, k));
    if (i < elements && IN_RANGE(3)) {
#if VECTOR
        EACH_INPUT(LOAD_AT)
        RESULTS(y)
        *(__global VEC4(OUT) *)to = y;
#else
        COMPUTE_VEC4(LOAD_ALWAYS, ALWAYS)
#endif
    } else {
        COMPUTE_VEC4(LOAD_IN_RANGE, IN_RANGE)
    }
}
#endif

/* Moves the offsets of all operands by `coordinate` elements along an axis. */
#define STRIDE(k, axis) ((offset_t)p.strides[(k)*MAX_AXES + (axis)])
#define ADVANCE(at, axis, coordinate)                                          \
    {                                                                          \
        offset_t c_ = (offset_t)(coordinate);                                  \
        at.s0 += c_ * STRIDE(0, axis);                                         \
        at.s1 += c_ * STRIDE(1, axis);                                         \
        at.s2 += INPUTS > 1 ? c_ * STRIDE(2, axis) : 0;                        \
        at.s3 += INPUTS > 2 ? c_ * STRIDE(3, axis) : 0;                        \
    }
/* Declares `at`, the offsets of all operands for element number `index`. */
#define OFFSETS(at, index)                                                     \
    offsets_t at = (offsets_t)(0);                                             \
    {                                                                          \
        index_t left_ = (index);                                               \
        REPEAT (axis_, MAX_AXES) {                                             \
            if (axis_ >= p.rank)                                               \
                continue;                                                      \
            long at_ = (long)left_;                                            \
            if (axis_ + 1 < p.rank)                                            \
                DIVMOD(left_, p.space, axis_, at_);                            \
            ADVANCE(at, axis_, at_)                                            \
        }                                                                      \
    }
#define OFFSETS_UP_TO_3D(at, index)                                            \
    offsets_t at = (offsets_t)(0);                                             \
    {                                                                          \
        index_t left_ = (index);                                               \
        long inner_, outer_ = 0;                                               \
        DIVMOD(left_, p.space, 0, inner_);                                     \
        ADVANCE(at, 0, inner_)                                                 \
        if (p.rank == 3) {                                                     \
            DIVMOD(left_, p.space, 1, outer_);                                 \
            ADVANCE(at, 1, outer_)                                             \
            ADVANCE(at, 2, left_)                                              \
        } else {                                                               \
            ADVANCE(at, 1, left_)                                              \
        }                                                                      \
    }
#define OFFSET_0 s1
#define OFFSET_1 s2
#define OFFSET_2 s3
/* FROM is the address in input k, TO the one in the output, at offsets `at`. */
#define FROM(k, at) (CAT(in, k) + ((long)p.offset[k + 1] + at.CAT(OFFSET_, k)))
#define TO(at) (out + ((long)p.offset[0] + at.s0))

#if SHAPE == STRIDED
KERNEL void elementwise_strided(__global OUT *out, INPUT_BUFFERS,
                                const struct strided_params p)
{
#define IN_RANGE(j) (i + (j)*GROUP_SIZE < items)
#define TARGET(j) *TO(CAT(at, j))
#if VECTOR
    index_t item = (index_t)get_global_id(0);
    if (item >= (index_t)p.items)
        return;
    OFFSETS(at, item)
#define LOAD_AT(k) VEC4(CAT(IN, k)) CAT(x, k) = LOAD_VECTOR(k, FROM(k, at));
    EACH_INPUT(LOAD_AT)
    RESULTS(y)
    *(__global VEC4(OUT) *)TO(at) = y;
#else
    index_t i = FIRST_ELEMENT, items = (index_t)p.items;
#if !INDEX_64BIT
    if (p.rank <= 3) {
        OFFSETS_UP_TO_3D(at0, i)
        OFFSETS_UP_TO_3D(at1, i + GROUP_SIZE)
        OFFSETS_UP_TO_3D(at2, i + 2 * GROUP_SIZE)
        OFFSETS_UP_TO_3D(at3, i + 3 * GROUP_SIZE)
#define ELEMENT(k, j) (IS_IMMEDIATE(k) ? IMMEDIATE(k) : *FROM(k, CAT(at, j)))
        if (i < items && IN_RANGE(3)) {
            COMPUTE_VEC4(LOAD_ALWAYS, ALWAYS)
        } else {
            COMPUTE_VEC4(LOAD_IN_RANGE, IN_RANGE)
        }
        return;
    }
#endif
    _Pragma("unroll 1") for (uint j = 0; j < 4; ++j)
    {
        if (!IN_RANGE(j))
            continue;
        OFFSETS(at0, i + j * GROUP_SIZE)
#define LOAD_SCALAR(k)                                                         \
    VEC4(CAT(IN, k))                                                           \
    CAT(x, k) =                                                                \
        (VEC4(CAT(IN, k)))(IS_IMMEDIATE(k) ? IMMEDIATE(k) : *FROM(k, at0));
        EACH_INPUT(LOAD_SCALAR)
        TARGET(0) = APPLY(.s0);
    }
#endif
}
#endif

#if SHAPE == TRANSPOSED && GROUP_SIZE >= 32 && GROUP_SIZE <= 256
#define IS_TRANSPOSED(k) (TRANSPOSED_INPUTS >> (k)&1u)
#define COLUMN_STRIDE(k) ((offset_t)p.column_strides[k])
#define ROW_STRIDE(k) ((offset_t)p.row_strides[k])
/* Address of element (column, row): AT in input k, TO_AT in the output. */
#define AT(k, column, row)                                                     \
    (FROM(k, base) + ((offset_t)(column)*COLUMN_STRIDE(k + 1) +                \
                      (offset_t)(row)*ROW_STRIDE(k + 1)))
#define TO_AT(column, row)                                                     \
    (TO(base) +                                                                \
     ((offset_t)(column)*COLUMN_STRIDE(0) + (offset_t)(row)*ROW_STRIDE(0)))

KERNEL void elementwise_transposed(__global OUT *out, INPUT_BUFFERS,
                                   const struct transposed_params p)
{
/* The tile of a transposed input, in local memory: tile[row][column]. */
#define DECLARE(k)                                                             \
    __local CAT(IN, k) CAT(tile, k)[IS_TRANSPOSED(k) ? TILE : 1][TILE + 1];
    EACH_INPUT(DECLARE)
    TILE_POSITION(p.tiles_per_row, p.tiles_per_plane, TILE, TILE)
    index_t columns = (index_t)p.columns, rows = (index_t)p.rows;
    OFFSETS(base, plane)
#if VECTOR
    const uint side = TILE / 4;
    uint x = get_local_id(0) % side * 4, y = get_local_id(0) / side;
#define FILL_TILE(k)                                                           \
    if (IS_TRANSPOSED(k))                                                      \
        _Pragma("unroll") for (uint pass = 0; pass < TILE;                     \
                               pass += GROUP_SIZE / side)                      \
        {                                                                      \
            uint j = pass + y;                                                 \
            VEC4(CAT(IN, k)) v = (VEC4(CAT(IN, k)))(0);                        \
            if (column + j < columns && row + x < rows)                        \
                v = *(__global const VEC4(CAT(IN, k)) *)AT(k, column + j,      \
                                                           row + x);           \
            CAT(tile, k)[x][j] = v.s0;                                         \
            CAT(tile, k)[x + 1][j] = v.s1;                                     \
            CAT(tile, k)[x + 2][j] = v.s2;                                     \
            CAT(tile, k)[x + 3][j] = v.s3;                                     \
        }
    EACH_INPUT(FILL_TILE)
    barrier(CLK_LOCAL_MEM_FENCE);
#define LOAD_TILE(k)                                                           \
    __local const CAT(IN, k) * CAT(line, k) =                                  \
        CAT(tile, k)[IS_TRANSPOSED(k) ? j : 0] + x;                            \
    VEC4(CAT(IN, k))                                                           \
    CAT(x, k) = IS_TRANSPOSED(k)                                               \
                    ? (VEC4(CAT(IN, k)))(CAT(line, k)[0], CAT(line, k)[1],     \
                                         CAT(line, k)[2], CAT(line, k)[3])     \
                    : LOAD_VECTOR(k, AT(k, column + x, row + j));
    _Pragma("unroll") for (uint pass = 0; pass < TILE;
                           pass += GROUP_SIZE / side)
    {
        uint j = pass + y;
        if (column + x >= columns || row + j >= rows)
            continue;
        EACH_INPUT(LOAD_TILE)
        RESULTS(z)
        *(__global VEC4(OUT) *)TO_AT(column + x, row + j) = z;
    }
#else
    bool is_complete = column + TILE <= columns && row + TILE <= rows;
    const uint step = GROUP_SIZE / TILE;
    uint x = get_local_id(0) % TILE, first = get_local_id(0) / TILE, y = first;
#define IN_RANGE(j) (row + x < rows && column + y + (j)*step < columns)
#define ELEMENT(k, j) *AT(k, column + y + (j)*step, row + x)
#define FILL_VEC4(k, LOAD)                                                     \
    {                                                                          \
        LOAD(k)                                                                \
        CAT(tile, k)[x][y] = CAT(x, k).s0;                                     \
        CAT(tile, k)[x][y + step] = CAT(x, k).s1;                              \
        CAT(tile, k)[x][y + 2 * step] = CAT(x, k).s2;                          \
        CAT(tile, k)[x][y + 3 * step] = CAT(x, k).s3;                          \
    }
#define FILL_TILE(k)                                                           \
    if (IS_TRANSPOSED(k))                                                      \
        for (y = first; y < TILE; y += 4 * step) {                             \
            if (is_complete)                                                   \
                FILL_VEC4(k, LOAD_ALWAYS)                                      \
            else                                                               \
                FILL_VEC4(k, LOAD_IN_RANGE)                                    \
        }
    EACH_INPUT(FILL_TILE)
#undef IN_RANGE
#undef ELEMENT
    barrier(CLK_LOCAL_MEM_FENCE);
#define IN_RANGE(j) (column + x < columns && row + y + (j)*step < rows)
#define ELEMENT(k, j)                                                          \
    (IS_IMMEDIATE(k)    ? IMMEDIATE(k)                                         \
     : IS_TRANSPOSED(k) ? CAT(tile, k)[IS_TRANSPOSED(k) ? y + (j)*step : 0][x] \
                        : *AT(k, column + x, row + y + (j)*step))
#define TARGET(j) *TO_AT(column + x, row + y + (j)*step)
    for (y = first; y < TILE; y += 4 * step) {
        if (is_complete) {
            COMPUTE_VEC4(LOAD_ALWAYS, ALWAYS)
        } else {
            COMPUTE_VEC4(LOAD_IN_RANGE, IN_RANGE)
        }
    }
#endif
}
#endif

#endif
