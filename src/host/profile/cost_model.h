/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device's work is predicted to take: piecewise-linear curves and a
 * matrix product surface, from a profile or from conservative defaults.
 * Building is for one thread; looking up is pure.
 */
#ifndef TANDEM_HOST_PROFILE_COST_MODEL_H
#define TANDEM_HOST_PROFILE_COST_MODEL_H

#include "host/exported_api.h"

/* The curves of operator classes are numbered as enum tandem_cost_class
 * numbers them, that of TANDEM_COST_GEMM is unused; then the transfers. */
enum cost_curve {
    COST_UPLOAD = TANDEM_COST_CLASSES,
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
#define GEMM_AXIS 16u /* distinct sizes of one of m, n, k */
#define GEMM_POINTS 1024u
/* Ranges of what a profile may say. */
#define COST_NS_MAX 1e13      /* close to three hours */
#define COST_X_MAX 1e15       /* bytes */
#define COST_SIZE_MAX (1 << 24) /* m, n or k */

/* From x on, ns + (x - x of the knot) * slope.  The first knot's x is 0. */
struct curve_knot {
    double x, ns, slope;
};

struct curve {
    uint32_t count; /* knots */
    /* The last knot whose x is at most 2^octave. */
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
    uint32_t counts[3]; /* 0: no surface, see cost_model */
    double logs[3][GEMM_AXIS]; /* log2 of the sizes, rising */
    double floor_ns;
    float *log_ns; /* [m][n][k], log2 */
};

struct cost_model {
    double scalars[COST_SCALARS];
    struct curve curves[COST_CURVES];
    struct gemm_surface gemm;
    double gemm_flops_per_ns; /* where there is no surface */
    bool measured;            /* something of it was: it is no default */
    uint32_t measured_classes; /* bit c: the costs of cost class c were */
    /* Operators whose results were found wrong: bit id % 64 of word id / 64.
     * They are never run on the device, whatever they would cost. */
    uint64_t rejected[TANDEM_OP_ID_END / 64];
};

static inline bool cost_rejects(const struct cost_model *model, uint32_t op)
{
    return model->rejected[op / 64] >> op % 64 & 1;
}

/* "elementwise", ..., "upload", ...; COST_CURVES where there is none. */
uint32_t cost_curve_find(const char *name);
/* "launch", ...; COST_SCALARS where there is none. */
uint32_t cost_scalar_find(const char *name);

/* Defaults for a device of this kind (see cost_model.c for where they come
 * from). at_once: it computes in the caller, with no driver in between. */
void cost_defaults(struct cost_model *model, uint32_t kind, bool at_once);

/* Points in any order, of which the last at one x counts; at most
 * CURVE_POINTS, finite and not negative.  Sorts points. */
void curve_build(struct curve *curve, struct curve_point *points,
                 uint32_t count);
/* Linear between points, level before the first, and beyond the last with
 * the last slope. */
double curve_at(const struct curve *curve, double x);

/* At most GEMM_POINTS points with sizes of at least 1 and positive ns.  false:
 * out of memory, or more than GEMM_AXIS distinct sizes on one axis.  floor_ns:
 * no prediction below the sizes measured falls under it. */
bool gemm_build(struct gemm_surface *surface, const struct gemm_point *points,
                uint32_t count, double floor_ns);
void gemm_finish(struct gemm_surface *surface);

/* Of one product, launch included. */
double cost_gemm(const struct cost_model *model, double m, double n, double k);

#endif
