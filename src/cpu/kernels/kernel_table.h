/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loops of the CPU plugin, one table for each instruction set.  A
 * level takes the table of the level below and replaces what it does better:
 * generic C first, then AVX2, then AVX-512; or, on AArch64, NEON.  All are pure
 * functions over memory that their caller has checked; any thread.
 *
 * Each gives the same bits for an element wherever it lies in the row, so that
 * results depend neither on strides nor on the number of threads.
 */
#ifndef TANDEM_CPU_KERNELS_KERNEL_TABLE_H
#define TANDEM_CPU_KERNELS_KERNEL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/backend.h>

/* The attributes of an operator as its inner loop wants them. */
struct params {
    float f[12];
    bool flag; /* gelu's tanh form, sgd's nesterov, adam's decoupled */
};

/* n elements of an element-wise operator, densely packed.  Bit i of constants:
 * input i is one element that repeats.  An output may be an input. */
struct row {
    int64_t n;
    uint32_t constants;
    const void *in[4];
    void *out[3];
    const struct params *params;
};
typedef void (*row_fn)(const struct row *row);

/* The element-wise operators that each level has rows of its own for, by
 * number and name. */
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
/* Those whose rows vectorized_loops.h has. */
#define BOOL_ROWS(X)                                                           \
    X(EQUAL, equal) X(NOT_EQUAL, not_equal) X(LESS, less)                      \
    X(LESS_EQUAL, less_equal) X(GREATER, greater)                              \
    X(GREATER_EQUAL, greater_equal) X(AND, and) X(OR, or) X(XOR, xor)          \
    X(NOT, not)

/* As an X above: the file's row_<name> goes into its place in rows. */
#define ROW_FILL(number, name) rows[TANDEM_OP_##number] = row_##name;

/* Elements that are packed at a time where an operand is not dense. */
#define PACK_ELEMENTS 512
/* Rows that a column kernel adds in f32 before it goes to f64. */
#define COLUMN_ROWS 32
/* Rows whose numbers f32 holds exactly. */
#define FIND_ROWS 4096

/* Of what is subnormal a digit less than the last is lost, which times so much
 * is within the norms' allowance. */
#define NORM_SCALE 16.0f

/* Casts n dense elements to another place. */
typedef void (*dense_cast_fn)(void *to, const void *from, int64_t n);
#define CAST_SOURCES 4
#define CAST_TARGETS 6

struct kernels {
    const char *name;
    row_fn rows[TANDEM_OP_ID_END]; /* classes UNARY to OPTIMIZER */

    /* Over n > 0 dense elements, NaN propagating. */
    float (*max)(const float *x, int64_t n);
    float (*min)(const float *x, int64_t n);
    double (*sum)(const float *x, int64_t n);
    double (*sum_square)(const float *x, int64_t n);
    /* Multiplies in f32. */
    float (*product)(const float *x, int64_t n);
    double (*dot)(const float *a, const float *b, int64_t n);
    /* sum e^(x - m) */
    double (*sum_exp)(const float *x, int64_t n, float m);
    /* The first element that equals value, or is NaN where value is; n where
     * there is none. */
    int64_t (*find)(const float *x, int64_t n, float value);
    /* y = e^(x - m), giving their sum; y may be x. */
    double (*exp_row)(float *y, const float *x, int64_t n, float m);
    /* y = x scale; y may be x. */
    void (*scale_row)(float *y, const float *x, int64_t n, float scale);
    /* y = x - m - l; y may be x. */
    void (*shift_row)(float *y, const float *x, int64_t n, float m, float l);

    /* sum (x - m)^2, of f32 differences */
    double (*square_about)(const float *x, int64_t n, float m);
    /* y = (x - m) factor scale + bias; bias NULL: none; y may be x.  Whether a
     * scale may be more than NORM_SCALE: then (x - m) factor may have lost
     * digits that the result should have. */
    bool (*norm_row)(float *y, const float *x, int64_t n, float m,
                     float factor, const float *scale, const float *bias);

    /* Over rows x columns with stride elements from row to row, into one
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
    /* y = e^(x - m[column]), and their sums; y NULL: the sums alone. */
    void (*column_exp)(float *y, int64_t y_stride, const float *x, int64_t rows,
                       int64_t stride, int64_t columns, const float *m,
                       double *accumulators);
    /* The first winner of each column: if a row beats best[column], its value
     * becomes best[column] and its number found[column].  NaN beats every
     * number, and nothing beats NaN.  At most FIND_ROWS rows. */
    void (*column_argmax)(const float *x, int64_t rows, int64_t stride,
                          int64_t columns, float *best, float *found);
    void (*column_argmin)(const float *x, int64_t rows, int64_t stride,
                          int64_t columns, float *best, float *found);

    /* y[c * y_stride + r] = x[r * x_stride + c] of 4-byte elements. */
    void (*transpose4)(uint32_t *y, int64_t y_stride, const uint32_t *x,
                       int64_t x_stride, int64_t rows, int64_t columns);

    /* y = x, n dense elements of f16 or bf16 and of f32; common/float16.h. */
    void (*f16_widen)(float *y, const uint16_t *x, int64_t n);
    void (*bf16_widen)(float *y, const uint16_t *x, int64_t n);
    void (*f16_narrow)(uint16_t *y, const float *x, int64_t n);
    void (*bf16_narrow)(uint16_t *y, const float *x, int64_t n);

    /* As cpu/kernels/cast_element.h's table. */
    const dense_cast_fn (*casts)[CAST_TARGETS];
};

/* Fill table (whole, or what they replace). */
void kernels_generic(struct kernels *table);
void kernels_avx2(struct kernels *table);
void kernels_avx512(struct kernels *table);
void kernels_neon(struct kernels *table);

/* The best table that this machine has, at most that of the level named
 * ("generic"; on x86-64 "avx2", "avx512"; on AArch64 "neon"; NULL: no limit).
 * NULL for another name. */
const struct kernels *kernels_choose(const char *limit);
/* The levels that this machine has, separated by spaces. */
const char *kernels_levels(void);

/* The element-wise rows in plain C; reference.c. */
void generic_elementwise_kernels(row_fn *rows);

#endif
