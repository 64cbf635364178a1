/* SPDX-License-Identifier: Apache-2.0 */
/* Computes one step of SGD or Adam for each weight. The kernel's first operands
 * are outputs, the others inputs. An output can use the memory of its input. */
#include "common/params.cl"

struct optimizer_params {
    uint64_t elements;
    uint32_t rank; /* number of axes; 0 if all operands are contiguous */
    uint32_t
        is_vec4; /* 1 if operands are contiguous, aligned vectors of four */
    uint32_t
        variant; /* 1 for Nesterov momentum (SGD) or decoupled decay (Adam) */
    uint32_t reserved;
    float rate, decay;
    float beta1, one_minus_beta1; /* in SGD: momentum and 1 - dampening */
    float beta2, one_minus_beta2;
    float rate1;       /* bias-corrected rate: rate / (1 - beta1^step) */
    float correction2; /* bias correction of v: 1 / (1 - beta2^step) */
    float epsilon, reserved1;
    uint64_t offset[8];
    struct fast_divmod space;
    int64_t strides[7 * MAX_AXES]; /* strides, operand by operand */
};
PARAMS_SIZE(optimizer_params, 704);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"

/* 1 for Adam, 0 for SGD. The weight is w, the gradient g, and the momentum m.
 * Only Adam has v, the running mean of squared gradients. */
#ifndef ADAM
#define ADAM 0
#endif
#if ADAM
#define OPERAND_COUNT 7
#else
#define OPERAND_COUNT 5
#endif

#if ADAM
#define EACH_OPERAND(X) X(0); X(1); X(2); X(3); X(4); X(5); X(6)
#define BUFFERS                                                                \
    __global float *w1, __global float *m1, __global float *v1,                \
        __global const float *w0, __global const float *g0,                    \
        __global const float *m0, __global const float *v0
#define LOAD(T, at)                                                            \
    T w = *(__global const T *)(w0 + at[3]);                                   \
    T g = *(__global const T *)(g0 + at[4]);                                   \
    T m = *(__global const T *)(m0 + at[5]);                                   \
    T v = *(__global const T *)(v0 + at[6])
/* Between these bounds, v is precise, and its bias correction does not overflow
 * or underflow. Outside them, m / (root + epsilon) is computed with scaled
 * values. If v and g are finite, the new v is at most FLT_MAX. */
#define MIN_EXACT_SQUARE 0x1p-100f
#define MAX_EXACT_SQUARE 0x1p60f
#define ANY_float(x) (x)
#define ANY_float4(x) any(x)
#define SCALE_FOR(T, large, small)                                             \
    (square > MAX_EXACT_SQUARE   ? (T)(large)                                  \
     : square < MIN_EXACT_SQUARE ? (T)(small)                                  \
                                 : (T)(1.0f))
#define SQUARE(v, g) (p.beta2 * (v) + p.one_minus_beta2 * (g) * (g))
#define ROOT(square) sqrt((square) * p.correction2)
#define STEP(T)                                                                \
    if (p.variant)                                                             \
        w -= p.rate * p.decay * w;                                             \
    else                                                                       \
        g += p.decay * w;                                                      \
    m = p.beta1 * m + p.one_minus_beta1 * g;                                   \
    T square = SQUARE(v, g), quotient;                                         \
    T clamped = clamp(square, MIN_EXACT_SQUARE, MAX_EXACT_SQUARE);             \
    if (UNLIKELY(ANY_##T(clamped != square))) {                                \
        T square_scale = SCALE_FOR(T, 0x1p-70f, 0x1p96f);                      \
        T quotient_scale = SCALE_FOR(T, 0x1p-1f, 0x1p24f);                     \
        T root =                                                               \
            ROOT(SQUARE(v * square_scale * square_scale, g * square_scale)) *  \
            SCALE_FOR(T, 0x1p69f, 0x1p-72f);                                   \
        quotient = m * quotient_scale / (root + p.epsilon * quotient_scale);   \
        v = v <= FLT_MAX && fabs(g) <= FLT_MAX ? fmin(square, (T)(FLT_MAX))    \
                                               : square;                       \
    } else {                                                                   \
        quotient = m / (ROOT(square) + p.epsilon);                             \
        v = square;                                                            \
    }                                                                          \
    w -= p.rate1 * quotient
#define STORE(T, at)                                                           \
    *(__global T *)(w1 + at[0]) = w;                                           \
    *(__global T *)(m1 + at[1]) = m;                                           \
    *(__global T *)(v1 + at[2]) = v
#else
#define EACH_OPERAND(X) X(0); X(1); X(2); X(3); X(4)
#define BUFFERS                                                                \
    __global float *w1, __global float *m1, __global const float *w0,          \
        __global const float *g0, __global const float *m0
#define LOAD(T, at)                                                            \
    T w = *(__global const T *)(w0 + at[2]);                                   \
    T g = *(__global const T *)(g0 + at[3]);                                   \
    T m = *(__global const T *)(m0 + at[4])
#define STEP(T)                                                                \
    g += p.decay * w;                                                          \
    m = p.beta1 * m + p.one_minus_beta1 * g;                                   \
    w -= p.rate * (p.variant ? g + p.beta1 * m : m)
#define STORE(T, at)                                                           \
    *(__global T *)(w1 + at[0]) = w;                                           \
    *(__global T *)(m1 + at[1]) = m
#endif

/* Sets at[k] for operand k to the offset of vector `item` or of element i. */
#define OFFSET_CONTIGUOUS(k) at[k] = p.offset[k] + (ulong)item * 4
#define OFFSET(k)                                                              \
    at[k] = p.offset[k] + (p.rank == 0 ? i : 0);                               \
    ADD_OFFSET(at[k], (index_t)i, p.space, p.rank, p.strides + k * MAX_AXES)

KERNEL void optimizer_update(BUFFERS, const struct optimizer_params p)
{
    index_t item = (index_t)get_global_id(0);
    ulong at[OPERAND_COUNT];
    if (p.is_vec4 && (ulong)item * 4 + 4 <= p.elements) {
        EACH_OPERAND(OFFSET_CONTIGUOUS);
        LOAD(float4, at);
        STEP(float4);
        STORE(float4, at);
        return;
    }
    ulong first = (ulong)item * (p.is_vec4 ? 4 : 1);
    ulong end = min((ulong)p.elements, first + (p.is_vec4 ? 4 : 1));
    for (ulong i = first; i < end; ++i) {
        EACH_OPERAND(OFFSET);
        LOAD(float, at);
        STEP(float);
        STORE(float, at);
    }
}

#endif
