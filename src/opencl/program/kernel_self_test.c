/* SPDX-License-Identifier: Apache-2.0 */
/* A small product on the device, in two chunks of k, whose sums no activation
 * has changed, and the same in double. */
#include "opencl/program/kernel_self_test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/float16.h"
#include "opencl/memory/deferred_release.h"
#include "opencl/device/device.h"
#include "opencl/plan/tensor_core_packing.h"
#include "opencl/device/cl_status.h"
#include "opencl/program/variant_options.h"

/* No multiple of a slice, nor of a piece; of fours where all else would have to
 * be packed. */
#define DEPTH 277
#define STRICT_DEPTH 276
/* Lines of whole pieces, and others. */
#define EVEN_LINE 280
#define ODD_LINE 281
#define CHUNKS 2
/* kernel_self_test_tolerance's. */
#define STRICT_TOLERANCE 0x1p-21
#define PAIR_TOLERANCE 0x1p-20
#define TF32_TOLERANCE 0x1p-9
#define HALF_TOLERANCE 0x1p-20

enum memory { MEMORY_A, MEMORY_B, MEMORY_TEMPORARY, MEMORIES };

struct proof {
    struct tandem_gemm gemm;
    enum gemm_kernel_id tile;
    enum packed_format format;      /* strict ones split elements, too */
    double *numbers[OPERAND_COUNT]; /* rows by k */
    void *host[OPERAND_COUNT];
    float *sums; /* the temporary's end: partials, and then the marks */
    uint32_t tiles_m, tiles_n;
    struct launch_plan plan;
    struct tandem_buffer buffers[MEMORIES];
    cl_kernel kernel;
    cl_command_queue queue;
};

/* ---- numbers ---- */

static bool pairs(const struct proof *proof)
{
    return proof->format == FORMAT_FP16X3 || proof->format == FORMAT_3XTF32;
}

static int64_t rows_of(const struct proof *proof, uint32_t operand)
{
    return operand == OPERAND_A ? proof->gemm.m : proof->gemm.n;
}

static const struct tandem_matrix *matrix_of(const struct proof *proof,
                                             uint32_t operand)
{
    return operand == OPERAND_A ? &proof->gemm.a : &proof->gemm.b;
}

/* An element as the device reads it, and its value then. */
static double element_set(const struct proof *proof, void *out, size_t at,
                          float value)
{
    if (proof->format == FORMAT_F16) {
        ((uint16_t *)out)[at] = f16_round(value);
        return (double)f16_value(((uint16_t *)out)[at]);
    }
    if (proof->format == FORMAT_BF16) {
        ((uint16_t *)out)[at] = bf16_round(value);
        return (double)bf16_value(((uint16_t *)out)[at]);
    }
    ((float *)out)[at] = value;
    return (double)value;
}

/* Numbers in [-1, 1) of every digit (a linear congruential generator, with the
 * multiplier of Numerical Recipes); of pairs, a row of the smallest ones, and,
 * in the last tile, one that is not finite, or is too large to be split. */
static bool operand_make(struct proof *proof, uint32_t operand)
{
    const struct tandem_matrix *matrix = matrix_of(proof, operand);
    bool outer = operand_is_mn_major(&proof->gemm, (enum operand_id)operand);
    int64_t rows = rows_of(proof, operand);
    bool pair = pairs(proof), split = proof->format == FORMAT_3XTF32;
    uint32_t seed = operand + 1;
    proof->numbers[operand] = calloc((size_t)(rows * proof->gemm.k),
                                     sizeof(*proof->numbers[operand]));
    proof->host[operand] =
        calloc((size_t)((outer ? proof->gemm.k : rows) * matrix->ld), 4);
    if (proof->numbers[operand] == NULL || proof->host[operand] == NULL)
        return false;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t k = 0; k < proof->gemm.k; k++) {
            seed = seed * 1664525u + 1013904223u;
            float value = (float)(int32_t)seed / 2147483648.0f;
            if (pair && operand == OPERAND_A && row == 3)
                value *= 1e-38f;
            if (pair && row == rows - 1 && k == 5)
                value = split && operand == OPERAND_B ? FLT_MAX : INFINITY;
            proof->numbers[operand][row * proof->gemm.k + k] = element_set(
                proof, proof->host[operand],
                (size_t)(outer ? k * matrix->ld + row : row * matrix->ld + k),
                value);
        }
    return true;
}

/* A line that makes the operand lie as the key says. */
static int64_t line_of(enum operand_layout lies, bool outer, int64_t rows)
{
    if (lies == LAYOUT_PACKED)
        return outer ? rows + 1 : ODD_LINE;
    return outer ? rows : EVEN_LINE;
}

static void gemm_make(struct proof *proof, uint64_t key)
{
    const struct gemm_kernel_config *config = &gemm_configs[proof->tile];
    enum operand_layout a = (enum operand_layout)KEY_A_LAYOUT(key),
                        b = (enum operand_layout)KEY_B_LAYOUT(key);
    struct tandem_gemm *gemm = &proof->gemm;
    proof->tiles_m = proof->tiles_n = 2;
    *gemm = (struct tandem_gemm){
        .struct_size = sizeof(*gemm),
        .dtype = proof->format == FORMAT_F16    ? TANDEM_F16
                 : proof->format == FORMAT_BF16 ? TANDEM_BF16
                                                : TANDEM_F32,
        .flags = TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_ALLOW_NORMWISE_ERROR |
                 (a == LAYOUT_MN_MAJOR ? TANDEM_GEMM_TRANSPOSE_A : 0u) |
                 (b == LAYOUT_K_MAJOR ? TANDEM_GEMM_TRANSPOSE_B : 0u),
        .m = config->tile_m + 8,
        .n = config->tile_n + 16,
        .k = gemm_configs[proof->tile].mma_format == MMA_NONE ? STRICT_DEPTH
                                                              : DEPTH,
        .batch = 1,
        .alpha = 1,
        .c_dtype = TANDEM_F32};
    gemm->a.ld = line_of(a, a == LAYOUT_MN_MAJOR, gemm->m);
    gemm->b.ld = line_of(b, b != LAYOUT_K_MAJOR, gemm->n);
    gemm->c.ld = gemm->n;
    gemm->a.buffer = &proof->buffers[MEMORY_A];
    gemm->b.buffer = &proof->buffers[MEMORY_B];
    gemm->c.buffer = &proof->buffers[MEMORY_TEMPORARY];
}

/* ---- running ---- */

static size_t marks_count(const struct proof *proof)
{
    return pairs(proof) ? (size_t)CHUNKS * proof->tiles_m * proof->tiles_n : 0;
}

static size_t sums_count(const struct proof *proof)
{
    return (size_t)(CHUNKS * proof->gemm.m * proof->gemm.n);
}

static enum tandem_status self_test_prepare(struct proof *proof,
                                            struct tandem_device *device,
                                            uint64_t key)
{
    cl_int code = CL_SUCCESS;
    proof->tile = (enum gemm_kernel_id)KEY_GEMM_KERNEL(key);
    proof->format = KEY_KERNEL(key) == KERNEL_GEMM_3XTF32
                        ? FORMAT_3XTF32
                        : (enum packed_format)KEY_FORMAT(key);
    gemm_make(proof, key);
    plan_gemm(&proof->plan, &proof->gemm, proof->tile,
              (struct split_k){CHUNKS, ALL_GEMM_TILES}, NULL, 0);
    proof->sums = calloc(sums_count(proof) + marks_count(proof), sizeof(float));
    if (proof->sums == NULL || !operand_make(proof, OPERAND_A) ||
        !operand_make(proof, OPERAND_B))
        return last_error_set(TANDEM_OUT_OF_MEMORY, "out of host memory");
    proof->queue =
        clCreateCommandQueue(device->context, device->hardware->id, 0, &code);
    for (uint32_t i = 0; i < MEMORIES && code == CL_SUCCESS; i++) {
        bool given = i < OPERAND_COUNT;
        uint64_t bytes = proof->plan.temp_bytes;
        if (given)
            bytes =
                4 * (uint64_t)matrix_of(proof, i)->ld *
                (uint64_t)(operand_is_mn_major(&proof->gemm, (enum operand_id)i)
                               ? proof->gemm.k
                               : rows_of(proof, i));
        proof->buffers[i].mem = clCreateBuffer(
            device->context,
            CL_MEM_READ_WRITE | (given ? CL_MEM_COPY_HOST_PTR : 0),
            (size_t)bytes, given ? proof->host[i] : NULL, &code);
    }
    return status_from_cl(device, code, "clCreateBuffer");
}

static void self_test_free(void *user)
{
    struct proof *proof = user;
    if (proof->kernel != NULL)
        clReleaseKernel(proof->kernel);
    for (uint32_t i = 0; i < MEMORIES; i++)
        if (proof->buffers[i].mem != NULL)
            clReleaseMemObject(proof->buffers[i].mem);
    if (proof->queue != NULL)
        clReleaseCommandQueue(proof->queue);
    for (uint32_t i = 0; i < OPERAND_COUNT; i++) {
        free(proof->numbers[i]);
        free(proof->host[i]);
    }
    free(proof->sums);
    free(proof);
}

static cl_int step_run(struct proof *proof, cl_kernel kernel,
                       const struct kernel_step *step)
{
    cl_int code = CL_SUCCESS;
    size_t local = (size_t)1 << KEY_GROUP_LOG2(step->key);
    size_t global = (size_t)step->groups * local;
    for (uint32_t i = 0; i < step->buffer_count && code == CL_SUCCESS; i++)
        code = clSetKernelArg(kernel, i, sizeof(cl_mem),
                              step->buffers[i] != NULL
                                  ? &step->buffers[i]->mem
                                  : &proof->buffers[MEMORY_TEMPORARY].mem);
    if (code == CL_SUCCESS)
        code = clSetKernelArg(kernel, step->buffer_count, step->param_bytes,
                              step->params);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(proof->queue, kernel, 1, NULL, &global,
                                      &local, 0, NULL, NULL);
    return code;
}

/* A step before the kernel's, by a program of its own, which stays with one
 * that does not end.  *out_left: then, and the proof is deferred_release.h's.
 */
static enum tandem_status step_build_run(struct proof *proof,
                                         struct tandem_device *device,
                                         const struct kernel_step *step,
                                         bool *out_left)
{
    struct variant_text text;
    cl_int code;
    cl_kernel kernel = NULL;
    variant_text_make(&text, step->key, device->hardware);
    cl_program program = clCreateProgramWithSource(device->context, 1,
                                                   &text.source, NULL, &code);
    if (code == CL_SUCCESS)
        code = clBuildProgram(program, 1, &device->hardware->id, text.options,
                              NULL, NULL);
    if (code == CL_SUCCESS)
        kernel = clCreateKernel(program, text.function, &code);
    if (code == CL_SUCCESS)
        code = step_run(proof, kernel, step);
    enum tandem_status status =
        status_from_cl(device, code, "a step before a kernel's proof");
    if (status == TANDEM_OK)
        status = deferred_release_wait(device, proof->queue, NULL,
                                       self_test_free, proof, out_left);
    if (kernel != NULL && !*out_left)
        clReleaseKernel(kernel);
    if (program != NULL && !*out_left)
        clReleaseProgram(program);
    return status;
}

/* The plan's steps as far as the kernel's, and its sums and marks. */
static enum tandem_status self_test_launch(struct proof *proof,
                                           struct tandem_device *device,
                                           uint32_t id, bool *out_left)
{
    size_t bytes =
        (sums_count(proof) + marks_count(proof)) * sizeof(*proof->sums);
    const struct kernel_step *step = proof->plan.step;
    enum tandem_status status = TANDEM_OK;
    cl_event event = NULL;
    for (; status == TANDEM_OK && KEY_KERNEL(step->key) != id; step++)
        status = step_build_run(proof, device, step, out_left);
    if (status != TANDEM_OK)
        return status;
    cl_int code = step_run(proof, proof->kernel, step);
    if (code == CL_SUCCESS)
        code = clEnqueueReadBuffer(
            proof->queue, proof->buffers[MEMORY_TEMPORARY].mem, CL_FALSE,
            (size_t)proof->plan.temp_bytes - bytes, bytes, proof->sums, 0, NULL,
            &event);
    status = status_from_cl(device, code, "a kernel's proof");
    return status == TANDEM_OK
               ? deferred_release_wait(device, proof->queue, event,
                                       self_test_free, proof, out_left)
               : status;
}

/* ---- judging ---- */

/* Tiles are counted down the columns: gemm_common.cl's bands are as wide.  What
 * is not finite is in the first chunk; a row's scale is that of all of them. */
static bool nonfinite_flags_are_right(const struct proof *proof)
{
    uint32_t all = proof->tiles_m * proof->tiles_n;
    for (uint32_t i = 0; i < marks_count(proof); i++) {
        uint32_t mark, tile = i % all;
        bool last = tile % proof->tiles_m == proof->tiles_m - 1 ||
                    tile / proof->tiles_m == proof->tiles_n - 1;
        if (proof->format == FORMAT_3XTF32 && i >= all)
            last = false;
        memcpy(&mark, proof->sums + sums_count(proof) + i, sizeof(mark));
        if (mark != (last ? 1u : 0u))
            return false;
    }
    return true;
}

static double sum_at(const struct proof *proof, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t chunk = 0; chunk < CHUNKS; chunk++)
        sum += (double)
                   proof->sums[(chunk * proof->gemm.m + i) * proof->gemm.n + j];
    return sum;
}

double kernel_self_test_tolerance(enum gemm_kernel_id tile,
                                  enum packed_format format)
{
    if (gemm_configs[tile].mma_format == MMA_NONE)
        return STRICT_TOLERANCE;
    if (format == FORMAT_FP16X3 || format == FORMAT_3XTF32)
        return PAIR_TOLERANCE;
    return format == FORMAT_TF32 ? TF32_TOLERANCE : HALF_TOLERANCE;
}

static bool element_right(const struct proof *proof, int64_t i, int64_t j)
{
    double tolerance = kernel_self_test_tolerance(proof->tile, proof->format);
    double sum = 0, size = 0;
    for (int64_t k = 0; k < proof->gemm.k; k++) {
        double term = proof->numbers[OPERAND_A][i * proof->gemm.k + k] *
                      proof->numbers[OPERAND_B][j * proof->gemm.k + k];
        sum += term;
        size += fabs(term);
    }
    return fabs(sum_at(proof, i, j) - sum) <= tolerance * size;
}

static enum tandem_status self_test_verify(const struct proof *proof)
{
    const struct gemm_kernel_config *config = &gemm_configs[proof->tile];
    bool pair = pairs(proof);
    int64_t m = pair ? config->tile_m : proof->gemm.m;
    int64_t n = pair ? config->tile_n : proof->gemm.n;
    if (!nonfinite_flags_are_right(proof))
        return last_error_set(TANDEM_FAILED, "infinite elements are not found");
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            if (!element_right(proof, i, j))
                return last_error_set(TANDEM_FAILED,
                                      "a product of known numbers is wrong at "
                                      "(%lld, %lld): %g",
                                      (long long)i, (long long)j,
                                      sum_at(proof, i, j));
    return TANDEM_OK;
}

bool kernel_self_test_is_needed(uint64_t key)
{
    return KEY_KERNEL(key) == KERNEL_GEMM_3XTF32 ||
           KEY_KERNEL(key) == KERNEL_GEMM_MMA ||
           KEY_KERNEL(key) == KERNEL_GEMM_WGMMA;
}

enum tandem_status kernel_self_test_run(struct tandem_device *device,
                                        cl_kernel kernel, uint64_t key)
{
    struct proof *proof = calloc(1, sizeof(*proof));
    if (proof == NULL)
        return last_error_set(TANDEM_OUT_OF_MEMORY, "out of host memory");
    bool left = false;
    cl_int code = clRetainKernel(kernel);
    enum tandem_status status = status_from_cl(device, code, "clRetainKernel");
    if (status == TANDEM_OK) {
        proof->kernel = kernel;
        status = self_test_prepare(proof, device, key);
    }
    if (status == TANDEM_OK)
        status = self_test_launch(proof, device, KEY_KERNEL(key), &left);
    if (status == TANDEM_OK)
        status = self_test_verify(proof);
    if (!left)
        self_test_free(proof);
    return status;
}
