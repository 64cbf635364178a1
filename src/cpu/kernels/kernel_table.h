/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table of the CPU plugin's kernels (inner loops), one for each instruction set
 * level.  A level copies the table of the level below and replaces the kernels
 * that it speeds up: generic C, then AVX2, then AVX-512; or, on AArch64,
 * generic C, then NEON.  The caller has checked all memory; any thread.
 *
 * A kernel computes the same bits for an element at any position in the row, so
 * that results depend neither on strides nor on the number of threads.
 */
#ifndef TANDEM_CPU_KERNELS_KERNEL_TABLE_H
#define TANDEM_CPU_KERNELS_KERNEL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/backend.h>

/* Attributes of an operator in the form that its kernel reads. */
struct params {
    float f[12];
    bool flag; /* gelu: tanh form; sgd: nesterov; adam: decoupled decay */
};

/* Arguments of an element-wise kernel: n contiguous elements of each operand.
 * Bit i of constants is set if input i is a single element that repeats.  An
 * output may be the same memory as an input. */
struct row {
    int64_t n;
    uint32_t constants;
    const void *in[4];
    void *out[3];
    const struct params *params;
};
typedef void (*row_fn)(const struct row *row);

/* X(id, name) for the element-wise operators that every level implements in its
 * own row functions. */
#define ROWS_OF_ALL_LEVELS(X)                                                  \
    X(NEG, neg) X(ABS, abs) X(SIGN, sign) X(FLOOR, floor) X(CEIL, ceil)        \
    X(ROUND, round) X(SQRT, sqrt) X(RSQRT, rsqrt) X(RECIPROCAL, reciprocal)    \
    X(EXP, exp) X(EXPM1, expm1) X(LOG, log) X(LOG1P, log1p) X(SIN, sin)        \
    X(COS, cos) X(TANH, tanh) X(ERF, erf) X(SIGMOID, sigmoid) X(RELU, relu)    \
    X(LEAKY_RELU, leaky_relu) X(ELU, elu) X(CLIP, clip) X(SWISH, swish)        \
    X(GELU, gelu) X(SOFTPLUS, softplus) X(MISH, mish)                          \
    X(HARDSWISH, hardswish) X(ADD, add) X(SUB, sub) X(MUL, mul) X(DIV, div)    \
    X(POW, pow) X(MIN, min) X(MAX, max) X(WHERE, where) X(FMA, fma)            \
    X(RELU_GRAD, relu_grad)
/* X(id, name) for the operators that vectorized_loops.h implements. */
#define BOOL_ROWS(X)                                                           \
    X(EQUAL, equal) X(NOT_EQUAL, not_equal) X(LESS, less)                      \
    X(LESS_EQUAL, less_equal) X(GREATER, greater)                              \
    X(GREATER_EQUAL, greater_equal) X(AND, and) X(OR, or) X(XOR, xor)          \
    X(NOT, not)

/* X for the lists above: stores row_<name> in the table `rows`. */
#define ROW_FILL(number, name) rows[TANDEM_OP_##number] = row_##name;

/* Elements of a strided operand that are packed at a time. */
#define PACK_ELEMENTS 512
/* Rows that a column kernel adds in f32 before it adds the sum to an f64. */
#define COLUMN_ROWS 32
/* Maximum rows of a column_argmax call: f32 holds their numbers exactly. */
#define FIND_ROWS 4096

/* Largest magnitude of a scale with which norm_row's f32 result is always
 * accurate: multiplying a subnormal by at most NORM_SCALE keeps its rounding
 * error within the tolerance of the norms. */
#define NORM_SCALE 16.0f

/* Casts n contiguous elements.  `to` and `from` must not overlap. */
typedef void (*dense_cast_fn)(void *to, const void *from, int64_t n);
#define CAST_SOURCES 4
#define CAST_TARGETS 6

struct kernels {
    const char *name;
    row_fn rows[TANDEM_OP_ID_END]; /* operator classes UNARY to OPTIMIZER */

    /* Reductions of n > 0 contiguous elements.  max and min propagate NaN. */
    float (*max)(const float *x, int64_t n);
    float (*min)(const float *x, int64_t n);
    double (*sum)(const float *x, int64_t n);
    double (*sum_square)(const float *x, int64_t n);
    /* Multiplies in f32. */
    float (*product)(const float *x, int64_t n);
    double (*dot)(const float *a, const float *b, int64_t n);
    /* Returns the sum of e^(x - m). */
    double (*sum_exp)(const float *x, int64_t n, float m);
    /* Returns the index of the first element that equals value, or of the first
     * NaN if value is NaN; n if there is none. */
    int64_t (*find)(const float *x, int64_t n, float value);
    /* y = e^(x - m); returns the sum of y.  y may be x. */
    double (*exp_row)(float *y, const float *x, int64_t n, float m);
    /* y = x * scale; y may be x. */
    void (*scale_row)(float *y, const float *x, int64_t n, float scale);
    /* y = x - m - l; y may be x. */
    void (*shift_row)(float *y, const float *x, int64_t n, float m, float l);

    /* Returns the sum of (x - m)^2; the differences are rounded to f32. */
    double (*square_about)(const float *x, int64_t n, float m);
    /* y = (x - m) * factor * scale + bias.  bias NULL means no bias; y may be
     * x.  Returns true if the magnitude of a scale may exceed NORM_SCALE; a
     * subnormal (x - m) * factor then makes the result inaccurate. */
    bool (*norm_row)(float *y, const float *x, int64_t n, float m,
                     float factor, const float *scale, const float *bias);

    /* Column reductions: combine `rows` rows, `stride` elements apart, into one
     * accumulator for each column. */
    void (*column_max)(const float *x, int64_t rows, int64_t stride,
                       int64_t columns, float *accumulators);
    void (*column_min)(const float *x, int64_t rows, int64_t stride,
                       int64_t columns, float *accumulators);
    void (*column_sum)(const float *x, int64_t rows, int64_t stride,
                       int64_t columns, double *accumulators);
    void (*column_sum_square)(const float *x, int64_t rows, int64_t stride,
                              int64_t columns, double *accumulators);
    void (*column_product)(const float *x, int64_t rows, int64_t stride,
                           int64_t columns, float *accumulators);
    /* y = e^(x - m[column]); adds y to the accumulators.  If y is NULL, only
     * the sums are computed. */
    void (*column_exp)(float *y, int64_t y_stride, const float *x, int64_t rows,
                       int64_t stride, int64_t columns, const float *m,
                       double *accumulators);
    /* Find the first extreme of each column: if the value of a row beats
     * best[column], the value is stored there and the row's number in
     * found[column].  NaN beats every number, and nothing beats NaN.  At most
     * FIND_ROWS rows. */
    void (*column_argmax)(const float *x, int64_t rows, int64_t stride,
                          int64_t columns, float *best, float *found);
    void (*column_argmin)(const float *x, int64_t rows, int64_t stride,
                          int64_t columns, float *best, float *found);

    /* y[c * y_stride + r] = x[r * x_stride + c] for 4-byte elements. */
    void (*transpose4)(uint32_t *y, int64_t y_stride, const uint32_t *x,
                       int64_t x_stride, int64_t rows, int64_t columns);

    /* Convert n contiguous elements from or to f32, rounding as in
     * common/float16.h. */
    void (*f16_widen)(float *y, const uint16_t *x, int64_t n);
    void (*bf16_widen)(float *y, const uint16_t *x, int64_t n);
    void (*f16_narrow)(uint16_t *y, const float *x, int64_t n);
    void (*bf16_narrow)(uint16_t *y, const float *x, int64_t n);

    /* Casts, in the order of CAST_TABLE in cpu/kernels/cast_element.h. */
    const dense_cast_fn (*casts)[CAST_TARGETS];
};

/* kernels_generic fills the whole table; the others replace entries. */
void kernels_generic(struct kernels *table);
void kernels_avx2(struct kernels *table);
void kernels_avx512(struct kernels *table);
void kernels_neon(struct kernels *table);

/* Returns the table of the highest level that this machine supports, but not
 * above the level named `limit`: "generic"; on x86-64 "avx2" or "avx512"; on
 * AArch64 "neon".  NULL means no limit.  Returns NULL for another name. */
const struct kernels *kernels_choose(const char *limit);
/* Returns the levels that this machine supports, separated by spaces. */
const char *kernels_levels(void);

/* Stores the plain C element-wise kernels; defined in generic_elementwise.c. */
void generic_elementwise_kernels(row_fn *rows);

#endif
