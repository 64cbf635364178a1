/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a small GEMM, whose k is split in two, on the device.  Compares the
 * partial sum of each half of k with a float64 reference. */
#include "opencl/program/kernel_self_test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/float16.h"
#include "opencl/memory/deferred_release.h"
#include "opencl/device/device.h"
#include "opencl/plan/conv_gemm_plan.h"
#include "opencl/plan/gemm_params.h"
#include "opencl/plan/tensor_core_packing.h"
#include "opencl/device/cl_status.h"
#include "opencl/program/trial_launch.h"

/* Values of k in the self-test, which are not multiples of any k_tile.  3xTF32
 * kernels read unpacked operands only if k is a multiple of 4. */
#define MMA_K 277
#define TF32_3X_K 276
/* Row pitches in elements.  Only ALIGNED_PITCH is a multiple of 16 bytes. */
#define ALIGNED_PITCH 280
#define UNALIGNED_PITCH 281
#define SPLITS 2
/* Number of result tiles, two along m and two along n. */
#define TILES 4u
/* Tolerances, relative to the sum of the magnitudes of the products. */
#define TF32_3X_TOLERANCE 0x1p-21
#define FP16X3_TOLERANCE 0x1p-20
#define TF32_TOLERANCE 0x1p-9
#define F16_TOLERANCE 0x1p-20

enum memory { MEMORY_A, MEMORY_B, MEMORY_TEMPORARY, MEMORIES };

struct self_test {
    struct tandem_gemm gemm;
    enum gemm_kernel_id tile;
    enum packed_format format;
    double *numbers[OPERAND_COUNT]; /* operands in row-major order */
    void *host[OPERAND_COUNT];
    float *sums; /* host copy of the partial sums and non-finite flags */
    struct launch_plan plan;
    cl_mem memories[MEMORIES];
    cl_kernel kernel;
    cl_command_queue queue;
};

/* ---- numbers ---- */

static bool has_nonfinite_flags(const struct self_test *test)
{
    return test->format == FORMAT_FP16X3 || test->format == FORMAT_3XTF32;
}

/* Returns the number of elements that the memory of an operand has, including
 * the gaps between rows. */
static size_t operand_elements(const struct self_test *test, enum operand_id id)
{
    struct gemm_operand operand = operand_of(&test->gemm, id);
    int64_t rows = operand.is_mn_major ? test->gemm.k : operand.rows;
    return (size_t)(rows * operand.matrix->ld);
}

/* Stores `value` in the kernel's number format.  Returns the rounded value. */
static double element_set(const struct self_test *test, void *out, size_t at,
                          float value)
{
    bool is_f16 = test->format == FORMAT_F16;
    if (!is_f16 && test->format != FORMAT_BF16) {
        ((float *)out)[at] = value;
        return (double)value;
    }
    uint16_t bits = is_f16 ? f16_round(value) : bf16_round(value);
    ((uint16_t *)out)[at] = bits;
    return (double)(is_f16 ? f16_value(bits) : bf16_value(bits));
}

/* Fills an operand with random numbers in [-1, 1).  If the kernel sets
 * non-finite flags, row 3 of `a` gets tiny values, and the last row of each
 * operand gets an element that must set flags: infinity, or, in `b` of a 3xTF32
 * kernel, FLT_MAX, which is too large to be split into TF32 parts. */
static bool operand_make(struct self_test *test, enum operand_id id)
{
    struct gemm_operand operand = operand_of(&test->gemm, id);
    int64_t rows = operand.rows, ld = operand.matrix->ld;
    bool has_flags = has_nonfinite_flags(test),
         split = test->format == FORMAT_3XTF32;
    uint32_t seed = (uint32_t)id + 1;
    test->numbers[id] = calloc((size_t)(rows * test->gemm.k), sizeof(double));
    test->host[id] = calloc(operand_elements(test, id), 4);
    if (test->numbers[id] == NULL || test->host[id] == NULL)
        return false;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t k = 0; k < test->gemm.k; k++) {
            /* Linear congruential generator from Numerical Recipes. */
            seed = seed * 1664525u + 1013904223u;
            float value = (float)(int32_t)seed / 2147483648.0f;
            if (has_flags && id == OPERAND_A && row == 3)
                value *= 1e-38f;
            if (has_flags && row == rows - 1 && k == 5)
                value = split && id == OPERAND_B ? FLT_MAX : INFINITY;
            int64_t at = operand.is_mn_major ? k * ld + row : row * ld + k;
            test->numbers[id][row * test->gemm.k + k] =
                element_set(test, test->host[id], (size_t)at, value);
        }
    return true;
}

/* Returns the row pitch of an operand.  For LAYOUT_PACKED, the pitch is
 * unaligned, so that the kernel cannot read the operand without packing. */
static int64_t pitch_of(enum operand_layout layout, bool mn_major, int64_t rows)
{
    if (layout == LAYOUT_PACKED)
        return mn_major ? rows + 1 : UNALIGNED_PITCH;
    return mn_major ? rows : ALIGNED_PITCH;
}

static void gemm_make(struct self_test *test, const struct kernel_key *key)
{
    const struct gemm_kernel_config *config = &gemm_configs[test->tile];
    enum operand_layout a = (enum operand_layout)key->a_layout,
                        b = (enum operand_layout)key->b_layout;
    struct tandem_gemm *gemm = &test->gemm;
    *gemm = (struct tandem_gemm){
        .struct_size = sizeof(*gemm),
        .dtype = test->format == FORMAT_F16    ? TANDEM_F16
                 : test->format == FORMAT_BF16 ? TANDEM_BF16
                                               : TANDEM_F32,
        .flags = TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_ALLOW_NORMWISE_ERROR |
                 (a == LAYOUT_MN_MAJOR ? TANDEM_GEMM_TRANSPOSE_A : 0u) |
                 (b == LAYOUT_K_MAJOR ? TANDEM_GEMM_TRANSPOSE_B : 0u),
        .m = config->tile_m + 8,
        .n = config->tile_n + 16,
        .k = config->mma_format == MMA_NONE ? TF32_3X_K : MMA_K,
        .batch = 1,
        .alpha = 1,
        .c_dtype = TANDEM_F32};
    gemm->a.ld = pitch_of(a, a == LAYOUT_MN_MAJOR, gemm->m);
    gemm->b.ld = pitch_of(b, b != LAYOUT_K_MAJOR, gemm->n);
    gemm->c.ld = gemm->n;
    gemm->a.buffer = slot_buffer(SLOT_INPUT, MAX_SLOT_ALIGNMENT);
    gemm->b.buffer = slot_buffer(SLOT_INPUT + 1, MAX_SLOT_ALIGNMENT);
    gemm->c.buffer = slot_buffer(SLOT_OUTPUT, MAX_SLOT_ALIGNMENT);
}

/* ---- running ---- */

static size_t nonfinite_flag_count(const struct self_test *test)
{
    return has_nonfinite_flags(test) ? SPLITS * TILES : 0;
}

static size_t partial_sum_count(const struct self_test *test)
{
    return (size_t)(SPLITS * test->gemm.m * test->gemm.n);
}

/* Returns the size in bytes of the kernel's results. */
static size_t result_bytes(const struct self_test *test)
{
    return (partial_sum_count(test) + nonfinite_flag_count(test)) *
           sizeof(*test->sums);
}

/* Plans the GEMM with `b` as patches: each row of `b` is a channel with n
 * elements, and the window has one element. */
static void plan_patches(struct self_test *test)
{
    const struct tandem_gemm *gemm = &test->gemm;
    const struct gemm_selection selection = {.kernel = test->tile,
                                             .split = {SPLITS, ALL_GEMM_TILES}};
    const struct tandem_tensor_desc tensor = {.buffer = gemm->b.buffer,
                                              .dtype = TANDEM_F32,
                                              .rank = 3,
                                              .shape = {1, gemm->k, gemm->n},
                                              .strides = {0, gemm->b.ld, 1}};
    const struct window_axis one = {1, 1, 1, 1, 1, 0, 0};
    struct conv_problem conv = {
        .window = {{{gemm->n, gemm->n, 1, 1, 1, 0, 0}, one, one}},
        .x = {.channel = gemm->b.ld, .axis = {1}}};
    struct gemm_patches patches = {.tensor = &tensor};
    const struct gemm_sources sources = {.patches = &patches};
    patches_params_fill(&patches.params, &conv);
    launch_plan_clear(&test->plan);
    plan_add_gemm(&test->plan, gemm, &sources, &selection, NULL, 0);
}

static enum tandem_status self_test_prepare(struct self_test *test,
                                            struct tandem_device *device,
                                            const struct kernel_key *key)
{
    cl_int code = CL_SUCCESS;
    test->tile = (enum gemm_kernel_id)key->gemm_kernel;
    test->format = gemm_configs[test->tile].is_3xtf32
                       ? FORMAT_3XTF32
                       : (enum packed_format)key->format;
    gemm_make(test, key);
    if (gemm_key_reads_patches(key))
        plan_patches(test);
    else
        plan_gemm(&test->plan, &test->gemm, test->tile,
                  (struct split_k){SPLITS, ALL_GEMM_TILES}, NULL, 0);
    test->sums = malloc(result_bytes(test));
    if (test->sums == NULL || !operand_make(test, OPERAND_A) ||
        !operand_make(test, OPERAND_B))
        return memory_error("out of host memory");
    test->queue =
        clCreateCommandQueue(device->context, device->hardware->id, 0, &code);
    for (uint32_t i = 0; i < MEMORIES && code == CL_SUCCESS; i++) {
        bool is_input = i < OPERAND_COUNT;
        size_t bytes = is_input ? 4 * operand_elements(test, (enum operand_id)i)
                                : (size_t)test->plan.temp_bytes;
        test->memories[i] = clCreateBuffer(
            device->context,
            CL_MEM_READ_WRITE | (is_input ? CL_MEM_COPY_HOST_PTR : 0), bytes,
            is_input ? test->host[i] : NULL, &code);
    }
    return status_from_cl(device, code, "clCreateBuffer");
}

static void self_test_free(void *user)
{
    struct self_test *test = user;
    if (test->kernel != NULL)
        clReleaseKernel(test->kernel);
    for (uint32_t i = 0; i < MEMORIES; i++)
        if (test->memories[i] != NULL)
            clReleaseMemObject(test->memories[i]);
    if (test->queue != NULL)
        clReleaseCommandQueue(test->queue);
    for (uint32_t i = 0; i < OPERAND_COUNT; i++) {
        free(test->numbers[i]);
        free(test->host[i]);
    }
    free(test->sums);
    free(test);
}

static cl_int step_run(const struct self_test *test, cl_kernel kernel,
                       const struct kernel_step *step)
{
    cl_mem buffers[MAX_STEP_BUFFERS];
    for (uint32_t i = 0; i < step->buffer_count; i++) {
        uint32_t slot = step->slots[i];
        /* The kernel stores partial sums, and not `c`. */
        buffers[i] =
            test->memories[slot == SLOT_INPUT       ? MEMORY_A
                           : slot == SLOT_INPUT + 1 ? MEMORY_B
                                                    : MEMORY_TEMPORARY];
    }
    return kernel_step_enqueue(test->queue, kernel, step, buffers,
                               step->groups);
}

/* Builds and runs a step that precedes the tested kernel, for example packing.
 * If the step exceeds the blocking timeout, sets *out_left and leaks the step's
 * program; the test is freed after the step has completed. */
static enum tandem_status step_build_and_run(struct self_test *test,
                                             struct tandem_device *device,
                                             const struct kernel_step *step,
                                             bool *out_left)
{
    struct kernel_source text;
    cl_int code;
    cl_kernel kernel = NULL;
    const char *source = step->key.kernel->source;
    kernel_source_make(&text, &step->key, device->hardware);
    cl_program program =
        clCreateProgramWithSource(device->context, 1, &source, NULL, &code);
    if (code == CL_SUCCESS)
        code = clBuildProgram(program, 1, &device->hardware->id, text.options,
                              NULL, NULL);
    if (code == CL_SUCCESS)
        kernel = clCreateKernel(program, text.kernel->function, &code);
    if (code == CL_SUCCESS)
        code = step_run(test, kernel, step);
    enum tandem_status status =
        status_from_cl(device, code, "the preparation of a kernel's self-test");
    if (status == TANDEM_OK)
        status = deferred_release_wait(device, test->queue, NULL,
                                       self_test_free, test, out_left);
    if (kernel != NULL && !*out_left)
        clReleaseKernel(kernel);
    if (program != NULL && !*out_left)
        clReleaseProgram(program);
    return status;
}

/* Runs the plan up to the tested kernel and downloads the kernel's results. */
static enum tandem_status self_test_launch(struct self_test *test,
                                           struct tandem_device *device,
                                           const struct kernel_info *tested,
                                           bool *out_left)
{
    size_t bytes = result_bytes(test);
    const struct kernel_step *step = test->plan.step;
    enum tandem_status status = TANDEM_OK;
    cl_event event = NULL;
    for (; status == TANDEM_OK && step->key.kernel != tested; step++)
        status = step_build_and_run(test, device, step, out_left);
    if (status != TANDEM_OK)
        return status;
    cl_int code = step_run(test, test->kernel, step);
    if (code == CL_SUCCESS)
        code =
            clEnqueueReadBuffer(test->queue, test->memories[MEMORY_TEMPORARY],
                                CL_FALSE, (size_t)test->plan.temp_bytes - bytes,
                                bytes, test->sums, 0, NULL, &event);
    status = status_from_cl(device, code, "a kernel's self-test");
    return status == TANDEM_OK
               ? deferred_release_wait(device, test->queue, event,
                                       self_test_free, test, out_left)
               : status;
}

/* ---- verification ---- */

/* Returns true if exactly the tiles with infinite elements, which are all tiles
 * except the first, are flagged.  3xTF32 kernels flag only the first split of
 * k, which contains the infinite element.  FP16x3 kernels flag all splits,
 * because the splits share the scale of a row. */
static bool nonfinite_flags_are_right(const struct self_test *test)
{
    for (uint32_t i = 0; i < nonfinite_flag_count(test); i++) {
        uint32_t flag;
        bool is_infinite =
            i % TILES != 0 && (i < TILES || test->format != FORMAT_3XTF32);
        memcpy(&flag, test->sums + partial_sum_count(test) + i, sizeof(flag));
        if (flag != (is_infinite ? 1u : 0u))
            return false;
    }
    return true;
}

static double sum_at(const struct self_test *test, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t chunk = 0; chunk < SPLITS; chunk++)
        sum +=
            (double)test->sums[(chunk * test->gemm.m + i) * test->gemm.n + j];
    return sum;
}

/* Returns the tolerance of the self-test, relative to the sum of the magnitudes
 * of the products. */
static double tolerance_of(enum gemm_kernel_id kernel,
                           enum packed_format format)
{
    if (gemm_configs[kernel].mma_format == MMA_NONE)
        return TF32_3X_TOLERANCE;
    if (format == FORMAT_FP16X3 || format == FORMAT_3XTF32)
        return FP16X3_TOLERANCE;
    return format == FORMAT_TF32 ? TF32_TOLERANCE : F16_TOLERANCE;
}

bool kernel_self_test_element(enum gemm_kernel_id kernel,
                              enum packed_format format, const double *a,
                              const double *b, int64_t k, double got,
                              double rounding)
{
    double sum = 0, size = 0;
    for (int64_t i = 0; i < k; i++) {
        double term = a[i] * b[i];
        sum += term;
        size += fabs(term);
    }
    return fabs(got - sum) <=
           tolerance_of(kernel, format) * size + rounding * fabs(sum);
}

static enum tandem_status self_test_verify(const struct self_test *test)
{
    const struct gemm_kernel_config *config = &gemm_configs[test->tile];
    bool has_flags = has_nonfinite_flags(test);
    int64_t m = has_flags ? config->tile_m : test->gemm.m;
    int64_t n = has_flags ? config->tile_n : test->gemm.n, k = test->gemm.k;
    if (!nonfinite_flags_are_right(test))
        return last_error_set(TANDEM_FAILED,
                              "the kernel does not flag infinite elements");
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            if (!kernel_self_test_element(
                    test->tile, test->format, test->numbers[OPERAND_A] + i * k,
                    test->numbers[OPERAND_B] + j * k, k, sum_at(test, i, j), 0))
                return last_error_set(TANDEM_FAILED,
                                      "the self-test is wrong at "
                                      "(%lld, %lld): %g",
                                      (long long)i, (long long)j,
                                      sum_at(test, i, j));
    return TANDEM_OK;
}

enum tandem_status kernel_self_test_run(struct tandem_device *device,
                                        cl_kernel kernel,
                                        const struct kernel_key *key)
{
    struct self_test *test = calloc(1, sizeof(*test));
    if (test == NULL)
        return memory_error("out of host memory");
    bool left = false;
    cl_int code = clRetainKernel(kernel);
    enum tandem_status status = status_from_cl(device, code, "clRetainKernel");
    if (status == TANDEM_OK) {
        test->kernel = kernel;
        status = self_test_prepare(test, device, key);
    }
    if (status == TANDEM_OK)
        status = self_test_launch(test, device, key->kernel, &left);
    if (status == TANDEM_OK)
        status = self_test_verify(test);
    if (!left)
        self_test_free(test);
    return status;
}
