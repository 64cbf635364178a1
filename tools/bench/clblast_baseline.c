/* SPDX-License-Identifier: Apache-2.0 */
/* Calls CLBlast without Tandem; see gemm_case.h. */
#include <config.h>

#include "gemm_case.h"

#include "raw_opencl.h"

#include <clblast_c.h>
#include <stdlib.h>

struct clblast {
    struct raw_opencl *raw_opencl; /* owned by struct bench */
    const struct tandem_gemm *gemm;
    cl_mem a, b, c;
};

static cl_mem operand(struct raw_opencl *raw_opencl, const float *values,
                      uint64_t count)
{
    cl_mem buffer = clCreateBuffer(raw_opencl->context, CL_MEM_READ_WRITE,
                                   count * sizeof(float), NULL, NULL);

    if (buffer == NULL || values == NULL ||
        clEnqueueWriteBuffer(raw_opencl->queue, buffer, CL_TRUE, 0,
                             count * sizeof(float), values, 0, NULL,
                             NULL) == CL_SUCCESS)
        return buffer;
    clReleaseMemObject(buffer);
    return NULL;
}

struct clblast *clblast_create(struct gemm_case *p)
{
    struct raw_opencl *raw_opencl = raw_opencl_of(p->bench);
    struct clblast *clblast =
        raw_opencl == NULL ? NULL : calloc(1, sizeof *clblast);

    if (clblast == NULL)
        return NULL;
    clblast->gemm = &p->plain;
    clblast->raw_opencl = raw_opencl;
    clblast->a = operand(raw_opencl, p->a, gemm_case_elements(p, 'a'));
    clblast->b = operand(raw_opencl, p->b, gemm_case_elements(p, 'b'));
    clblast->c = operand(raw_opencl, NULL, gemm_case_elements(p, 'c'));
    if (clblast->a != NULL && clblast->b != NULL && clblast->c != NULL)
        return clblast;
    clblast_destroy(clblast);
    return NULL;
}

void clblast_destroy(struct clblast *clblast)
{
    if (clblast == NULL)
        return;
    raw_opencl_free(clblast->a);
    raw_opencl_free(clblast->b);
    raw_opencl_free(clblast->c);
    free(clblast);
}

static bool enqueue(void *argument)
{
    struct clblast *clblast = argument;
    const struct tandem_gemm *g = clblast->gemm;
    size_t m = (size_t)g->m, n = (size_t)g->n, k = (size_t)g->k;
    size_t lda = (size_t)g->a.ld, ldb = (size_t)g->b.ld;
    CLBlastTranspose ta = g->flags & TANDEM_GEMM_TRANSPOSE_A
                              ? CLBlastTransposeYes
                              : CLBlastTransposeNo;
    CLBlastTranspose tb = g->flags & TANDEM_GEMM_TRANSPOSE_B
                              ? CLBlastTransposeYes
                              : CLBlastTransposeNo;

    if (g->batch == 1)
        return CLBlastSgemm(CLBlastLayoutRowMajor, ta, tb, m, n, k, 1,
                            clblast->a, 0, lda, clblast->b, 0, ldb, 0,
                            clblast->c, 0, n, &clblast->raw_opencl->queue,
                            NULL) == CLBlastSuccess;
    return CLBlastSgemmStridedBatched(
               CLBlastLayoutRowMajor, ta, tb, m, n, k, 1, clblast->a, 0, lda,
               m * k, clblast->b, 0, ldb, k * n, 0, clblast->c, 0, n, m * n,
               (size_t)g->batch, &clblast->raw_opencl->queue,
               NULL) == CLBlastSuccess;
}

BENCH_FN(clblast_runs, enqueue, raw_opencl_wait);

bool clblast_read(struct clblast *clblast, int64_t row, float *out)
{
    size_t bytes = (size_t)clblast->gemm->n * sizeof(float);

    return clEnqueueReadBuffer(clblast->raw_opencl->queue, clblast->c, CL_TRUE,
                               (size_t)row * bytes, bytes, out, 0, NULL,
                               NULL) == CL_SUCCESS;
}
