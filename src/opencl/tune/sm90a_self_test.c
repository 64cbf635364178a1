/* SPDX-License-Identifier: Apache-2.0 */
/* Self-test of the sm_90a programs with large GEMMs; see tune.h. Runs in a
 * child process of cl-probe, because the driver may crash or hang. */
#include <stdlib.h>

#include "common/float16.h"
#include "common/operator_table.h"
#include "opencl/device/device.h"
#include "opencl/launch/kernel_launch.h"
#include "opencl/program/kernel_self_test.h"
#include "opencl/transfer/transfer.h"
#include "opencl/tune/tune.h"

/* Minimum number of result tiles that each work-group computes. */
#define ROUNDS 2u
/* Value of k. It is a multiple of 8, so that operands need no packing. It is
 * not a multiple of a k_tile's depth, so that the last k_tile is incomplete. */
#define DEPTH 520
/* Number of rows, and of columns, that are compared per result tile. */
#define SAMPLES 8u
/* Relative rounding error of results in f16 and bf16. */
#define F16_ROUNDING 0x1p-11
#define BF16_ROUNDING 0x1p-8

static void result_report(const struct tuning_results_sink *sink,
                          enum sm90a_self_test_result result, uint64_t stamp)
{
    char text[SM90A_SELF_TEST_RESULT_BYTES];
    sm90a_self_test_result_format(text, result, stamp);
    sink->callback(sink->user, "sm90a_self_test", text);
}

/* ---- the GEMM ---- */

/* Returns the number of result tiles along m. There are as many along n. */
static uint32_t tiles_per_side(const struct tandem_device *device)
{
    uint32_t side = 1;
    while (side * side <= ROUNDS * device->gemm_selector.compute_units)
        side++;
    return side;
}

/* Returns the GEMM to test. Its sizes are multiples of 8, so that operands are
 * not packed. The last tile in each direction is incomplete. */
static struct tandem_gemm test_gemm(const struct kernel_timer *timer,
                                    enum gemm_kernel_id kernel, uint32_t dtype)
{
    int64_t side = tiles_per_side(timer->device);
    int64_t m = side * gemm_configs[kernel].tile_m - 8,
            n = side * gemm_configs[kernel].tile_n - 16;
    uint64_t a_bytes = (uint64_t)(m * DEPTH) * dtype_bytes(dtype);
    uint64_t b_bytes = (uint64_t)(DEPTH * n) * dtype_bytes(dtype);
    return (struct tandem_gemm){.struct_size = sizeof(struct tandem_gemm),
                                .dtype = dtype,
                                .flags = TANDEM_GEMM_ALLOW_TF32 |
                                         TANDEM_GEMM_ALLOW_NORMWISE_ERROR,
                                .m = m,
                                .n = n,
                                .k = DEPTH,
                                .batch = 1,
                                .alpha = 1,
                                .a = {timer->memory, 0, DEPTH, 0},
                                .b = {timer->memory, a_bytes, n, 0},
                                .c = {timer->memory, a_bytes + b_bytes, n, 0}};
}

static uint64_t gemm_bytes(const struct tandem_gemm *gemm)
{
    return gemm->c.byte_offset +
           (uint64_t)(gemm->m * gemm->n) * dtype_bytes(gemm->dtype);
}

/* ---- operands and results ---- */

static double value_at(uint32_t dtype, const void *memory, int64_t at)
{
    if (dtype == TANDEM_F32)
        return (double)((const float *)memory)[at];
    uint16_t bits = ((const uint16_t *)memory)[at];
    return (double)(dtype == TANDEM_F16 ? f16_value(bits) : bf16_value(bits));
}

/* Fills `out` with random numbers in [-1, 1). Random operands reveal a tile
 * that is computed at the wrong position or from old data. */
static void random_fill(uint32_t dtype, void *out, int64_t count, uint32_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        float value = (float)(int32_t)seed / 2147483648.0f;
        if (dtype == TANDEM_F32)
            ((float *)out)[i] = value;
        else
            ((uint16_t *)out)[i] =
                dtype == TANDEM_F16 ? f16_round(value) : bf16_round(value);
    }
}

/* Returns the index of the nth row or column to compare. */
static int64_t sample_at(uint32_t nth, uint32_t size, int64_t extent)
{
    uint32_t band = size / SAMPLES;
    int64_t at = (int64_t)nth * band + (nth * 2654435761u >> 16) % band;
    return at < extent ? at : extent - 1;
}

struct samples {
    const struct tandem_gemm *gemm;
    enum gemm_kernel_id kernel;
    uint32_t count; /* number of rows, and of columns, to compare */
    void *memory;   /* both operands, then a result row */
    double *a, *b;  /* compared rows of a and columns of b */
};

static bool samples_alloc(struct samples *out, struct tandem_device *device,
                          uint64_t bytes)
{
    out->count = SAMPLES * tiles_per_side(device);
    size_t terms = (size_t)out->count * DEPTH;
    out->memory = malloc(bytes);
    out->a = malloc(terms * sizeof(double));
    out->b = malloc(terms * sizeof(double));
    return out->memory != NULL && out->a != NULL && out->b != NULL;
}

static void samples_fill(struct samples *samples)
{
    const struct tandem_gemm *gemm = samples->gemm;
    const struct gemm_kernel_config *config = &gemm_configs[samples->kernel];
    /* Use a different seed for each kernel. Otherwise, results of the previous
     * kernel that were not overwritten would look correct. */
    random_fill(gemm->dtype, samples->memory, (gemm->m + gemm->n) * DEPTH,
                samples->kernel);
    const char *b = (const char *)samples->memory + gemm->b.byte_offset;
    for (uint32_t s = 0; s < samples->count; s++) {
        int64_t row = sample_at(s, config->tile_m, gemm->m);
        int64_t column = sample_at(s, config->tile_n, gemm->n);
        double *a_row = samples->a + (size_t)s * DEPTH;
        double *b_column = samples->b + (size_t)s * DEPTH;
        for (int64_t k = 0; k < DEPTH; k++) {
            a_row[k] = value_at(gemm->dtype, samples->memory, row * DEPTH + k);
            b_column[k] = value_at(gemm->dtype, b, k * gemm->n + column);
        }
    }
}

static void samples_free(struct samples *samples)
{
    free(samples->memory);
    free(samples->a);
    free(samples->b);
}

/* Compares elements of every result tile with double-precision results. */
static enum tandem_status samples_compare(const struct samples *samples,
                                          struct kernel_timer *timer)
{
    const struct tandem_gemm *gemm = samples->gemm;
    const struct gemm_kernel_config *config = &gemm_configs[samples->kernel];
    enum packed_format format = tensor_core_format(gemm, samples->kernel);
    double rounding = gemm->dtype == TANDEM_F16    ? F16_ROUNDING
                      : gemm->dtype == TANDEM_BF16 ? BF16_ROUNDING
                                                   : 0;
    uint64_t row_bytes = (uint64_t)gemm->n * dtype_bytes(gemm->dtype);
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < samples->count && status == TANDEM_OK; i++) {
        int64_t row = sample_at(i, config->tile_m, gemm->m);
        status = transfer_download(
            timer->stream, timer->memory,
            gemm->c.byte_offset + (uint64_t)row * row_bytes, samples->memory,
            row_bytes, 0, kernel_timer_remaining_ns(timer));
        for (uint32_t j = 0; j < samples->count && status == TANDEM_OK; j++) {
            int64_t column = sample_at(j, config->tile_n, gemm->n);
            double got = value_at(gemm->dtype, samples->memory, column);
            if (!kernel_self_test_element(
                    samples->kernel, format, samples->a + (size_t)i * DEPTH,
                    samples->b + (size_t)j * DEPTH, DEPTH, got, rounding))
                status = last_error_set(
                    TANDEM_FAILED,
                    "%s: element (%lld, %lld) of a large GEMM "
                    "is wrong: %g",
                    config->name, (long long)row, (long long)column, got);
        }
    }
    return status;
}

/* Tests a kernel with a GEMM in which each work-group computes several tiles.
 * The self-test after a build (kernel_self_test.h) is too small for this. */
static enum tandem_status gemm_test(struct kernel_timer *timer,
                                    struct samples *samples,
                                    enum gemm_kernel_id kernel, uint32_t dtype)
{
    const struct tandem_gemm gemm = test_gemm(timer, kernel, dtype);
    samples->gemm = &gemm;
    samples->kernel = kernel;
    samples_fill(samples);
    enum tandem_status status =
        transfer_upload(timer->stream, timer->memory, 0, samples->memory,
                        gemm.c.byte_offset, 0);
    if (status == TANDEM_OK)
        status = gemm_kernel_launch(timer, &gemm, kernel);
    if (status == TANDEM_OK)
        status =
            stream_synchronize(timer->stream, kernel_timer_remaining_ns(timer));
    if (status == TANDEM_OK)
        status = samples_compare(samples, timer);
    return status;
}

/* ---- all kernels ---- */

/* Returns the memory size in bytes of the largest GEMM that is tested. */
static uint64_t scratch_bytes(struct tandem_device *device)
{
    const struct kernel_timer timer = {.device = device};
    uint64_t max = 0;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        struct tandem_gemm gemm =
            test_gemm(&timer, (enum gemm_kernel_id)i, TANDEM_F32);
        if (gemm_configs[i].uses_wgmma && gemm_bytes(&gemm) > max)
            max = gemm_bytes(&gemm);
    }
    return max;
}

static enum tandem_status kernels_test(struct kernel_timer *timer,
                                       struct samples *samples)
{
    static const uint32_t dtypes[] = {TANDEM_F32, TANDEM_F16, TANDEM_BF16};
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < 3 * GEMM_KERNEL_COUNT && status == TANDEM_OK;
         i++) {
        const struct gemm_kernel_config *config = &gemm_configs[i / 3];
        bool is_16bit = config->mma_format == MMA_16BIT;
        if (config->uses_wgmma && is_16bit == (dtypes[i % 3] != TANDEM_F32))
            status = gemm_test(timer, samples, (enum gemm_kernel_id)(i / 3),
                               dtypes[i % 3]);
    }
    return status;
}

enum tandem_status sm90a_self_test_run(struct tandem_device *device,
                                       uint64_t budget_ns,
                                       const struct tuning_results_sink *sink)
{
    struct kernel_timer timer;
    struct samples samples = {0};
    uint64_t stamp = sm90a_self_test_stamp(device->hardware);
    if (!device->hardware->wgmma)
        return TANDEM_OK;
    uint64_t bytes = scratch_bytes(device);
    enum tandem_status status =
        kernel_timer_init(&timer, device, bytes, budget_ns);
    if (status == TANDEM_OK && timer.bytes < bytes)
        status = memory_error("tune: not enough device memory for the sm_90a "
                              "self-test");
    if (status == TANDEM_OK && !samples_alloc(&samples, device, bytes))
        status = memory_error("tune: out of host memory");
    if (status == TANDEM_OK) {
        result_report(sink, SM90A_SELF_TEST_STARTED, stamp);
        enum tandem_status result = kernels_test(&timer, &samples);
        if (result != TANDEM_OK)
            device_log(device, TANDEM_LOG_WARNING,
                       "%s: GEMM does not use wgmma: the self-test failed: %s",
                       device->hardware->info.name, last_error_get());
        result_report(sink,
                      result == TANDEM_OK ? SM90A_SELF_TEST_PASSED
                                          : SM90A_SELF_TEST_FAILED,
                      stamp);
    }
    samples_free(&samples);
    kernel_timer_finish(&timer);
    return status;
}
