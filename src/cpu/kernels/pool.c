/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum and average pooling.  Maxima without indices are computed in blocks
 * of an output plane (window_tile.h).  Otherwise a task computes one row of the
 * output: for each element of the window, it visits the outputs that the
 * element belongs to.  Runs on the caller's thread and on the thread pool. */
#include "config.h"

#include <math.h>

#include "common/op_window.h"
#include "cpu/kernels/elementwise.h"
#include "cpu/kernels/window_tile.h"

/* Outputs of a row that are computed together. */
#define CHUNK 256

/* Maximum size of a tile, in floats. */
#define TILE_FLOATS 4096

struct pool_call {
    struct window window;
    struct window_tile tile;
    const struct kernels *kernels;
    int64_t channels, include_pad;
    bool average;
    const float *in;
    float *out;
    int64_t *indices; /* NULL if the operator has no output of indices */
    /* Strides of batch, channels and the spatial axes, the innermost last. */
    int64_t in_strides[5], out_strides[5], index_strides[5];
};

/* State of up to CHUNK outputs. */
struct chunk {
    int64_t first, count; /* first output of the chunk, number of outputs */
    double sum[CHUNK];
    float best[CHUNK];
    int64_t where[CHUNK]; /* position of `best` in the spatial axes */
};

/* The range of outputs [*out_first, *out_end) of a chunk for which element k of
 * the window is inside the input. */
static void outputs_of(const struct window_axis *axis,
                       const struct chunk *chunk, int64_t k, int64_t *out_first,
                       int64_t *out_end)
{
    int64_t shift = k * axis->dilation - axis->begin;
    int64_t first = window_first(shift, axis->stride);
    int64_t end = window_end(shift, axis->stride, axis->out, axis->in);
    *out_first = first > chunk->first ? first - chunk->first : 0;
    *out_end = min64(end - chunk->first, chunk->count);
}

/* Adds element k of a row of the window to the outputs. */
static void element_add(const struct pool_call *pool, struct chunk *chunk,
                        const float *row, int64_t position, int64_t k)
{
    const struct window_axis *axis = &pool->window.axis[0];
    int64_t first, end, step = axis->stride * pool->in_strides[4];
    int64_t at = chunk->first * axis->stride + k * axis->dilation - axis->begin;
    const float *x = row + at * pool->in_strides[4];
    outputs_of(axis, chunk, k, &first, &end);
    if (pool->average) {
        for (int64_t i = first; i < end; i++)
            chunk->sum[i] += (double)x[i * step];
        return;
    }
    for (int64_t i = first; i < end; i++) {
        float value = x[i * step], best = chunk->best[i];
        if ((!(value <= best) && best == best) || chunk->where[i] < 0) {
            chunk->best[i] = value;
            chunk->where[i] = position + at + i * axis->stride;
        }
    }
}

/* Returns the number of elements of the window at output i that an average
 * divides by. */
static int64_t divisor_of(const struct pool_call *pool,
                          const struct window_axis *axis, int64_t i)
{
    int64_t start = i * axis->stride - axis->begin;
    if (pool->include_pad)
        return window_end(start, axis->dilation, axis->kernel,
                          axis->in + axis->end);
    int64_t end = window_end(start, axis->dilation, axis->kernel, axis->in);
    int64_t first = window_first(start, axis->dilation);
    return end > first ? end - first : 0;
}

static void chunk_store(const struct pool_call *pool, const struct chunk *chunk,
                        const int64_t *at, int64_t plane)
{
    const struct window_axis *axes = pool->window.axis;
    int64_t to = 0, index_to = 0;
    for (uint32_t i = 0; i < 4; i++) {
        to += at[i] * pool->out_strides[i];
        index_to += at[i] * pool->index_strides[i];
    }
    int64_t outer =
        divisor_of(pool, &axes[2], at[2]) * divisor_of(pool, &axes[1], at[3]);
    int64_t volume = axes[0].in * axes[1].in * axes[2].in;
    for (int64_t i = 0; i < chunk->count; i++) {
        int64_t x = chunk->first + i;
        float *out = pool->out + to + x * pool->out_strides[4];
        *out = pool->average
                   ? (float)(chunk->sum[i] /
                             (double)(outer * divisor_of(pool, &axes[0], x)))
                   : chunk->best[i];
        if (pool->indices != NULL)
            pool->indices[index_to + x * pool->index_strides[4]] =
                chunk->where[i] < 0 ? -1 : plane * volume + chunk->where[i];
    }
}

/* Adds all rows of the window at output (at[2], at[3]) to the chunk. */
static void chunk_compute(const struct pool_call *pool, struct chunk *chunk,
                          const int64_t *at)
{
    const struct window_axis *axes = pool->window.axis;
    int64_t z = at[2] * axes[2].stride - axes[2].begin;
    int64_t y = at[3] * axes[1].stride - axes[1].begin;
    int64_t z_end = window_end(z, axes[2].dilation, axes[2].kernel, axes[2].in);
    int64_t y_end = window_end(y, axes[1].dilation, axes[1].kernel, axes[1].in);
    const float *base =
        pool->in + at[0] * pool->in_strides[0] + at[1] * pool->in_strides[1];
    for (int64_t i = 0; i < chunk->count; i++) {
        chunk->sum[i] = 0;
        chunk->best[i] = -INFINITY;
        chunk->where[i] = -1;
    }
    for (int64_t i = window_first(z, axes[2].dilation); i < z_end; i++)
        for (int64_t j = window_first(y, axes[1].dilation); j < y_end; j++) {
            int64_t in_z = z + i * axes[2].dilation;
            int64_t in_y = y + j * axes[1].dilation;
            const float *row =
                base + in_z * pool->in_strides[2] + in_y * pool->in_strides[3];
            int64_t position = (in_z * axes[1].in + in_y) * axes[0].in;
            for (int64_t k = 0; k < axes[0].kernel; k++)
                element_add(pool, chunk, row, position, k);
        }
}

static void rows_pool(const void *context, int64_t first, int64_t end)
{
    const struct pool_call *pool = context;
    const struct window_axis *axes = pool->window.axis;
    for (int64_t row = first; row < end; row++) {
        int64_t plane = row / (axes[1].out * axes[2].out);
        int64_t at[] = {plane / pool->channels, plane % pool->channels,
                        row / axes[1].out % axes[2].out, row % axes[1].out};
        struct chunk chunk;
        for (chunk.first = 0; chunk.first < axes[0].out;
             chunk.first += chunk.count) {
            chunk.count = min64(CHUNK, axes[0].out - chunk.first);
            chunk_compute(pool, &chunk, at);
            chunk_store(pool, &chunk, at, plane);
        }
    }
}

/* ---- maxima without indices --------------------------------------------- */

/* A block of an output plane. */
struct pool_block {
    int64_t at[3]; /* batch, channel and position along the outermost axis */
    int64_t row, column;
};

/* Computes the maxima of a block.  Their rows are tile.pitch apart. */
static void block_maxima(const struct pool_call *pool,
                         const struct pool_block *block, int64_t n,
                         float *maxima)
{
    const struct window_axis *axes = pool->window.axis;
    const struct tile_axis *rows = &pool->tile.rows;
    const struct tile_axis *columns = &pool->tile.columns;
    const int64_t strides[] = {pool->in_strides[4], pool->in_strides[3]};
    const float *image = pool->in + block->at[0] * pool->in_strides[0] +
                         block->at[1] * pool->in_strides[1];
    int64_t z = block->at[2] * axes[2].stride - axes[2].begin;
    int64_t end = window_end(z, axes[2].dilation, axes[2].kernel, axes[2].in);
    const float *x[TILE_TAPS];
    float tile[TILE_FLOATS];
    struct tile_position at = {block->row, block->column, 0, 0};
    pool->kernels->row_maxima(maxima, NULL, 0, n, false);
    for (int64_t k = window_first(z, axes[2].dilation); k < end; k++)
        for (at.row_tap = 0; at.row_tap < axes[1].kernel;
             at.row_tap += rows->taps)
            for (at.column_tap = 0; at.column_tap < axes[0].kernel;
                 at.column_tap += columns->taps) {
                int64_t taps = 0;
                for (int64_t i = 0;
                     i < min64(rows->taps, axes[1].kernel - at.row_tap); i++)
                    for (int64_t j = 0;
                         j <
                         min64(columns->taps, axes[0].kernel - at.column_tap);
                         j++)
                        x[taps++] =
                            tile + pool->tile.tap_offset[i * columns->taps + j];
                window_tile_fill(&pool->tile, &at, pool->kernels,
                                 image + (z + k * axes[2].dilation) *
                                             pool->in_strides[2],
                                 strides, -INFINITY, tile);
                pool->kernels->row_maxima(maxima, x, taps, n, true);
            }
}

/* Thread-pool function.  Each task computes a block. */
static void blocks_pool(const void *context, int64_t first, int64_t end)
{
    const struct pool_call *pool = context;
    const struct window_axis *axes = pool->window.axis;
    const struct window_tile *tile = &pool->tile;
    float maxima[TILE_FLOATS];
    for (int64_t task = first; task < end; task++) {
        int64_t rest = task / tile->column_blocks;
        int64_t plane = rest / tile->row_blocks / axes[2].out;
        struct pool_block block = {
            .at = {plane / pool->channels, plane % pool->channels,
                   rest / tile->row_blocks % axes[2].out},
            .row = rest % tile->row_blocks * tile->rows.outputs,
            .column = task % tile->column_blocks * tile->columns.outputs};
        int64_t rows = min64(tile->rows.outputs, axes[1].out - block.row);
        int64_t columns =
            min64(tile->columns.outputs, axes[0].out - block.column);
        float *to = pool->out + block.row * pool->out_strides[3] +
                    block.column * pool->out_strides[4];
        for (uint32_t i = 0; i < 3; i++)
            to += block.at[i] * pool->out_strides[i];
        block_maxima(pool, &block, (rows - 1) * tile->pitch + columns, maxima);
        for (int64_t i = 0; i < rows; i++)
            elements_copy(to + i * pool->out_strides[3], pool->out_strides[4],
                          maxima + i * tile->pitch, 1, columns, sizeof *to);
    }
}

/* ---- calls -------------------------------------------------------------- */

/* Copies the strides; a missing spatial axis has stride 0. */
static void strides_get(int64_t *out, const struct tandem_tensor_desc *tensor)
{
    uint32_t missing = 5 - tensor->rank;
    for (uint32_t i = 0; i < 5; i++)
        out[i] = i < 2             ? tensor->strides[i]
                 : i < 2 + missing ? 0
                                   : tensor->strides[i - missing];
}

static enum tandem_status pool_operator_run(const struct work *work)
{
    const struct tandem_tensor_desc *input = work->inputs[0];
    const struct tandem_tensor_desc *output = work->outputs[0];
    struct pool_call pool = {.channels = input->shape[1],
                             .average = work->op->id == TANDEM_OP_AVERAGE_POOL};
    uint32_t lists = pool.average ? 2 : 1;
    int64_t rows = output->shape[0] * output->shape[1];
    const int64_t *kernel = work->op->ints + lists;
    window_read(&pool.window, kernel, kernel + input->rank - 2, input, output);
    for (uint32_t i = 1; i < MAX_SPATIAL_AXES; i++)
        rows *= pool.window.axis[i].out;
    if (rows == 0 || pool.window.axis[0].out == 0)
        return TANDEM_OK;
    pool.include_pad = pool.average && work->op->ints[1] != 0;
    pool.in = tensor_data(input);
    pool.out = tensor_data(output);
    strides_get(pool.in_strides, input);
    strides_get(pool.out_strides, output);
    if (work->output_count > 1) {
        pool.indices = tensor_data(work->outputs[1]);
        strides_get(pool.index_strides, work->outputs[1]);
    }
    if (!pool.average && pool.indices == NULL) {
        pool.kernels = work->device->kernels;
        window_tile_init(&pool.tile, pool.window.axis, TILE_FLOATS, TILE_FLOATS,
                         1);
        pool_run(work->device->pool, work->op->id + POOL_VARIANT, blocks_pool,
                 &pool,
                 output->shape[0] * output->shape[1] * pool.window.axis[2].out *
                     pool.tile.row_blocks * pool.tile.column_blocks,
                 pool.tile.floats);
        return TANDEM_OK;
    }
    int64_t size = 1;
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++)
        size *= min64(pool.window.axis[i].kernel, pool.window.axis[i].in);
    pool_run(work->device->pool, work->op->id, rows_pool, &pool, rows,
             pool.window.axis[0].out * size);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_pool = {.run = pool_operator_run};
