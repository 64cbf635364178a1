/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values of cast, transpose and gather; see reference.h. */
#include "reference.h"

#include "element_value.h"

#include <math.h>

static void range_of(uint32_t dtype, int64_t *out_low, int64_t *out_high)
{
    switch (dtype) {
    case TANDEM_U8:
        *out_low = 0;
        *out_high = UINT8_MAX;
        break;
    case TANDEM_I32:
        *out_low = INT32_MIN;
        *out_high = INT32_MAX;
        break;
    default:
        *out_low = INT64_MIN;
        *out_high = INT64_MAX;
        break;
    }
}

static int64_t truncated(double x, uint32_t dtype)
{
    int64_t low, high;

    range_of(dtype, &low, &high);
    if (isnan(x))
        return 0;
    if (x <= (double)low)
        return low;
    if (x >= (double)high)
        return high;
    return (int64_t)x;
}

static int64_t saturated(int64_t x, uint32_t dtype)
{
    int64_t low, high;

    range_of(dtype, &low, &high);
    return x < low ? low : x > high ? high : x;
}

static int64_t cast_integer(const struct dense *in, int64_t i, uint32_t dtype)
{
    if (dtype_is_float(in->dtype)) {
        double x = dense_real(in, i);

        return dtype == TANDEM_BOOL ? x != 0.0 : truncated(x, dtype);
    }
    if (dtype == TANDEM_BOOL)
        return dense_integer(in, i) != 0;
    return saturated(dense_integer(in, i), dtype);
}

void reference_cast(const struct reference *call, struct expected *out)
{
    const struct dense *in = &call->inputs[0];
    bool real = dtype_is_float(call->out_dtype);

    expected_init(out, real ? EXPECTED_REAL : EXPECTED_INTEGER, in->elements);
    out->exact = true;
    for (int64_t i = 0; i < in->elements; i++) {
        if (!real)
            out->integer[i] = cast_integer(in, i, call->out_dtype);
        else if (dtype_is_float(in->dtype))
            out->real[i] = dense_real(in, i);
        else /* Rounded once, from the exact integer. */
            out->real[i] =
                integer_rounded(call->out_dtype, dense_integer(in, i));
    }
}

void reference_transpose(const struct reference *call, struct expected *out)
{
    const struct dense *in = &call->inputs[0];
    int64_t step[TANDEM_MAX_RANK], own[TANDEM_MAX_RANK];
    int64_t index[TANDEM_MAX_RANK] = {0};
    int64_t count = 1;

    for (uint32_t axis = in->rank; axis-- > 0;) {
        own[axis] = count;
        count *= in->shape[axis];
    }
    for (uint32_t axis = 0; axis < in->rank; axis++)
        step[axis] = own[call->ints[axis]];
    expected_init(out, EXPECTED_BITS, in->elements);
    for (int64_t i = 0; i < in->elements; i++) {
        int64_t at = 0;

        for (uint32_t axis = 0; axis < in->rank; axis++)
            at += index[axis] * step[axis];
        out->integer[i] = (int64_t)in->bits[at];
        index_next(call->out_rank, call->out_shape, index);
    }
}

/*
 * Element i of the output decomposes into the part before the axis, the index,
 * and the part after the axis.
 */
void reference_gather(const struct reference *call, struct expected *out)
{
    const struct dense *data = &call->inputs[0], *indices = &call->inputs[1];
    int64_t axis = call->ints[0], inner = 1, length;

    if (axis < 0)
        axis += data->rank;
    for (uint32_t i = (uint32_t)axis + 1; i < data->rank; i++)
        inner *= data->shape[i];
    length = data->shape[axis];
    expected_init(out, EXPECTED_BITS,
                  shape_count(call->out_rank, call->out_shape));
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t after = i % inner, rest = i / inner;
        int64_t which = dense_integer(indices, rest % indices->elements);
        int64_t before = rest / indices->elements;

        if (which < 0)
            which += length;
        if (which >= 0 && which < length)
            out->integer[i] =
                (int64_t)data->bits[(before * length + which) * inner + after];
        else if (dtype_is_float(data->dtype))
            out->real[i] = (double)NAN;
    }
}
