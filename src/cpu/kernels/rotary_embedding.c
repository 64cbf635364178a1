/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary embeddings.  A task rotates the pairs of a row of x, which is one
 * token of one head.  Runs on the caller's thread and on the thread pool. */
#include "config.h"

#include <math.h>

#include "common/op_rotary_embedding.h"
#include "cpu/kernels/elementwise.h"

struct rotary_job {
    struct rotary_embedding by;
    const float *x, *cos, *sin;
    const unsigned char *positions;
    float *out;
};

/* A row: the first element of each operand, and its strides. */
struct rotary_row {
    const float *a, *b, *cos, *sin;
    float *out_a, *out_b;
};

/* Rotates n pairs.  The compiler makes vectorized loops for constant strides.
 */
static inline __attribute__((always_inline)) void
pairs_rotate(const struct rotary_row *row, int64_t n, int64_t step,
             int64_t out_step, int64_t cos_step, int64_t sin_step)
{
    for (int64_t i = 0; i < n; i++) {
        float a = row->a[i * step], b = row->b[i * step];
        float c = row->cos[i * cos_step], s = row->sin[i * sin_step];
        row->out_a[i * out_step] = a * c - b * s;
        row->out_b[i * out_step] = a * s + b * c;
    }
}

/* Returns the number of the row of the caches for a token, or -1 if the token's
 * position is out of range.  A negative position counts from the end. */
static int64_t cache_row(const struct rotary_job *job, int64_t image,
                         int64_t token)
{
    const struct tandem_tensor_desc *positions = job->by.positions;
    if (positions == NULL)
        return token;
    uint32_t bytes = TANDEM_DTYPE_BYTES(positions->dtype);
    int64_t at = image * positions->strides[0] + token * positions->strides[1];
    int64_t row = index_read(job->positions + at * (int64_t)bytes, bytes);
    if (row < 0)
        row += job->by.length;
    return row < 0 || row >= job->by.length ? -1 : row;
}

static void row_rotate(const struct rotary_job *job, const float *x, float *out,
                       int64_t image, int64_t token)
{
    const struct rotary_embedding *by = &job->by;
    const int64_t n = by->pairs, step = by->x[3], out_step = by->out[3];
    const int64_t cos_step = by->caches[0][2], sin_step = by->caches[1][2];
    const int64_t row = cache_row(job, image, token);
    if (by->width > 2 * n)
        elements_copy(out + 2 * n * out_step, out_step, x + 2 * n * step, step,
                      by->width - 2 * n, sizeof *out);
    if (row < 0) {
        for (int64_t i = 0; i < 2 * n; i++)
            out[i * out_step] = NAN;
        return;
    }
    const int64_t to_b = by->interleaved ? 1 : n;
    const struct rotary_row all = {
        .a = x,
        .b = x + to_b * step,
        .out_a = out,
        .out_b = out + to_b * out_step,
        .cos = job->cos + image * by->caches[0][0] + row * by->caches[0][1],
        .sin = job->sin + image * by->caches[1][0] + row * by->caches[1][1]};
    const bool dense =
        step == 1 && out_step == 1 && cos_step == 1 && sin_step == 1;
    if (dense && by->interleaved)
        pairs_rotate(&all, n, 2, 2, 1, 1);
    else if (dense)
        pairs_rotate(&all, n, 1, 1, 1, 1);
    else if (by->interleaved)
        pairs_rotate(&all, n, 2 * step, 2 * out_step, cos_step, sin_step);
    else
        pairs_rotate(&all, n, step, out_step, cos_step, sin_step);
}

static void rows_rotate(const void *context, int64_t first, int64_t end)
{
    const struct rotary_job *job = context;
    const struct rotary_embedding *by = &job->by;
    for (int64_t i = first; i < end; i++) {
        int64_t token = i % by->tokens, rest = i / by->tokens;
        int64_t head = rest % by->heads, image = rest / by->heads;
        row_rotate(
            job, job->x + image * by->x[0] + head * by->x[1] + token * by->x[2],
            job->out + image * by->out[0] + head * by->out[1] +
                token * by->out[2],
            image, token);
    }
}

static enum tandem_status rotary_run(const struct work *work)
{
    struct rotary_job job = {.x = tensor_data(work->inputs[0]),
                             .cos = tensor_data(work->inputs[1]),
                             .sin = tensor_data(work->inputs[2]),
                             .out = tensor_data(work->outputs[0])};
    rotary_embedding_read(&job.by, work->op, work->inputs, work->input_count,
                          work->outputs[0]);
    if (job.by.positions != NULL)
        job.positions = tensor_data(job.by.positions);
    if (job.by.width > 0)
        pool_run(work->device->pool, work->op->id, rows_rotate, &job,
                 job.by.batch * job.by.heads * job.by.tokens, job.by.width);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_rotary_embedding = {.run = rotary_run};
