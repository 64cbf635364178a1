/* SPDX-License-Identifier: Apache-2.0 */
/* Implements cost curves and the default costs of devices; see cost_model.h. */
#include <config.h>

#include "host/profile/cost_model.h"

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
 * clearly large work.
 *   cpu  10 bytes/ns is less than the memory bandwidth of one core of any
 *        desktop since 2015; slower cost classes are in proportion to this
 *        rate.  20 flops/ns is a tenth of the SGEMM rate of an AVX-512 core.
 *   gpu  The latencies are those of slow OpenCL drivers: 3 to 10 us for a
 *        launch, 7 to 20 us for a small transfer.  5 bytes/ns is the rate of
 *        pageable PCIe 3 transfers.  Memory rates are those of integrated GPUs.
 *   other  OpenCL on the host's CPU has half the byte rates and a quarter of
 *        the flop rate of the cpu defaults, and the latencies of a driver. */
struct defaults {
    double scalars[COST_SCALAR_COUNT];
    double bytes_per_ns[COST_CURVE_COUNT];
    double transfer_ns;
    double flops_per_ns;
};
_Static_assert(COST_CURVE_COUNT == 14, "bytes_per_ns has a rate per curve");
static const struct defaults cpu_defaults = {
    .scalars = {100, 0, 200, 0, 0},
    .bytes_per_ns = {10, 4, 1, 8, 2, 2.5, 2.5, 8, 1, 2.5, 10, 10, 10, 10},
    .transfer_ns = 100,
    .flops_per_ns = 20,
};
static const struct defaults gpu_defaults = {
    .scalars = {10e3, 20e3, 10e3, 100e6, 1e9},
    .bytes_per_ns = {30, 25, 15, 20, 10, 10, 10, 20, 1, 10, 5, 5, 8, 8},
    .transfer_ns = 20e3,
    .flops_per_ns = 300,
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

void cost_model_set_defaults(struct cost_model *model, uint32_t kind,
                             bool is_synchronous)
{
    const struct defaults *defaults = is_synchronous ? &cpu_defaults
                                      : kind == TANDEM_DEVICE_CPU
                                          ? &other_defaults
                                          : &gpu_defaults;

    memset(model, 0, sizeof(*model));
    memcpy(model->scalars, defaults->scalars, sizeof(model->scalars));
    model->gemm_flops_per_ns = defaults->flops_per_ns;
    for (uint32_t i = 0; i < COST_CURVE_COUNT; i++) {
        const double start = i < COST_UPLOAD ? model->scalars[COST_LAUNCH]
                                             : defaults->transfer_ns;
        const double far = 1 << 30;
        struct curve_point points[2] = {
            {0, start}, {far, start + far / defaults->bytes_per_ns[i]}};

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
