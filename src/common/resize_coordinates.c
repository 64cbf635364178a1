/* SPDX-License-Identifier: Apache-2.0 */
/* The axes of the operator RESIZE; see resize_coordinates.h. */
#include "common/resize_coordinates.h"

#include "common/operator_table.h"

/* Bits of a coordinate, except for its sign. */
#define COORDINATE_BITS 62
/* A rounding error of the calculation in f64, relative to the coordinate. */
#define COORDINATE_ERROR 0x1p-50
/* A width that differs from 1 by less than this is 1. */
#define WIDTH_ERROR 0x1p-20

/* The coordinate of output element i is start + i * step. */
struct line {
    double start, step;
};

double resize_scale(const struct tandem_op *op, uint32_t axis)
{
    return op->float_count > RESIZE_SCALES + axis
               ? (double)attribute_f32(op->floats[RESIZE_SCALES + axis])
               : 0;
}

/* Sets *out_start and *out_end to the region of interest of an axis. */
static void roi_get(const struct tandem_op *op, uint32_t axis, uint32_t rank,
                    double *out_start, double *out_end)
{
    *out_start = 0;
    *out_end = 1;
    if (op->float_count < RESIZE_SCALES + 3 * rank)
        return;
    const double *starts = op->floats + RESIZE_SCALES + rank;
    *out_start = (double)attribute_f32(starts[axis]);
    *out_end = (double)attribute_f32(starts[rank + axis]);
}

/* Returns the coordinates along an axis whose lengths are `in` and `out`. */
static struct line axis_line(const struct tandem_op *op, uint32_t axis,
                             uint32_t rank, double in, double out)
{
    double scale = resize_scale(op, axis), width = out, start, end;
    double step = scale != 0 ? 1 / scale : in / out;
    struct line half_pixel = {0.5 * step - 0.5, step};
    if (scale != 0)
        width = scale * in;
    switch (op->ints[RESIZE_COORDINATES]) {
    case RESIZE_HALF_PIXEL_SYMMETRIC:
        half_pixel.start += in / 2 * (1 - out / width);
        return half_pixel;
    case RESIZE_PYTORCH_HALF_PIXEL:
        return out > 1 ? half_pixel : (struct line){0, 0};
    case RESIZE_ALIGN_CORNERS:
        if (fabs(width - 1) < WIDTH_ERROR)
            return (struct line){0, 0};
        return (struct line){0, (in - 1) / (width - 1)};
    case RESIZE_ASYMMETRIC:
        return (struct line){0, step};
    case RESIZE_TF_CROP_AND_RESIZE:
        roi_get(op, axis, rank, &start, &end);
        if (out > 1)
            return (struct line){start * (in - 1),
                                 (end - start) * (in - 1) / (out - 1)};
        return (struct line){0.5 * (start + end) * (in - 1), 0};
    default:
        return half_pixel;
    }
}

static bool axis_is_resized(const struct tandem_op *op, uint32_t axis,
                            uint32_t rank, int64_t in, int64_t out)
{
    double scale = resize_scale(op, axis), start = 0, end = 1;
    if (op->ints[RESIZE_COORDINATES] == RESIZE_TF_CROP_AND_RESIZE)
        roi_get(op, axis, rank, &start, &end);
    return in != out || (scale != 0 && scale != 1) || start != 0 || end != 1;
}

/* Sets the range of elements from which a result is interpolated. */
static void taps_set(struct resize_axis *axis, const struct tandem_op *op,
                     double scale)
{
    int64_t support = op->ints[RESIZE_MODE] == RESIZE_CUBIC ? 2 : 1;
    axis->taps_before = support - 1;
    axis->filter_scale = 1;
    if (op->ints[RESIZE_ANTIALIAS] != 0 && scale < 1) {
        axis->filter_scale = scale;
        axis->taps_before = (int64_t)ceil((double)support / scale) - 1;
    }
    axis->taps = 2 * axis->taps_before + 2;
}

/* Appends an axis. Merges it with the previous axis if neither is resized and
 * the strides permit this. */
static void append_axis(struct resize_axes *axes,
                        const struct resize_axis *axis)
{
    struct resize_axis *last = &axes->axis[axes->rank - 1];
    if (!axis->is_resized && axis->in == 1)
        return;
    if (axes->rank > 0 && !axis->is_resized && !last->is_resized &&
        last->in_stride == axis->in_stride * axis->in &&
        last->out_stride == axis->out_stride * axis->out) {
        last->in *= axis->in;
        last->out *= axis->out;
        last->in_stride = axis->in_stride;
        last->out_stride = axis->out_stride;
        return;
    }
    axes->axis[axes->rank++] = *axis;
}

/* Returns the largest magnitude of a number that is computed for the axis. */
static double line_bound(const struct line *line, double in, double out)
{
    double bound = fmax(in, fabs(line->start));
    return fmax(bound, fabs(line->start) + fabs(line->step) * out) + 2;
}

/* Converts to fixed point. */
static int64_t fixed(const struct resize_axes *axes, double value)
{
    return (int64_t)ldexp(value, (int)axes->fraction_bits);
}

static int64_t rounding_of(const struct resize_axes *axes, int64_t mode)
{
    int64_t one = (int64_t)1 << axes->fraction_bits;
    switch (mode) {
    case RESIZE_ROUND_PREFER_CEIL:
        return one / 2 + axes->slack;
    case RESIZE_FLOOR:
        return axes->slack;
    case RESIZE_CEIL:
        return one - 1 - axes->slack;
    default:
        return one / 2 - 1 - axes->slack;
    }
}

void resize_axes_build(struct resize_axes *out, const struct tandem_op *op,
                       const struct tandem_tensor_desc *input,
                       const struct tandem_tensor_desc *output)
{
    struct line lines[TANDEM_MAX_RANK];
    double bound = 2, longest = 1;
    int exponent;
    out->rank = 0;
    out->extrapolates =
        op->ints[RESIZE_COORDINATES] == RESIZE_TF_CROP_AND_RESIZE;
    for (uint32_t i = 0; i < input->rank; i++) {
        struct resize_axis axis = {.in = input->shape[i],
                                   .out = output->shape[i],
                                   .in_stride = input->strides[i],
                                   .out_stride = output->strides[i]};
        double in = (double)axis.in, length = (double)axis.out;
        double scale = resize_scale(op, i);
        axis.is_resized =
            axis_is_resized(op, i, input->rank, axis.in, axis.out);
        append_axis(out, &axis);
        if (!axis.is_resized)
            continue;
        taps_set(&out->axis[out->rank - 1], op,
                 scale != 0 ? scale : length / in);
        struct line *line = &lines[out->rank - 1];
        *line = axis_line(op, i, input->rank, in, length);
        bound = fmax(bound, line_bound(line, in, length));
        longest = fmax(longest, length);
    }
    if (out->rank == 0)
        out->axis[out->rank++] = (struct resize_axis){.in = 1, .out = 1};
    frexp(bound, &exponent);
    out->fraction_bits =
        (uint32_t)(exponent < COORDINATE_BITS ? COORDINATE_BITS - exponent : 1);
    out->slack = fixed(out, bound * COORDINATE_ERROR) + (int64_t)longest;
    out->rounding = rounding_of(out, op->ints[RESIZE_NEAREST_MODE]);
    for (uint32_t i = 0; i < out->rank; i++) {
        struct resize_axis *axis = &out->axis[i];
        if (!axis->is_resized)
            continue;
        axis->start = fixed(out, lines[i].start);
        axis->step = fixed(out, lines[i].step);
    }
}
