/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GEMM cost grid of a cost model; see cost_model.h.  log2(ns) is
 * interpolated linearly over a grid of log2(m), log2(n) and log2(k).  At a grid
 * point that was not measured, the time of the nearest measured point is scaled
 * by the ratio of work.  Outside the grid, the time at the nearest edge of the
 * grid is scaled by this ratio, too.
 */
#include <config.h>

#include "host/profile/cost_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns the work of a product in flops.  A byte of the f32 operands counts as
 * ten flops. */
static double work(double m, double n, double k)
{
    return 2 * m * n * k + 40 * (m * k + k * n + m * n);
}

static double work_of_logs(const double logs[3])
{
    return work(exp2(logs[0]), exp2(logs[1]), exp2(logs[2]));
}

static bool axis_add(struct gemm_surface *surface, uint32_t axis, double size)
{
    double *logs = surface->logs[axis];
    const double value = log2(size);
    uint32_t i = 0, count = surface->counts[axis];

    while (i < count && logs[i] < value)
        i++;
    if (i < count && logs[i] == value)
        return true;
    if (count == GEMM_AXIS)
        return false;
    memmove(logs + i + 1, logs + i, (count - i) * sizeof(*logs));
    logs[i] = value;
    surface->counts[axis]++;
    return true;
}

static double distance(const double a[3], const double b[3])
{
    double sum = 0;

    for (uint32_t i = 0; i < 3; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

/* Returns the measured ns at the grid point `at`, or an estimate scaled from
 * the nearest measured point. */
static double point_estimate(const double at[3],
                             const struct gemm_point *points, uint32_t count,
                             double floor_ns)
{
    double best = INFINITY, ns = 0;

    for (uint32_t i = 0; i < count; i++) {
        const double logs[3] = {log2(points[i].size[0]),
                                log2(points[i].size[1]),
                                log2(points[i].size[2])};
        const double far = distance(logs, at);

        if (far == 0)
            ns = points[i].ns;
        else if (far < best)
            ns = fmax(points[i].ns * work_of_logs(at) / work_of_logs(logs),
                      floor_ns);
        if (far <= best)
            best = far;
    }
    return ns;
}

bool gemm_build(struct gemm_surface *surface, const struct gemm_point *points,
                uint32_t count, double floor_ns)
{
    float *cell;

    memset(surface, 0, sizeof(*surface));
    surface->floor_ns = floor_ns;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t axis = 0; axis < 3; axis++) {
            if (!axis_add(surface, axis, points[i].size[axis]))
                goto fail;
        }
    }
    if (count == 0)
        return true;
    cell = calloc((size_t)surface->counts[0] * surface->counts[1] *
                      surface->counts[2],
                  sizeof(*cell));
    surface->log_ns = cell;
    if (cell == NULL)
        goto fail;
    for (uint32_t m = 0; m < surface->counts[0]; m++) {
        for (uint32_t n = 0; n < surface->counts[1]; n++) {
            for (uint32_t k = 0; k < surface->counts[2]; k++) {
                const double at[3] = {surface->logs[0][m], surface->logs[1][n],
                                      surface->logs[2][k]};

                *cell++ =
                    (float)log2(point_estimate(at, points, count, floor_ns));
            }
        }
    }
    return true;
fail:
    gemm_finish(surface);
    return false;
}

void gemm_finish(struct gemm_surface *surface)
{
    free(surface->log_ns);
    memset(surface, 0, sizeof(*surface));
}

/* Returns the index of the cell that contains value on an axis.  *out_part is
 * the position in this cell from 0 to 1.  value must be in the axis's range. */
static uint32_t axis_find(const double *logs, uint32_t count, double value,
                          double *out_part)
{
    uint32_t i = 0;

    *out_part = 0;
    if (count == 1)
        return 0;
    while (i + 2 < count && logs[i + 1] <= value)
        i++;
    *out_part = (value - logs[i]) / (logs[i + 1] - logs[i]);
    return i;
}

static double surface_at(const struct gemm_surface *surface, const double at[3])
{
    uint32_t cell[3];
    double part[3], sum = 0;

    for (uint32_t i = 0; i < 3; i++)
        cell[i] =
            axis_find(surface->logs[i], surface->counts[i], at[i], &part[i]);
    for (uint32_t corner = 0; corner < 8; corner++) {
        double weight = 1;
        size_t index = 0;

        for (uint32_t i = 0; i < 3; i++) {
            const uint32_t upper = corner >> i & 1;

            weight *= upper ? part[i] : 1 - part[i];
            index = index * surface->counts[i] + cell[i] +
                    (part[i] > 0 ? upper : 0);
        }
        if (weight > 0)
            sum += weight * (double)surface->log_ns[index];
    }
    return exp2(sum);
}

double cost_gemm(const struct cost_model *model, double m, double n, double k)
{
    const struct gemm_surface *surface = &model->gemm;
    const double sizes[3] = {m, n, k};
    double at[3], ns;
    bool outside = false;

    if (!(m > 0 && n > 0 && k > 0))
        return model->scalars[COST_LAUNCH];
    if (surface->counts[0] == 0)
        return model->scalars[COST_LAUNCH] +
               work(m, n, k) / model->gemm_flops_per_ns;
    for (uint32_t i = 0; i < 3; i++) {
        const double *logs = surface->logs[i];
        const double value = log2(sizes[i]);

        at[i] = fmin(fmax(value, logs[0]), logs[surface->counts[i] - 1]);
        outside |= at[i] != value;
    }
    ns = surface_at(surface, at);
    if (outside) {
        const double scale = work(m, n, k) / work_of_logs(at);

        ns = scale < 1 ? fmax(ns * scale, fmin(ns, surface->floor_ns))
                       : ns * scale;
    }
    return ns;
}
