/* SPDX-License-Identifier: Apache-2.0 */
/* Describes convolutions, and applies bias, residual and activation; see
 * conv.h. */
#include "config.h"

#include "cpu/conv/conv.h"
#include "cpu/kernels/elementwise.h"

/* If more output channels share the windows, and weighted_sums is not fast, a
 * product of matrices is faster. */
#define MAX_DIRECT_ROWS 4
/* If the matrix of patches has fewer columns and is the input, a product of
 * matrices is faster. */
#define MIN_DIRECT_COLUMNS 8

bool conv_init(struct conv *out, const struct work *work)
{
    struct conv_problem *problem = &out->problem;
    *out = (struct conv){.op = work->op->id,
                         .kernels = work->device->kernels,
                         .pool = work->device->pool,
                         .x = tensor_data(work->inputs[0]),
                         .weight = tensor_data(work->inputs[1]),
                         .out = tensor_data(work->outputs[0])};
    conv_problem_read(problem, work->op, work->inputs, work->input_count,
                      work->outputs[0]);
    activation_attributes(out->params.f, &problem->activation);
    out->params.flag = activation_is_gelu_tanh(&problem->activation);
    if (problem->bias_tensor != NULL)
        out->bias = tensor_data(problem->bias_tensor);
    if (problem->residual_tensor != NULL)
        out->residual = tensor_data(problem->residual_tensor);
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++)
        out->out_lengths[i] = problem->window.axis[i].out;
    out->uses_gemm =
        problem->depth > 0 &&
        (problem->is_transposed ||
         (problem->rows > MAX_DIRECT_ROWS && !out->kernels->sums_are_fast) ||
         (problem->columns < MIN_DIRECT_COLUMNS &&
          conv_windows_are_elements(problem)));
    return shape_elements(work->outputs[0]->rank, work->outputs[0]->shape) > 0;
}

bool conv_windows_are_elements(const struct conv_problem *problem)
{
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++) {
        const struct window_axis *axis = &problem->window.axis[i];
        if (axis->kernel != 1 || axis->stride != 1 || axis->begin != 0 ||
            axis->in != axis->out)
            return false;
    }
    return true;
}

void conv_copy(const struct conv *conv, enum conv_copy direction, float *block,
               float *channel, const struct conv_strides *strides,
               int64_t first, int64_t n)
{
    const int64_t *lengths = conv->out_lengths;
    while (n > 0) {
        int64_t x = first % lengths[0], line = first / lengths[0];
        int64_t count = min64(n, lengths[0] - x);
        float *at = channel + x * strides->axis[0] +
                    line % lengths[1] * strides->axis[1] +
                    line / lengths[1] * strides->axis[2];
        if (direction == CONV_GATHER)
            elements_copy(block, 1, at, strides->axis[0], count, sizeof *at);
        else
            elements_copy(at, strides->axis[0], block, 1, count, sizeof *at);
        first += count;
        block += count;
        n -= count;
    }
}

void conv_bias_add(const struct conv *conv, float *y, int64_t channel,
                   int64_t n)
{
    struct row row = {.n = n, .constants = 2, .in = {y}, .out = {y}};
    if (conv->bias == NULL)
        return;
    row.in[1] = conv->bias + channel * conv->problem.bias_stride;
    conv->kernels->rows[TANDEM_OP_ADD](&row);
}

void conv_epilogue(const struct conv *conv, float *y, int64_t image,
                   int64_t channel, int64_t first, int64_t n, float *space)
{
    const struct conv_problem *problem = &conv->problem;
    uint32_t activation = problem->activation.op;
    struct row row = {.n = n, .in = {y}, .out = {y}, .params = &conv->params};
    if (conv->residual != NULL) {
        const struct conv_strides *strides = &problem->residual;
        /* The copy only reads the residual. */
        float *from = (float *)(uintptr_t)conv->residual +
                      image * strides->batch + channel * strides->channel;
        conv_copy(conv, CONV_GATHER, space, from, strides, first, n);
        row.in[1] = space;
        conv->kernels->rows[TANDEM_OP_ADD](&row);
    }
    if (activation != TANDEM_OP_INVALID)
        conv->kernels->rows[activation](&row);
}
