/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM with the CBLAS library.  launch.c calls gemm_prepare, and then either
 * gemv_run or the functions of parallel_gemm.c.  Callable from any thread. */
#ifndef TANDEM_CPU_GEMM_GEMM_H
#define TANDEM_CPU_GEMM_GEMM_H

#include <stdatomic.h>

#include "cpu/objects.h"

/* A GEMM and the addresses of its operands. */
struct gemm_call {
    const struct tandem_gemm *gemm; /* normalized by gemm_args_normalize */
    const struct kernels *kernels;
    struct pool *pool;
    const float *a, *b;   /* operands, of dtype gemm->dtype */
    const float *bias;    /* of dtype gemm->c_dtype, later as f32 */
    float *c;             /* result, of dtype gemm->c_dtype */
    struct params params; /* attributes of the activation */
};

/* A GEMM divided into blocks of the result `c`.  If splits > 1, each block is
 * also divided into ranges of k.  Workspace sizes are in floats. */
struct gemm_job {
    struct gemm_call *call;
    const struct tandem_gemm *gemm;
    void (*ab_to_f32)(float *y, const uint16_t *x, int64_t n); /* or NULL */
    void (*c_to_f32)(float *y, const uint16_t *x, int64_t n);
    void (*f32_to_c)(uint16_t *y, const float *x, int64_t n); /* or NULL */
    bool ta, tb; /* true if `a` (`b`) is transposed */
    int64_t threads;
    int64_t rows, columns, depth; /* maximum extents of a block along m, n, k */
    int64_t row_blocks, column_blocks, splits;
    /* Sizes of the parts of a workspace slot for `a`, `b` and `c`, and of the
     * slot.  The size is 0 for a matrix that is used in place. */
    int64_t a_floats, b_floats, c_floats, slot_floats;
    int64_t sum_floats, bias_floats;
    uint64_t workspace_bytes;
    /* False if all types are f32.  An f32 GEMM uses a workspace only to split
     * k, and does not split k without a workspace. */
    bool needs_workspace;
    float *workspace, *sums; /* `sums` holds the partial sums of each k range */
    atomic_uchar *slot_taken; /* for each workspace slot, 1 if it is in use */
};

/* The addresses of the operands' first elements; bias may be NULL. */
struct gemm_addresses {
    void *a, *b, *bias, *c;
};

/* Returns TANDEM_UNSUPPORTED if a dimension exceeds the integer range of the
 * CBLAS. */
enum tandem_status gemm_check_sizes(const struct tandem_gemm *gemm);
/* Fills `out` for a GEMM that gemm_args_normalize has normalized and that
 * gemm_check_sizes has accepted.  Fails if the CBLAS cannot restart its
 * threads. */
enum tandem_status gemm_prepare(struct gemm_call *out,
                                const struct tandem_gemm *gemm,
                                const struct gemm_addresses *operands,
                                const struct kernels *kernels,
                                struct pool *pool);

/* Returns true if gemv_run supports the call: all types are f32, `c` is one row
 * or column, k > 0, and alpha is not 0. */
bool gemv_supports(const struct gemm_call *call);
void gemv_run(const struct gemm_call *call);

/* Divides the GEMM into blocks and computes job->workspace_bytes. */
void parallel_gemm_prepare(struct gemm_job *job, struct gemm_call *call);
/* Accepts NULL as the workspace if job->needs_workspace is false. */
void parallel_gemm_run(struct gemm_job *job, void *workspace);

/* Applies bias and activation to `n` f32 elements at address `c`.  The first of
 * these elements is at (row, column) of the result. */
void gemm_epilogue_apply(const struct gemm_call *call, float *c, int64_t row,
                         int64_t column, int64_t n);

#endif
