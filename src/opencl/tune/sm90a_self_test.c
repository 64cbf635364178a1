/* SPDX-License-Identifier: Apache-2.0 */
/* Trying patched programs, in a process that may crash or hang over it. */
#include <math.h>
#include <stdlib.h>

#include "common/float16.h"
#include "common/operator_table.h"
#include "opencl/device/device.h"
#include "opencl/queue/kernel_launch.h"
#include "opencl/program/kernel_self_test.h"
#include "opencl/transfer/transfer.h"
#include "opencl/device/event_poll.h"
#include "opencl/tune/tune.h"

/* Tiles that each group has at least; some have one more. */
#define ROUNDS 2u
/* Whole pieces, but no whole slices. */
#define DEPTH 520
/* Rows of each tile of which elements are compared, and columns. */
#define SAMPLES 8u
/* A result's rounding to 16 bits, of its magnitude. */
#define F16_ROUNDING 0x1p-11
#define BF16_ROUNDING 0x1p-8

static void tell(const struct findings *findings, enum verdict verdict,
                 uint64_t stamp)
{
    char text[SM90A_SELF_TEST_RESULT_BYTES];
    sm90a_self_test_result_format(text, verdict, stamp);
    findings->sink(findings->user, "wgmma", text);
}

/* ---- a product ---- */

/* As many tiles along m as along n.  Extents are multiples of eight, so that
 * operands are read as they lie, and the last tiles are not whole. */
static uint32_t tiles_aside(const struct tandem_device *device)
{
    uint32_t aside = 1;
    while (aside * aside <= ROUNDS * device->gemm_selector.compute_units)
        aside++;
    return aside;
}

static struct tandem_gemm gemm_of(const struct meter *meter,
                                  enum gemm_kernel_id tile, uint32_t dtype)
{
    int64_t aside = tiles_aside(meter->device);
    int64_t m = aside * gemm_configs[tile].tile_m - 8,
            n = aside * gemm_configs[tile].tile_n - 16;
    uint64_t of_a = (uint64_t)(m * DEPTH) * dtype_bytes(dtype);
    uint64_t of_b = (uint64_t)(DEPTH * n) * dtype_bytes(dtype);
    return (struct tandem_gemm){
        .struct_size = sizeof(struct tandem_gemm),
        .dtype = dtype,
        .flags = TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_ALLOW_NORMWISE_ERROR,
        .m = m,
        .n = n,
        .k = DEPTH,
        .batch = 1,
        .alpha = 1,
        .a = {meter->memory, 0, DEPTH, 0},
        .b = {meter->memory, of_a, n, 0},
        .c = {meter->memory, of_a + of_b, n, 0}};
}

static uint64_t gemm_bytes(const struct tandem_gemm *gemm)
{
    return gemm->c.byte_offset +
           (uint64_t)(gemm->m * gemm->n) * dtype_bytes(gemm->dtype);
}

static enum tandem_status product_launch(struct meter *meter,
                                         const struct tandem_gemm *gemm,
                                         enum gemm_kernel_id tile)
{
    struct launch_plan plan;
    enum tandem_status status;
    do {
        plan_gemm(&plan, gemm, tile, NO_SPLIT, NULL,
                  meter->device->programs.group_log2);
        status = launch_plan(meter->stream, &plan);
    } while (status == TANDEM_NOT_READY && meter_left_ns(meter) > 0);
    return status == TANDEM_OK
               ? stream_synchronize(meter->stream, meter_left_ns(meter))
               : status;
}

/* ---- its numbers ---- */

static double value_at(uint32_t dtype, const void *memory, int64_t at)
{
    if (dtype == TANDEM_F32)
        return (double)((const float *)memory)[at];
    uint16_t bits = ((const uint16_t *)memory)[at];
    return (double)(dtype == TANDEM_F16 ? f16_value(bits) : bf16_value(bits));
}

/* Numbers in [-1, 1), no tile's like another's: one that is computed in
 * another's place, or with what is left of it, is found. */
static void numbers_make(uint32_t dtype, void *out, int64_t count,
                         uint32_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        float value = (float)(int32_t)seed / 2147483648.0f;
        if (dtype == TANDEM_F32)
            ((float *)out)[i] = value;
        else
            ((uint16_t *)out)[i] = dtype == TANDEM_F16 ? f16_round(value)
                                                       : bf16_round(value);
    }
}

/* Row, or column, nth of those that are compared: so many of each tile of a
 * size, not the same ones of each. */
static int64_t sample_at(uint32_t nth, uint32_t size, int64_t extent)
{
    uint32_t band = size / SAMPLES;
    int64_t at = (int64_t)nth * band + (nth * 2654435761u >> 16) % band;
    return at < extent ? at : extent - 1;
}

/* Has room for any patched tile's. */
struct sampled {
    const struct tandem_gemm *gemm;
    enum gemm_kernel_id tile;
    uint32_t count; /* of rows, and of columns */
    void *memory;   /* both operands, as the device has them */
    double *a, *b;  /* rows and columns, by k */
    void *line;     /* a row of the result */
};

static bool sampled_start(struct sampled *out, const struct meter *meter)
{
    uint64_t operands = 0, line = 0;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        struct tandem_gemm gemm =
            gemm_of(meter, (enum gemm_kernel_id)i, TANDEM_F32);
        if (!gemm_configs[i].uses_wgmma)
            continue;
        if (gemm.c.byte_offset > operands)
            operands = gemm.c.byte_offset;
        if ((uint64_t)gemm.n * sizeof(float) > line)
            line = (uint64_t)gemm.n * sizeof(float);
    }
    out->count = SAMPLES * tiles_aside(meter->device);
    size_t terms = (size_t)out->count * DEPTH;
    out->memory = malloc(operands);
    out->a = malloc(terms * sizeof(double));
    out->b = malloc(terms * sizeof(double));
    out->line = malloc(line);
    return out->memory != NULL && out->a != NULL && out->b != NULL &&
           out->line != NULL;
}

static void sampled_make(struct sampled *sampled)
{
    const struct tandem_gemm *gemm = sampled->gemm;
    const struct gemm_kernel_config *config = &gemm_configs[sampled->tile];
    /* Others for each tile: the last one's results are still there. */
    numbers_make(gemm->dtype, sampled->memory, (gemm->m + gemm->n) * DEPTH,
                 sampled->tile);
    const char *b = (const char *)sampled->memory + gemm->b.byte_offset;
    for (uint32_t s = 0; s < sampled->count; s++) {
        int64_t row = sample_at(s, config->tile_m, gemm->m);
        int64_t column = sample_at(s, config->tile_n, gemm->n);
        double *of_a = sampled->a + (size_t)s * DEPTH;
        double *of_b = sampled->b + (size_t)s * DEPTH;
        for (int64_t k = 0; k < DEPTH; k++) {
            of_a[k] = value_at(gemm->dtype, sampled->memory, row * DEPTH + k);
            of_b[k] = value_at(gemm->dtype, b, k * gemm->n + column);
        }
    }
}

static void sampled_end(struct sampled *sampled)
{
    free(sampled->memory);
    free(sampled->a);
    free(sampled->b);
    free(sampled->line);
}

static bool element_right(const struct sampled *sampled, const double *a,
                          const double *b, double got)
{
    uint32_t dtype = sampled->gemm->dtype;
    double tolerance = kernel_self_test_tolerance(
        sampled->tile, tensor_core_format(sampled->gemm, sampled->tile));
    double rounding = dtype == TANDEM_F16    ? F16_ROUNDING
                      : dtype == TANDEM_BF16 ? BF16_ROUNDING
                                             : 0;
    double sum = 0, size = 0;
    for (int64_t k = 0; k < DEPTH; k++) {
        double term = a[k] * b[k];
        sum += term;
        size += fabs(term);
    }
    return fabs(got - sum) <= tolerance * size + rounding * fabs(sum);
}

/* Elements of every tile, by double. */
static enum tandem_status sampled_judge(const struct sampled *sampled,
                                        struct meter *meter)
{
    const struct tandem_gemm *gemm = sampled->gemm;
    const struct gemm_kernel_config *config = &gemm_configs[sampled->tile];
    uint64_t line_bytes = (uint64_t)gemm->n * dtype_bytes(gemm->dtype);
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < sampled->count && status == TANDEM_OK; i++) {
        int64_t row = sample_at(i, config->tile_m, gemm->m);
        status = transfer_download(
            meter->stream, meter->memory,
            gemm->c.byte_offset + (uint64_t)row * line_bytes, sampled->line,
            line_bytes, 0, meter_left_ns(meter));
        for (uint32_t j = 0; j < sampled->count && status == TANDEM_OK; j++) {
            int64_t column = sample_at(j, config->tile_n, gemm->n);
            double got = value_at(gemm->dtype, sampled->line, column);
            if (!element_right(sampled, sampled->a + (size_t)i * DEPTH,
                               sampled->b + (size_t)j * DEPTH, got))
                status = last_error_set(TANDEM_FAILED,
                                        "%s: a large product is wrong at "
                                        "(%lld, %lld): %g",
                                        config->name, (long long)row,
                                        (long long)column, got);
        }
    }
    return status;
}

/* A product in which each group has several tiles, one after the other: what
 * the kernels' proof (kernel_self_test.h), where they are built, is too small
 * for. */
static enum tandem_status product_try(struct meter *meter,
                                      struct sampled *sampled,
                                      enum gemm_kernel_id tile, uint32_t dtype)
{
    const struct tandem_gemm gemm = gemm_of(meter, tile, dtype);
    sampled->gemm = &gemm;
    sampled->tile = tile;
    sampled_make(sampled);
    enum tandem_status status =
        transfer_upload(meter->stream, meter->memory, 0, sampled->memory,
                        gemm.c.byte_offset, 0);
    if (status == TANDEM_OK)
        status = product_launch(meter, &gemm, tile);
    if (status == TANDEM_OK)
        status = sampled_judge(sampled, meter);
    return status;
}

/* ---- all ---- */

/* Of the largest product. */
static uint64_t bytes_wanted(struct tandem_device *device)
{
    const struct meter meter = {.device = device};
    uint64_t most = 0;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        struct tandem_gemm gemm =
            gemm_of(&meter, (enum gemm_kernel_id)i, TANDEM_F32);
        if (gemm_configs[i].uses_wgmma && gemm_bytes(&gemm) > most)
            most = gemm_bytes(&gemm);
    }
    return most;
}

static enum tandem_status tiles_try(struct meter *meter,
                                    struct sampled *sampled)
{
    static const uint32_t halves[] = {TANDEM_F16, TANDEM_BF16};
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT && status == TANDEM_OK; i++) {
        if (!gemm_configs[i].uses_wgmma)
            continue;
        if (gemm_configs[i].mma_format != MMA_16BIT)
            status =
                product_try(meter, sampled, (enum gemm_kernel_id)i, TANDEM_F32);
        for (uint32_t h = 0; h < 2 && gemm_configs[i].mma_format == MMA_16BIT &&
                             status == TANDEM_OK;
             h++)
            status =
                product_try(meter, sampled, (enum gemm_kernel_id)i, halves[h]);
    }
    return status;
}

enum tandem_status tune_patched(struct tandem_device *device,
                                uint64_t budget_ns,
                                const struct findings *findings)
{
    struct meter meter;
    struct sampled sampled = {0};
    uint64_t stamp = sm90a_self_test_stamp(device->hardware);
    uint64_t now = monotonic_ns();
    uint64_t end = budget_ns < UINT64_MAX - now ? now + budget_ns : UINT64_MAX;
    if (!device->hardware->wgmma)
        return TANDEM_OK;
    uint64_t bytes = bytes_wanted(device);
    enum tandem_status status = meter_start(&meter, device, bytes, end);
    if (status == TANDEM_OK && meter.bytes < bytes)
        status = last_error_set(TANDEM_OUT_OF_MEMORY,
                             "tune: no memory to try wgmma in");
    if (status == TANDEM_OK && !sampled_start(&sampled, &meter))
        status = last_error_set(TANDEM_OUT_OF_MEMORY,
                             "tune: no host memory to try wgmma in");
    if (status != TANDEM_OK) {
        sampled_end(&sampled);
        meter_end(&meter);
        return status;
    }
    tell(findings, SM90A_SELF_TEST_STARTED, stamp);
    status = tiles_try(&meter, &sampled);
    if (status != TANDEM_OK)
        device_log(device, TANDEM_LOG_WARNING,
                   "%s: matrix products do without wgmma: %s",
                   device->hardware->info.name, message_get());
    tell(findings,
         status == TANDEM_OK ? SM90A_SELF_TEST_PASSED : SM90A_SELF_TEST_FAILED,
         stamp);
    sampled_end(&sampled);
    meter_end(&meter);
    return TANDEM_OK;
}
