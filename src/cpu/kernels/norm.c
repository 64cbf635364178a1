/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the operators layer_norm, rms_norm, group_norm and instance_norm.
 * Contiguous rows use the kernel table; strided rows are computed element by
 * element.  Runs on the caller's thread and on the thread pool. */
#include "config.h"

#include <math.h>

#include "common/operator_table.h"
#include "cpu/kernels/batch_norm.h"
#include "cpu/kernels/reduction.h"

struct norm {
    const struct kernels *kernels;
    struct norm_spaces spaces;
    const float *in, *scale, *bias; /* `bias` is NULL for rms_norm */
    float *out;
    double epsilon;
    bool dense;
    /* Number of groups of group norm, and 0 for layer and RMS norm. */
    int64_t groups;
};

/* Scale and bias of the first element of a row. */
struct affine {
    const float *scale, *bias;
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

static void row_strided(const struct norm *norm, const float *x, float *y,
                        struct affine affine)
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
            d * factor * (double)affine.scale[walk.affine.offsets[0]];
        if (norm->bias != NULL)
            result += (double)affine.bias[walk.affine.offsets[1]];
        y[walk.element.offsets[1]] = (float)result;
    }
}

/* A row is computed in f64 if its mean exceeds MAX_MEAN in magnitude, or if its
 * normalization factor or the reciprocal of the factor exceeds MAX_FACTOR. */
#define MAX_MEAN 0x1p100f
#define MAX_FACTOR 0x1p100

/* Computes a row of group norm, whose channels have one scale and bias each. */
static void channels_store(const struct norm *norm, const float *x, float *y,
                           struct affine affine, double mean, double factor)
{
    const struct iteration_space *space = &norm->spaces.affine;
    int64_t n = space->shape[1];
    for (int64_t channel = 0; channel < space->shape[0]; channel++) {
        double scale =
            (double)affine.scale[channel * space->strides[0][0]] * factor;
        double bias = (double)affine.bias[channel * space->strides[1][0]];
        for (int64_t i = channel * n; i < (channel + 1) * n; i++)
            y[i] = (float)(((double)x[i] - mean) * scale + bias);
    }
}

static void row_dense(const struct norm *norm, const float *x, float *y,
                      struct affine affine)
{
    const struct kernels *kernels = norm->kernels;
    int64_t n = norm->spaces.reduced.elements;
    float mean = 0;
    if (norm->bias != NULL)
        mean = (float)(kernels->sum(x, n) / (double)n);
    double factor = factor_of(norm, kernels->square_about(x, n, mean));
    if (fabsf(mean) > MAX_MEAN || factor > MAX_FACTOR ||
        factor < 1 / MAX_FACTOR)
        row_strided(norm, x, y, affine);
    else if (norm->groups != 0)
        channels_store(norm, x, y, affine, (double)mean, factor);
    else
        kernels->norm_row(y, x, n, mean, (float)factor, norm->scale,
                          norm->bias);
}

static void rows_run(const void *context, int64_t first, int64_t end)
{
    const struct norm *norm = context;
    const struct iteration_space *kept = &norm->spaces.kept;
    struct cursor cursor;
    cursor_seek(&cursor, kept, first);
    for (int64_t i = first; i < end; i++) {
        const float *x = norm->in + cursor.offsets[1];
        float *y = norm->out + cursor.offsets[0];
        struct affine affine = {norm->scale, norm->bias};
        if (norm->groups != 0) {
            const struct iteration_space *space = &norm->spaces.affine;
            int64_t channel = i % norm->groups * space->shape[0];
            affine.scale += channel * space->strides[0][0];
            affine.bias += channel * space->strides[1][0];
        }
        if (norm->dense)
            row_dense(norm, x, y, affine);
        else
            row_strided(norm, x, y, affine);
        cursor_move(&cursor, kept, kept->rank - 1, 1);
    }
}

/* Runs the operator, whose spaces have been built. */
static enum tandem_status norm_run(const struct work *work, struct norm *norm)
{
    const struct norm_spaces *spaces = &norm->spaces;
    int64_t n = spaces->reduced.elements;
    if (spaces->kept.elements == 0 || n == 0)
        return TANDEM_OK;
    norm->kernels = work->device->kernels;
    norm->epsilon = (double)epsilon_f32(work->op->floats[0]);
    norm->in = tensor_data(work->inputs[0]);
    norm->scale = tensor_data(work->inputs[1]);
    norm->bias = work->input_count > 2 ? tensor_data(work->inputs[2]) : NULL;
    norm->out = tensor_data(work->outputs[0]);
    norm->dense = space_contiguous(&spaces->reduced, 0) &&
                  space_contiguous(&spaces->reduced, 1);
    if (norm->groups == 0)
        norm->dense =
            norm->dense && space_contiguous(&spaces->affine, 0) &&
            (norm->bias == NULL || space_contiguous(&spaces->affine, 1));
    pool_run(work->device->pool, work->op->id, rows_run, norm,
             spaces->kept.elements, n);
    return TANDEM_OK;
}

static enum tandem_status trailing_norm_run(const struct work *work)
{
    struct norm norm = {.groups = 0};
    space_norm(&norm.spaces, work->inputs, work->input_count, work->outputs[0],
               work->op->ints[0]);
    return norm_run(work, &norm);
}

static enum tandem_status channel_norm_run(const struct work *work)
{
    struct norm norm = {.groups = work->op->id == TANDEM_OP_GROUP_NORM
                                      ? work->op->ints[0]
                                      : work->inputs[0]->shape[1]};
    if (work->op->id == TANDEM_OP_BATCH_NORM)
        return batch_norm_run(work);
    if (norm.groups == 0)
        return TANDEM_OK;
    space_group_norm(&norm.spaces, work->inputs, work->outputs[0], norm.groups);
    return norm_run(work, &norm);
}

const struct cpu_class cpu_class_norm = {.run = trailing_norm_run};
const struct cpu_class cpu_class_channel_norm = {.run = channel_norm_run};
