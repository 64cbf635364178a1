/* SPDX-License-Identifier: Apache-2.0 */
/* A grid of measured times of matrix multiplications (GEMMs) over m, n and k.
 * One thread at a time may build a grid; any thread may read a finished one. */
#ifndef TANDEM_HOST_PROFILE_GEMM_COST_GRID_H
#define TANDEM_HOST_PROFILE_GEMM_COST_GRID_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_GEMM_AXIS_SIZES 16u /* maximum number of sizes of m, n or k */
#define MAX_GEMM_POINTS 1024u
#define MAX_GEMM_SIZE (1 << 24) /* largest m, n or k in a profile */

struct gemm_point {
    double size[3]; /* m, n, k */
    double ns;
};

struct gemm_cost_grid {
    uint32_t counts[3]; /* number of sizes of m, n, k; all 0 if empty */
    double logs[3][MAX_GEMM_AXIS_SIZES]; /* log2 of m, n and k, ascending */
    double floor_ns;                     /* see gemm_cost_grid_build */
    float *log_ns; /* log2 of the time in ns at [m][n][k] */
};

/* Builds the grid from at most MAX_GEMM_POINTS points whose sizes are at least
 * 1 and whose ns are positive.  Predictions for GEMMs smaller than the grid are
 * not scaled below floor_ns.  Returns false if memory runs out or if m, n or k
 * has over MAX_GEMM_AXIS_SIZES distinct sizes; the grid is then empty. */
bool gemm_cost_grid_build(struct gemm_cost_grid *grid,
                          const struct gemm_point *points, uint32_t count,
                          double floor_ns);
void gemm_cost_grid_free(struct gemm_cost_grid *grid);

#endif
