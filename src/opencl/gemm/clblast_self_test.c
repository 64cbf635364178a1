/* SPDX-License-Identifier: Apache-2.0 */
/* Self-test of CLBlast: compares elements of GEMM results with f64 sums. */
#include "opencl/gemm/clblast.h"
#include "opencl/gemm/clblast_params.h"

#include <clblast_c.h>
#include <math.h>
#include <stdlib.h>

#include "opencl/device/cl_status.h"

#define BATCH 2
#define ALPHA 2.0f
#define BETA 0.5f
#define INITIAL_C 1.0f
/* Allowed error of an element, in units of 2^-24 times the sum of the
 * magnitudes of its terms. With f32 sums, the error is below 2 units. */
#define TOLERANCE 16.0
#define SAMPLES 1024u
#define MAX_SIDE 2048u

struct check {
    struct tandem_device *device;
    cl_command_queue queue;
    cl_mem memory[3]; /* matrices a, b, c */
    float *host[3];
    size_t m, n, k, batch;
};

void clblast_self_test_fill(float *out, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (float)(int32_t)seed / 2147483648.0f;
    }
}

static enum tandem_status check_start(struct check *check)
{
    const size_t counts[3] = {check->m * check->k * check->batch,
                              check->k * check->n * check->batch,
                              check->m * check->n * check->batch};
    cl_int code = CL_SUCCESS;
    check->queue = clCreateCommandQueue(check->device->context,
                                        check->device->hardware->id, 0, &code);
    for (uint32_t i = 0; i < 3 && code == CL_SUCCESS; i++) {
        check->host[i] = malloc(counts[i] * sizeof(float));
        if (check->host[i] == NULL)
            return memory_error("out of host memory");
        clblast_self_test_fill(check->host[i], counts[i], i + 1);
        for (size_t j = 0; j < counts[i] && i == 2; j++)
            check->host[i][j] = INITIAL_C;
        check->memory[i] = clCreateBuffer(
            check->device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
            counts[i] * sizeof(float), check->host[i], &code);
    }
    return status_from_cl(check->device, code, "clCreateBuffer");
}

static void check_end(struct check *check)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (check->memory[i] != NULL)
            clReleaseMemObject(check->memory[i]);
        free(check->host[i]);
    }
    if (check->queue != NULL)
        clReleaseCommandQueue(check->queue);
}

static enum tandem_status check_run(struct check *check)
{
    size_t m = check->m, n = check->n, k = check->k;
    int code;
    if (check->batch > 1)
        code = CLBlastSgemmStridedBatched(
            CLBlastLayoutColMajor, CLBlastTransposeNo, CLBlastTransposeNo, m, n,
            k, ALPHA, check->memory[0], 0, m, m * k, check->memory[1], 0, k,
            k * n, BETA, check->memory[2], 0, m, m * n, check->batch,
            &check->queue, NULL);
    else
        code = CLBlastSgemm(CLBlastLayoutColMajor, CLBlastTransposeNo,
                            CLBlastTransposeNo, m, n, k, ALPHA,
                            check->memory[0], 0, m, check->memory[1], 0, k,
                            BETA, check->memory[2], 0, m, &check->queue, NULL);
    if (code == CLBlastSuccess)
        code = clEnqueueReadBuffer(check->queue, check->memory[2], CL_TRUE, 0,
                                   m * n * check->batch * sizeof(float),
                                   check->host[2], 0, NULL, NULL);
    return status_from_clblast(check->device, code, "CLBlastSgemm");
}

static bool is_element_correct(const struct check *check, size_t entry)
{
    size_t m = check->m, k = check->k;
    size_t batch = entry / (m * check->n), within = entry % (m * check->n);
    const float *a = check->host[0] + batch * m * k + within % m;
    const float *b = check->host[1] + batch * k * check->n + within / m * k;
    double sum = (double)BETA * INITIAL_C, size = sum;
    for (size_t i = 0; i < k; i++) {
        double term = (double)ALPHA * (double)a[i * m] * (double)b[i];
        sum += term;
        size += fabs(term);
    }
    return fabs((double)check->host[2][entry] - sum) <=
           TOLERANCE * 0x1p-24 * size;
}

static enum tandem_status check_compare(const struct check *check)
{
    size_t count = check->m * check->n * check->batch;
    uint64_t state = 1;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        /* The first and the last element of c are always compared. */
        size_t entry = i == 0   ? 0
                       : i == 1 ? count - 1
                                : (size_t)((state >> 20) % count);
        if (!is_element_correct(check, entry))
            return last_error_set(TANDEM_FAILED,
                                  "CLBlast GEMM of %zu x %zu x %zu is wrong at "
                                  "element %zu: %g",
                                  check->m, check->n, check->k, entry,
                                  (double)check->host[2][entry]);
    }
    return TANDEM_OK;
}

/* Tests one GEMM. Its m, n and k are not multiples of any tile size. */
static enum tandem_status check_one(struct tandem_device *device, bool batched,
                                    size_t side)
{
    struct check check = {.device = device,
                          .m = side + 5,
                          .n = side + 3,
                          .k = side + 1,
                          .batch = batched ? BATCH : 1};
    enum tandem_status status = check_start(&check);
    if (status == TANDEM_OK)
        status = check_run(&check);
    if (status == TANDEM_OK)
        status = check_compare(&check);
    check_end(&check);
    return status;
}

enum tandem_status clblast_self_test_run(struct tandem_device *device,
                                         bool batched, uint32_t min_indirect)
{
    uint32_t side = min_indirect < MAX_SIDE ? min_indirect : MAX_SIDE;
    enum tandem_status status = TANDEM_OK;
    clblast_init_once(&device->utility);
    if (min_indirect > 16)
        status = check_one(device, batched, 10);
    return status == TANDEM_OK
               ? check_one(device, batched, side < 132 ? 132 : side)
               : status;
}
