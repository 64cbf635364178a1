/* SPDX-License-Identifier: Apache-2.0 */
/* A small product on the device, and the same in double. */
#include "opencl/proof.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/device.h"
#include "opencl/nvidia/proof.h"
#include "opencl/product.h"
#include "opencl/status.h"

/* No multiple of a slice, but of four, so that no tile has to have its operands
 * packed; and two tiles each way, with an edge to them. */
#define DEPTH 276
#define LINE 280
#define TILES_ACROSS 3
/* Of eps = 2^-24 times the sum of the magnitudes: plain f32 was seen at 2, a
 * product of TF32 at 200, one without f32 sums at 40. */
#define TOLERANCE 8.0

#define MARKS (TILES_ACROSS * TILES_ACROSS)

enum memory { MEMORY_A, MEMORY_B, MEMORY_RESULT, MEMORIES };

struct proof {
    int64_t m, n;
    bool a_outer, b_outer; /* a lies along m, b along n; else along k */
    float *a, *b;
    float *sums; /* m x n, and then the marks: the plan's temporary */
    cl_mem memory[MEMORIES];
    cl_command_queue queue;
};

bool proof_wanted(uint64_t key)
{
    return KEY_KERNEL(key) == KERNEL_STRICT ||
           KEY_KERNEL(key) == KERNEL_TENSOR || KEY_KERNEL(key) == KERNEL_WGMMA;
}

/* Numbers in [-1, 1) of every digit (a linear congruential generator, with the
 * multiplier of Numerical Recipes). */
static void numbers_fill(float *out, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (float)(int32_t)seed / 2147483648.0f;
    }
}

static float *a_at(const struct proof *proof, int64_t row, int64_t k)
{
    return proof->a + (proof->a_outer ? k * proof->m + row : row * LINE + k);
}

static float *b_at(const struct proof *proof, int64_t row, int64_t k)
{
    return proof->b + (proof->b_outer ? k * proof->n + row : row * LINE + k);
}

static enum tandem_status proof_start(struct proof *proof,
                                      struct tandem_device *device,
                                      uint64_t key)
{
    const struct tile *tile = &tiles[KEY_TILE(key)];
    cl_int code = CL_SUCCESS;
    proof->a_outer = KEY_A_OUTER(key) != 0;
    proof->b_outer = KEY_B_OUTER(key) != 0;
    proof->m = (TILES_ACROSS - 1) * tile->m + 4;
    proof->n = (TILES_ACROSS - 1) * tile->n + 8;
    size_t counts[3] = {(size_t)proof->m * LINE, (size_t)proof->n * LINE,
                        (size_t)(proof->m * proof->n) + MARKS};
    proof->a = calloc(counts[0], sizeof(float));
    proof->b = calloc(counts[1], sizeof(float));
    proof->sums = calloc(counts[2], sizeof(float));
    if (proof->a == NULL || proof->b == NULL || proof->sums == NULL)
        return message_set(TANDEM_OUT_OF_MEMORY, "out of host memory");
    numbers_fill(proof->a, counts[0], 1);
    numbers_fill(proof->b, counts[1], 2);
    /* What has digits below those of TF32; and, in the last tiles of each
     * axis, what is to be marked. */
    for (int64_t k = 0; k < DEPTH; k++)
        *a_at(proof, 3, k) *= 1e-38f;
    *a_at(proof, proof->m - 1, 5) = INFINITY;
    *b_at(proof, proof->n - 1, 9) = 3.4028234e38f;
    for (size_t i = 0; i < counts[2] - MARKS; i++)
        proof->sums[i] = NAN;
    float *from[MEMORIES] = {proof->a, proof->b, proof->sums};
    proof->queue =
        clCreateCommandQueue(device->context, device->hardware->id, 0, &code);
    for (uint32_t i = 0; i < MEMORIES && code == CL_SUCCESS; i++)
        proof->memory[i] = clCreateBuffer(
            device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
            counts[i] * sizeof(float), from[i], &code);
    return status_from_cl(device, code, "clCreateBuffer");
}

static void proof_end(struct proof *proof)
{
    for (uint32_t i = 0; i < MEMORIES; i++)
        if (proof->memory[i] != NULL)
            clReleaseMemObject(proof->memory[i]);
    if (proof->queue != NULL)
        clReleaseCommandQueue(proof->queue);
    free(proof->a);
    free(proof->b);
    free(proof->sums);
}

/* Runs the plan's first step and reads back what it wrote. */
static cl_int proof_launch(struct proof *proof, cl_kernel kernel,
                           const struct step *step)
{
    cl_int code = CL_SUCCESS;
    size_t local = (size_t)1 << KEY_GROUP_LOG2(step->key);
    size_t global = (size_t)step->groups * local;
    for (uint32_t i = 0; i < step->buffer_count && code == CL_SUCCESS; i++)
        code = clSetKernelArg(kernel, i, sizeof(cl_mem),
                              step->buffers[i] != NULL
                                  ? &step->buffers[i]->mem
                                  : &proof->memory[MEMORY_RESULT]);
    if (code == CL_SUCCESS)
        code = clSetKernelArg(kernel, step->buffer_count, step->param_bytes,
                              step->params);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(proof->queue, kernel, 1, NULL, &global,
                                      &local, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueReadBuffer(
            proof->queue, proof->memory[MEMORY_RESULT], CL_TRUE, 0,
            ((size_t)(proof->m * proof->n) + MARKS) * sizeof(float),
            proof->sums, 0, NULL, NULL);
    return code;
}

static bool element_right(const struct proof *proof, int64_t i, int64_t j)
{
    double sum = 0, size = 0, got = proof->sums[i * proof->n + j];
    for (int64_t k = 0; k < DEPTH; k++) {
        double term =
            (double)*a_at(proof, i, k) * (double)*b_at(proof, j, k);
        sum += term;
        size += fabs(term);
    }
    return fabs(got - sum) <= TOLERANCE * 0x1p-24 * size;
}

/* Tiles are counted down the columns: matrix.cl's bands are as wide. */
static bool marks_right(const struct proof *proof)
{
    uint32_t marks[MARKS];
    memcpy(marks, proof->sums + proof->m * proof->n, sizeof(marks));
    for (uint32_t i = 0; i < MARKS; i++) {
        bool last = i % TILES_ACROSS == TILES_ACROSS - 1 ||
                    i / TILES_ACROSS == TILES_ACROSS - 1;
        if (marks[i] != (last ? 1u : 0u))
            return false;
    }
    return true;
}

static enum tandem_status proof_judge(const struct proof *proof,
                                      const struct tile *tile)
{
    if (!marks_right(proof))
        return message_set(TANDEM_FAILED,
                           "infinite and huge elements are not found");
    for (int64_t i = 0; i < (TILES_ACROSS - 1) * (int64_t)tile->m; i++)
        for (int64_t j = 0; j < (TILES_ACROSS - 1) * (int64_t)tile->n; j++)
            if (!element_right(proof, i, j))
                return message_set(TANDEM_FAILED,
                                   "a product of known numbers is wrong at "
                                   "(%lld, %lld): %g",
                                   (long long)i, (long long)j,
                                   (double)proof->sums[i * proof->n + j]);
    return TANDEM_OK;
}

enum tandem_status proof_run(struct tandem_device *device, cl_kernel kernel,
                             uint64_t key)
{
    if (KEY_KERNEL(key) != KERNEL_STRICT)
        return tensor_proof(device, kernel, key);
    struct proof proof;
    struct plan plan;
    struct tandem_buffer buffers[MEMORIES];
    enum tile_id tile = (enum tile_id)KEY_TILE(key);
    memset(&proof, 0, sizeof(proof));
    memset(buffers, 0, sizeof(buffers));
    enum tandem_status status = proof_start(&proof, device, key);
    if (status == TANDEM_OK) {
        for (uint32_t i = 0; i < MEMORIES; i++)
            buffers[i].mem = proof.memory[i];
        /* With beta, a strict kernel leaves its sums in the temporary. */
        const struct tandem_gemm gemm = {
            .struct_size = sizeof(gemm),
            .dtype = TANDEM_F32,
            .flags = (proof.a_outer ? TANDEM_GEMM_TRANSPOSE_A : 0u) |
                     (proof.b_outer ? 0u : TANDEM_GEMM_TRANSPOSE_B),
            .m = proof.m,
            .n = proof.n,
            .k = DEPTH,
            .batch = 1,
            .alpha = 1,
            .beta = 1,
            .a = {.buffer = &buffers[MEMORY_A],
                  .ld = proof.a_outer ? proof.m : LINE},
            .b = {.buffer = &buffers[MEMORY_B],
                  .ld = proof.b_outer ? proof.n : LINE},
            .c = {.buffer = &buffers[MEMORY_RESULT], .ld = proof.n}};
        plan_product(&plan, &gemm, tile, WHOLE, NULL, 0);
        status = status_from_cl(device,
                                proof_launch(&proof, kernel, &plan.step[0]),
                                "a kernel's proof");
    }
    if (status == TANDEM_OK)
        status = proof_judge(&proof, &tiles[tile]);
    proof_end(&proof);
    return status;
}
