/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the operators layer_norm and rms_norm.  Contiguous rows use the
 * kernel table; strided rows are computed element by element.  Runs on the
 * caller's thread and on the thread pool. */
#include "config.h"

#include <math.h>

#include "common/operator_table.h"
#include "cpu/kernels/reduce.h"

struct norm {
    const struct kernels *kernels;
    struct norm_spaces spaces;
    const float *in, *scale, *bias; /* `bias` is NULL for rms_norm */
    float *out;
    double epsilon;
    bool dense;
};

/* Returns a row's normalization factor from its sum of squares `square`. */
static double factor_of(const struct norm *norm, double square)
{
    double n = (double)norm->spaces.reduced.elements;
    return 1.0 / sqrt(square / n + norm->epsilon);
}

/* Iterator over the elements of a row and over its scale and bias. */
struct walk {
    struct cursor element, affine;
    int64_t left;
};

static void walk_start(struct walk *walk, const struct norm *norm)
{
    cursor_seek(&walk->element, &norm->spaces.reduced, 0);
    cursor_seek(&walk->affine, &norm->spaces.affine, 0);
    walk->left = norm->spaces.reduced.elements;
}

static void walk_move(struct walk *walk, const struct norm *norm)
{
    const struct iteration_space *reduced = &norm->spaces.reduced;
    const struct iteration_space *affine = &norm->spaces.affine;
    cursor_move(&walk->element, reduced, reduced->rank - 1, 1);
    cursor_move(&walk->affine, affine, affine->rank - 1, 1);
    walk->left--;
}

static void row_strided(const struct norm *norm, const float *x, float *y)
{
    struct walk walk;
    double mean = 0, square = 0;
    if (norm->bias != NULL) {
        for (walk_start(&walk, norm); walk.left > 0; walk_move(&walk, norm))
            mean += (double)x[walk.element.offsets[0]];
        mean /= (double)norm->spaces.reduced.elements;
    }
    for (walk_start(&walk, norm); walk.left > 0; walk_move(&walk, norm)) {
        double d = (double)x[walk.element.offsets[0]] - mean;
        square += d * d;
    }
    double factor = factor_of(norm, square);
    for (walk_start(&walk, norm); walk.left > 0; walk_move(&walk, norm)) {
        double d = (double)x[walk.element.offsets[0]] - mean;
        double result =
            d * factor * (double)norm->scale[walk.affine.offsets[0]];
        if (norm->bias != NULL)
            result += (double)norm->bias[walk.affine.offsets[1]];
        y[walk.element.offsets[1]] = (float)result;
    }
}

/* A row is computed in f64 if its mean exceeds MAX_MEAN in magnitude, or if its
 * normalization factor or the reciprocal of the factor exceeds MAX_FACTOR. */
#define MAX_MEAN 0x1p100f
#define MAX_FACTOR 0x1p100

/* Recomputes elements in f64 if their normalized value is so small that f32
 * loses digits, and their scale is so large that the error becomes visible. */
static void row_lift(const struct norm *norm, const float *x, float *y,
                     float mean, double factor)
{
    for (int64_t i = 0; i < norm->spaces.reduced.elements; i++) {
        double h = (double)(x[i] - mean) * factor;
        if (h != 0 && fabs(h) < 0x1p-100 && fabsf(norm->scale[i]) > NORM_SCALE)
            y[i] = (float)(h * (double)norm->scale[i] +
                           (norm->bias != NULL ? (double)norm->bias[i] : 0.0));
    }
}

/* Cached result of scales_large, valid if `known` is true. */
struct scales {
    bool known, large;
};

/* Returns true if the magnitude of any scale exceeds NORM_SCALE. */
static bool scales_large(struct scales *scales, const struct norm *norm)
{
    int64_t n = norm->spaces.reduced.elements;
    if (!scales->known)
        scales->large = !(norm->kernels->max(norm->scale, n) <= NORM_SCALE &&
                          norm->kernels->min(norm->scale, n) >= -NORM_SCALE);
    scales->known = true;
    return scales->large;
}

static void row_dense(const struct norm *norm, const float *x, float *y,
                      struct scales *scales)
{
    const struct kernels *kernels = norm->kernels;
    int64_t n = norm->spaces.reduced.elements;
    float mean = 0;
    if (norm->bias != NULL)
        mean = (float)(kernels->sum(x, n) / (double)n);
    double factor = factor_of(norm, kernels->square_about(x, n, mean));
    if (fabsf(mean) > MAX_MEAN || factor > MAX_FACTOR ||
        factor < 1 / MAX_FACTOR)
        row_strided(norm, x, y);
    else if (kernels->norm_row(y, x, n, mean, (float)factor, norm->scale,
                               norm->bias) &&
             scales_large(scales, norm))
        row_lift(norm, x, y, mean, factor);
}

static void rows_run(const void *context, int64_t first, int64_t end)
{
    const struct norm *norm = context;
    const struct iteration_space *kept = &norm->spaces.kept;
    struct scales scales = {false, false};
    struct cursor cursor;
    cursor_seek(&cursor, kept, first);
    for (int64_t i = first; i < end; i++) {
        const float *x = norm->in + cursor.offsets[1];
        float *y = norm->out + cursor.offsets[0];
        if (norm->dense)
            row_dense(norm, x, y, &scales);
        else
            row_strided(norm, x, y);
        cursor_move(&cursor, kept, kept->rank - 1, 1);
    }
}

static enum tandem_status norm_run(const struct work *work)
{
    struct norm norm = {
        .kernels = work->device->kernels,
        .epsilon = (double)epsilon_f32(work->op->floats[0]),
    };
    const struct norm_spaces *spaces = &norm.spaces;
    space_norm(&norm.spaces, work->inputs, work->input_count, work->outputs[0],
               work->op->ints[0]);
    int64_t n = spaces->reduced.elements;
    if (spaces->kept.elements == 0 || n == 0)
        return TANDEM_OK;
    norm.in = tensor_data(work->inputs[0]);
    norm.scale = tensor_data(work->inputs[1]);
    norm.bias = work->input_count > 2 ? tensor_data(work->inputs[2]) : NULL;
    norm.out = tensor_data(work->outputs[0]);
    norm.dense = space_contiguous(&spaces->reduced, 0) &&
                 space_contiguous(&spaces->reduced, 1) &&
                 space_contiguous(&spaces->affine, 0) &&
                 (norm.bias == NULL || space_contiguous(&spaces->affine, 1));
    pool_run(work->device->pool, work->op->id, rows_run, &norm,
             spaces->kept.elements, n);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_norm = {.run = norm_run};
