/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts run times of a device from piecewise-linear cost curves and a GEMM
 * cost grid.  Both come from a profile or from conservative defaults.  One
 * thread at a time may build a model; any thread may read a finished model. */
#ifndef TANDEM_HOST_PROFILE_COST_CURVES_H
#define TANDEM_HOST_PROFILE_COST_CURVES_H

#include "host/exported_api.h"

/* Indices of cost curves.  A cost class is a set of operators with the same
 * cost curve; its value in enum tandem_cost_class is the index of the curve.
 * TANDEM_COST_GEMM has a grid instead.  The transfer curves follow. */
enum cost_curve_id {
    COST_UPLOAD = TANDEM_COST_CLASS_COUNT,
    COST_DOWNLOAD,
    COST_UPLOAD_PINNED,
    COST_DOWNLOAD_PINNED,
    COST_CURVE_COUNT
};

enum cost_scalar_id {
    COST_LAUNCH,
    COST_SYNC,
    COST_ALLOC,
    COST_COMPILE,
    COST_GEMM_COMPILE,
    COST_SCALAR_COUNT
};

#define MAX_CURVE_POINTS 64u
#define CURVE_INDEX_SIZE 64u
/* Largest cost in ns and largest curve point x that a profile may contain. */
#define MAX_COST_NS 1e13 /* 2.8 hours */
#define MAX_COST_X 1e15  /* bytes */

/* A line segment of a cost curve.  From `x` to the start of the next segment,
 * the cost at position p is ns + (p - x) * slope.  The first `x` is 0. */
struct curve_segment {
    double x, ns, slope;
};

struct cost_curve {
    uint32_t count;
    /* Index for fast lookups.  Entry 0 is the number of the last segment with x
     * <= 0.  Entry i > 0 is the number of the last segment with x <= 2^i. */
    uint8_t log2_index[CURVE_INDEX_SIZE];
    struct curve_segment segments[MAX_CURVE_POINTS + 1];
};

struct curve_point {
    double x, ns;
};

#define MAX_GEMM_AXIS_SIZES 16u /* maximum number of sizes of m, n or k */
#define MAX_GEMM_POINTS 1024u
#define MAX_GEMM_SIZE (1 << 24) /* largest m, n or k in a profile */

struct gemm_point {
    double size[3]; /* m, n, k */
    double ns;
};

/* Measured times of GEMMs on a grid of sizes m, n and k. */
struct gemm_cost_grid {
    uint32_t counts[3]; /* number of sizes of m, n, k; all 0 if no grid */
    double logs[3][MAX_GEMM_AXIS_SIZES]; /* log2 of m, n and k, ascending */
    /* The shortest measured time, which is a lower limit for GEMMs smaller than
     * the grid, because the driver's overhead is constant. */
    double floor_ns;
    float *log_ns; /* log2 of the time in ns at [m][n][k] */
};

struct cost_model {
    double scalars[COST_SCALAR_COUNT];
    struct cost_curve curves[COST_CURVE_COUNT];
    struct gemm_cost_grid gemm;
    /* Rates to use if `gemm` is empty. */
    double gemm_flops_per_ns, gemm_bytes_per_ns;
    bool calibrated; /* true if any cost is from a profile */
    /* Bit c is set if a profile has the costs of cost class c. */
    uint32_t calibrated_classes;
    /* Bit id % 64 of word id / 64 is set if the profile says that the device
     * computes operator id wrong.  The device then never runs the operator. */
    uint64_t blocked_ops[TANDEM_OP_ID_END / 64];
};

static inline bool cost_is_op_blocked(const struct cost_model *model,
                                      uint32_t op)
{
    return model->blocked_ops[op / 64] >> op % 64 & 1;
}

/* Returns the number of the curve with a name such as "elementwise" or
 * "upload", or COST_CURVE_COUNT if there is no such curve. */
uint32_t cost_curve_find(const char *name);
/* Returns the number of the scalar cost with a name such as "launch", or
 * COST_SCALAR_COUNT if there is no such scalar. */
uint32_t cost_scalar_find(const char *name);

/* Fills the model with the default costs (see cost_curves.c) of a device. */
void cost_model_set_defaults(struct cost_model *model,
                             const struct tandem_device_info *info);

/* Builds a curve from 1 to MAX_CURVE_POINTS points and sorts them.  Their
 * values must be finite and at least 0.  If points have equal x, the last one
 * wins. */
void cost_curve_build(struct cost_curve *curve, struct curve_point *points,
                      uint32_t count);
/* Returns a curve's cost in ns at x >= 0.  The curve is constant before its
 * first point and keeps its last slope after its last point. */
double cost_curve_predict(const struct cost_curve *curve, double x);

/* Builds the grid from 1 to MAX_GEMM_POINTS points.  All sizes must be at least
 * 1, and all times positive.  Returns false with an empty grid if memory runs
 * out or if m, n or k has more than MAX_GEMM_AXIS_SIZES distinct sizes. */
bool gemm_cost_grid_build(struct gemm_cost_grid *grid,
                          const struct gemm_point *points, uint32_t count);
void gemm_cost_grid_free(struct gemm_cost_grid *grid);
/* Returns the predicted time in ns of one m x n x k GEMM, including its launch.
 */
double cost_predict_gemm(const struct cost_model *model, double m, double n,
                         double k);

#endif
