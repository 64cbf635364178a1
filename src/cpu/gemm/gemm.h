/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMM through the CBLAS that the plugin was built with.  launch.c calls
 * gemm_prepare, then gemv_run or parallel_gemm_prepare and parallel_gemm_run.
 * Callable from any thread.
 */
#ifndef TANDEM_CPU_GEMM_GEMM_H
#define TANDEM_CPU_GEMM_GEMM_H

#include <stdatomic.h>

#include "cpu/objects.h"

/* One GEMM with its operands' addresses. */
struct gemm_call {
    const struct tandem_gemm *gemm; /* normalized by gemm_args_normalize */
    const struct kernels *kernels;
    struct pool *pool;
    const float *a, *b;   /* valid only if gemm->dtype is f32 */
    const float *bias;    /* as f32 */
    float *c;             /* valid only if gemm->c_dtype is f32 */
    struct params params; /* attributes of the activation */
};

/* A GEMM divided into blocks of c, and into ranges of k if splits > 1.  Sizes
 * of the workspace are in f32 elements. */
struct gemm_job {
    struct gemm_call *call;
    const struct tandem_gemm *gemm;
    void (*ab_to_f32)(float *y, const uint16_t *x, int64_t n); /* or NULL */
    void (*c_to_f32)(float *y, const uint16_t *x, int64_t n);
    void (*f32_to_c)(uint16_t *y, const float *x, int64_t n); /* or NULL */
    bool ta, tb; /* a or b is transposed */
    int64_t threads;
    int64_t rows, columns, depth; /* maximum extents of a block */
    int64_t row_blocks, column_blocks, splits;
    /* Workspace slot of one thread; 0 if the matrix is used in place. */
    int64_t a_floats, b_floats, c_floats, slot_floats;
    int64_t sum_floats, bias_floats;
    uint64_t workspace_bytes;
    float *workspace, *sums; /* sums of each range of k, in order */
    atomic_uchar *slot_taken; /* one flag for each slot */
};

/* Returns TANDEM_UNSUPPORTED if a dimension exceeds the range of the BLAS's
 * integers.  gemm has passed check_gemm. */
enum tandem_status gemm_supports(const struct tandem_gemm *gemm);
/* Fills out for a normalized GEMM with m, n > 0.  Fails like gemm_supports, or
 * if the BLAS cannot be used in this process. */
enum tandem_status gemm_prepare(struct gemm_call *out,
                                const struct tandem_gemm *gemm,
                                const struct kernels *kernels,
                                struct pool *pool);

/* Returns true if gemv_run computes the call: f32 with one row or column. */
bool gemv_supports(const struct gemm_call *call);
void gemv_run(const struct gemm_call *call);

/* Divides the call into blocks and computes job->workspace_bytes. */
void parallel_gemm_prepare(struct gemm_job *job, struct gemm_call *call);
/* Returns false if parallel_gemm_run accepts NULL in place of a workspace: an
 * f32 GEMM needs it only for split-k and is then computed without. */
bool parallel_gemm_needs_workspace(const struct gemm_job *job);
/* Computes the GEMM.  The caller owns the workspace. */
void parallel_gemm_run(struct gemm_job *job, void *workspace);

/* Applies bias and activation to n elements at c, in f32: the elements of the
 * result's row `row` from column `column` on. */
void gemm_epilogue_apply(const struct gemm_call *call, float *c, int64_t row,
                         int64_t column, int64_t n);

#endif
