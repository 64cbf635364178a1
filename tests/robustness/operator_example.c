/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of the operators; see operator_example.h. */
#include "operator_example.h"

#include <math.h>
#include <string.h>

static const struct {
    uint32_t rank;
    int64_t lengths[6];
} shapes[EXAMPLE_SHAPES] = {
    {4, {2, 16, 10, 12}},    /* Several matrices, or images with channels. */
    {5, {1, 1, 1, 1024, 8}}, /* One query; volumes that are resized. */
    /* Rows that are split. Operators whose time is the square of the length
     * accept at most five axes. */
    {6, {1, 1, 1, 1, 1, 20000}},
    {1, {20000}},
    {2, {6, 20}},
    {3, {24, 24, 24}}};

const char *example_shape_text(size_t shape)
{
    static char text[SHAPE_TEXT_BYTES];

    return shape_text(text, shapes[shape].rank, shapes[shape].lengths);
}

bool example_build(struct resident_op *op, const struct tandem_op_info *info,
                   size_t shape)
{
    char error[OPCASE_ERROR_BYTES];

    memset(op, 0, sizeof *op);
    return op_case_build(&op->c, info->name, shapes[shape].rank,
                         shapes[shape].lengths, error);
}

enum tandem_status example_outputs_clear(const struct resident_op *op)
{
    const unsigned char pattern = 0xa5;
    const struct device_session *session = op->session;
    enum tandem_status status = TANDEM_OK;

    for (uint32_t i = 0; i < op->c.outputs && status == TANDEM_OK; i++)
        if (op->c.alias[i] < 0)
            status = session->backend->fill(
                session->stream, op->c.out[i].buffer, 0,
                (uint64_t)desc_bytes(&op->c.out[i]), &pattern, 1);
    return status;
}

static bool values_equal(float a, float b)
{
    return a == b || (isnan(a) && isnan(b)) ||
           fabsf(a - b) <= 1e-4f * fmaxf(1.0f, fabsf(b));
}

bool example_outputs_equal(const struct tandem_tensor_desc *out,
                           const void *got, const void *want)
{
    const float *got_f32 = got, *want_f32 = want;
    const uint64_t bytes = (uint64_t)desc_bytes(out);

    if (out->dtype != TANDEM_F32)
        return memcmp(got, want, bytes) == 0;
    for (uint64_t i = 0; i < bytes / sizeof(float); i++)
        if (!values_equal(got_f32[i], want_f32[i]))
            return false;
    return true;
}
