/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out[i] = OP(in0[i], in1[i], in2[i]) with broadcasting.
 *
 * flat     every operand is contiguous or a single value.
 * strided  any strides.
 *          In both a work-item takes four elements: one vector, where all
 *          operands are aligned to it; else neighbours have neighbours, the
 *          four are GROUP apart, and groups begin where the output does in a
 *          line of the cache.
 * crossed  inputs that walk by 1 along another axis than the output go through
 *          local memory in tiles of TILE x TILE, so that whole lines are read
 *          and written.
 */
#include "common/indexing.cl"
#include "common/operators.cl"

/* The kernel to compile; 0: all. */
#define FLAT 1
#define STRIDED 2
#define CROSSED 3
#ifndef SHAPE
#define SHAPE 0
#endif
/* The operator, how many inputs it has, and the operands' types. */
#ifndef OP
#define OP op_add
#define INPUTS 2
#endif
#ifndef INPUTS
#define INPUTS 1
#endif
#ifndef OUT
#define OUT float
#endif
#ifndef IN0
#define IN0 float
#endif
#ifndef IN1
#define IN1 float
#endif
#ifndef IN2
#define IN2 float
#endif

/* 1: operands are aligned vectors of four. */
#ifndef VECTOR
#define VECTOR 1
#endif
/* 1: OP takes another way for what is rare (math.cl). */
#ifndef RARE
#define RARE 0
#endif
/* crossed: bit k: input k walks axis 1 by 1 (the output: axis 0). */
#ifndef ACROSS
#define ACROSS 0
#endif
/* The side of a tile.  In vectors, a larger one is better where there is room
 * for it. */
#if VECTOR && (ACROSS & (ACROSS - 1)) == 0
#define TILE 64u
#else
#define TILE 32u
#endif

/* Bits that are moved, whatever they mean. */
#define op_move(x, a, b) (x)

/* A place in each of four operands. */
#if WIDE
typedef long4 places_t;
#else
typedef int4 places_t;
#endif

/* Operand 0 is out.  Bit k of given: operand k is value[k]; of single: it
 * is one element.  An operator of one input has its attributes in value[2]
 * and value[3]. */
struct flat {
    ulong elements;
    uint given, single, skew, reserved; /* skew: left out of group 0 */
    float value[4];
    ulong offset[4];
};

struct strided {
    ulong items; /* vectors, or elements */
    uint rank, given, single, skew;
    float value[4];
    ulong offset[4];
    struct extents space;
    long strides[4 * AXES]; /* operand by operand */
};

/* Axes 0 and 1 lie across each other, the others are the space's. */
struct crossed {
    ulong columns, rows;       /* extents of axis 0 and axis 1 */
    ulong tiles_along, tiles;  /* along axis 0; of one plane */
    uint rank, given, single, reserved; /* single: along axis 0 */
    float value[4];
    ulong offset[4];
    long along[4], down[4]; /* strides along axis 0 and axis 1 */
    struct extents space;
    long strides[4 * AXES];
};

#if INPUTS == 1
#define INPUT_BUFFERS __global const IN0 *in0
#define APPLY(j) OP((IN0)x0 j, p.value[2], p.value[3])
#elif INPUTS == 2
#define INPUT_BUFFERS __global const IN0 *in0, __global const IN1 *in1
#define APPLY(j) OP((IN0)x0 j, (IN1)x1 j)
#else
#define INPUT_BUFFERS                                                          \
    __global const IN0 *in0, __global const IN1 *in1, __global const IN2 *in2
#define APPLY(j) OP((IN0)x0 j, (IN1)x1 j, (IN2)x2 j)
#endif


/* F of each input. */
#if INPUTS == 1
#define EACH_INPUT(F) F(0)
#elif INPUTS == 2
#define EACH_INPUT(F) F(0) F(1)
#else
#define EACH_INPUT(F) F(0) F(1) F(2)
#endif
#define IS_GIVEN(k) (p.given >> (k + 1) & 1u)
#define IS_SINGLE(k) (p.single >> (k + 1) & 1u)
#define GIVEN(k) ((CAT(IN, k))p.value[k + 1])
#define FOUR(type) CAT(type, 4)

/* The four results of x0, x1 and x2; where none takes the rare way, all
 * take the quick one. */
#if RARE
#define IS_RARE(j) CAT(OP, _rare)(INPUTS_AT(j))
/* A power by one value, in all work-items, may be a simple one. */
#if INPUTS == 1
#define INPUTS_AT(j) x0 j, 0.0f, 0.0f
#define IS_PLAIN false
#define PLAIN x0
#else
#define INPUTS_AT(j) x0 j, x1 j
#define IS_PLAIN (IS_GIVEN(1) && POW_PLAIN(GIVEN(1)))
#define PLAIN pow_plain(x0, GIVEN(1))
#endif
#define QUICK(j) CAT(OP, _quick)(INPUTS_AT(j))
#define RESULTS(y)                                                             \
    FOUR(OUT) y;                                                               \
    if (IS_PLAIN)                                                              \
        y = PLAIN;                                                             \
    else if (IS_RARE(.s0) || IS_RARE(.s1) || IS_RARE(.s2) || IS_RARE(.s3))    \
        y = (FOUR(OUT))(APPLY(.s0), APPLY(.s1), APPLY(.s2), APPLY(.s3));       \
    else                                                                       \
        y = (FOUR(OUT))(QUICK(.s0), QUICK(.s1), QUICK(.s2), QUICK(.s3));
#else
#define RESULTS(y)                                                             \
    FOUR(OUT)                                                                  \
    y = (FOUR(OUT))(APPLY(.s0), APPLY(.s1), APPLY(.s2), APPLY(.s3));
#endif

/* Operand k as a vector whose first element is at pointer. */
#define LOAD_VECTOR(k, pointer)                                                \
    (IS_GIVEN(k) ? (FOUR(CAT(IN, k)))(GIVEN(k))                                \
     : IS_SINGLE(k)                                                            \
         ? (FOUR(CAT(IN, k)))(*(pointer))                                      \
         : *(__global const FOUR(CAT(IN, k)) *)(pointer))

/* Four elements, of which those are INSIDE that are there: ELEMENT(k, j) is
 * the j-th of operand k, TARGET(j) its place in out. */
#define LOAD_IF(k, j, INSIDE) (INSIDE(j) ? ELEMENT(k, j) : (CAT(IN, k))0)
#define LOAD_FOUR(k, INSIDE)                                                   \
    FOUR(CAT(IN, k))                                                           \
    CAT(x, k) = (FOUR(CAT(IN, k)))(                                            \
        LOAD_IF(k, 0, INSIDE), LOAD_IF(k, 1, INSIDE), LOAD_IF(k, 2, INSIDE),   \
        LOAD_IF(k, 3, INSIDE));
#define LOAD_ALWAYS(k) LOAD_FOUR(k, ALWAYS)
#define LOAD_WITHIN(k) LOAD_FOUR(k, WITHIN)
#define STORE_IF(j, INSIDE, y)                                                 \
    if (INSIDE(j))                                                             \
        TARGET(j) = y.s##j;
#define STORE_FOUR(INSIDE, y)                                                  \
    STORE_IF(0, INSIDE, y)                                                     \
    STORE_IF(1, INSIDE, y)                                                     \
    STORE_IF(2, INSIDE, y)                                                     \
    STORE_IF(3, INSIDE, y)
#define ALWAYS(j) true

/* The first of a work-item's elements that are GROUP apart. */
#define FIRST_APART                                                            \
    ((index_t)get_group_id(0) * (4 * GROUP) + get_local_id(0) - p.skew)

#if SHAPE == 0 || SHAPE == FLAT
KERNEL void flat(__global OUT *out, INPUT_BUFFERS, const struct flat p)
{
#if VECTOR
    index_t i = (index_t)get_global_id(0) * 4;
    const uint step = 1;
#else
    index_t i = FIRST_APART;
    const uint step = GROUP;
#endif
    index_t elements = (index_t)p.elements;
#define POINTER(k)                                                             \
    __global const CAT(IN, k) *CAT(from, k) =                                  \
        CAT(in, k) + ((long)p.offset[k + 1] + (IS_SINGLE(k) ? 0 : (place_t)i));
    EACH_INPUT(POINTER)
    __global OUT *to = out + ((long)p.offset[0] + (place_t)i);
#define WITHIN(j) (i + (j)*step < elements)
#define ELEMENT(k, j)                                                          \
    (IS_GIVEN(k) ? GIVEN(k) : CAT(from, k)[IS_SINGLE(k) ? 0 : (j)*step])
#define TARGET(j) to[(j)*step]
#define LOAD_AT(k) FOUR(CAT(IN, k)) CAT(x, k) = LOAD_VECTOR(k, CAT(from, k));
    if (i < elements && WITHIN(3)) {
#if VECTOR
        EACH_INPUT(LOAD_AT)
        RESULTS(y)
        *(__global FOUR(OUT) *)to = y;
#else
        EACH_INPUT(LOAD_ALWAYS)
        RESULTS(y)
        STORE_FOUR(ALWAYS, y)
#endif
    } else {
        EACH_INPUT(LOAD_WITHIN)
        RESULTS(y)
        STORE_FOUR(WITHIN, y)
    }
#undef WITHIN
#undef ELEMENT
#undef TARGET
#undef LOAD_AT
}
#endif

/* Adds coordinate along axis to the places of all operands. */
#define STRIDE(k, axis) ((place_t)p.strides[(k)*AXES + (axis)])
#define ADVANCE(at, axis, coordinate)                                          \
    {                                                                          \
        place_t c_ = (place_t)(coordinate);                                    \
        at.s0 += c_ * STRIDE(0, axis);                                         \
        at.s1 += c_ * STRIDE(1, axis);                                         \
        at.s2 += INPUTS > 1 ? c_ * STRIDE(2, axis) : 0;                        \
        at.s3 += INPUTS > 2 ? c_ * STRIDE(3, axis) : 0;                        \
    }
/* The places of index: of any space, and of one of at most three axes. */
#define PLACES(at, index)                                                      \
    places_t at = (places_t)(0);                                               \
    {                                                                          \
        index_t left_ = (index);                                               \
        _Pragma("unroll") for (uint axis_ = 0; axis_ < AXES; ++axis_)          \
        {                                                                      \
            if (axis_ >= p.rank)                                               \
                continue;                                                      \
            long at_ = (long)left_;                                            \
            if (axis_ + 1 < p.rank)                                            \
                SPLIT(left_, p.space, axis_, at_);                             \
            ADVANCE(at, axis_, at_)                                            \
        }                                                                      \
    }
#define PLACES_NEAR(at, index)                                                 \
    places_t at = (places_t)(0);                                               \
    {                                                                          \
        index_t left_ = (index);                                               \
        long inner_, outer_ = 0;                                               \
        SPLIT(left_, p.space, 0, inner_);                                      \
        ADVANCE(at, 0, inner_)                                                 \
        if (p.rank == 3) {                                                     \
            SPLIT(left_, p.space, 1, outer_);                                  \
            ADVANCE(at, 1, outer_)                                             \
            ADVANCE(at, 2, left_)                                              \
        } else {                                                               \
            ADVANCE(at, 1, left_)                                              \
        }                                                                      \
    }
#define PLACE_0 s1
#define PLACE_1 s2
#define PLACE_2 s3
/* Where operand k is at places at. */
#define FROM(k, at) (CAT(in, k) + ((long)p.offset[k + 1] + at.CAT(PLACE_, k)))
#define TO(at) (out + ((long)p.offset[0] + at.s0))

#if SHAPE == 0 || SHAPE == STRIDED
KERNEL void strided(__global OUT *out, INPUT_BUFFERS, const struct strided p)
{
#define WITHIN(j) (i + (j)*GROUP < items)
#define TARGET(j) *TO(CAT(at, j))
#if VECTOR
    index_t item = (index_t)get_global_id(0);
    if (item >= (index_t)p.items)
        return;
    PLACES(at, item)
#define LOAD_AT(k) FOUR(CAT(IN, k)) CAT(x, k) = LOAD_VECTOR(k, FROM(k, at));
    EACH_INPUT(LOAD_AT)
    RESULTS(y)
    *(__global FOUR(OUT) *)TO(at) = y;
#else
    index_t i = FIRST_APART, items = (index_t)p.items;
#if !WIDE
    if (p.rank <= 3) {
        PLACES_NEAR(at0, i)
        PLACES_NEAR(at1, i + GROUP)
        PLACES_NEAR(at2, i + 2 * GROUP)
        PLACES_NEAR(at3, i + 3 * GROUP)
#define ELEMENT(k, j) (IS_GIVEN(k) ? GIVEN(k) : *FROM(k, CAT(at, j)))
        if (i < items && WITHIN(3)) {
            EACH_INPUT(LOAD_ALWAYS)
            RESULTS(y)
            STORE_FOUR(ALWAYS, y)
        } else {
            EACH_INPUT(LOAD_WITHIN)
            RESULTS(y)
            STORE_FOUR(WITHIN, y)
        }
        return;
    }
#undef ELEMENT
#endif
    _Pragma("unroll 1") for (uint j = 0; j < 4; ++j)
    {
        if (!WITHIN(j))
            continue;
        PLACES(at0, i + j * GROUP)
#define LOAD_ONE(k)                                                            \
    FOUR(CAT(IN, k))                                                           \
    CAT(x, k) =                                                                \
        (FOUR(CAT(IN, k)))(IS_GIVEN(k) ? GIVEN(k) : *FROM(k, at0));
        EACH_INPUT(LOAD_ONE)
        TARGET(0) = APPLY(.s0);
    }
#endif
#undef WITHIN
#undef TARGET
}
#endif

#if (SHAPE == 0 || SHAPE == CROSSED) && GROUP >= 32 && GROUP <= 256
#define IS_ACROSS(k) (ACROSS >> (k)&1u)
#define ALONG(k) ((place_t)p.along[k])
#define DOWN(k) ((place_t)p.down[k])
/* Operand k at this column and row of the plane. */
#define AT(k, column, row)                                                     \
    (FROM(k, base) + ((place_t)(column)*ALONG(k + 1) +                         \
                      (place_t)(row)*DOWN(k + 1)))
#define TO_AT(column, row)                                                     \
    (TO(base) + ((place_t)(column)*ALONG(0) + (place_t)(row)*DOWN(0)))

KERNEL void crossed(__global OUT *out, INPUT_BUFFERS, const struct crossed p)
{
/* Rows of columns. */
#define DECLARE(k)                                                             \
    __local CAT(IN, k) CAT(tile, k)[IS_ACROSS(k) ? TILE : 1][TILE + 1];
    EACH_INPUT(DECLARE)
    TILE_FIND(p.tiles_along, p.tiles, TILE, TILE)
    index_t columns = (index_t)p.columns, rows = (index_t)p.rows;
    PLACES(base, plane)
#if VECTOR
    const uint side = TILE / 4;
    uint x = get_local_id(0) % side * 4, y = get_local_id(0) / side;
#define FILL(k)                                                                \
    if (IS_ACROSS(k))                                                          \
        _Pragma("unroll") for (uint pass = 0; pass < TILE;                     \
                               pass += GROUP / side)                           \
        {                                                                      \
            uint j = pass + y;                                                 \
            FOUR(CAT(IN, k)) v = (FOUR(CAT(IN, k)))(0);                        \
            if (column + j < columns && row + x < rows)                        \
                v = *(__global const FOUR(CAT(IN, k)) *)AT(k, column + j,      \
                                                           row + x);           \
            CAT(tile, k)[x][j] = v.s0;                                         \
            CAT(tile, k)[x + 1][j] = v.s1;                                     \
            CAT(tile, k)[x + 2][j] = v.s2;                                     \
            CAT(tile, k)[x + 3][j] = v.s3;                                     \
        }
    EACH_INPUT(FILL)
    barrier(CLK_LOCAL_MEM_FENCE);
#define TAKE(k)                                                                \
    __local const CAT(IN, k) *CAT(line, k) =                                   \
        CAT(tile, k)[IS_ACROSS(k) ? j : 0] + x;                                \
    FOUR(CAT(IN, k))                                                           \
    CAT(x, k) = IS_ACROSS(k)                                                   \
                    ? (FOUR(CAT(IN, k)))(CAT(line, k)[0], CAT(line, k)[1],     \
                                         CAT(line, k)[2], CAT(line, k)[3])     \
                    : LOAD_VECTOR(k, AT(k, column + x, row + j));
    _Pragma("unroll") for (uint pass = 0; pass < TILE; pass += GROUP / side)
    {
        uint j = pass + y;
        if (column + x >= columns || row + j >= rows)
            continue;
        EACH_INPUT(TAKE)
        RESULTS(z)
        *(__global FOUR(OUT) *)TO_AT(column + x, row + j) = z;
    }
#else
    bool whole = column + TILE <= columns && row + TILE <= rows;
    const uint step = GROUP / TILE;
    uint x = get_local_id(0) % TILE, first = get_local_id(0) / TILE, y = first;
#define WITHIN(j) (row + x < rows && column + y + (j)*step < columns)
#define ELEMENT(k, j) *AT(k, column + y + (j)*step, row + x)
#define FILL_FOUR(k, LOAD)                                                     \
    {                                                                          \
        LOAD(k)                                                                \
        CAT(tile, k)[x][y] = CAT(x, k).s0;                                     \
        CAT(tile, k)[x][y + step] = CAT(x, k).s1;                              \
        CAT(tile, k)[x][y + 2 * step] = CAT(x, k).s2;                          \
        CAT(tile, k)[x][y + 3 * step] = CAT(x, k).s3;                          \
    }
#define FILL(k)                                                                \
    if (IS_ACROSS(k))                                                          \
        for (y = first; y < TILE; y += 4 * step) {                             \
            if (whole)                                                         \
                FILL_FOUR(k, LOAD_ALWAYS)                                      \
            else                                                               \
                FILL_FOUR(k, LOAD_WITHIN)                                      \
        }
    EACH_INPUT(FILL)
#undef WITHIN
#undef ELEMENT
    barrier(CLK_LOCAL_MEM_FENCE);
#define WITHIN(j) (column + x < columns && row + y + (j)*step < rows)
#define ELEMENT(k, j)                                                          \
    (IS_GIVEN(k)    ? GIVEN(k)                                                 \
     : IS_ACROSS(k) ? CAT(tile, k)[IS_ACROSS(k) ? y + (j)*step : 0][x]         \
                    : *AT(k, column + x, row + y + (j)*step))
#define TARGET(j) *TO_AT(column + x, row + y + (j)*step)
    for (y = first; y < TILE; y += 4 * step) {
        if (whole) {
            EACH_INPUT(LOAD_ALWAYS)
            RESULTS(z)
            STORE_FOUR(ALWAYS, z)
        } else {
            EACH_INPUT(LOAD_WITHIN)
            RESULTS(z)
            STORE_FOUR(WITHIN, z)
        }
    }
#endif
}
#endif
