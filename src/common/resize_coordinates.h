/* SPDX-License-Identifier: Apache-2.0 */
/* The axes of the operator RESIZE: lengths, strides, and the position of each
 * output element in the input. Pure functions; the arguments must have passed
 * argument_check.h. */
#ifndef TANDEM_COMMON_RESIZE_COORDINATES_H
#define TANDEM_COMMON_RESIZE_COORDINATES_H

#include "common/tensor_desc.h"

/* Integer attributes. */
enum resize_int {
    RESIZE_MODE,
    RESIZE_COORDINATES,
    RESIZE_NEAREST_MODE,
    RESIZE_EXCLUDE_OUTSIDE,
    RESIZE_ANTIALIAS
};
/* Float attributes; the scales, starts and ends follow. */
enum resize_float {
    RESIZE_CUBIC_COEFF_A,
    RESIZE_EXTRAPOLATION_VALUE,
    RESIZE_SCALES
};
enum resize_mode { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC };
enum resize_coordinates {
    RESIZE_HALF_PIXEL,
    RESIZE_HALF_PIXEL_SYMMETRIC,
    RESIZE_PYTORCH_HALF_PIXEL,
    RESIZE_ALIGN_CORNERS,
    RESIZE_ASYMMETRIC,
    RESIZE_TF_CROP_AND_RESIZE
};
enum resize_nearest_mode {
    RESIZE_ROUND_PREFER_FLOOR,
    RESIZE_ROUND_PREFER_CEIL,
    RESIZE_FLOOR,
    RESIZE_CEIL
};

#define RESIZE_MIN_SCALE 0x1p-24
#define RESIZE_MAX_SCALE 0x1p24
#define RESIZE_MAX_ROI 0x1p20

/* Returns the attribute `scale` of an axis, or 0 if the call has none. */
double resize_scale(const struct tandem_op *op, uint32_t axis);

/* Coordinates are fixed-point numbers with fraction_bits bits after the point.
 * Output element i has the coordinate start + i * step along the axis. If the
 * axis is not resized, this is i. */
struct resize_axis {
    bool is_resized;
    int64_t in, out; /* lengths */
    int64_t in_stride, out_stride;
    int64_t start, step;
    /* Taps are at distance k - fraction from the coordinate, for whole numbers
     * k from -taps_before to taps - taps_before - 1. The weight is a function
     * of the distance times filter_scale. */
    int64_t taps_before, taps;
    double filter_scale;
};

/* Adjacent axes that are not resized are merged if the strides permit. There is
 * at least one axis; the last one is the innermost. */
struct resize_axes {
    uint32_t rank;
    uint32_t fraction_bits; /* 1 to 61 */
    /* For nearest: the index is the floor of coordinate + rounding. */
    int64_t rounding;
    /* Coordinates that differ by at most `slack` count as equal. */
    int64_t slack;
    bool extrapolates; /* coordinates outside give extrapolation_value */
    struct resize_axis axis[TANDEM_MAX_RANK];
};
void resize_axes_build(struct resize_axes *out, const struct tandem_op *op,
                       const struct tandem_tensor_desc *input,
                       const struct tandem_tensor_desc *output);

/* Returns the index of the nearest element. */
static inline int64_t resize_nearest(const struct resize_axes *axes,
                                     const struct resize_axis *axis, int64_t i)
{
    int64_t index =
        (axis->start + i * axis->step + axes->rounding) >> axes->fraction_bits;
    return index < 0 ? 0 : index < axis->in ? index : axis->in - 1;
}

/* Returns true if output element i is extrapolated. */
static inline bool resize_is_outside(const struct resize_axes *axes,
                                     const struct resize_axis *axis, int64_t i)
{
    int64_t coordinate = axis->start + i * axis->step;
    return axes->extrapolates && axis->is_resized &&
           (coordinate + axes->slack < 0 ||
            coordinate - axes->slack > (axis->in - 1) << axes->fraction_bits);
}

#endif
