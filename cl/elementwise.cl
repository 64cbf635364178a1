/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out[i] = OP(in0[i], in1[i], in2[i]) with broadcasting.
 *
 * flat     every operand is contiguous or a single value.  A work-item takes
 *          four elements, as one vector where the offsets are aligned to it;
 *          else a group takes 4 GROUP elements, neighbours at a time, and
 *          begins where the output is aligned to a line of the cache.
 * strided  any strides; four elements an item along an innermost axis that
 *          every operand walks by 1 or 0 and that is aligned (vector), or
 *          that is long; else one.  Where operands walk different axes by 1,
 *          a group takes a tile of both, so that it reads whole lines.
 */
#ifndef TANDEM_EMBEDDED
#include "common.cl"
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

#define OPERANDS (INPUTS + 1)

/* Operand 0 is out.  Bit k of given: operand k is value[k]; of single: it
 * is one element.  An operator of one input has its attributes in value[2]
 * and value[3]. */
struct flat {
    ulong elements;
    uint vector, given, single, skew; /* elements left out of group 0 */
    float value[4];
    ulong offset[4];
};

struct strided {
    ulong items;
    uint rank, vector, given, single;
    float value[4];
    ulong offset[4];
    /* Where span is not 0, an item has four elements, far apart; the j-th is
     * there if the item's place in the innermost axis + j span is below
     * inner. */
    uint span, inner;
    long far[4];
    struct extents space;
    long strides[4 * AXES]; /* operand by operand */
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

/* Operand k at element index i. */
#define LOAD(k, i)                                                             \
    (p.given >> (k + 1) & 1u                                                \
         ? (CAT(IN, k))p.value[k + 1]                                          \
         : CAT(in, k)[p.offset[k + 1] + (p.single >> (k + 1) & 1u ? 0 : (i))])
/* Operand k as a vector whose first element is at pointer. */
#define LOAD_VECTOR(k, pointer)                                                \
    (p.given >> (k + 1) & 1u                                                \
         ? (CAT(CAT(IN, k), 4))((CAT(IN, k))p.value[k + 1])                    \
     : p.single >> (k + 1) & 1u                                                \
         ? (CAT(CAT(IN, k), 4))(*(pointer))                                    \
         : *(__global const CAT(CAT(IN, k), 4) *)(pointer))

#define STORE_VECTOR(pointer)                                                  \
    *(__global CAT(OUT, 4) *)(pointer) = (CAT(OUT, 4))(                        \
        APPLY(.s0), APPLY(.s1), APPLY(.s2), APPLY(.s3))

/* Four elements, of which those are INSIDE that are there: ELEMENT(k, j) is
 * the j-th of operand k, TARGET(j) its place in out. */
#define LOAD_IF(k, j, INSIDE) (INSIDE(j) ? ELEMENT(k, j) : (CAT(IN, k))0)
#define LOAD_FOUR(k, INSIDE)                                                   \
    (CAT(CAT(IN, k), 4))(LOAD_IF(k, 0, INSIDE), LOAD_IF(k, 1, INSIDE),         \
                         LOAD_IF(k, 2, INSIDE), LOAD_IF(k, 3, INSIDE))
#if INPUTS > 1
#define LOAD_SECOND(INSIDE) CAT(IN1, 4) x1 = LOAD_FOUR(1, INSIDE);
#else
#define LOAD_SECOND(INSIDE)
#endif
#if INPUTS > 2
#define LOAD_THIRD(INSIDE) CAT(IN2, 4) x2 = LOAD_FOUR(2, INSIDE);
#else
#define LOAD_THIRD(INSIDE)
#endif
#define STORE_IF(j, s, INSIDE)                                                 \
    if (INSIDE(j))                                                             \
        out[TARGET(j)] = APPLY(s);
#define ITEM_FOUR(INSIDE)                                                      \
    {                                                                          \
        CAT(IN0, 4) x0 = LOAD_FOUR(0, INSIDE);                                 \
        LOAD_SECOND(INSIDE)                                                    \
        LOAD_THIRD(INSIDE)                                                     \
        STORE_IF(0, .s0, INSIDE)                                               \
        STORE_IF(1, .s1, INSIDE)                                               \
        STORE_IF(2, .s2, INSIDE)                                               \
        STORE_IF(3, .s3, INSIDE)                                               \
    }
#define ALWAYS(j) true

KERNEL void flat(__global OUT *out, INPUT_BUFFERS, const struct flat p)
{
    ulong first = (ulong)get_global_id(0) * 4;
    if (p.vector && first + 4 <= p.elements) {
        CAT(IN0, 4) x0 = LOAD_VECTOR(0, in0 + p.offset[1] +
                                    (p.single >> 1 & 1u ? 0 : first));
#if INPUTS > 1
        CAT(IN1, 4) x1 = LOAD_VECTOR(1, in1 + p.offset[2] +
                                    (p.single >> 2 & 1u ? 0 : first));
#endif
#if INPUTS > 2
        CAT(IN2, 4) x2 = LOAD_VECTOR(2, in2 + p.offset[3] +
                                    (p.single >> 3 & 1u ? 0 : first));
#endif
        STORE_VECTOR(out + p.offset[0] + first);
        return;
    }
    ulong step = p.vector ? 1 : GROUP;
    ulong i = p.vector ? first
                       : (ulong)get_group_id(0) * (4 * GROUP) +
                             get_local_id(0) - p.skew;
#define WITHIN(j) (i + (j)*step < p.elements)
#define ELEMENT(k, j) LOAD(k, i + (j)*step)
#define TARGET(j) (p.offset[0] + i + (j)*step)
    if (i < p.elements && WITHIN(3))
        ITEM_FOUR(ALWAYS)
    else
        ITEM_FOUR(WITHIN)
#undef WITHIN
#undef ELEMENT
#undef TARGET
}

/* Adds coordinate along axis to the places of all operands. */
#if INPUTS == 1
#define ADVANCE(axis, coordinate)                                              \
    at[0] += (coordinate)*p.strides[axis];                                     \
    at[1] += (coordinate)*p.strides[AXES + (axis)];
#elif INPUTS == 2
#define ADVANCE(axis, coordinate)                                              \
    at[0] += (coordinate)*p.strides[axis];                                     \
    at[1] += (coordinate)*p.strides[AXES + (axis)];                            \
    at[2] += (coordinate)*p.strides[2 * AXES + (axis)];
#else
#define ADVANCE(axis, coordinate)                                              \
    at[0] += (coordinate)*p.strides[axis];                                     \
    at[1] += (coordinate)*p.strides[AXES + (axis)];                            \
    at[2] += (coordinate)*p.strides[2 * AXES + (axis)];                        \
    at[3] += (coordinate)*p.strides[3 * AXES + (axis)];
#endif

KERNEL void strided(__global OUT *out, INPUT_BUFFERS, const struct strided p)
{
    index_t item = (index_t)get_global_id(0);
    if (item >= p.items)
        return;
    long at[4] = {0, 0, 0, 0}, inner = (long)item;
    index_t left = item;
    if (p.rank > 1) {
        SPLIT(left, p.space, 0, inner);
        long second = (long)left;
        if (p.rank > 2) {
            SPLIT(left, p.space, 1, second);
#pragma unroll
            for (uint axis = 2; axis < AXES; ++axis) {
                if (axis >= p.rank)
                    continue;
                long coordinate = (long)left;
                if (axis + 1 < p.rank)
                    SPLIT(left, p.space, axis, coordinate);
                ADVANCE(axis, coordinate)
            }
        }
        ADVANCE(1, second)
    }
    ADVANCE(0, inner)
    if (p.vector) {
        CAT(IN0, 4) x0 = LOAD_VECTOR(0, in0 + p.offset[1] + at[1]);
#if INPUTS > 1
        CAT(IN1, 4) x1 = LOAD_VECTOR(1, in1 + p.offset[2] + at[2]);
#endif
#if INPUTS > 2
        CAT(IN2, 4) x2 = LOAD_VECTOR(2, in2 + p.offset[3] + at[3]);
#endif
        STORE_VECTOR(out + p.offset[0] + at[0]);
        return;
    }
#define WITHIN(j) ((uint)inner + (j)*p.span < p.inner)
#define ELEMENT(k, j)                                                          \
    (p.given >> (k + 1) & 1u                                                   \
         ? (CAT(IN, k))p.value[k + 1]                                          \
         : CAT(in, k)[p.offset[k + 1] + at[k + 1] + (j)*p.far[k + 1]])
#define TARGET(j) (p.offset[0] + at[0] + (j)*p.far[0])
#define FIRST(j) ((j) == 0)
    if (p.span == 0)
        ITEM_FOUR(FIRST)
    else if (WITHIN(3))
        ITEM_FOUR(ALWAYS)
    else
        ITEM_FOUR(WITHIN)
}
