/* SPDX-License-Identifier: Apache-2.0 */
/* Implements cost curves and the default costs of devices; see cost_curves.h.
 */
#include <config.h>

#include "host/profile/cost_curves.h"

#include <math.h>
#include <string.h>

static const char *const curve_names[COST_CURVE_COUNT] = {
#define CURVE_NAME(ID, number, name, ...) [number] = #name,
    TANDEM_COST_CLASSES(CURVE_NAME)
#undef CURVE_NAME
        [COST_UPLOAD] = "upload",
    [COST_DOWNLOAD] = "download",
    [COST_UPLOAD_PINNED] = "upload_pinned",
    [COST_DOWNLOAD_PINNED] = "download_pinned",
};

static const char *const scalar_names[COST_SCALAR_COUNT] = {
    [COST_LAUNCH] = "launch",
    [COST_SYNC] = "sync",
    [COST_ALLOC] = "alloc",
    [COST_COMPILE] = "compile",
    [COST_GEMM_COMPILE] = "gemm_compile",
};

/* The default costs favor the CPU: a GPU without a profile is chosen only for
 * clearly large work.  docs/choosing-a-device.md lists them.
 *   cpu  For each thread, 10 bytes/ns is less than the memory bandwidth of one
 *        core of any desktop since 2015, and slower cost classes are in
 *        proportion to this rate.  Four threads saturate the memory of a
 *        desktop.  20 flops/ns for each of at most 16 threads is about half of
 *        what ONNX Runtime reached for ResNet-50 with 16 threads.
 *   discrete GPU  Half of the memory bandwidth and a third of the peak flop
 *        rate of a GeForce GTX 1650 (2019: 128 GB/s, 3 TFLOP/s).  The latencies
 *        are those of slow OpenCL drivers: 3 to 10 us for a launch, 7 to 20 us
 *        for a small transfer.  5 bytes/ns is the rate of pageable PCIe 3
 *        transfers.
 *   integrated GPU  A quarter of the peak flop rate of Intel UHD 630 (2017:
 *        0.4 TFLOP/s), and half of the bandwidth of two channels of DDR4.
 *   other  OpenCL on the host's CPU, and accelerators.  They have half the byte
 *        rates and a quarter of the flop rate of one thread of the CPU plugin,
 *        and the latencies of a driver, so the CPU plugin always wins. */
struct defaults {
    double scalars[COST_SCALAR_COUNT];
    double bytes_per_ns[COST_CURVE_COUNT];
    double transfer_ns;
    double flops_per_ns;
    /* Numbers of threads up to which the byte and flop rates grow. */
    uint32_t max_byte_threads, max_flop_threads;
};
_Static_assert(COST_CURVE_COUNT == 14, "bytes_per_ns has a rate per curve");
static const struct defaults cpu_defaults = {
    .scalars = {100, 0, 200, 0, 0},
    .bytes_per_ns = {10, 4, 1, 8, 2, 2.5, 2.5, 8, 1, 2.5, 10, 10, 10, 10},
    .transfer_ns = 100,
    .flops_per_ns = 20,
    .max_byte_threads = 4,
    .max_flop_threads = 16,
};
static const struct defaults discrete_gpu_defaults = {
    .scalars = {10e3, 20e3, 10e3, 100e6, 1e9},
    .bytes_per_ns = {60, 50, 40, 50, 30, 40, 30, 40, 1, 30, 5, 5, 8, 8},
    .transfer_ns = 20e3,
    .flops_per_ns = 1000,
};
static const struct defaults integrated_gpu_defaults = {
    .scalars = {10e3, 20e3, 10e3, 100e6, 1e9},
    .bytes_per_ns = {20, 15, 10, 15, 8, 8, 8, 15, 1, 8, 5, 5, 8, 8},
    .transfer_ns = 20e3,
    .flops_per_ns = 100,
};
static const struct defaults other_defaults = {
    .scalars = {30e3, 30e3, 10e3, 100e6, 5e9},
    .bytes_per_ns = {5, 2, 0.5, 4, 1, 1.25, 1.25, 4, 1, 1.25, 5, 5, 5, 5},
    .transfer_ns = 20e3,
    .flops_per_ns = 5,
};

static uint32_t name_find(const char *const *names, uint32_t count,
                          const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    return count;
}

uint32_t cost_curve_find(const char *name)
{
    const uint32_t index = name_find(curve_names, COST_CURVE_COUNT, name);

    return index == TANDEM_COST_GEMM ? COST_CURVE_COUNT : index;
}

uint32_t cost_scalar_find(const char *name)
{
    return name_find(scalar_names, COST_SCALAR_COUNT, name);
}

static const struct defaults *
defaults_find(const struct tandem_device_info *info)
{
    const uint32_t asynchronous = TANDEM_CAP_ASYNC | TANDEM_CAP_JIT_COMPILATION;
    const bool computes_in_calling_thread =
        info->caps & TANDEM_CAP_ZERO_COPY_IMPORT &&
        !(info->caps & asynchronous);

    if (computes_in_calling_thread)
        return &cpu_defaults;
    if (info->kind != TANDEM_DEVICE_GPU)
        return &other_defaults;
    return info->caps & TANDEM_CAP_UNIFIED_MEMORY ? &integrated_gpu_defaults
                                                  : &discrete_gpu_defaults;
}

/* Returns `threads`, at least 1 and at most `max`, or 1 if `max` is 0. */
static double thread_factor(uint32_t threads, uint32_t max)
{
    return threads < 1 || max == 0 ? 1 : threads < max ? threads : max;
}

void cost_model_set_defaults(struct cost_model *model,
                             const struct tandem_device_info *info)
{
    const struct defaults *defaults = defaults_find(info);
    const double byte_threads =
        thread_factor(info->compute_units, defaults->max_byte_threads);

    memset(model, 0, sizeof(*model));
    memcpy(model->scalars, defaults->scalars, sizeof(model->scalars));
    model->gemm_flops_per_ns =
        defaults->flops_per_ns *
        thread_factor(info->compute_units, defaults->max_flop_threads);
    model->gemm_bytes_per_ns =
        defaults->bytes_per_ns[TANDEM_COST_ELEMENTWISE] * byte_threads;
    for (uint32_t i = 0; i < COST_CURVE_COUNT; i++) {
        const bool is_transfer = i >= COST_UPLOAD;
        const double start =
            is_transfer ? defaults->transfer_ns : model->scalars[COST_LAUNCH];
        const double rate =
            defaults->bytes_per_ns[i] * (is_transfer ? 1 : byte_threads);
        const double far = 1 << 30;
        struct curve_point points[2] = {{0, start}, {far, start + far / rate}};

        cost_curve_build(&model->curves[i], points, 2);
    }
}

/* Sorts curve points by x.  The sort must be stable, because cost_curve_build
 * uses the last of several points with equal x. */
static void points_sort(struct curve_point *points, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const struct curve_point point = points[i];
        uint32_t j = i;

        for (; j > 0 && points[j - 1].x > point.x; j--)
            points[j] = points[j - 1];
        points[j] = point;
    }
}

static void cost_curve_index(struct cost_curve *curve)
{
    uint32_t segment = 0;

    for (uint32_t i = 0; i < CURVE_INDEX_SIZE; i++) {
        const double x = i == 0 ? 0 : ldexp(1, (int)i);

        while (segment + 1 < curve->count &&
               curve->segments[segment + 1].x <= x)
            segment++;
        curve->log2_index[i] = (uint8_t)segment;
    }
}

void cost_curve_build(struct cost_curve *curve, struct curve_point *points,
                      uint32_t count)
{
    struct curve_segment *segments = curve->segments;
    uint32_t last;

    memset(curve, 0, sizeof(*curve));
    curve->count = 1;
    points_sort(points, count);
    segments[0].ns = points[0].ns;
    for (uint32_t i = 0; i < count; i++) {
        if (points[i].x > segments[curve->count - 1].x)
            curve->count++;
        segments[curve->count - 1].x = points[i].x;
        segments[curve->count - 1].ns = points[i].ns;
        if (curve->count == 1)
            segments[0].x = 0;
    }
    last = curve->count - 1;
    for (uint32_t i = 0; i < last; i++)
        segments[i].slope = (segments[i + 1].ns - segments[i].ns) /
                            (segments[i + 1].x - segments[i].x);
    if (last > 0 && segments[last - 1].slope > 0)
        segments[last].slope = segments[last - 1].slope;
    else if (segments[last].x > 0)
        segments[last].slope = segments[last].ns / segments[last].x;
    cost_curve_index(curve);
}

double cost_curve_predict(const struct cost_curve *curve, double x)
{
    const struct curve_segment *segment, *end = curve->segments + curve->count;
    uint64_t bits;
    int64_t log2_index;

    /* The exponent bits of the double x contain floor(log2(x)). */
    memcpy(&bits, &x, sizeof(bits));
    log2_index = (int64_t)(bits >> 52) - 1023;
    log2_index = log2_index < 0 ? 0 : log2_index;
    log2_index =
        log2_index >= CURVE_INDEX_SIZE ? CURVE_INDEX_SIZE - 1 : log2_index;
    segment = curve->segments + curve->log2_index[log2_index];
    while (segment + 1 < end && segment[1].x <= x)
        segment++;
    return segment->ns + (x - segment->x) * segment->slope;
}
