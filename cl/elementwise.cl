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

/* Operand 0 is the output, operand k + 1 is input k. If bit k of `immediate` is
 * set, operand k is a constant whose bits are value[k]. If bit k of `broadcast`
 * is set, operand k has one element, or in elementwise_transposed one element
 * along axis 0. The parameters of an operator with one input are floats, whose
 * bits are value[2] and value[3]. */
struct elementwise_operands {
    uint64_t value[4];
    uint64_t offset[4]; /* of the first element in its buffer */
    uint32_t immediate, broadcast;
};
PARAMS_SIZE(elementwise_operands, 72);

/* The output begins `misalignment` elements after a cache-line boundary. */
struct contiguous_params {
    struct elementwise_operands operands;
    uint64_t elements;
    uint32_t misalignment, reserved;
};
PARAMS_SIZE(contiguous_params, 88);

struct strided_params {
    struct elementwise_operands operands;
    uint64_t items; /* number of vectors if VECTOR is 1, else of elements */
    uint32_t rank, misalignment;
    struct fast_divmod space;
    int64_t
        strides[4 * MAX_AXES]; /* strides of operand 0, then operand 1, ... */
};
PARAMS_SIZE(strided_params, 472);

/* Axis 0 is contiguous in the output, axis 1 in transposed inputs. */
struct transposed_params {
    struct elementwise_operands operands;
    uint64_t columns, rows; /* extents of axis 0 and axis 1 */
    uint64_t tiles_per_row, tiles_per_plane;
    uint32_t rank, reserved;
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

/* The operator of a copy. Its operand can have any type. */
static inline IN0 op_move(IN0 x, float a, float b)
{
    return x;
}

#define VEC4(type) CAT(type, 4)
typedef VEC4(OUT) out_vec4_t;
/* FOR_INPUTS(a, b, c) is a list of the first INPUTS arguments. */
#if INPUTS == 1
#define FOR_INPUTS(a, b, c) a
#elif INPUTS == 2
#define FOR_INPUTS(a, b, c) a, b
#else
#define FOR_INPUTS(a, b, c) a, b, c
#endif
#define INPUT_BUFFERS                                                          \
    FOR_INPUTS(__global const IN0 *in0, __global const IN1 *in1,               \
               __global const IN2 *in2)

/* A pointer into the buffer of each operand. */
struct pointers {
    __global OUT *out;
    __global const IN0 *in0;
#if INPUTS > 1
    __global const IN1 *in1;
#endif
#if INPUTS > 2
    __global const IN2 *in2;
#endif
};

/* Offsets in elements, one for each operand. */
struct offsets {
    offset_t out, in0, in1, in2;
};
#if INDEX_64BIT
typedef long4 offset4_t;
#else
typedef int4 offset4_t;
#endif
/* The offsets of a work-item's four elements in each operand. */
struct offsets4 {
    offset4_t out, in0, in1, in2;
};
#define ZERO_TO_THREE ((offset4_t)(0, 1, 2, 3))

/* Four elements of each input. */
struct values {
    VEC4(IN0) x0;
#if INPUTS > 1
    VEC4(IN1) x1;
#endif
#if INPUTS > 2
    VEC4(IN2) x2;
#endif
};

/* ---- constants instead of inputs, and inputs with one element ---- */

/* Converts bits to an element. */
#define BITS_float(bits) as_float((uint)(bits))
#define BITS_int(bits) ((int)(bits))
#define BITS_long(bits) ((long)(bits))
#define BITS_uchar(bits) ((uchar)(bits))
#define BITS_ushort(bits) ((ushort)(bits))
#define BITS_uint(bits) ((uint)(bits))
#define BITS_ulong(bits) ((ulong)(bits))
#define FROM_BITS(type, bits) CAT(BITS_, type)(bits)

#define IS_IMMEDIATE(k, operands) ((operands)->immediate >> ((k) + 1) & 1u)
#define IS_BROADCAST(k, operands) ((operands)->broadcast >> ((k) + 1) & 1u)
/* The constant that replaces input k. */
#define IMMEDIATE(k, operands) FROM_BITS(CAT(IN, k), (operands)->value[(k) + 1])

/* ---- the operator ---- */

/* The arguments of OP for element j (s0 to s3) of x, a pointer to struct
 * values. */
#if INPUTS == 1
#define ARGUMENTS(x, j, operands)                                              \
    (x)->x0.j, FROM_BITS(float, (operands)->value[2]),                         \
        FROM_BITS(float, (operands)->value[3])
#else
#define ARGUMENTS(x, j, operands) FOR_INPUTS((x)->x0.j, (x)->x1.j, (x)->x2.j)
#endif

#if HAS_FAST_PATH
#define NEEDS_SLOW_PATH CAT(OP, _needs_slow_path)
#define FAST CAT(OP, _fast)
#endif

/* Returns OP for four elements. If one of them needs OP's slow path, all four
 * use the slow path. */
INLINE out_vec4_t results(const struct values *x,
                          const struct elementwise_operands *operands)
{
#if HAS_FAST_PATH
#if INPUTS == 2
    /* OP is op_pow, the only operator of two inputs with a fast path. */
    if (IS_IMMEDIATE(1, operands) && POW_IS_SIMPLE(IMMEDIATE(1, operands)))
        return pow_simple(x->x0, IMMEDIATE(1, operands));
#endif
    if (!NEEDS_SLOW_PATH(ARGUMENTS(x, s0, operands)) &&
        !NEEDS_SLOW_PATH(ARGUMENTS(x, s1, operands)) &&
        !NEEDS_SLOW_PATH(ARGUMENTS(x, s2, operands)) &&
        !NEEDS_SLOW_PATH(ARGUMENTS(x, s3, operands)))
        return (out_vec4_t)(FAST(ARGUMENTS(x, s0, operands)),
                            FAST(ARGUMENTS(x, s1, operands)),
                            FAST(ARGUMENTS(x, s2, operands)),
                            FAST(ARGUMENTS(x, s3, operands)));
#endif
    return (out_vec4_t)(OP(ARGUMENTS(x, s0, operands)),
                        OP(ARGUMENTS(x, s1, operands)),
                        OP(ARGUMENTS(x, s2, operands)),
                        OP(ARGUMENTS(x, s3, operands)));
}

/* ---- loading and storing ---- */

/* Moves pointers from the start of the buffers to the elements at `offsets`. */
INLINE void pointers_set(struct pointers *at, const struct offsets *offsets,
                         const struct elementwise_operands *operands)
{
    at->out += (long)operands->offset[0] + offsets->out;
    at->in0 += (long)operands->offset[1] + offsets->in0;
#if INPUTS > 1
    at->in1 += (long)operands->offset[2] + offsets->in1;
#endif
#if INPUTS > 2
    at->in2 += (long)operands->offset[3] + offsets->in2;
#endif
}

/* The aligned vector of input k at `from`. */
#define LOAD_VEC4(k, from, operands)                                           \
    (IS_IMMEDIATE(k, operands)   ? (VEC4(CAT(IN, k)))(IMMEDIATE(k, operands))  \
     : IS_BROADCAST(k, operands) ? (VEC4(CAT(IN, k)))(*(from))                 \
                                 : *(__global const VEC4(CAT(IN, k)) *)(from))

INLINE struct values
values_load_vec4(const struct pointers *at,
                 const struct elementwise_operands *operands)
{
    struct values x;
    x.x0 = LOAD_VEC4(0, at->in0, operands);
#if INPUTS > 1
    x.x1 = LOAD_VEC4(1, at->in1, operands);
#endif
#if INPUTS > 2
    x.x2 = LOAD_VEC4(2, at->in2, operands);
#endif
    return x;
}

INLINE void store_vec4(const struct pointers *at, out_vec4_t y)
{
    *(__global out_vec4_t *)at->out = y;
}

/* At the end of the output, some of a work-item's four elements do not exist.
 * In the argument `existing`, bit j is set if element j exists. */
#define ALL_EXIST 0xfu
#define EXISTS(j, existing) (((existing) >> (j)&1u) != 0)

/* Returns which of the elements first, first + step, ... are below `end`. */
INLINE uint elements_existing(index_t first, index_t step, index_t end)
{
    return (uint)(first < end) | (uint)(first + step < end) << 1 |
           (uint)(first + 2 * step < end) << 2 |
           (uint)(first + 3 * step < end) << 3;
}

/* Element j of input k at `from`, or 0 if it does not exist. */
#define LOAD(k, from, j, existing, operands)                                   \
    (!EXISTS(j, existing)        ? (CAT(IN, k))0                               \
     : IS_IMMEDIATE(k, operands) ? IMMEDIATE(k, operands)                      \
                                 : *(from))
#define LOAD4(k, from, offsets, existing, operands)                            \
    (VEC4(CAT(IN, k)))(LOAD(k, (from) + (offsets).s0, 0, existing, operands),  \
                       LOAD(k, (from) + (offsets).s1, 1, existing, operands),  \
                       LOAD(k, (from) + (offsets).s2, 2, existing, operands),  \
                       LOAD(k, (from) + (offsets).s3, 3, existing, operands))

/* Loads the four elements at offsets from the pointers `at`. */
INLINE struct values values_load(const struct pointers *at,
                                 const struct offsets4 *offsets, uint existing,
                                 const struct elementwise_operands *operands)
{
    struct values x;
    x.x0 = LOAD4(0, at->in0, offsets->in0, existing, operands);
#if INPUTS > 1
    x.x1 = LOAD4(1, at->in1, offsets->in1, existing, operands);
#endif
#if INPUTS > 2
    x.x2 = LOAD4(2, at->in2, offsets->in2, existing, operands);
#endif
    return x;
}

INLINE void results_store(const struct pointers *at,
                          const struct offsets4 *offsets, uint existing,
                          out_vec4_t y)
{
    if (EXISTS(0, existing))
        at->out[offsets->out.s0] = y.s0;
    if (EXISTS(1, existing))
        at->out[offsets->out.s1] = y.s1;
    if (EXISTS(2, existing))
        at->out[offsets->out.s2] = y.s2;
    if (EXISTS(3, existing))
        at->out[offsets->out.s3] = y.s3;
}

INLINE void elements_compute(const struct pointers *at,
                             const struct offsets4 *offsets, uint existing,
                             const struct elementwise_operands *operands)
{
    const struct values x = values_load(at, offsets, existing, operands);
    results_store(at, offsets, existing, results(&x, operands));
}

/* Returns the index of element 0 if the elements are GROUP_SIZE apart. The
 * subtraction can wrap around: no element has such a large index. */
INLINE index_t first_element(uint misalignment)
{
    return (index_t)get_group_id(0) * (4 * GROUP_SIZE) + get_local_id(0) -
           misalignment;
}

/* ---- contiguous operands ---- */

#if SHAPE == CONTIGUOUS
/* Moves the pointers by `distance` elements, except to single elements. */
INLINE void pointers_advance(struct pointers *at, offset_t distance,
                             const struct elementwise_operands *operands)
{
    at->out += distance;
    at->in0 += IS_BROADCAST(0, operands) ? 0 : distance;
#if INPUTS > 1
    at->in1 += IS_BROADCAST(1, operands) ? 0 : distance;
#endif
#if INPUTS > 2
    at->in2 += IS_BROADCAST(2, operands) ? 0 : distance;
#endif
}

KERNEL void elementwise_contiguous(__global OUT *out, INPUT_BUFFERS,
                                   const struct contiguous_params p)
{
    const struct offsets none = {0, 0, 0, 0};
    const index_t elements = (index_t)p.elements;
#if VECTOR
    const index_t i = (index_t)get_global_id(0) * 4;
    const uint step = 1;
#else
    const index_t i = first_element(p.misalignment);
    const uint step = GROUP_SIZE;
#endif
    struct pointers at = {out, FOR_INPUTS(in0, in1, in2)};
    pointers_set(&at, &none, &p.operands);
    pointers_advance(&at, (offset_t)i, &p.operands);
    const offset4_t steps = (offset_t)step * ZERO_TO_THREE;
    const struct offsets4 offsets = {
        steps, IS_BROADCAST(0, &p.operands) ? (offset4_t)(0) : steps,
        IS_BROADCAST(1, &p.operands) ? (offset4_t)(0) : steps,
        IS_BROADCAST(2, &p.operands) ? (offset4_t)(0) : steps};
    if (i < elements && i + 3 * step < elements) {
#if VECTOR
        const struct values x = values_load_vec4(&at, &p.operands);
        store_vec4(&at, results(&x, &p.operands));
#else
        elements_compute(&at, &offsets, ALL_EXIST, &p.operands);
#endif
    } else {
        elements_compute(&at, &offsets, elements_existing(i, step, elements),
                         &p.operands);
    }
}
#endif

/* ---- operands with any strides ---- */

/* Moves `at` by `coordinate` elements along an axis. strides[axis] is the
 * stride of the output, strides[MAX_AXES + axis] that of input 0, and so on. */
INLINE void offsets_move(struct offsets *at, uint axis, long coordinate,
                         const long *strides)
{
    const offset_t c = (offset_t)coordinate;
    at->out += c * (offset_t)strides[axis];
    at->in0 += c * (offset_t)strides[MAX_AXES + axis];
    at->in1 += INPUTS > 1 ? c * (offset_t)strides[2 * MAX_AXES + axis] : 0;
    at->in2 += INPUTS > 2 ? c * (offset_t)strides[3 * MAX_AXES + axis] : 0;
}

/* Sets `at` to the offsets of element number `index` in a space of `rank` axes.
 */
INLINE void offsets_set(struct offsets *at, index_t index, uint rank,
                        const struct fast_divmod *space, const long *strides)
{
    at->out = at->in0 = at->in1 = at->in2 = 0;
    REPEAT (axis, MAX_AXES) {
        if (axis >= rank)
            continue;
        long coordinate = (long)index;
        if (axis + 1 < rank)
            DIVMOD(index, *space, axis, coordinate);
        offsets_move(at, axis, coordinate, strides);
    }
}

#if SHAPE == STRIDED
#if !INDEX_64BIT
/* Does the same as offsets_move for four elements. */
INLINE void offsets4_move(struct offsets4 *at, uint axis, int4 coordinate,
                          const long *strides)
{
    at->out += coordinate * (int)strides[axis];
    at->in0 += coordinate * (int)strides[MAX_AXES + axis];
    at->in1 += INPUTS > 1 ? coordinate * (int)strides[2 * MAX_AXES + axis] : 0;
    at->in2 += INPUTS > 2 ? coordinate * (int)strides[3 * MAX_AXES + axis] : 0;
}

/* Divides `index` by the extent of an axis and returns the remainder. */
INLINE int4 divmod4(uint4 *index, const struct fast_divmod *space, uint axis)
{
    const uint4 n = *index;
    *index =
        (mul_hi(n, (uint4)(space->multiplier[axis])) + n) >> space->shift[axis];
    return as_int4(n - *index * (uint)space->extent[axis]);
}

/* Does the same as offsets_set for four elements and a rank of at most 3. */
INLINE void offsets4_set(struct offsets4 *at, uint4 index, uint rank,
                         const struct fast_divmod *space, const long *strides)
{
    at->out = at->in0 = at->in1 = at->in2 = (int4)(0);
    offsets4_move(at, 0, divmod4(&index, space, 0), strides);
    if (rank == 3) {
        offsets4_move(at, 1, divmod4(&index, space, 1), strides);
        offsets4_move(at, 2, as_int4(index), strides);
    } else {
        offsets4_move(at, 1, as_int4(index), strides);
    }
}
#endif

KERNEL void elementwise_strided(__global OUT *out, INPUT_BUFFERS,
                                const struct strided_params p)
{
    const index_t items = (index_t)p.items;
    struct pointers at = {out, FOR_INPUTS(in0, in1, in2)};
    struct offsets offsets = {0, 0, 0, 0};
#if VECTOR
    const index_t item = (index_t)get_global_id(0);
    if (item >= items)
        return;
    offsets_set(&offsets, item, p.rank, &p.space, p.strides);
    pointers_set(&at, &offsets, &p.operands);
    const struct values x = values_load_vec4(&at, &p.operands);
    store_vec4(&at, results(&x, &p.operands));
#else
    const uint step = GROUP_SIZE;
    const index_t i = first_element(p.misalignment);
    struct offsets4 four = {0, 0, 0, 0};
#if !INDEX_64BIT
    if (p.rank <= 3) {
        pointers_set(&at, &offsets, &p.operands);
        offsets4_set(&four, i + step * (uint4)(0, 1, 2, 3), p.rank,
                     &p.space, p.strides);
        if (i < items && i + 3 * step < items)
            elements_compute(&at, &four, ALL_EXIST, &p.operands);
        else
            elements_compute(&at, &four, elements_existing(i, step, items),
                             &p.operands);
        return;
    }
#endif
    /* The code for eight axes is long, so elements are computed one by one. The
     * offsets in `four` are 0: all four values are those of this element. */
    _Pragma("unroll 1") for (uint j = 0; j < 4; ++j)
    {
        if (i + j * step >= items)
            continue;
        struct pointers element = at;
        offsets_set(&offsets, i + j * step, p.rank, &p.space, p.strides);
        pointers_set(&element, &offsets, &p.operands);
        const struct values x =
            values_load(&element, &four, ALL_EXIST, &p.operands);
        *element.out = OP(ARGUMENTS(&x, s0, &p.operands));
    }
#endif
}
#endif

/* ---- inputs that are contiguous along another axis than the output ---- */

#if SHAPE == TRANSPOSED && GROUP_SIZE >= 32 && GROUP_SIZE <= 256
/* Side of a tile, in elements. If VECTOR is 1 and one input is transposed, 64
 * is faster than 32. */
#if VECTOR && (TRANSPOSED_INPUTS & (TRANSPOSED_INPUTS - 1)) == 0
#define TILE 64u
#else
#define TILE 32u
#endif
#define IS_TRANSPOSED(k) ((TRANSPOSED_INPUTS >> (k)&1u) != 0)
/* Only the tiles of transposed inputs are used. The others have one row,
 * because OpenCL C has no empty arrays. */
#define TILE_ROWS(k) (IS_TRANSPOSED(k) ? TILE : 1)

/* If input k is transposed, stores the vector x in its tile. The next element
 * of x belongs row_step rows and column_step columns further in the tile. */
#define TILE_STORE(k, tile, row, row_step, column, column_step, x)             \
    if (IS_TRANSPOSED(k)) {                                                    \
        const VEC4(CAT(IN, k)) x_ = (x);                                       \
        (tile)[row][column] = x_.s0;                                           \
        (tile)[(row) + (row_step)][(column) + (column_step)] = x_.s1;          \
        (tile)[(row) + 2 * (row_step)][(column) + 2 * (column_step)] = x_.s2;  \
        (tile)[(row) + 3 * (row_step)][(column) + 3 * (column_step)] = x_.s3;  \
    }
/* Four elements of input k's tile, or `other` if input k is not transposed. */
#define TILE_ELEMENT(k, tile, row, column)                                     \
    (tile)[IS_TRANSPOSED(k) ? (row) : 0][column]
#define TILE_LOAD(k, tile, row, row_step, column, column_step, other)          \
    (IS_TRANSPOSED(k)                                                          \
         ? (VEC4(CAT(IN, k)))(TILE_ELEMENT(k, tile, row, column),              \
                              TILE_ELEMENT(k, tile, (row) + (row_step),        \
                                           (column) + (column_step)),          \
                              TILE_ELEMENT(k, tile, (row) + 2 * (row_step),    \
                                           (column) + 2 * (column_step)),      \
                              TILE_ELEMENT(k, tile, (row) + 3 * (row_step),    \
                                           (column) + 3 * (column_step)))      \
         : (other))
/* The vector of input k at `from` if it exists, else zeros. */
#define LOAD_VEC4_IF(exists, k, from)                                          \
    ((exists) ? *(__global const VEC4(CAT(IN, k)) *)(from)                     \
              : (VEC4(CAT(IN, k)))(0))

/* Moves pointers from the start of the buffers to an element of the plane that
 * begins at `plane`. */
INLINE void pointers_to_plane(struct pointers *at, const struct offsets *plane,
                              index_t column, index_t row,
                              const struct transposed_params *p)
{
    const offset_t x = (offset_t)column, y = (offset_t)row;
    struct offsets offsets = *plane;
    offsets.out +=
        x * (offset_t)p->column_strides[0] + y * (offset_t)p->row_strides[0];
    offsets.in0 +=
        x * (offset_t)p->column_strides[1] + y * (offset_t)p->row_strides[1];
    offsets.in1 +=
        x * (offset_t)p->column_strides[2] + y * (offset_t)p->row_strides[2];
    offsets.in2 +=
        x * (offset_t)p->column_strides[3] + y * (offset_t)p->row_strides[3];
    pointers_set(at, &offsets, &p->operands);
}

/* Returns the offsets of four elements, whose distance is `step` elements along
 * the axis with these strides, from the first of them. */
INLINE struct offsets4 offsets_along(const long *strides, uint step)
{
    struct offsets4 offsets;
    offsets.out = (offset_t)step * (offset_t)strides[0] * ZERO_TO_THREE;
    offsets.in0 = (offset_t)step * (offset_t)strides[1] * ZERO_TO_THREE;
    offsets.in1 = (offset_t)step * (offset_t)strides[2] * ZERO_TO_THREE;
    offsets.in2 = (offset_t)step * (offset_t)strides[3] * ZERO_TO_THREE;
    return offsets;
}

#if VECTOR
KERNEL void elementwise_transposed(__global OUT *out, INPUT_BUFFERS,
                                   const struct transposed_params p)
{
    __local IN0 tile0[TILE_ROWS(0)][TILE + 1];
#if INPUTS > 1
    __local IN1 tile1[TILE_ROWS(1)][TILE + 1];
#endif
#if INPUTS > 2
    __local IN2 tile2[TILE_ROWS(2)][TILE + 1];
#endif
    const struct pointers buffers = {out, FOR_INPUTS(in0, in1, in2)};
    const index_t columns = (index_t)p.columns, rows = (index_t)p.rows;
    /* The plane, column and row of the first element of the tile. */
    const struct tile_position tile =
        tile_position(p.tiles_per_row, p.tiles_per_plane, TILE, TILE);
    struct offsets plane;
    offsets_set(&plane, tile.plane, p.rank, &p.space, p.strides);
    /* The work-item's vectors in the tile begin in row or column x. They are in
     * every (GROUP_SIZE / side)th row or column from y on. */
    const uint side = TILE / 4;
    const uint x = get_local_id(0) % side * 4, y = get_local_id(0) / side;
    _Pragma("unroll") for (uint pass = 0; pass < TILE;
                           pass += GROUP_SIZE / side)
    {
        const index_t column = tile.column + (pass + y), row = tile.row + x;
        const bool exists = column < columns && row < rows;
        struct pointers at = buffers;
        pointers_to_plane(&at, &plane, column, row, &p);
        TILE_STORE(0, tile0, x, 1, pass + y, 0, LOAD_VEC4_IF(exists, 0, at.in0))
#if INPUTS > 1
        TILE_STORE(1, tile1, x, 1, pass + y, 0, LOAD_VEC4_IF(exists, 1, at.in1))
#endif
#if INPUTS > 2
        TILE_STORE(2, tile2, x, 1, pass + y, 0, LOAD_VEC4_IF(exists, 2, at.in2))
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    _Pragma("unroll") for (uint pass = 0; pass < TILE;
                           pass += GROUP_SIZE / side)
    {
        const index_t column = tile.column + x, row = tile.row + (pass + y);
        if (column >= columns || row >= rows)
            continue;
        struct pointers at = buffers;
        pointers_to_plane(&at, &plane, column, row, &p);
        struct values v;
        v.x0 = TILE_LOAD(0, tile0, pass + y, 0, x, 1,
                         LOAD_VEC4(0, at.in0, &p.operands));
#if INPUTS > 1
        v.x1 = TILE_LOAD(1, tile1, pass + y, 0, x, 1,
                         LOAD_VEC4(1, at.in1, &p.operands));
#endif
#if INPUTS > 2
        v.x2 = TILE_LOAD(2, tile2, pass + y, 0, x, 1,
                         LOAD_VEC4(2, at.in2, &p.operands));
#endif
        store_vec4(&at, results(&v, &p.operands));
    }
}
#else
KERNEL void elementwise_transposed(__global OUT *out, INPUT_BUFFERS,
                                   const struct transposed_params p)
{
    __local IN0 tile0[TILE_ROWS(0)][TILE + 1];
#if INPUTS > 1
    __local IN1 tile1[TILE_ROWS(1)][TILE + 1];
#endif
#if INPUTS > 2
    __local IN2 tile2[TILE_ROWS(2)][TILE + 1];
#endif
    const struct pointers buffers = {out, FOR_INPUTS(in0, in1, in2)};
    const index_t columns = (index_t)p.columns, rows = (index_t)p.rows;
    /* The plane, column and row of the first element of the tile. */
    const struct tile_position tile =
        tile_position(p.tiles_per_row, p.tiles_per_plane, TILE, TILE);
    struct offsets plane;
    offsets_set(&plane, tile.plane, p.rank, &p.space, p.strides);
    const bool is_complete =
        tile.column + TILE <= columns && tile.row + TILE <= rows;
    const uint step = GROUP_SIZE / TILE;
    const uint x = get_local_id(0) % TILE, first = get_local_id(0) / TILE;
    const struct offsets4 along_row = offsets_along(p.column_strides, step),
                          along_column = offsets_along(p.row_strides, step);
    for (uint y = first; y < TILE; y += 4 * step) {
        const index_t column = tile.column + y, row = tile.row + x;
        struct pointers at = buffers;
        pointers_to_plane(&at, &plane, column, row, &p);
        const uint existing =
            row < rows ? elements_existing(column, step, columns) : 0;
        /* The values of inputs that are not transposed are not used. */
        const struct values v =
            is_complete ? values_load(&at, &along_row, ALL_EXIST, &p.operands)
                        : values_load(&at, &along_row, existing, &p.operands);
        TILE_STORE(0, tile0, x, 0, y, step, v.x0)
#if INPUTS > 1
        TILE_STORE(1, tile1, x, 0, y, step, v.x1)
#endif
#if INPUTS > 2
        TILE_STORE(2, tile2, x, 0, y, step, v.x2)
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint y = first; y < TILE; y += 4 * step) {
        const index_t column = tile.column + x, row = tile.row + y;
        struct pointers at = buffers;
        pointers_to_plane(&at, &plane, column, row, &p);
        const uint existing =
            column < columns ? elements_existing(row, step, rows) : 0;
        struct values v =
            is_complete
                ? values_load(&at, &along_column, ALL_EXIST, &p.operands)
                : values_load(&at, &along_column, existing, &p.operands);
        v.x0 = TILE_LOAD(0, tile0, y, step, x, 0, v.x0);
#if INPUTS > 1
        v.x1 = TILE_LOAD(1, tile1, y, step, x, 0, v.x1);
#endif
#if INPUTS > 2
        v.x2 = TILE_LOAD(2, tile2, y, step, x, 0, v.x2);
#endif
        if (is_complete)
            results_store(&at, &along_column, ALL_EXIST,
                          results(&v, &p.operands));
        else
            results_store(&at, &along_column, existing,
                          results(&v, &p.operands));
    }
}
#endif
#endif

#endif
