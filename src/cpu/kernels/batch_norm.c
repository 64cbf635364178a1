/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the operator batch_norm.  A task is a row, which belongs to one
 * channel or has one channel per element. */
#include "cpu/kernels/batch_norm.h"

#include "config.h"

#include <math.h>

#include "common/operator_table.h"
#include "cpu/kernels/elementwise.h"

/* Channels whose factors are computed together. */
#define CHUNK 256

struct batch_norm {
    struct iteration_space space; /* output, input and channel number */
    const float *in, *scale, *bias, *mean, *variance;
    float *out;
    int64_t strides[4]; /* of scale, bias, mean and variance */
    double epsilon;
};

/* The values with which channels compute (x - mean) * factor + bias. */
struct channels {
    double mean[CHUNK], factor[CHUNK], bias[CHUNK];
};

static void channels_read(const struct batch_norm *norm, struct channels *out,
                          int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t c = first + i;
        double variance = (double)norm->variance[c * norm->strides[3]];
        out->factor[i] = (double)norm->scale[c * norm->strides[0]] /
                         sqrt(variance + norm->epsilon);
        out->bias[i] = (double)norm->bias[c * norm->strides[1]];
        out->mean[i] = (double)norm->mean[c * norm->strides[2]];
    }
}

static inline float normalize(float x, double mean, double factor, double bias)
{
    return (float)(((double)x - mean) * factor + bias);
}

static void row_of_channel(float *to, int64_t out_stride, const float *from,
                           int64_t in_stride, int64_t count,
                           const struct channels *channel)
{
    double mean = channel->mean[0], factor = channel->factor[0];
    double bias = channel->bias[0];
    if (out_stride == 1 && in_stride == 1)
        for (int64_t i = 0; i < count; i++)
            to[i] = normalize(from[i], mean, factor, bias);
    else
        for (int64_t i = 0; i < count; i++)
            to[i * out_stride] =
                normalize(from[i * in_stride], mean, factor, bias);
}

static void row_of_channels(float *to, int64_t out_stride, const float *from,
                            int64_t in_stride, int64_t count,
                            const struct channels *channels)
{
    for (int64_t i = 0; i < count; i++)
        to[i * out_stride] = normalize(from[i * in_stride], channels->mean[i],
                                       channels->factor[i], channels->bias[i]);
}

static void batch_rows_run(const void *context, int64_t first, int64_t end)
{
    const struct batch_norm *norm = context;
    const struct iteration_space *space = &norm->space;
    uint32_t inner = space->rank - 1;
    int64_t extent = space->shape[inner];
    int64_t out_stride = space->strides[0][inner];
    int64_t in_stride = space->strides[1][inner];
    bool one_channel = space->strides[2][inner] == 0;
    int64_t step = one_channel ? extent : min64(extent, CHUNK);
    int64_t index[TANDEM_MAX_RANK];
    struct channels channels;
    for (int64_t x = 0; x < extent; x += step) {
        int64_t count = min64(step, extent - x);
        for (int64_t row = first; row < end; row++) {
            space_seek(space, row, index);
            float *to =
                norm->out + space_offset(space, 0, index) + x * out_stride;
            const float *from =
                norm->in + space_offset(space, 1, index) + x * in_stride;
            int64_t channel = space_offset(space, 2, index);
            if (one_channel) {
                channels_read(norm, &channels, channel, 1);
                row_of_channel(to, out_stride, from, in_stride, count,
                               &channels);
                continue;
            }
            /* All rows have the same channels. */
            if (row == first)
                channels_read(norm, &channels, x, count);
            row_of_channels(to, out_stride, from, in_stride, count, &channels);
        }
    }
}

enum tandem_status batch_norm_run(const struct work *work)
{
    struct batch_norm norm = {
        .epsilon = (double)epsilon_f32(work->op->floats[0]),
    };
    space_batch_norm(&norm.space, work->inputs[0], work->outputs[0]);
    if (norm.space.elements == 0)
        return TANDEM_OK;
    norm.in = tensor_data(work->inputs[0]);
    norm.scale = tensor_data(work->inputs[1]);
    norm.bias = tensor_data(work->inputs[2]);
    norm.mean = tensor_data(work->inputs[3]);
    norm.variance = tensor_data(work->inputs[4]);
    norm.out = tensor_data(work->outputs[0]);
    for (uint32_t i = 0; i < 4; i++)
        norm.strides[i] = work->inputs[i + 1]->strides[0];
    int64_t extent = norm.space.shape[norm.space.rank - 1];
    pool_run(work->device->pool, work->op->id, batch_rows_run, &norm,
             norm.space.elements / extent, extent);
    return TANDEM_OK;
}
