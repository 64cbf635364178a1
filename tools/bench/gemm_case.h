/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures one GEMM on data in device memory, next to the library that users
 * would call instead, and computes the errors of both.  Single-threaded.
 *
 * A row's shape is MxNxK or BATCHxMxNxK.  The words of its detail, joined by +:
 *   ta, tb        a or b is transposed
 *   bias, relu    what follows the product
 *   tf32          TANDEM_GEMM_ALLOW_TF32
 *   normwise      TANDEM_GEMM_ALLOW_NORMWISE_ERROR
 *   f16, bf16     the dtype, f32 by default
 *   packed        the device may keep a packed copy of b; a is written before
 *                 each product.  Other rows pack nothing.
 * and the values, by default random numbers in [-1, 1):
 *   positive      absolute values of these
 *   rowscale      rows of a times powers of 2 from -10 to 10
 *   columnscale   columns of b times powers of 2 from -10 to 10
 *   depthscale    columns of a times such powers, rows of b divided by them
 *   extreme       a times 1e25, b divided by it
 */
#ifndef TANDEM_BENCH_GEMM_CASE_H
#define TANDEM_BENCH_GEMM_CASE_H

#include "bench.h"

#define SAMPLE_SIDE 32

/* Entries of the first batch's product, computed in float64: SAMPLE_SIDE rows
 * by as many columns, drawn from all. */
struct sampled_entries {
    uint32_t row_count, column_count;
    int64_t rows[SAMPLE_SIDE], columns[SAMPLE_SIDE];
    double want[SAMPLE_SIDE * SAMPLE_SIDE];
    double magnitude[SAMPLE_SIDE * SAMPLE_SIDE]; /* |a||b| + |bias| */
};

enum inputs { UNIFORM, POSITIVE, ROWSCALE, COLUMNSCALE, DEPTHSCALE, EXTREME };

struct gemm_case {
    struct bench *bench;
    enum inputs inputs;
    bool bias, relu, packed;
    uint32_t dtype;
    struct tandem_gemm gemm;          /* as the row says */
    struct tandem_gemm plain;         /* without what follows the product */
    struct tandem_buffer *buffers[4]; /* a, b, bias, c */
    float *a, *b, *bias_values;       /* on the host */
    float *c;                         /* for a reference on the host */
    struct sampled_entries samples;
    struct clblast *clblast; /* its side, or NULL */
};

/* Measures the bench's row. */
void gemm_case_measure(struct bench *bench);

/* Elements of each operand, batches included. */
uint64_t gemm_case_elements(const struct gemm_case *p, char operand);
/* The value at an index of operand 'a', 'b' or '+' (the bias), exact in the
 * product's dtype.  pytorch_baseline.py computes the same. */
float gemm_case_value(const struct gemm_case *p, char operand, uint64_t index);

/* Writes floats to a buffer, reads a row of n of one, in the product's
 * dtype. */
enum tandem_status operand_upload(const struct gemm_case *p,
                                  struct tandem_buffer *buffer,
                                  const float *values, uint64_t count);
bool operand_row(const struct gemm_case *p, struct tandem_buffer *buffer,
                 int64_t row, float *out);

void samples_fill(const struct gemm_case *p, struct sampled_entries *samples);
/* Errors of rows of c (as float) that were read: the largest over the
 * entry's magnitude, and over the largest result. */
void gemm_reference_errors(const struct sampled_entries *samples,
                           const float *rows, int64_t n,
                           double *out_componentwise, double *out_max_relative);

#ifdef BENCH_OPENCL
/* CLBlast called directly on copies of a and b; NULL: not to be had.  run is
 * a bench_fn.  read brings one row of c. */
struct clblast *clblast_create(struct gemm_case *p);
void clblast_destroy(struct clblast *clblast);
double clblast_run(void *clblast, uint64_t count);
bool clblast_read(struct clblast *clblast, int64_t row, float *out);
#endif

#endif
