/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A matrix product of resident data, as a row says it, against the library
 * that users would call instead, with its errors.  Single-threaded.
 *
 * A row's shape is MxNxK or BATCHxMxNxK; the words of its detail, with + in
 * between: ta, tb (a, b transposed), bias, relu, tf32 (allowed), fast (rows
 * and columns may share a scale: TANDEM_GEMM_ALLOW_NORMWISE_ERROR), f16, bf16,
 * kept (b may be kept as a kernel wants it, while a is written before each
 * product; of the operands of other rows nothing is kept); and what the
 * operands are, where they are not from [-1, 1) alike: positive; rowscale,
 * columnscale (rows of a, columns of b times powers of 2 from -10 to 10),
 * depthscale (columns of a, and rows of b by as much the other way); extreme (a
 * times 1e25, b by as much).
 */
#ifndef TANDEM_BENCH_GEMM_CASE_H
#define TANDEM_BENCH_GEMM_CASE_H

#include "bench.h"

#define PROBE_SIDE 32

/* Entries of the first batch's product, computed in float64: PROBE_SIDE rows
 * by as many columns, drawn from all. */
struct probe {
    uint32_t row_count, column_count;
    int64_t rows[PROBE_SIDE], columns[PROBE_SIDE];
    double want[PROBE_SIDE * PROBE_SIDE];
    double magnitude[PROBE_SIDE * PROBE_SIDE]; /* |a||b| + |bias| */
};

enum inputs { UNIFORM, POSITIVE, ROWSCALE, COLUMNSCALE, DEPTHSCALE, EXTREME };

struct product {
    struct bench *bench;
    enum inputs inputs;
    bool bias, relu, kept;
    uint32_t dtype;
    struct tandem_gemm gemm;  /* as the row says */
    struct tandem_gemm plain; /* without what follows the product */
    struct tandem_buffer *buffers[4]; /* a, b, bias, c */
    float *a, *b, *bias_values; /* on the host */
    float *c;                   /* for a reference on the host */
    struct probe probe;
    struct clblast *clblast; /* its side, or NULL */
};

/* Measures the bench's row. */
void gemm_case_measure(struct bench *bench);

/* Elements of each operand, batches included. */
uint64_t gemm_case_elements(const struct product *p, char operand);
/* The value at an index of operand 'a', 'b' or '+' (the bias), exact in the
 * product's dtype.  pytorch_baseline.py computes the same. */
float gemm_case_value(const struct product *p, char operand, uint64_t index);

/* Writes floats to a buffer, reads a row of n of one, in the product's
 * dtype. */
enum tandem_status operand_upload(const struct product *p,
                                  struct tandem_buffer *buffer,
                                  const float *values, uint64_t count);
bool operand_row(const struct product *p, struct tandem_buffer *buffer,
                 int64_t row, float *out);

void probe_fill(const struct product *p, struct probe *probe);
/* Errors of rows of c (as float) that were read: the largest over the
 * entry's magnitude, and over the largest result. */
void gemm_reference_errors(const struct probe *probe, const float *rows,
                           int64_t n, double *out_componentwise,
                           double *out_max_relative);

#ifdef BENCH_OPENCL
/* CLBlast called directly on copies of a and b; NULL: not to be had.  run is
 * a bench_fn.  read brings one row of c. */
struct clblast *clblast_create(struct product *p);
void clblast_destroy(struct clblast *clblast);
double clblast_run(void *clblast, uint64_t count);
bool clblast_read(struct clblast *clblast, int64_t row, float *out);
#endif

#endif
