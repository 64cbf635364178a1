/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the CPU plugin's kernels (inner loops), one for each instruction
 * set level: generic C, AVX2 and AVX-512 on x86-64; generic C and NEON on
 * AArch64.  Each level copies the table of the level below and replaces some
 * kernels.  Kernels do not check memory ranges.  Any thread may call them.  A
 * kernel computes the same bits for an element at any position in a row, so
 * that results depend neither on strides nor on the number of threads. */
#ifndef TANDEM_CPU_KERNELS_KERNEL_TABLE_H
#define TANDEM_CPU_KERNELS_KERNEL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/backend.h>

/* Attributes of an operator in the form that its kernel reads. */
struct params {
    float f[12];
    bool flag; /* true for tanh GELU, Nesterov SGD, decoupled weight decay */
};

/* Arguments of an element-wise kernel: n contiguous elements of each operand.
 * Bit i of `constants` is set if input i is a single element that repeats.  An
 * output is allowed to be the same memory as an input. */
struct row {
    int64_t n;
    uint32_t constants;
    const void *in[4];
    void *out[3];
    const struct params *params; /* NULL: the operator has no attributes */
};
typedef void (*row_fn)(const struct row *row);

/* Lists the operators of several inputs that every instruction set level
 * implements in its own row functions, as X(id, name). */
#define ROWS_OF_ALL_LEVELS(X)                                                  \
    X(ADD, add)                                                                \
    X(SUB, sub) X(MUL, mul) X(DIV, div) X(POW, pow) X(MIN, min) X(MAX, max)    \
        X(PRELU, prelu) X(WHERE, where) X(FMA, fma) X(RELU_GRAD, relu_grad)
/* Lists vectorized_loops.h's operators with bool results, as X(id, name). */
#define BOOL_ROWS(X)                                                           \
    X(EQUAL, equal)                                                            \
    X(NOT_EQUAL, not_equal) X(LESS, less) X(LESS_EQUAL, less_equal)            \
        X(GREATER, greater) X(GREATER_EQUAL, greater_equal) X(AND, and)        \
            X(OR, or) X(XOR, xor) X(NOT, not ) X(IS_NAN, isnan)                \
                X(IS_INF, isinf)

/* Passed as X to the lists above: stores the function row_<name> in `rows`. */
#define ROW_FILL(number, name) rows[TANDEM_OP_##number] = row_##name;

/* Number of strided elements that are copied to a contiguous buffer at once. */
#define PACK_ELEMENTS 512
/* A column sum adds each group of COLUMN_ROWS rows in f32, and adds the sums of
 * the groups in f64. */
#define COLUMN_ROWS 32
/* Maximum rows per column_argmax call, which stores row numbers as f32. */
#define FIND_ROWS 4096

/* Function that casts n contiguous elements.  The operands do not overlap. */
typedef void (*dense_cast_fn)(void *to, const void *from, int64_t n);
#define CAST_SOURCES 4
#define CAST_TARGETS 6

/* Column reductions.  `stride` is the distance between rows in elements. */
typedef void (*column_fn)(const float *x, int64_t rows, int64_t stride,
                          int64_t columns, float *accumulators);
typedef void (*column_sum_fn)(const float *x, int64_t rows, int64_t stride,
                              int64_t columns, double *accumulators);
typedef void (*column_find_fn)(const float *x, int64_t rows, int64_t stride,
                               int64_t columns, float *best, float *found);

/* Arguments of a kernel that stores
 * y[r * y_stride + i] = start[r * start_stride] + the sum of
 * w[r * w_stride + t] * x[t][i] for t < terms, for r < rows and i < n.  If
 * `start` is NULL, adds the sum to the element of `y`. */
struct weighted_sums {
    int64_t rows, terms, n;
    float *y;
    const float *start, *w;
    int64_t y_stride, start_stride, w_stride;
    const float *const *x;
};

struct kernels {
    const char *name;
    row_fn rows[TANDEM_OP_ID_END]; /* of f32 and bool, indexed by operator */
    const row_fn *i32_rows, *i64_rows;

    /* Reductions of n > 0 contiguous elements; max and min propagate NaN. */
    float (*max)(const float *x, int64_t n);
    float (*min)(const float *x, int64_t n);
    double (*sum)(const float *x, int64_t n);
    double (*sum_square)(const float *x, int64_t n);
    /* Multiplies in f32. */
    float (*product)(const float *x, int64_t n);
    double (*dot)(const float *a, const float *b, int64_t n);
    /* Returns the sum of e^(x - m) over a row `x`. */
    double (*sum_exp)(const float *x, int64_t n, float m);
    /* Returns the index of the first element that equals `value`, or of the
     * first NaN if `value` is NaN.  Returns n if no element matches. */
    int64_t (*find)(const float *x, int64_t n, float value);
    /* Stores y = e^(x - m) and returns the sum of `y`.  `y` may alias `x`. */
    double (*exp_row)(float *y, const float *x, int64_t n, float m);
    /* Stores y = x * scale.  `y` may alias `x`. */
    void (*scale_row)(float *y, const float *x, int64_t n, float scale);
    /* Stores y = x - m - l.  `y` may alias `x`. */
    void (*shift_row)(float *y, const float *x, int64_t n, float m, float l);

    /* These functions store the softmax or log-softmax of rows of at most
     * short_row elements.  `y` may alias `x`.  The generic level has none, and
     * its short_row is 0. */
    void (*short_softmax)(float *y, int64_t y_stride, const float *x,
                          int64_t x_stride, int64_t rows, int64_t n);
    void (*short_log_softmax)(float *y, int64_t y_stride, const float *x,
                              int64_t x_stride, int64_t rows, int64_t n);
    int64_t short_row;

    /* Returns the sum of (x - m)^2 over a row `x`.  Rounds x - m to f32. */
    double (*square_about)(const float *x, int64_t n, float m);
    /* Stores y = (x - m) * factor * scale + bias, without the bias if `bias` is
     * NULL.  `y` may alias `x`.  A subnormal (x - m) * factor loses digits,
     * which the metric of the norms allows. */
    void (*norm_row)(float *y, const float *x, int64_t n, float m, float factor,
                     const float *scale, const float *bias);

    void (*weighted_sums)(const struct weighted_sums *sums);
    bool sums_are_fast; /* faster than a product of matrices by the CBLAS */
    /* Stores y[i] = the maximum of x[t][i] for t < terms, and of the old y[i]
     * if `accumulates` is true.  The maximum with NaN is NaN. */
    void (*row_maxima)(float *y, const float *const *x, int64_t terms,
                       int64_t n, bool accumulates);
    /* Copies rows of n elements.  The strides are in elements.  Rows of `y` may
     * overlap rows of `x` if no element of `y` is after its source. */
    void (*copy_rows)(float *y, int64_t y_stride, const float *x,
                      int64_t x_stride, int64_t rows, int64_t n);
    /* Stores even[i] = x[2 * i] and odd[i] = x[2 * i + 1] for i < n. */
    void (*deinterleave)(float *even, float *odd, const float *x, int64_t n);

    /* These functions combine `rows` rows into one accumulator per column. */
    column_fn column_max, column_min, column_product;
    column_sum_fn column_sum, column_sum_square;
    /* Stores y = e^(x - m[column]) and adds `y` to the accumulators of the
     * columns.  If `y` is NULL, only computes the sums. */
    void (*column_exp)(float *y, int64_t y_stride, const float *x, int64_t rows,
                       int64_t stride, int64_t columns, const float *m,
                       double *accumulators);
    /* column_argmax finds the first maximum of each column, and column_argmin
     * the first minimum.  If an element beats best[column], the element is
     * stored in best[column], and its row number in found[column].  NaN beats
     * every number, and nothing beats NaN.  `rows` is at most FIND_ROWS. */
    column_find_fn column_argmax, column_argmin;

    /* Transposes 4-byte elements: y[c * y_stride + r] = x[r * x_stride + c]. */
    void (*transpose4)(uint32_t *y, int64_t y_stride, const uint32_t *x,
                       int64_t x_stride, int64_t rows, int64_t columns);

    /* These functions convert n contiguous elements from or to f32, and round
     * as described in float16.h. */
    void (*f16_widen)(float *y, const uint16_t *x, int64_t n);
    void (*bf16_widen)(float *y, const uint16_t *x, int64_t n);
    void (*f16_narrow)(uint16_t *y, const float *x, int64_t n);
    void (*bf16_narrow)(uint16_t *y, const float *x, int64_t n);

    /* Cast functions in the order of CAST_TABLE in cast_element.h. */
    const dense_cast_fn (*casts)[CAST_TARGETS];
};

/* kernels_generic fills the table; the other functions replace entries. */
void kernels_generic(struct kernels *table);
void kernels_avx2(struct kernels *table);
void kernels_avx512(struct kernels *table);
void kernels_neon(struct kernels *table);

/* Returns the table of the highest level that this machine supports, but no
 * higher than level `limit`.  `limit` is "generic", "avx2" or "avx512" on
 * x86-64, and "generic" or "neon" on AArch64.  NULL means no limit.  Returns
 * NULL if `limit` is any other string. */
const struct kernels *kernels_choose(const char *limit);
/* Returns the names of the supported levels, separated by spaces. */
const char *kernels_levels(void);

/* Stores the element-wise kernels of generic_elementwise.c in `rows`. */
void generic_elementwise_kernels(row_fn *rows);

#endif
