/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds and evaluates cost curves and holds the default costs; see
 * cost_model.h.
 */
#include <config.h>

#include "host/profile/cost_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const curve_names[COST_CURVES] = {
    [TANDEM_COST_ELEMENTWISE] = "elementwise",
    [TANDEM_COST_TRANSCENDENTAL] = "transcendental",
    [TANDEM_COST_MULTI_TRANSCENDENTAL] = "multi_transcendental",
    [TANDEM_COST_REDUCE] = "reduce",
    [TANDEM_COST_SOFTMAX] = "softmax",
    [TANDEM_COST_STRIDED] = "strided",
    [TANDEM_COST_GATHER] = "gather",
    [TANDEM_COST_OPTIMIZER] = "optimizer",
    [TANDEM_COST_GEMM] = NULL,
    [TANDEM_COST_NORM] = "norm",
    [COST_UPLOAD] = "upload",
    [COST_DOWNLOAD] = "download",
    [COST_UPLOAD_PINNED] = "upload_pinned",
    [COST_DOWNLOAD_PINNED] = "download_pinned",
};

static const char *const scalar_names[COST_SCALARS] = {
    [COST_LAUNCH] = "launch",
    [COST_SYNC] = "sync",
    [COST_ALLOC] = "alloc",
    [COST_COMPILE] = "compile",
    [COST_GEMM_COMPILE] = "gemm_compile",
};

/* The default costs favor the CPU: a GPU without a profile is chosen only for
 * clearly large work.
 *   cpu  10 bytes/ns is less than the memory bandwidth of one core of any
 *        desktop since 2015, and the slower classes are in proportion to it.
 *        20 flops/ns is a tenth of the SGEMM rate of one AVX-512 core.
 *   gpu  The latencies are the slow end of OpenCL drivers: 3 to 10 us for a
 *        launch, 7 to 20 us for a small transfer.  5 bytes/ns is the rate of
 *        pageable PCIe 3 transfers.  The memory is that of an integrated GPU.
 *   other  OpenCL on the host's processor: half the byte rates and a quarter
 *        of the flop rate of the cpu defaults, and a driver's latencies. */
struct defaults {
    double scalars[COST_SCALARS];
    double bytes_per_ns[COST_CURVES];
    double transfer_ns;
    double flops_per_ns;
};
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
        if (names[i] != NULL && strcmp(names[i], name) == 0)
            return i;
    }
    return count;
}

uint32_t cost_curve_find(const char *name)
{
    return name_find(curve_names, COST_CURVES, name);
}

uint32_t cost_scalar_find(const char *name)
{
    return name_find(scalar_names, COST_SCALARS, name);
}

void cost_defaults(struct cost_model *model, uint32_t kind, bool at_once)
{
    const struct defaults *defaults = at_once ? &cpu_defaults
                                      : kind == TANDEM_DEVICE_CPU
                                          ? &other_defaults
                                          : &gpu_defaults;

    memset(model, 0, sizeof(*model));
    memcpy(model->scalars, defaults->scalars, sizeof(model->scalars));
    model->gemm_flops_per_ns = defaults->flops_per_ns;
    for (uint32_t i = 0; i < COST_CURVES; i++) {
        const double start = i < COST_UPLOAD ? model->scalars[COST_LAUNCH]
                                             : defaults->transfer_ns;
        const double far = 1 << 30;
        struct curve_point points[2] = {
            {0, start}, {far, start + far / defaults->bytes_per_ns[i]}};

        curve_build(&model->curves[i], points, 2);
    }
}

/* Sorts by x.  The sort must be stable, because curve_build uses the last of
 * several points with equal x. */
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

static void curve_index(struct curve *curve)
{
    uint32_t knot = 0;

    for (uint32_t i = 0; i < CURVE_OCTAVES; i++) {
        const double x = i == 0 ? 0 : ldexp(1, (int)i);

        while (knot + 1 < curve->count && curve->knots[knot + 1].x <= x)
            knot++;
        curve->octave[i] = (uint8_t)knot;
    }
}

void curve_build(struct curve *curve, struct curve_point *points,
                 uint32_t count)
{
    struct curve_knot *knots = curve->knots;
    uint32_t last;

    memset(curve, 0, sizeof(*curve));
    curve->count = 1;
    if (count == 0)
        return;
    points_sort(points, count);
    knots[0].ns = points[0].ns;
    for (uint32_t i = 0; i < count; i++) {
        if (points[i].x > knots[curve->count - 1].x)
            curve->count++;
        knots[curve->count - 1].x = points[i].x;
        knots[curve->count - 1].ns = points[i].ns;
        if (curve->count == 1)
            knots[0].x = 0;
    }
    last = curve->count - 1;
    for (uint32_t i = 0; i < last; i++)
        knots[i].slope =
            (knots[i + 1].ns - knots[i].ns) / (knots[i + 1].x - knots[i].x);
    if (last > 0 && knots[last - 1].slope > 0)
        knots[last].slope = knots[last - 1].slope;
    else if (knots[last].x > 0)
        knots[last].slope = knots[last].ns / knots[last].x;
    curve_index(curve);
}

double curve_at(const struct curve *curve, double x)
{
    const struct curve_knot *knot, *end = curve->knots + curve->count;
    uint64_t bits;
    int64_t octave;

    /* The exponent bits of the double give floor(log2(x)). */
    memcpy(&bits, &x, sizeof(bits));
    octave = (int64_t)(bits >> 52) - 1023;
    octave = octave < 0 ? 0 : octave;
    octave = octave >= CURVE_OCTAVES ? CURVE_OCTAVES - 1 : octave;
    knot = curve->knots + curve->octave[octave];
    while (knot + 1 < end && knot[1].x <= x)
        knot++;
    return knot->ns + (x - knot->x) * knot->slope;
}
