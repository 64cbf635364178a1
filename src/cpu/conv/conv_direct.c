/* SPDX-License-Identifier: Apache-2.0 */
/* Sums up the windows of a convolution directly.  A task computes a block of
 * the outputs of some channels of a group.  It copies the elements that the
 * windows read to tiles (window_tile.h), in which each tap of an input channel
 * is a row of the matrix of patches (op_conv.h).  Runs on the caller's thread
 * and on the thread pool. */
#include "config.h"

#include "cpu/conv/conv.h"
#include "cpu/kernels/elementwise.h"
#include "cpu/threads/slots.h"

/* Maximum number of products that are added before the sum is stored, unless
 * one input channel has more.  The tiles and weights then fit the L1 cache, and
 * rounding errors do not add up over many terms. */
#define TERMS 256
/* Blocks have at least this many output channels, or all. */
#define MIN_ROWS 32
/* Target size of the sums of a block, and of its tiles, which stay in the L2
 * cache. */
#define BLOCK_FLOATS 131072
/* Limits of the size of a tile, and of the outputs of a block in one channel.
 * The largest ones stay in the L1 cache. */
#define MIN_PLANE_FLOATS 1024
#define MAX_PLANE_FLOATS 4096
/* A plane is divided among threads if each part has at least this many outputs.
 */
#define MIN_OUTPUTS 192
/* If input channels are a multiple of PAGE_FLOATS apart, they share few sets of
 * the caches.  Copying them to tiles is faster if more than MAX_PAGE_ROWS
 * output channels read them. */
#define PAGE_FLOATS 1024
#define MAX_PAGE_ROWS 16

/* A block of the output. */
struct direct_block {
    int64_t image, group, z;
    int64_t channel, channels; /* of the group */
    int64_t row, rows, column, columns;
    /* The rows of the sums are tile.pitch apart, and the channels
     * job.sums_stride. */
    struct weighted_sums sums;
    float *tiles, *weights;
};

/* Input channels and taps of a call of weighted_sums. */
struct term_range {
    int64_t channels;
    struct tile_position position; /* first taps */
    int64_t row_taps, column_taps;
    const float *input;  /* first input channel at the tap along axis 2 */
    const float *weight; /* weight of the first term */
};

/* Copies the weights of a block to contiguous rows. */
static void weights_copy(const struct conv_problem *problem,
                         const struct term_range *range, int64_t rows,
                         float *to)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < range->channels; c++)
            for (int64_t i = 0; i < range->row_taps; i++)
                for (int64_t j = 0; j < range->column_taps; j++)
                    *to++ = range->weight[r * problem->weight_row +
                                          c * problem->weight_channel +
                                          i * problem->weight_tap[1] +
                                          j * problem->weight_tap[0]];
}

/* Adds the terms of a range to the sums of a block. */
static void terms_add(const struct direct_job *job, struct direct_block *block,
                      const struct term_range *range)
{
    const struct conv_problem *problem = &job->conv->problem;
    const struct window_tile *tile = &job->tile;
    struct weighted_sums *sums = &block->sums;
    const float *x[TERMS];
    int64_t terms = 0;
    for (int64_t c = 0; c < range->channels; c++) {
        const float *input = range->input + c * problem->x.channel;
        float *to = block->tiles + c * job->tile_stride;
        if (job->reads_x) {
            x[terms++] = input + block->column;
            continue;
        }
        window_tile_fill(tile, &range->position, job->conv->kernels, input,
                         problem->x.axis, 0, to);
        for (int64_t i = 0; i < range->row_taps; i++)
            for (int64_t j = 0; j < range->column_taps; j++)
                x[terms++] = to + tile->tap_offset[i * tile->columns.taps + j];
    }
    sums->x = x;
    sums->terms = terms;
    sums->w = range->weight;
    sums->w_stride = problem->weight_row;
    if (!job->reads_weight) {
        weights_copy(problem, range, sums->rows, block->weights);
        sums->w = block->weights;
        sums->w_stride = terms;
    }
    job->conv->kernels->weighted_sums(sums);
    sums->start = NULL;
}

/* Adds all input channels and taps at tap `k` along the outermost axis, which
 * is at position `z` of the input. */
static void plane_add(const struct direct_job *job, struct direct_block *block,
                      int64_t k, int64_t z)
{
    const struct conv_problem *problem = &job->conv->problem;
    const struct tile_axis *rows = &job->tile.rows;
    const struct tile_axis *columns = &job->tile.columns;
    const float *image =
        job->conv->x + block->image * problem->x.batch + z * problem->x.axis[2];
    const float *weight =
        job->conv->weight + block->group * problem->weight_group +
        block->channel * problem->weight_row + k * problem->weight_tap[2];
    for (int64_t i = 0; i < rows->window->kernel; i += rows->taps)
        for (int64_t j = 0; j < columns->window->kernel; j += columns->taps)
            for (int64_t c = 0; c < problem->channels; c += job->channels) {
                struct term_range range = {
                    .channels = min64(job->channels, problem->channels - c),
                    .position = {block->row, block->column, i, j},
                    .row_taps = min64(rows->taps, rows->window->kernel - i),
                    .column_taps =
                        min64(columns->taps, columns->window->kernel - j),
                    .input = image + (block->group * problem->channels + c) *
                                         problem->x.channel,
                    .weight = weight + c * problem->weight_channel +
                              i * problem->weight_tap[1] +
                              j * problem->weight_tap[0]};
                terms_add(job, block, &range);
            }
}

/* Returns the position of the first output of a block in the spatial axes. */
static int64_t block_first(const struct direct_job *job,
                           const struct direct_block *block)
{
    return (block->z * job->axes[1].out + block->row) * job->axes[0].out +
           block->column;
}

/* Stores the sums of a block.  The outputs of a channel follow one another,
 * because the block has either one row or all columns. */
static void block_store(const struct direct_job *job,
                        const struct direct_block *block)
{
    const struct conv *conv = job->conv;
    const struct conv_strides *out = &conv->problem.out;
    int64_t n = block->rows * block->columns;
    int64_t first = block_first(job, block);
    for (int64_t i = 0; i < block->channels; i++) {
        int64_t channel =
            block->group * conv->problem.rows + block->channel + i;
        float *plane =
            conv->out + block->image * out->batch + channel * out->channel;
        float *sums = block->sums.y + i * block->sums.y_stride;
        float *to = job->writes_out ? plane + first : sums;
        if (!job->sums_in_out)
            conv->kernels->copy_rows(to, block->columns, sums, job->tile.pitch,
                                     block->rows, block->columns);
        conv_epilogue(conv, to, block->image, channel, first, n, block->tiles);
        if (!job->writes_out)
            conv_copy(conv, CONV_SCATTER, to, plane, out, first, n);
    }
}

static void block_run(const struct direct_job *job, struct direct_block *block)
{
    const struct conv *conv = job->conv;
    const struct conv_problem *problem = &conv->problem;
    const struct window_axis *axis = &job->axes[2];
    const float zero = 0;
    struct weighted_sums *sums = &block->sums;
    sums->rows = block->channels;
    sums->n = (block->rows - 1) * job->tile.pitch + block->columns;
    if (job->sums_in_out)
        sums->y = conv->out + block->image * problem->out.batch +
                  (block->group * problem->rows + block->channel) *
                      problem->out.channel +
                  block_first(job, block);
    sums->start = &zero;
    sums->start_stride = 0;
    if (conv->bias != NULL) {
        sums->start_stride = problem->bias_stride;
        sums->start =
            conv->bias + (block->group * problem->rows + block->channel) *
                             problem->bias_stride;
    }
    for (int64_t k = 0; k < axis->kernel; k++) {
        int64_t z = conv_input_position(axis, false, block->z, k);
        if (z >= 0)
            plane_add(job, block, k, z);
    }
    if (sums->start != NULL) { /* no terms */
        sums->terms = 0;
        conv->kernels->weighted_sums(sums);
    }
    block_store(job, block);
}

/* Thread-pool function.  Each task computes a block. */
static void blocks_run(const void *context, int64_t first, int64_t end)
{
    const struct direct_job *job = context;
    const struct conv_problem *problem = &job->conv->problem;
    const struct window_tile *tile = &job->tile;
    const struct window_axis *axes = job->axes;
    int64_t slot = slot_take(job->slot_taken, job->threads);
    struct direct_block block = {
        .sums = {.y = job->slots + slot * job->slot_floats,
                 .y_stride = job->sums_stride}};
    block.tiles = block.sums.y + job->sums_floats;
    block.weights = block.tiles + job->tiles_floats;
    for (int64_t task = first; task < end; task++) {
        int64_t rest = task;
        block.channel = rest % job->row_blocks * job->rows;
        rest /= job->row_blocks;
        block.column = rest % tile->column_blocks * tile->columns.outputs;
        rest /= tile->column_blocks;
        block.row = rest % tile->row_blocks * tile->rows.outputs;
        rest /= tile->row_blocks;
        block.z = rest % axes[2].out;
        rest /= axes[2].out;
        block.group = rest % problem->groups;
        block.image = rest / problem->groups;
        block.channels = min64(job->rows, problem->rows - block.channel);
        block.rows = min64(tile->rows.outputs, axes[1].out - block.row);
        block.columns =
            min64(tile->columns.outputs, axes[0].out - block.column);
        block_run(job, &block);
    }
    slot_return(job->slot_taken, slot);
}

/* Returns true if the terms of a row of the weight follow one another. */
static bool terms_are_contiguous(const struct direct_job *job)
{
    const struct conv_problem *problem = &job->conv->problem;
    const struct window_axis *axes = job->axes;
    const struct window_tile *tile = &job->tile;
    int64_t columns = axes[0].kernel, rows = axes[1].kernel;
    return axes[2].kernel == 1 && tile->rows.taps == rows &&
           tile->columns.taps == columns &&
           (columns == 1 || problem->weight_tap[0] == 1) &&
           (rows == 1 || problem->weight_tap[1] == columns) &&
           (problem->channels == 1 ||
            problem->weight_channel == rows * columns);
}

/* Chooses blocks whose tiles and sums fit the caches.  Divides large planes so
 * that each thread gets two blocks. */
static void tile_choose(struct direct_job *job)
{
    const struct conv_problem *problem = &job->conv->problem;
    const struct window_axis *axes = job->axes;
    int64_t planes = problem->batch * problem->groups * axes[2].out;
    int64_t taps = axes[0].kernel * axes[1].kernel;
    int64_t channels = min64(max64(TERMS / taps, 1), problem->channels);
    int64_t floats = BLOCK_FLOATS / max64(channels, 1);
    int64_t outputs = BLOCK_FLOATS / problem->rows;
    int64_t blocks = min64(ceil_div(2 * job->threads, planes),
                           axes[0].out * axes[1].out / MIN_OUTPUTS);
    window_tile_init(&job->tile, axes,
                     min64(max64(floats, MIN_PLANE_FLOATS), MAX_PLANE_FLOATS),
                     min64(max64(outputs, MIN_PLANE_FLOATS), MAX_PLANE_FLOATS),
                     max64(blocks, 1));
}

/* Chooses the output channels of a block: equal parts of a group, and smaller
 * ones if the threads would not get two blocks each otherwise. */
static void rows_choose(struct direct_job *job)
{
    const struct conv_problem *problem = &job->conv->problem;
    int64_t blocks = problem->batch * problem->groups * job->axes[2].out *
                     job->tile.row_blocks * job->tile.column_blocks;
    int64_t max_rows = max64(
        BLOCK_FLOATS / (job->tile.rows.outputs * job->tile.pitch), MIN_ROWS);
    int64_t parts = max64(ceil_div(2 * job->threads, blocks),
                          ceil_div(problem->rows, max_rows));
    int64_t rows = max64(ceil_div(problem->rows, parts), MIN_ROWS);
    job->rows = min64(ceil_div(rows, 8) * 8, problem->rows);
    job->row_blocks = ceil_div(problem->rows, job->rows);
}

/* If every window is one element at the position of the output, and the spatial
 * axes can be merged, treats them as one axis.  The sums then read the input in
 * place. */
static void axes_choose(struct direct_job *job)
{
    const struct conv_problem *problem = &job->conv->problem;
    const struct window_axis one = {
        .in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++)
        job->axes[i] = problem->window.axis[i];
    if (!conv_windows_are_elements(problem) ||
        !conv_strides_are_flat(&problem->x, job->conv->out_lengths))
        return;
    job->axes[0].in = job->axes[0].out = problem->columns;
    job->axes[1] = job->axes[2] = one;
    job->reads_x =
        problem->x.axis[0] == 1 && (problem->rows <= MAX_PAGE_ROWS ||
                                    problem->x.channel % PAGE_FLOATS != 0);
}

uint64_t conv_direct_prepare(struct direct_job *job, const struct conv *conv)
{
    const struct conv_problem *problem = &conv->problem;
    const struct conv_strides *out = &problem->out;
    *job = (struct direct_job){
        .conv = conv,
        .threads = min64(pool_threads(conv->pool), MAX_SLOTS),
        .writes_out =
            out->axis[0] == 1 && conv_strides_are_flat(out, conv->out_lengths)};
    struct window_tile *tile = &job->tile;
    axes_choose(job);
    tile_choose(job);
    rows_choose(job);
    int64_t taps = tile->rows.taps * tile->columns.taps;
    job->channels = min64(max64(TERMS / taps, 1), max64(problem->channels, 1));
    job->reads_weight = terms_are_contiguous(job);
    job->sums_stride = round_to_lines(tile->rows.outputs * tile->pitch);
    job->sums_in_out = job->writes_out && (tile->rows.outputs == 1 ||
                                           tile->pitch == job->axes[0].out);
    if (job->sums_in_out)
        job->sums_stride = out->channel;
    else
        job->sums_floats = job->rows * job->sums_stride;
    /* An odd number of cache lines, so that tiles use all sets of the caches.
     */
    job->tile_stride = round_to_lines(tile->floats) | CACHE_LINE_FLOATS;
    job->tiles_floats = job->channels * job->tile_stride;
    job->slot_floats = job->sums_floats + job->tiles_floats;
    if (!job->reads_weight)
        job->slot_floats += round_to_lines(job->rows * job->channels * taps);
    return sizeof(float) * (uint64_t)(job->threads * job->slot_floats);
}

void conv_direct_run(struct direct_job *job, void *workspace)
{
    const struct conv *conv = job->conv;
    const struct conv_problem *problem = &conv->problem;
    const struct window_tile *tile = &job->tile;
    atomic_uchar slot_taken[MAX_SLOTS] = {0};
    job->slots = workspace;
    job->slot_taken = slot_taken;
    int64_t blocks = problem->batch * problem->groups * job->axes[2].out *
                     tile->row_blocks * tile->column_blocks * job->row_blocks;
    pool_run(conv->pool, conv->op + (problem->rows == 1 ? POOL_VARIANT : 0),
             blocks_run, job, blocks,
             job->rows * tile->rows.outputs * tile->columns.outputs *
                 (problem->depth + 1));
}
