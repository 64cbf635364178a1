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
 *          that is long (four elements span apart), else one.
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
    uint span, inner; /* the innermost axis is inner = about 4 span long */
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

/* Four elements, of which some may be outside: at LOAD_IF their index. */
#define LOAD_FOUR(k)                                                           \
    (CAT(CAT(IN, k), 4))(LOAD_IF(k, 0), LOAD_IF(k, 1), LOAD_IF(k, 2),          \
                         LOAD_IF(k, 3))

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
#define INSIDE(j) (i + (j)*step < p.elements)
#define LOAD_IF(k, j) (INSIDE(j) ? LOAD(k, i + (j)*step) : (CAT(IN, k))0)
#define STORE_IF(j, s)                                                         \
    if (INSIDE(j))                                                             \
        out[p.offset[0] + i + (j)*step] = APPLY(s);
    CAT(IN0, 4) x0 = LOAD_FOUR(0);
#if INPUTS > 1
    CAT(IN1, 4) x1 = LOAD_FOUR(1);
#endif
#if INPUTS > 2
    CAT(IN2, 4) x2 = LOAD_FOUR(2);
#endif
    STORE_IF(0, .s0) STORE_IF(1, .s1) STORE_IF(2, .s2) STORE_IF(3, .s3)
#undef INSIDE
#undef LOAD_IF
#undef STORE_IF
}

KERNEL void strided(__global OUT *out, INPUT_BUFFERS, const struct strided p)
{
    index_t item = (index_t)get_global_id(0);
    if (item >= p.items)
        return;
    long at[4] = {0, 0, 0, 0}, inner = 0;
    index_t left = item;
#pragma unroll
    for (uint axis = 0; axis < AXES; ++axis) {
        if (axis >= p.rank)
            continue;
        long coordinate = (long)left;
        if (axis + 1 < p.rank)
            SPLIT(left, p.space, axis, coordinate);
        if (axis == 0)
            inner = coordinate;
        at[0] += coordinate * p.strides[axis];
        at[1] += coordinate * p.strides[AXES + axis];
#if OPERANDS > 2
        at[2] += coordinate * p.strides[2 * AXES + axis];
#endif
#if OPERANDS > 3
        at[3] += coordinate * p.strides[3 * AXES + axis];
#endif
    }
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
    if (p.span != 0) {
#define INSIDE(j) ((uint)inner + (j)*p.span < p.inner)
#define AT(k, j)                                                               \
    (p.offset[k] + at[k] + (long)((j)*p.span) * p.strides[(k)*AXES])
#define LOAD_IF(k, j)                                                          \
    (p.given >> (k + 1) & 1u ? (CAT(IN, k))p.value[k + 1]                      \
     : INSIDE(j)             ? CAT(in, k)[AT(k + 1, j)]                        \
                             : (CAT(IN, k))0)
#define STORE_IF(j, s)                                                         \
    if (INSIDE(j))                                                             \
        out[AT(0, j)] = APPLY(s);
        CAT(IN0, 4) x0 = LOAD_FOUR(0);
#if INPUTS > 1
        CAT(IN1, 4) x1 = LOAD_FOUR(1);
#endif
#if INPUTS > 2
        CAT(IN2, 4) x2 = LOAD_FOUR(2);
#endif
        STORE_IF(0, .s0) STORE_IF(1, .s1) STORE_IF(2, .s2) STORE_IF(3, .s3)
        return;
    }
    IN0 x0 = p.given >> 1 & 1u ? (IN0)p.value[1] : in0[p.offset[1] + at[1]];
#if INPUTS > 1
    IN1 x1 = p.given >> 2 & 1u ? (IN1)p.value[2] : in1[p.offset[2] + at[2]];
#endif
#if INPUTS > 2
    IN2 x2 = p.given >> 3 & 1u ? (IN2)p.value[3] : in2[p.offset[3] + at[3]];
#endif
    out[p.offset[0] + at[0]] = APPLY();
}
