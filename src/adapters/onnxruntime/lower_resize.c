/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers Resize and Upsample; see lower.h. */
#include <config.h>

#include "adapters/onnxruntime/lower_ops.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Values of the operator's attributes, in the order of tandem/backend.h. */
static const char *const modes[] = {"nearest", "linear", "cubic"};
static const char *const coordinate_modes[] = {
    "half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
    "align_corners", "asymmetric",           "tf_crop_and_resize"};
static const char *const nearest_modes[] = {
    "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
enum { MODE_NEAREST = 0, ASYMMETRIC = 4, TF_CROP_AND_RESIZE = 5 };
enum { NEAREST_FLOOR = 2, NEAREST_CEIL = 3 };

/* The numbers of float attributes before the scales. */
#define SCALES 2

/* The attributes of a node, for each axis of its input. A scale of 0 is that of
 * the lengths. */
struct resize {
    int64_t ints[5];
    double cubic_coeff_a, extrapolation_value;
    uint32_t rank;
    int64_t lengths[TANDEM_MAX_RANK]; /* of the output */
    double scales[TANDEM_MAX_RANK];
    double starts[TANDEM_MAX_RANK], ends[TANDEM_MAX_RANK];
};

/* Sets *out to the number of a string attribute's value. The attribute is
 * optional; its default is number 0. */
static bool choice_read(struct lowering *l, const char *name,
                        const char *const *choices, size_t count, int64_t *out)
{
    const struct graph_attribute *attribute = graph_attribute(l->node, name);

    *out = 0;
    if (attribute == NULL || attribute->string == NULL)
        return true;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(attribute->string, choices[i]) != 0)
            continue;
        *out = (int64_t)i;
        return true;
    }
    return lower_fail(l, "%s \"%.40s\" is not supported", name,
                      attribute->string);
}

/* Returns the input, or NULL if it is absent or has no elements. */
static struct operand *optional_input(struct lowering *l, uint32_t index)
{
    struct operand *operand = lower_input_operand(l, index);

    return operand != NULL && operand_elements(operand) > 0 ? operand : NULL;
}

/* Sets out[i] to the axis that parameter i describes, and *out_count to the
 * number of axes. */
static bool axes_list(struct lowering *l, uint32_t rank, uint32_t *out,
                      uint32_t *out_count)
{
    const struct graph_attribute *axes = graph_attribute(l->node, "axes");

    *out_count = axes != NULL ? (uint32_t)axes->integer_count : rank;
    if (*out_count > rank)
        return lower_fail(l, "%" PRIu32 " axes of an input of rank %" PRIu32,
                          *out_count, rank);
    for (uint32_t i = 0; i < *out_count; i++) {
        out[i] = i;
        if (axes != NULL &&
            !axis_normalize(l, axes->integers[i], rank, &out[i]))
            return false;
    }
    return true;
}

/* Checks the number of elements of a parameter. */
static bool count_check(struct lowering *l, const char *name, int64_t count,
                        int64_t expected)
{
    return count == expected ||
           lower_fail(l, "%s has %" PRId64 " elements; expected %" PRId64, name,
                      count, expected);
}

/* ---- scales, sizes and roi ---- */

static bool scales_read(struct lowering *l, const int64_t *in,
                        const float *scales, const uint32_t *axes,
                        uint32_t count, struct resize *out)
{
    for (uint32_t i = 0; i < count; i++) {
        /* ONNX computes the length in f32. */
        const float length = floorf((float)in[axes[i]] * scales[i]);

        if (!(scales[i] > 0) || !(length < 0x1p62f))
            return lower_fail(l, "scale %g is not supported",
                              (double)scales[i]);
        out->scales[axes[i]] = (double)scales[i];
        out->lengths[axes[i]] = (int64_t)length;
    }
    return true;
}

static bool sizes_read(struct lowering *l, const int64_t *in,
                       const int64_t *sizes, const uint32_t *axes,
                       uint32_t count, struct resize *out)
{
    static const char *const policies[] = {"stretch", "not_larger",
                                           "not_smaller"};
    double scale = 0;
    int64_t policy;

    if (!choice_read(l, "keep_aspect_ratio_policy", policies, COUNT(policies),
                     &policy))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const double ratio = (double)sizes[i] / (double)in[axes[i]];

        if (i == 0 || (policy == 1 ? ratio < scale : ratio > scale))
            scale = ratio;
        out->lengths[axes[i]] = sizes[i];
    }
    for (uint32_t i = 0; i < count && policy != 0; i++) {
        const double length = scale * (double)in[axes[i]];

        if (!(length < 0x1p62))
            return lower_fail(l, "an axis of length %" PRId64 " is scaled",
                              in[axes[i]]);
        out->lengths[axes[i]] = (int64_t)floor(length + 0.5);
        out->scales[axes[i]] =
            (double)out->lengths[axes[i]] == length ? 0 : scale;
    }
    return true;
}

static bool roi_read(struct lowering *l, const uint32_t *axes, uint32_t count,
                     struct resize *out)
{
    struct operand *operand = optional_input(l, 1);
    const float *roi;
    int64_t elements;

    for (uint32_t i = 0; i < out->rank; i++)
        out->ends[i] = 1;
    if (out->ints[1] != TF_CROP_AND_RESIZE || operand == NULL)
        return true;
    roi = lower_reals(l, operand, &elements);
    if (roi == NULL || !count_check(l, "roi", elements, 2 * (int64_t)count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        out->starts[axes[i]] = (double)roi[i];
        out->ends[axes[i]] = (double)roi[count + i];
    }
    return true;
}

/* Reads the parameters that describe axes. Before version 11, the scales are an
 * attribute or input 1. */
static bool axes_parameters_read(struct lowering *l, const int64_t *in,
                                 struct resize *out)
{
    const bool is_new = l->node->since_version >= 11;
    const struct graph_attribute *attribute =
        graph_attribute(l->node, "scales");
    struct operand *scales_input = optional_input(l, is_new ? 2 : 1);
    struct operand *sizes_input = is_new ? optional_input(l, 3) : NULL;
    uint32_t axes[TANDEM_MAX_RANK], count;
    const int64_t *sizes;
    const float *scales;
    int64_t elements;

    if (!axes_list(l, out->rank, axes, &count) ||
        (is_new && !roi_read(l, axes, count, out)))
        return false;
    if (sizes_input != NULL) {
        sizes = lower_integers(l, sizes_input, &elements);
        return sizes != NULL && count_check(l, "sizes", elements, count) &&
               sizes_read(l, in, sizes, axes, count, out);
    }
    if (scales_input != NULL) {
        scales = lower_reals(l, scales_input, &elements);
    } else {
        scales = attribute != NULL ? attribute->reals : NULL;
        elements = attribute != NULL ? (int64_t)attribute->real_count : 0;
    }
    if (scales == NULL)
        return scales_input == NULL && out->rank == 0;
    return count_check(l, "scales", elements, count) &&
           scales_read(l, in, scales, axes, count, out);
}

/* ---- steps ---- */

/* Appends a step that resizes the axes in the mask. */
static bool append_resize(struct lowering *l, const struct resize *resize,
                          uint32_t axes, struct operand *x, struct operand *out)
{
    struct form_step step = step_make(l, TANDEM_OP_RESIZE);
    int64_t shape[TANDEM_MAX_RANK];
    const uint32_t rank = resize->rank;

    memcpy(step.ints, resize->ints, sizeof(resize->ints));
    step.int_count = COUNT(resize->ints);
    step.floats[0] = resize->cubic_coeff_a;
    step.floats[1] = resize->extrapolation_value;
    step.float_count = SCALES + 3 * rank;
    for (uint32_t i = 0; i < rank; i++) {
        const bool is_resized = (axes >> i & 1) != 0;

        shape[i] = is_resized ? resize->lengths[i] : x->view.shape[i];
        step.floats[SCALES + i] = is_resized ? resize->scales[i] : 0;
        step.floats[SCALES + rank + i] = is_resized ? resize->starts[i] : 0;
        step.floats[SCALES + 2 * rank + i] = is_resized ? resize->ends[i] : 1;
    }
    return step_add_input(l, &step, x) &&
           lower_new(l, TANDEM_F32, rank, shape, out) &&
           lower_step(l, &step, out);
}

/* Resize 10 and Upsample: the nearest element is the next one (ceil) along axes
 * that become shorter, else the previous one. */
static bool append_old_nearest(struct lowering *l, struct resize *resize,
                               struct operand *x, struct operand *out)
{
    uint32_t shorter = 0, all = (1u << resize->rank) - 1;

    for (uint32_t i = 0; i < resize->rank; i++)
        shorter |= (uint32_t)(resize->scales[i] < 1) << i;
    *out = *x;
    resize->ints[2] = NEAREST_CEIL;
    if (shorter != 0 && !append_resize(l, resize, shorter, out, out))
        return false;
    resize->ints[2] = NEAREST_FLOOR;
    return shorter == all || append_resize(l, resize, all & ~shorter, out, out);
}

bool lower_resize(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out;
    const bool is_old = l->node->since_version < 11;
    struct resize resize = {.rank = x->view.rank};

    memcpy(resize.lengths, x->view.shape, sizeof(resize.lengths));
    if (!choice_read(l, "mode", modes, COUNT(modes), &resize.ints[0]) ||
        !choice_read(l, "coordinate_transformation_mode", coordinate_modes,
                     COUNT(coordinate_modes), &resize.ints[1]) ||
        !choice_read(l, "nearest_mode", nearest_modes, COUNT(nearest_modes),
                     &resize.ints[2]))
        return false;
    if (is_old)
        resize.ints[1] = ASYMMETRIC;
    resize.ints[3] = graph_integer(l->node, "exclude_outside", 0) != 0;
    resize.ints[4] = graph_integer(l->node, "antialias", 0) != 0;
    resize.cubic_coeff_a = graph_real(l->node, "cubic_coeff_a", -0.75);
    resize.extrapolation_value = graph_real(l->node, "extrapolation_value", 0);
    if (resize.ints[0] == MODE_NEAREST &&
        (resize.ints[3] != 0 || resize.ints[4] != 0))
        return lower_fail(l, "mode nearest has neither exclude_outside nor "
                             "antialias");
    if (!axes_parameters_read(l, x->view.shape, &resize))
        return false;
    if (is_old && resize.ints[0] == MODE_NEAREST && resize.rank > 0)
        return append_old_nearest(l, &resize, x, &out) &&
               lower_output(l, 0, &out);
    return append_resize(l, &resize, UINT32_MAX, x, &out) &&
           lower_output(l, 0, &out);
}
