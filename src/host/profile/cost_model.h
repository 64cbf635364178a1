/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicts run times of a device: piecewise-linear cost curves and a GEMM cost
 * grid, from a profile or from conservative defaults.  One thread at a time may
 * build a model; any thread may read a finished model.
 */
#ifndef TANDEM_HOST_PROFILE_COST_MODEL_H
#define TANDEM_HOST_PROFILE_COST_MODEL_H

#include "host/exported_api.h"

/* Cost curves.  An enum tandem_cost_class is the number of the curve of that
 * class, although TANDEM_COST_GEMM's is unused.  Transfer curves follow. */
enum cost_curve {
    COST_UPLOAD = TANDEM_COST_CLASS_COUNT,
    COST_DOWNLOAD,
    COST_UPLOAD_PINNED,
    COST_DOWNLOAD_PINNED,
    COST_CURVES
};

enum cost_scalar {
    COST_LAUNCH,
    COST_SYNC,
    COST_ALLOC,
    COST_COMPILE,
    COST_GEMM_COMPILE,
    COST_SCALARS
};

#define CURVE_POINTS 64u
#define CURVE_OCTAVES 64u
#define GEMM_AXIS 16u /* largest number of distinct sizes of m, n or k */
#define GEMM_POINTS 1024u
/* Largest values that a profile may contain. */
#define COST_NS_MAX 1e13        /* 2.8 hours */
#define COST_X_MAX 1e15         /* bytes */
#define COST_SIZE_MAX (1 << 24) /* m, n or k */

/* The start of a line segment: at X >= x, up to the next knot, the cost is
 * ns + (X - x) * slope.  The x of the first knot is 0. */
struct curve_knot {
    double x, ns, slope;
};

struct curve {
    uint32_t count; /* number of knots */
    /* Entry i is the last knot with x <= 2^i; entry 0, the last with x <= 0. */
    uint8_t octave[CURVE_OCTAVES];
    struct curve_knot knots[CURVE_POINTS + 1];
};

struct curve_point {
    double x, ns;
};

struct gemm_point {
    double size[3]; /* m, n, k */
    double ns;
};

struct gemm_surface {
    uint32_t counts[3]; /* sizes per axis; all 0 if nothing was measured */
    double logs[3][GEMM_AXIS]; /* log2 of the sizes, ascending */
    double floor_ns;           /* see gemm_build */
    float *log_ns;             /* log2 of the ns at grid point [m][n][k] */
};

struct cost_model {
    double scalars[COST_SCALARS];
    struct curve curves[COST_CURVES];
    struct gemm_surface gemm;
    double gemm_flops_per_ns;  /* used if gemm is empty */
    bool measured;             /* true if any cost is from a profile */
    uint32_t measured_classes; /* bit c is set if cost class c was measured */
    /* Blocked operators: bit id % 64 of word id / 64 is set if the profile says
     * that the device computes operator id wrong.  It never runs there. */
    uint64_t rejected[TANDEM_OP_ID_END / 64];
};

static inline bool cost_rejects(const struct cost_model *model, uint32_t op)
{
    return model->rejected[op / 64] >> op % 64 & 1;
}

/* Returns the curve named, for example, "elementwise" or "upload", or
 * COST_CURVES if there is no such curve. */
uint32_t cost_curve_find(const char *name);
/* Returns the scalar named, for example, "launch", or COST_SCALARS if there is
 * no such scalar. */
uint32_t cost_scalar_find(const char *name);

/* Fills the model with the defaults for an enum tandem_device_kind; their
 * origin is explained in cost_model.c.  at_once is true for a device that
 * computes in the calling thread, without a driver. */
void cost_defaults(struct cost_model *model, uint32_t kind, bool at_once);

/* Builds a curve from at most CURVE_POINTS points, which must be finite and not
 * negative, in any order.  The last of several points with equal x is used.
 * Sorts the array points. */
void curve_build(struct curve *curve, struct curve_point *points,
                 uint32_t count);
/* Returns the cost in ns at x >= 0.  The curve is constant before the first
 * point and continues after the last point with the last slope. */
double curve_at(const struct curve *curve, double x);

/* Builds the grid from at most GEMM_POINTS points with sizes of at least 1 and
 * positive ns.  Predictions for products smaller than the grid do not scale
 * below floor_ns.  Returns false if memory runs out or an axis has more than
 * GEMM_AXIS distinct sizes; the surface is then empty. */
bool gemm_build(struct gemm_surface *surface, const struct gemm_point *points,
                uint32_t count, double floor_ns);
void gemm_finish(struct gemm_surface *surface);

/* Returns the predicted ns of one m x n x k product, including its launch. */
double cost_gemm(const struct cost_model *model, double m, double n, double k);

#endif
