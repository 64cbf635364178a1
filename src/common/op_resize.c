/* SPDX-License-Identifier: Apache-2.0 */
/* The class RESIZE; see op_class.h. */
#include "common/last_error.h"
#include "common/op_call.h"
#include "common/resize_coordinates.h"

#define MAX_LENGTH 0x1p62

static enum tandem_status check_int(const struct op_call *call, uint32_t index,
                                    const char *name, int64_t largest)
{
    int64_t value = call->op->ints[index];
    if (value >= 0 && value <= largest)
        return TANDEM_OK;
    return argument_error("%s: %s is %lld; expected 0 to %lld",
                          call->info->name, name, (long long)value,
                          (long long)largest);
}

/* Checks the scales and the region of interest of each axis. */
static enum tandem_status check_axes(const struct op_call *call)
{
    const struct tandem_op *op = call->op;
    uint32_t rank = call->inputs[0]->rank, count = op->float_count;
    if (count > RESIZE_SCALES && count != RESIZE_SCALES + rank &&
        count < RESIZE_SCALES + 3 * rank)
        return argument_error(
            "resize: the length of floats is %u for rank %u; expected %u, %u "
            "with scales, or %u with scales and roi",
            count, rank, RESIZE_SCALES, RESIZE_SCALES + rank,
            RESIZE_SCALES + 3 * rank);
    for (uint32_t i = RESIZE_SCALES; i < count && i < RESIZE_SCALES + rank;
         i++) {
        double scale = op->floats[i];
        if (scale != 0 && !(isgreaterequal(scale, RESIZE_MIN_SCALE) &&
                            islessequal(scale, RESIZE_MAX_SCALE)))
            return argument_error("resize: scale %g of axis %u is out of "
                                  "range; expected 0 or 2^-24 to 2^24",
                                  scale, i - RESIZE_SCALES);
    }
    for (uint32_t i = RESIZE_SCALES + rank;
         i < count && i < RESIZE_SCALES + 3 * rank; i++)
        if (!islessequal(fabs(op->floats[i]), RESIZE_MAX_ROI))
            return argument_error(
                "resize: roi %s %g of axis %u is out of range; expected -2^20 "
                "to 2^20",
                i < RESIZE_SCALES + 2 * rank ? "start" : "end", op->floats[i],
                (i - RESIZE_SCALES) % rank);
    return TANDEM_OK;
}

static enum tandem_status resize_check(const struct op_call *call)
{
    const int64_t *ints = call->op->ints;
    enum tandem_status status =
        check_int(call, RESIZE_MODE, "mode", RESIZE_CUBIC);
    if (status == TANDEM_OK)
        status = check_int(call, RESIZE_COORDINATES,
                           "coordinate_transformation_mode",
                           RESIZE_TF_CROP_AND_RESIZE);
    if (status == TANDEM_OK)
        status =
            check_int(call, RESIZE_NEAREST_MODE, "nearest_mode", RESIZE_CEIL);
    if (status == TANDEM_OK)
        status = check_switch(call, RESIZE_EXCLUDE_OUTSIDE, "exclude_outside");
    if (status == TANDEM_OK)
        status = check_switch(call, RESIZE_ANTIALIAS, "antialias");
    if (status != TANDEM_OK)
        return status;
    if (ints[RESIZE_MODE] == RESIZE_NEAREST &&
        (ints[RESIZE_EXCLUDE_OUTSIDE] != 0 || ints[RESIZE_ANTIALIAS] != 0))
        return argument_error(
            "resize: %s is 1 with mode 0 (nearest); expected 0",
            ints[RESIZE_ANTIALIAS] != 0 ? "antialias" : "exclude_outside");
    for (uint32_t i = 0; i < RESIZE_SCALES; i++)
        if (!isfinite(call->op->floats[i]))
            return argument_error("resize: %s is %g; expected a finite number",
                                  i == RESIZE_CUBIC_COEFF_A
                                      ? "cubic_coeff_a"
                                      : "extrapolation_value",
                                  call->op->floats[i]);
    return check_axes(call);
}

/* Sets the shape of an output that is unknown. */
static enum tandem_status shape_from_scales(const struct op_call *call,
                                            struct tandem_tensor_desc *out)
{
    for (uint32_t i = 0; i < out->rank; i++) {
        double scale = resize_scale(call->op, i);
        double length = floor((double)out->shape[i] * scale);
        if (scale == 0)
            continue;
        if (!(length >= 0 && length < MAX_LENGTH))
            return argument_error("resize: scale %g of axis %u gives the "
                                  "length %g; expected 0 to 2^62",
                                  scale, i, length);
        out->shape[i] = (int64_t)length;
    }
    return TANDEM_OK;
}

static enum tandem_status resize_infer(const struct op_call *call,
                                       uint32_t output,
                                       struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *input = call->inputs[0];
    (void)output;
    shape_copy(out, input);
    if (call->outputs == NULL)
        return shape_from_scales(call, out);
    const struct tandem_tensor_desc *known = call->outputs[0];
    if (known->rank != input->rank)
        return operand_error(call, 1, "has rank %u; expected rank %u",
                             known->rank, input->rank);
    shape_copy(out, known);
    for (uint32_t i = 0; i < input->rank; i++)
        if (input->shape[i] == 0 && known->shape[i] != 0)
            return operand_error(
                call, 1,
                "has length %lld along axis %u; expected 0, because "
                "the input is empty",
                (long long)known->shape[i], i);
    return TANDEM_OK;
}

/* A scale, a start and an end for each axis. */
static void resize_lists(const struct op_call *call, uint32_t *ints,
                         uint32_t *floats)
{
    (void)ints;
    *floats += 3 * call->inputs[0]->rank;
}

/* Doubles the last two axes with mode linear. */
static const char *resize_example(const struct operator_info *info,
                                  uint32_t rank, const int64_t *shape,
                                  struct op_example *out)
{
    /* The axes of an image, or of a volume, which takes two passes. */
    uint32_t resized = rank > 4 ? 3 : 2;
    (void)info, (void)shape;
    out->ints[RESIZE_MODE] = RESIZE_LINEAR;
    out->float_count = RESIZE_SCALES + rank;
    for (uint32_t i = 0; i < rank; i++)
        out->floats[RESIZE_SCALES + i] = i + resized < rank ? 1 : 2;
    return NULL;
}

const struct op_class op_class_resize = {.input_dtypes = "f",
                                         .output_dtypes = "f",
                                         .check = resize_check,
                                         .infer = resize_infer,
                                         .lists = resize_lists,
                                         .example = resize_example};
