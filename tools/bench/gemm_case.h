/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One GEMM on data in device memory, compared with the library that users would
 * call instead.  Single-threaded.
 *
 * A row's shape is MxNxK or BATCHxMxNxK.  The words of its detail, joined by +:
 *   ta, tb        a or b is transposed
 *   bias, relu    a bias for each column is added, relu is applied
 *   tf32          TANDEM_GEMM_ALLOW_TF32
 *   normwise      TANDEM_GEMM_ALLOW_NORMWISE_ERROR
 *   f16, bf16     the dtype; f32 by default
 *   packed        the device may keep a packed copy of b; a is written before
 *                 each GEMM.  Other rows keep no packed copies.
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

/* Entries of the first result of a batch, computed in float64: SAMPLE_SIDE
 * randomly drawn rows by as many columns. */
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
    struct tandem_gemm plain;         /* the same without bias and relu */
    struct tandem_buffer *buffers[4]; /* a, b, bias, c */
    /* relu and add on c, in place; NULL before their first launch. */
    struct tandem_prepared *after[2];
    float *a, *b, *bias_values; /* on the host */
    float *c;                   /* for a reference on the host */
    struct sampled_entries samples;
    struct clblast *clblast; /* owned; NULL without CLBlast */
};

/* Returns the number of elements of operand 'a', 'b', 'c' or '+' (the bias) in
 * all batches. */
uint64_t gemm_case_elements(const struct gemm_case *p, char operand);
/* Returns an element of operand 'a', 'b' or '+', which is exact in the dtype of
 * the row.  pytorch_baseline.py computes the same values. */
float gemm_case_value(const struct gemm_case *p, char operand, uint64_t index);

/* Uploads floats to a buffer in the dtype of the row. */
enum tandem_status operand_upload(const struct gemm_case *p,
                                  struct tandem_buffer *buffer,
                                  const float *values, uint64_t count);
/* Downloads row `row` of a buffer that has n columns.  Returns false on
 * failure. */
bool operand_row(const struct gemm_case *p, struct tandem_buffer *buffer,
                 int64_t row, float *out);

void samples_fill(const struct gemm_case *p, struct sampled_entries *samples);
/* Computes the largest error of the sampled entries, relative to the entry's
 * magnitude and relative to the largest result.  `rows` are the sampled rows of
 * c, with n columns. */
void gemm_reference_errors(const struct sampled_entries *samples,
                           const float *rows, int64_t n,
                           double *out_componentwise, double *out_max_relative);

#ifdef BENCH_OPENCL
/* Copies a and b to buffers for direct calls of CLBlast.  Returns NULL on
 * failure. */
struct clblast *clblast_create(struct gemm_case *p);
void clblast_destroy(struct clblast *clblast);
double clblast_runs(void *clblast, uint64_t count); /* a bench_fn */
/* Reads row `row` of c.  Returns false on failure. */
bool clblast_read(struct clblast *clblast, int64_t row, float *out);
#endif

#endif
