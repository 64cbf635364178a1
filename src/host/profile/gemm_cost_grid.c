/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts GEMM times from a cost grid; see cost_curves.h.  Interpolates
 * log2(ns) linearly over a grid of log2(m), log2(n) and log2(k).  A grid point
 * that was not measured gets the time of the nearest measured point, and a
 * point outside the grid gets the time at the nearest edge of the grid.  Both
 * times are scaled in proportion to the work of the two GEMMs. */
#include <config.h>

#include "host/profile/cost_curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns the work of a GEMM: its flops plus ten flops per operand byte. */
static double gemm_work(double m, double n, double k)
{
    return 2 * m * n * k + 40 * (m * k + k * n + m * n);
}

static double gemm_work_of_logs(const double logs[3])
{
    return gemm_work(exp2(logs[0]), exp2(logs[1]), exp2(logs[2]));
}

static bool axis_add(struct gemm_cost_grid *grid, uint32_t axis, double size)
{
    double *logs = grid->logs[axis];
    const double value = log2(size);
    uint32_t i = 0, count = grid->counts[axis];

    while (i < count && logs[i] < value)
        i++;
    if (i < count && logs[i] == value)
        return true;
    if (count == MAX_GEMM_AXIS_SIZES)
        return false;
    memmove(logs + i + 1, logs + i, (count - i) * sizeof(*logs));
    logs[i] = value;
    grid->counts[axis]++;
    return true;
}

/* Returns the measured time in ns at the grid point `at`, or an estimate scaled
 * from the nearest measured point. */
static double point_estimate(const double at[3],
                             const struct gemm_point *points, uint32_t count,
                             double floor_ns)
{
    double best = INFINITY, ns = 0;

    for (uint32_t i = 0; i < count; i++) {
        double logs[3], far = 0;

        for (uint32_t axis = 0; axis < 3; axis++) {
            logs[axis] = log2(points[i].size[axis]);
            far += (logs[axis] - at[axis]) * (logs[axis] - at[axis]);
        }
        if (far == 0)
            ns = points[i].ns;
        else if (far < best)
            ns = fmax(points[i].ns * gemm_work_of_logs(at) /
                          gemm_work_of_logs(logs),
                      floor_ns);
        if (far <= best)
            best = far;
    }
    return ns;
}

bool gemm_cost_grid_build(struct gemm_cost_grid *grid,
                          const struct gemm_point *points, uint32_t count)
{
    float *cell;

    *grid = (struct gemm_cost_grid){.floor_ns = INFINITY};
    for (uint32_t i = 0; i < count; i++) {
        grid->floor_ns = fmin(grid->floor_ns, points[i].ns);
        for (uint32_t axis = 0; axis < 3; axis++) {
            if (!axis_add(grid, axis, points[i].size[axis]))
                goto fail;
        }
    }
    cell = calloc((size_t)grid->counts[0] * grid->counts[1] * grid->counts[2],
                  sizeof(*cell));
    grid->log_ns = cell;
    if (cell == NULL)
        goto fail;
    for (uint32_t m = 0; m < grid->counts[0]; m++) {
        for (uint32_t n = 0; n < grid->counts[1]; n++) {
            for (uint32_t k = 0; k < grid->counts[2]; k++) {
                const double at[3] = {grid->logs[0][m], grid->logs[1][n],
                                      grid->logs[2][k]};

                *cell++ = (float)log2(
                    point_estimate(at, points, count, grid->floor_ns));
            }
        }
    }
    return true;
fail:
    gemm_cost_grid_free(grid);
    return false;
}

void gemm_cost_grid_free(struct gemm_cost_grid *grid)
{
    free(grid->log_ns);
    memset(grid, 0, sizeof(*grid));
}

/* Returns the index of the interval of a grid axis that contains `value`, which
 * must be in range.  *out_part is the position of `value` in the interval, as a
 * fraction from 0 to 1. */
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

static double grid_interpolate(const struct gemm_cost_grid *grid,
                               const double at[3])
{
    uint32_t cell[3];
    double part[3], sum = 0;

    for (uint32_t i = 0; i < 3; i++)
        cell[i] = axis_find(grid->logs[i], grid->counts[i], at[i], &part[i]);
    for (uint32_t corner = 0; corner < 8; corner++) {
        double weight = 1;
        size_t index = 0;

        for (uint32_t i = 0; i < 3; i++) {
            const uint32_t upper = corner >> i & 1;

            weight *= upper ? part[i] : 1 - part[i];
            index =
                index * grid->counts[i] + cell[i] + (part[i] > 0 ? upper : 0);
        }
        if (weight > 0)
            sum += weight * (double)grid->log_ns[index];
    }
    return exp2(sum);
}

double cost_predict_gemm(const struct cost_model *model, double m, double n,
                         double k)
{
    const struct gemm_cost_grid *grid = &model->gemm;
    const double sizes[3] = {m, n, k};
    double at[3], ns, scale;
    bool outside = false;

    if (!(m > 0 && n > 0 && k > 0))
        return model->scalars[COST_LAUNCH];
    if (grid->counts[0] == 0)
        return model->scalars[COST_LAUNCH] +
               fmax(gemm_work(m, n, k) / model->gemm_flops_per_ns,
                    sizeof(float) * (m * k + k * n + m * n) /
                        model->gemm_bytes_per_ns);
    for (uint32_t i = 0; i < 3; i++) {
        const double *logs = grid->logs[i];
        const double value = log2(sizes[i]);

        at[i] = fmin(fmax(value, logs[0]), logs[grid->counts[i] - 1]);
        outside |= at[i] != value;
    }
    ns = grid_interpolate(grid, at);
    if (!outside)
        return ns;
    scale = gemm_work(m, n, k) / gemm_work_of_logs(at);
    return scale < 1 ? fmax(ns * scale, fmin(ns, grid->floor_ns)) : ns * scale;
}
