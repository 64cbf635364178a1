/* SPDX-License-Identifier: Apache-2.0 */
/* Sums up the windows of a convolution directly.  A task computes a block of an
 * output plane (window_tile.h).  Runs on the caller's thread and on the thread
 * pool. */
#include "config.h"

#include "cpu/conv/conv.h"
#include "cpu/kernels/elementwise.h"
#include "cpu/kernels/window_tile.h"

struct direct_job {
    const struct conv *conv;
    struct window_tile tile;
    bool writes_out; /* the outputs of a plane are contiguous */
};

/* A block of an output plane. */
struct direct_block {
    int64_t image, channel, z;
    int64_t row, column; /* first output */
    int64_t rows, columns;
    /* The sums of n outputs, whose rows are tile.pitch apart.  `start` is the
     * argument of weighted_sum for the next tile. */
    int64_t n;
    const float *start;
    float sums[TILE_FLOATS], tile[TILE_FLOATS];
};

/* Adds the taps that read one tile, for one input channel and one tap along the
 * outermost axis, whose input plane and weights are given. */
static void tile_sum(const struct direct_job *job, struct direct_block *block,
                     const struct tile_position *position, const float *plane,
                     const float *weight)
{
    const struct conv_problem *problem = &job->conv->problem;
    const struct window_axis *axes = problem->window.axis;
    const struct window_tile *tile = &job->tile;
    int64_t rows = min64(tile->rows.taps, axes[1].kernel - position->row_tap);
    int64_t columns =
        min64(tile->columns.taps, axes[0].kernel - position->column_tap);
    const float *x[TILE_TAPS];
    float w[TILE_TAPS];
    int64_t taps = 0;
    weight += position->row_tap * problem->weight_tap[1] +
              position->column_tap * problem->weight_tap[0];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            x[taps] =
                block->tile + tile->tap_offset[i * tile->columns.taps + j];
            w[taps++] =
                weight[i * problem->weight_tap[1] + j * problem->weight_tap[0]];
        }
    window_tile_fill(tile, position, job->conv->kernels, plane, problem->x.axis,
                     0, block->tile);
    job->conv->kernels->weighted_sum(block->sums, block->start, x, w, taps,
                                     block->n);
    block->start = NULL;
}

/* Sums up the windows of a block. */
static void block_sum(const struct direct_job *job, struct direct_block *block)
{
    const struct conv_problem *problem = &job->conv->problem;
    const struct window_axis *axes = problem->window.axis;
    int64_t group = block->channel / problem->rows;
    const float *weight = job->conv->weight + group * problem->weight_group +
                          block->channel % problem->rows * problem->weight_row;
    const float *image = job->conv->x + block->image * problem->x.batch +
                         group * problem->channels * problem->x.channel;
    for (int64_t c = 0; c < problem->channels; c++)
        for (int64_t k = 0; k < axes[2].kernel; k++) {
            struct tile_position at = {block->row, block->column, 0, 0};
            int64_t z = conv_input_position(&axes[2], false, block->z, k);
            if (z < 0)
                continue;
            const float *plane =
                image + c * problem->x.channel + z * problem->x.axis[2];
            const float *taps = weight + c * problem->weight_channel +
                                k * problem->weight_tap[2];
            for (; at.row_tap < axes[1].kernel;
                 at.row_tap += job->tile.rows.taps)
                for (at.column_tap = 0; at.column_tap < axes[0].kernel;
                     at.column_tap += job->tile.columns.taps)
                    tile_sum(job, block, &at, plane, taps);
        }
    /* Without input channels, the sums are the bias. */
    if (block->start != NULL)
        job->conv->kernels->weighted_sum(block->sums, block->start, NULL, NULL,
                                         0, block->n);
}

/* Computes a block and stores it.  The outputs of a block follow one another,
 * because it has either one row or all columns. */
static void block_run(const struct direct_job *job, struct direct_block *block)
{
    const struct conv *conv = job->conv;
    const struct conv_strides *out = &conv->problem.out;
    const int64_t *lengths = conv->out_lengths;
    const float zero = 0;
    float *channel =
        conv->out + block->image * out->batch + block->channel * out->channel;
    int64_t n = block->rows * block->columns;
    int64_t first =
        (block->z * lengths[1] + block->row) * lengths[0] + block->column;
    float *to = job->writes_out ? channel + first : block->sums;
    block->n = (block->rows - 1) * job->tile.pitch + block->columns;
    block->start =
        conv->bias == NULL
            ? &zero
            : conv->bias + block->channel * conv->problem.bias_stride;
    block_sum(job, block);
    conv->kernels->copy_rows(to, block->columns, block->sums, job->tile.pitch,
                             block->rows, block->columns);
    conv_epilogue(conv, to, block->image, block->channel, first, n,
                  block->tile);
    if (!job->writes_out)
        conv_copy(conv, CONV_SCATTER, to, channel, out, first, n);
}

/* Thread-pool function.  Each task computes a block. */
static void blocks_run(const void *context, int64_t first, int64_t end)
{
    const struct direct_job *job = context;
    const struct window_tile *tile = &job->tile;
    const int64_t *lengths = job->conv->out_lengths;
    int64_t channels = job->conv->problem.groups * job->conv->problem.rows;
    struct direct_block block;
    for (int64_t task = first; task < end; task++) {
        int64_t rest = task / tile->column_blocks;
        block.column = task % tile->column_blocks * tile->columns.outputs;
        block.row = rest % tile->row_blocks * tile->rows.outputs;
        rest /= tile->row_blocks;
        block.z = rest % lengths[2];
        rest /= lengths[2];
        block.channel = rest % channels;
        block.image = rest / channels;
        block.rows = min64(tile->rows.outputs, lengths[1] - block.row);
        block.columns = min64(tile->columns.outputs, lengths[0] - block.column);
        block_run(job, &block);
    }
}

void conv_direct_run(const struct conv *conv)
{
    const struct conv_problem *problem = &conv->problem;
    const struct conv_strides *out = &problem->out;
    struct direct_job job = {.conv = conv,
                             .writes_out =
                                 out->axis[0] == 1 &&
                                 conv_strides_are_flat(out, conv->out_lengths)};
    window_tile_init(&job.tile, problem->window.axis);
    int64_t planes =
        problem->batch * problem->groups * problem->rows * conv->out_lengths[2];
    pool_run(conv->pool, conv->op, blocks_run, &job,
             planes * job.tile.row_blocks * job.tile.column_blocks,
             job.tile.rows.outputs * job.tile.columns.outputs *
                 (problem->depth + 1));
}
