/* SPDX-License-Identifier: Apache-2.0 */
/* The operator resize. Nearest copies elements in one pass. Linear and cubic
 * interpolate along one axis per pass; passes before the last one write to a
 * temporary tensor. Offsets and weights are computed once per axis. Runs on the
 * caller's thread and on the thread pool. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/last_error.h"
#include "common/operator_table.h"
#include "common/resize_coordinates.h"
#include "cpu/objects.h"

/* Elements of a row that a task computes. */
#define CHUNK_ELEMENTS 4096
/* Elements whose sums a task keeps in its cache. */
#define BLOCK_ELEMENTS 512
/* The offset of an element that is extrapolated. */
#define MISSING INT64_MIN
#define NO_AXIS TANDEM_MAX_RANK

/* A pass. Axis rank - 1 is the innermost. */
struct pass {
    uint32_t rank;
    uint32_t axis; /* the axis with several taps per element, or NO_AXIS */
    int64_t taps;
    int64_t extent[TANDEM_MAX_RANK]; /* of the output */
    int64_t in_stride[TANDEM_MAX_RANK], out_stride[TANDEM_MAX_RANK];
    /* Offsets in the input along an axis, for each element of the output or,
     * along `axis`, for each tap of each element. NULL means the offset i *
     * in_stride of element i. */
    int64_t *offsets[TANDEM_MAX_RANK];
    float *weights; /* of the taps along `axis` */
    const float *in;
    float *out;
    float extrapolation_value;
    int64_t chunks; /* chunks per row */
};

/* ---- tables ------------------------------------------------------------- */

static double filter(double distance, int64_t mode, double a)
{
    double d = fabs(distance);
    if (mode == RESIZE_LINEAR)
        return d < 1 ? 1 - d : 0;
    if (d < 1)
        return (1 - d) * (1 + d - (a + 2) * d * d);
    return d < 2 ? a * (d - 1) * (2 - d) * (2 - d) : 0;
}

/* Sets the offsets and weights of element i of an axis. */
static void taps_set(struct pass *pass, const struct resize_axes *axes,
                     const struct resize_axis *axis, int64_t i,
                     const struct tandem_op *op)
{
    int64_t *offsets = pass->offsets[pass->axis] + i * pass->taps;
    float *weights = pass->weights + i * pass->taps;
    int64_t coordinate = axis->start + i * axis->step;
    int64_t first = (coordinate >> axes->fraction_bits) - axis->taps_before;
    int64_t one = (int64_t)1 << axes->fraction_bits;
    double fraction = (double)(coordinate & (one - 1)) / (double)one;
    double a = (double)attribute_f32(op->floats[RESIZE_CUBIC_COEFF_A]);
    double sum = 0;
    for (int pass_number = 0; pass_number < 2; pass_number++) {
        double divisor = sum != 0 ? sum : 1;
        if (op->ints[RESIZE_ANTIALIAS] == 0 &&
            op->ints[RESIZE_EXCLUDE_OUTSIDE] == 0)
            divisor = 1;
        for (int64_t k = 0; k < pass->taps; k++) {
            int64_t index = first + k;
            int64_t inside = max64(0, min64(index, axis->in - 1));
            double distance = (double)(k - axis->taps_before) - fraction;
            double weight =
                filter(distance * axis->filter_scale, op->ints[RESIZE_MODE], a);
            if (inside != index && op->ints[RESIZE_EXCLUDE_OUTSIDE] != 0)
                weight = 0;
            sum += weight;
            weights[k] = (float)(weight / divisor);
            offsets[k] = inside * pass->in_stride[pass->axis];
        }
    }
    if (resize_is_outside(axes, axis, i))
        offsets[0] = MISSING;
}

/* Allocates and fills the tables of one axis. Returns false if memory is
 * exhausted. */
static bool tables_fill(struct pass *pass, const struct resize_axes *axes,
                        uint32_t number, const struct tandem_op *op)
{
    const struct resize_axis *axis = &axes->axis[number];
    bool nearest = op->ints[RESIZE_MODE] == RESIZE_NEAREST;
    size_t entries = (size_t)axis->out * (size_t)(nearest ? 1 : axis->taps);
    int64_t *offsets = calloc(entries, sizeof *offsets);
    pass->offsets[number] = offsets;
    if (offsets == NULL)
        return false;
    if (nearest) {
        for (int64_t i = 0; i < axis->out; i++)
            offsets[i] =
                resize_is_outside(axes, axis, i)
                    ? MISSING
                    : resize_nearest(axes, axis, i) * pass->in_stride[number];
        return true;
    }
    pass->axis = number;
    pass->taps = axis->taps;
    pass->weights = calloc(entries, sizeof *pass->weights);
    if (pass->weights == NULL)
        return false;
    for (int64_t i = 0; i < axis->out; i++)
        taps_set(pass, axes, axis, i, op);
    return true;
}

static void tables_free(struct pass *pass)
{
    for (uint32_t i = 0; i < pass->rank; i++)
        free(pass->offsets[i]);
    free(pass->weights);
}

/* ---- rows --------------------------------------------------------------- */

static void row_set(float *out, int64_t step, int64_t n, float value)
{
    for (int64_t j = 0; j < n; j++)
        out[j * step] = value;
}

/* Computes elements first <= j < end of a row whose innermost axis is not
 * interpolated. */
static void row_copy(const struct pass *pass, const float *in, float *out,
                     int64_t first, int64_t end)
{
    uint32_t inner = pass->rank - 1;
    int64_t step = pass->out_stride[inner], in_step = pass->in_stride[inner];
    const int64_t *offsets = pass->offsets[inner];
    if (offsets == NULL && step == 1 && in_step == 1)
        memcpy(out + first, in + first, (size_t)(end - first) * sizeof *out);
    else if (offsets == NULL)
        for (int64_t j = first; j < end; j++)
            out[j * step] = in[j * in_step];
    else
        for (int64_t j = first; j < end; j++)
            out[j * step] = offsets[j] != MISSING ? in[offsets[j]]
                                                  : pass->extrapolation_value;
}

/* Interpolates along the innermost axis. */
static void row_interpolate(const struct pass *pass, const float *in,
                            float *out, int64_t first, int64_t end)
{
    int64_t taps = pass->taps, step = pass->out_stride[pass->axis];
    for (int64_t j = first; j < end; j++) {
        const int64_t *offsets = pass->offsets[pass->axis] + j * taps;
        const float *weights = pass->weights + j * taps;
        if (offsets[0] == MISSING) {
            out[j * step] = pass->extrapolation_value;
            continue;
        }
        float sum = weights[0] * in[offsets[0]];
        for (int64_t k = 1; k < taps; k++)
            sum += weights[k] * in[offsets[k]];
        out[j * step] = sum;
    }
}

/* Adds up n elements of the rows that element i of the interpolated axis
 * needs. `sums` is not the memory of an operand. */
static void rows_sum(const struct pass *pass, float *restrict sums,
                     const float *in, int64_t i, int64_t n)
{
    const int64_t *offsets = pass->offsets[pass->axis] + i * pass->taps;
    const float *weights = pass->weights + i * pass->taps;
    int64_t step = pass->in_stride[pass->rank - 1];
    memset(sums, 0, (size_t)n * sizeof *sums);
    for (int64_t k = 0; k < pass->taps; k += 2) {
        const float *a = in + offsets[k], *b = in + offsets[k + 1];
        float a_weight = weights[k], b_weight = weights[k + 1];
        if (step == 1)
            for (int64_t j = 0; j < n; j++)
                sums[j] += a_weight * a[j] + b_weight * b[j];
        else
            for (int64_t j = 0; j < n; j++)
                sums[j] += a_weight * a[j * step] + b_weight * b[j * step];
    }
}

/* Interpolates along an outer axis, of which the row has element i. */
static void rows_interpolate(const struct pass *pass, const float *in,
                             float *out, int64_t i, int64_t first, int64_t end)
{
    uint32_t inner = pass->rank - 1;
    int64_t step = pass->out_stride[inner], in_step = pass->in_stride[inner];
    float sums[BLOCK_ELEMENTS];
    for (int64_t j = first; j < end; j += BLOCK_ELEMENTS) {
        int64_t n = min64(end - j, BLOCK_ELEMENTS);
        rows_sum(pass, sums, in + j * in_step, i, n);
        for (int64_t k = 0; k < n; k++)
            out[(j + k) * step] = sums[k];
    }
}

/* Computes one chunk of a row. */
static void chunk_run(const struct pass *pass, int64_t row, int64_t chunk)
{
    uint32_t inner = pass->rank - 1;
    const float *in = pass->in;
    float *out = pass->out;
    int64_t first = chunk * CHUNK_ELEMENTS, at = 0;
    int64_t end = min64(first + CHUNK_ELEMENTS, pass->extent[inner]);
    bool missing = false;
    for (uint32_t axis = inner; axis-- > 0;) {
        int64_t i = row % pass->extent[axis];
        int64_t offset = i * pass->in_stride[axis];
        row /= pass->extent[axis];
        out += i * pass->out_stride[axis];
        if (axis == pass->axis) {
            at = i;
            offset = 0;
            missing |= pass->offsets[axis][i * pass->taps] == MISSING;
        } else if (pass->offsets[axis] != NULL) {
            offset = pass->offsets[axis][i];
            missing |= offset == MISSING;
        }
        in += missing ? 0 : offset;
    }
    if (missing)
        row_set(out + first * pass->out_stride[inner], pass->out_stride[inner],
                end - first, pass->extrapolation_value);
    else if (pass->axis == NO_AXIS)
        row_copy(pass, in, out, first, end);
    else if (pass->axis == inner)
        row_interpolate(pass, in, out, first, end);
    else
        rows_interpolate(pass, in, out, at, first, end);
}

static void chunks_run(const void *context, int64_t first, int64_t end)
{
    const struct pass *pass = context;
    for (int64_t task = first; task < end; task++)
        chunk_run(pass, task / pass->chunks, task % pass->chunks);
}

/* ---- passes ------------------------------------------------------------- */

static void pass_run(struct pass *pass, const struct work *work)
{
    int64_t rows = 1, inner = pass->extent[pass->rank - 1];
    for (uint32_t i = 0; i + 1 < pass->rank; i++)
        rows *= pass->extent[i];
    pass->chunks = ceil_div(inner, CHUNK_ELEMENTS);
    pool_run(work->device->pool, work->op->id, chunks_run, pass,
             rows * pass->chunks, ceil_div(inner, pass->chunks) * pass->taps);
}

static struct pass pass_start(const struct resize_axes *axes,
                              const struct work *work)
{
    struct pass pass = {.rank = axes->rank,
                        .axis = NO_AXIS,
                        .taps = 1,
                        .in = tensor_data(work->inputs[0]),
                        .out = tensor_data(work->outputs[0])};
    pass.extrapolation_value =
        attribute_f32(work->op->floats[RESIZE_EXTRAPOLATION_VALUE]);
    for (uint32_t i = 0; i < axes->rank; i++) {
        pass.extent[i] = axes->axis[i].out;
        pass.in_stride[i] = axes->axis[i].in_stride;
        pass.out_stride[i] = axes->axis[i].out_stride;
    }
    return pass;
}

/* Runs one pass that needs no sums. Returns false if memory is exhausted. */
static bool copy_pass_run(const struct resize_axes *axes,
                          const struct work *work)
{
    struct pass pass = pass_start(axes, work);
    bool allocated = true;
    for (uint32_t i = 0; i < axes->rank; i++)
        if (axes->axis[i].is_resized)
            allocated = allocated && tables_fill(&pass, axes, i, work->op);
    if (allocated)
        pass_run(&pass, work);
    tables_free(&pass);
    return allocated;
}

/* Chooses the axis of the next pass: the one that shrinks most, so that the
 * temporary tensors are small. Returns NO_AXIS if no axis is left. */
static uint32_t next_axis(const struct resize_axes *axes, uint32_t done)
{
    uint32_t best = NO_AXIS;
    double best_ratio = 0;
    for (uint32_t i = axes->rank; i-- > 0;) {
        const struct resize_axis *axis = &axes->axis[i];
        double ratio = (double)axis->out / (double)axis->in;
        if (!axis->is_resized || (done >> i & 1u) != 0 ||
            (best != NO_AXIS && ratio >= best_ratio))
            continue;
        best = i;
        best_ratio = ratio;
    }
    return best;
}

/* Allocates the output of a pass that is not the last one. Returns false if
 * memory is exhausted. */
static bool temporary_allocate(struct pass *pass)
{
    int64_t elements = 1;
    for (uint32_t i = pass->rank; i-- > 0;) {
        pass->out_stride[i] = elements;
        elements *= pass->extent[i];
    }
    pass->out = malloc((size_t)elements * sizeof *pass->out);
    return pass->out != NULL;
}

/* Runs one pass per resized axis, of which there is at least one. Returns false
 * if memory is exhausted. */
static bool interpolation_passes_run(const struct resize_axes *axes,
                                     const struct work *work)
{
    float *previous = NULL;
    uint32_t axis = next_axis(axes, 0), done = 0;
    struct pass first = pass_start(axes, work), pass = first;
    bool allocated = true;
    while (allocated && axis != NO_AXIS) {
        struct pass current = first;
        done |= 1u << axis;
        uint32_t next = next_axis(axes, done);
        for (uint32_t i = 0; i < axes->rank; i++) {
            bool is_done = (done >> i & 1u) != 0;
            current.extent[i] = is_done ? axes->axis[i].out : axes->axis[i].in;
        }
        if (previous != NULL) {
            current.in = previous;
            memcpy(current.in_stride, pass.out_stride,
                   sizeof current.in_stride);
        }
        if (next != NO_AXIS)
            allocated = temporary_allocate(&current);
        allocated = allocated && tables_fill(&current, axes, axis, work->op);
        if (allocated)
            pass_run(&current, work);
        tables_free(&current);
        free(previous);
        previous = next != NO_AXIS ? current.out : NULL;
        pass = current;
        axis = next;
    }
    free(previous);
    return allocated;
}

static enum tandem_status resize_run(const struct work *work)
{
    const struct tandem_tensor_desc *output = work->outputs[0];
    struct resize_axes axes;
    bool allocated;
    for (uint32_t i = 0; i < output->rank; i++)
        if (output->shape[i] == 0)
            return TANDEM_OK;
    resize_axes_build(&axes, work->op, work->inputs[0], output);
    if (work->op->ints[RESIZE_MODE] == RESIZE_NEAREST ||
        next_axis(&axes, 0) == NO_AXIS)
        allocated = copy_pass_run(&axes, work);
    else
        allocated = interpolation_passes_run(&axes, work);
    return allocated ? TANDEM_OK
                     : memory_error("resize: no memory for a temporary "
                                    "tensor or for its tables");
}

const struct cpu_class cpu_class_resize = {.run = resize_run};
