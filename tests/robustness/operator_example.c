/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of the operators; see operator_example.h. */
#include "operator_example.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OUTPUT_BYTES (1u << 20)

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

/* Overwrites the outputs, except those that are also inputs. */
static enum tandem_status outputs_clear(const struct resident_op *op)
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

/* Returns true if two outputs are equal, except for rounding errors of f32. */
static bool outputs_equal(const struct tandem_tensor_desc *out, const void *got,
                          const void *want)
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

/* Compares an output with *want, or sets *want if it is NULL. */
static bool output_matches(struct workload *work,
                           const struct tandem_tensor_desc *out, void **want)
{
    /* A lost device may still write to this memory later. */
    static _Alignas(8) unsigned char got[MAX_OUTPUT_BYTES];
    const uint64_t bytes = (uint64_t)desc_bytes(out);

    if (bytes > sizeof got)
        return record_violation(work, "an output is too large for this test");
    if (!CALL(work, download, work->stream, out->buffer, 0, got, bytes, 0,
              TANDEM_TIMEOUT_INFINITE))
        return false;
    if (*want == NULL && (*want = malloc(bytes)) != NULL)
        memcpy(*want, got, bytes);
    return (*want != NULL && outputs_equal(out, got, *want)) ||
           record_violation(work,
                            "the result differs from that without a fault");
}

void example_outputs_free(struct example_outputs *outputs)
{
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++) {
        free(outputs->data[i]);
        outputs->data[i] = NULL;
    }
}

bool example_run(struct workload *work, const struct tandem_op_info *info,
                 size_t shape, struct example_outputs *want)
{
    struct device_session session = {.backend = work->api,
                                     .device = work->device};
    struct resident_op op;
    bool passed;

    work->stream = NULL;
    if (!example_build(&op, info, shape))
        return record_violation(work, "there is no such example");
    if (!stream_new(work, 0, &work->stream))
        return false;
    session.stream = work->stream;
    passed = call_succeeded(work, resident_op_begin(&op, &session),
                            "creation of the operands");
    if (passed) {
        passed = call_succeeded(work, outputs_clear(&op), "fill") &&
                 call_succeeded(work, resident_op_launch(&op), "launch");
        for (uint32_t i = 0; i < op.c.outputs && passed; i++)
            passed = output_matches(work, &op.c.out[i], &want->data[i]);
        resident_op_destroy(&op);
    }
    /* Waiting on a stream reports and clears its errors. */
    passed &= stream_wait(work, work->stream);
    work->api->stream_destroy(work->stream);
    return passed;
}
