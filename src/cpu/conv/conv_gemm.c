/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions as products of matrices (op_conv.h).  A task computes a block of
 * the output: some channels of a group, and some elements of the spatial axes.
 * It first copies the patches of the block, unless every window is one element
 * and the input can be read as a matrix.  Runs on the caller's thread and on
 * the thread pool. */
#include "config.h"

#include <limits.h>
#include <string.h>

#include "cpu/gemm/blas_guard.h"
#include "cpu/gemm/blas_multiply.h"
#include "cpu/conv/conv.h"
#include "cpu/kernels/elementwise.h"
#include "cpu/threads/slots.h"

/* Target size of the patches of a block, in floats, so that they stay in the
 * cache, and limits of the number of columns. */
#define PATCH_FLOATS 131072
#define MIN_COLUMNS 32
#define MAX_COLUMNS 2048
#define COLUMN_MULTIPLE 16
/* Blocks have at least this many output channels, or all. */
#define MIN_ROWS 32

/* A block of the output. */
struct conv_block {
    int64_t image, group, row, rows, column, columns;
};

/* ---- patches ------------------------------------------------------------ */

/* Writes the elements that tap `tap` along the innermost axis reads for the
 * outputs first to first + n - 1 of a line.  A NULL line is padding. */
static void line_fill(const struct conv *conv, const float *line, int64_t tap,
                      int64_t first, int64_t n, float *to)
{
    const struct conv_problem *problem = &conv->problem;
    const struct window_axis *axis = &problem->window.axis[0];
    int64_t step = problem->x.axis[0];
    int64_t shift = tap * axis->dilation - axis->begin;
    int64_t begin = window_first(shift, axis->stride);
    int64_t end = window_end(shift, axis->stride, axis->out, axis->in);
    if (line == NULL) {
        memset(to, 0, (size_t)n * sizeof *to);
        return;
    }
    if (problem->is_transposed) {
        for (int64_t i = 0; i < n; i++) {
            int64_t at = conv_input_position(axis, true, first + i, tap);
            to[i] = at < 0 ? 0 : line[at * step];
        }
        return;
    }
    begin = min64(max64(begin - first, 0), n);
    end = max64(min64(end - first, n), begin);
    memset(to, 0, (size_t)begin * sizeof *to);
    if (end > begin)
        elements_copy(to + begin, 1,
                      line + ((first + begin) * axis->stride + shift) * step,
                      axis->stride * step, end - begin, sizeof *to);
    memset(to + end, 0, (size_t)(n - end) * sizeof *to);
}

/* Writes a row of the patches: a tap of an input channel. */
static void patch_row_fill(const struct conv *conv, const float *channel,
                           const int64_t tap[MAX_SPATIAL_AXES], int64_t first,
                           int64_t n, float *to)
{
    const struct conv_problem *problem = &conv->problem;
    const struct window_axis *axes = problem->window.axis;
    while (n > 0) {
        int64_t x = first % axes[0].out, line = first / axes[0].out;
        int64_t count = min64(n, axes[0].out - x);
        int64_t y = conv_input_position(&axes[1], problem->is_transposed,
                                        line % axes[1].out, tap[1]);
        int64_t z = conv_input_position(&axes[2], problem->is_transposed,
                                        line / axes[1].out, tap[2]);
        const float *from = y < 0 || z < 0 ? NULL
                                           : channel + y * problem->x.axis[1] +
                                                 z * problem->x.axis[2];
        line_fill(conv, from, tap[0], x, count, to);
        first += count;
        to += count;
        n -= count;
    }
}

static void patches_fill(const struct conv *conv,
                         const struct conv_block *block, float *patches)
{
    const struct conv_problem *problem = &conv->problem;
    const struct window_axis *axes = problem->window.axis;
    const float *channel =
        conv->x + block->image * problem->x.batch +
        block->group * problem->channels * problem->x.channel;
    for (int64_t c = 0; c < problem->channels; c++) {
        for (int64_t i = 0; i < problem->taps; i++) {
            int64_t line = i / axes[0].kernel;
            int64_t tap[] = {i % axes[0].kernel, line % axes[1].kernel,
                             line / axes[1].kernel};
            patch_row_fill(conv, channel, tap, block->column, block->columns,
                           patches);
            patches += block->columns;
        }
        channel += problem->x.channel;
    }
}

/* ---- blocks ------------------------------------------------------------- */

static float *out_channel(const struct conv *conv, int64_t image,
                          int64_t channel)
{
    return conv->out + image * conv->problem.out.batch +
           channel * conv->problem.out.channel;
}

/* Stores the rows of a block that is not written in place. */
static void block_store(const struct conv_job *job,
                        const struct conv_block *block, const float *c)
{
    const struct conv *conv = job->conv;
    const struct conv_strides *out = &conv->problem.out;
    int64_t channel = block->group * conv->problem.rows + block->row;
    float *to = out_channel(conv, block->image, channel);
    if (out->channel == 1 && conv_strides_are_flat(out, conv->out_lengths)) {
        conv->kernels->transpose4(
            (uint32_t *)(void *)(to + block->column * out->axis[0]),
            out->axis[0], (const uint32_t *)(const void *)c, block->columns,
            block->rows, block->columns);
        return;
    }
    for (int64_t i = 0; i < block->rows; i++)
        conv_copy(conv, CONV_SCATTER,
                  (float *)(uintptr_t)(c + i * block->columns),
                  to + i * out->channel, out, block->column, block->columns);
}

static void block_run(const struct conv_job *job,
                      const struct conv_block *block, float *patches)
{
    const struct conv *conv = job->conv;
    const struct conv_problem *problem = &conv->problem;
    float *c = patches + job->patch_floats, *space = c + job->block_floats;
    int64_t channel = block->group * problem->rows + block->row;
    struct blas_product product = {.rows = block->rows,
                                   .columns = block->columns,
                                   .depth = problem->depth,
                                   .alpha = 1,
                                   .a = job->weight +
                                        block->group * job->weight_group +
                                        block->row * job->weight_ld,
                                   .a_ld = job->weight_ld,
                                   .b = patches,
                                   .b_ld = block->columns,
                                   .c = c,
                                   .c_ld = block->columns};
    if (job->reads_x) {
        product.tb = job->x_is_transposed;
        product.b = conv->x + block->image * problem->x.batch +
                    block->group * problem->channels * problem->x.channel +
                    block->column * problem->x.axis[0];
        product.b_ld = product.tb ? problem->x.axis[0] : problem->x.channel;
    } else {
        patches_fill(conv, block, patches);
    }
    if (job->writes_out) {
        product.c = out_channel(conv, block->image, channel) + block->column;
        product.c_ld = problem->out.channel;
    }
    if (block->rows == 1)
        product.c_ld = block->columns;
    blas_multiply(&product);
    for (int64_t i = 0; i < block->rows; i++) {
        float *row = product.c + i * product.c_ld;
        conv_bias_add(conv, row, channel + i, block->columns);
        conv_epilogue(conv, row, block->image, channel + i, block->column,
                      block->columns, space);
    }
    if (!job->writes_out)
        block_store(job, block, c);
}

/* Thread-pool function.  Each task computes a block. */
static void blocks_run(const void *context, int64_t first, int64_t end)
{
    const struct conv_job *job = context;
    const struct conv_problem *problem = &job->conv->problem;
    int64_t slot = slot_take(job->slot_taken, job->threads);
    for (int64_t task = first; task < end; task++) {
        int64_t rest = task / job->row_blocks;
        struct conv_block block = {.row = task % job->row_blocks * job->rows,
                                   .column = rest % job->column_blocks *
                                             job->columns};
        rest /= job->column_blocks;
        block.group = rest % problem->groups;
        block.image = rest / problem->groups;
        block.rows = min64(job->rows, problem->rows - block.row);
        block.columns = min64(job->columns, problem->columns - block.column);
        block_run(job, &block, job->slots + slot * job->slot_floats);
    }
    slot_return(job->slot_taken, slot);
}

/* ---- preparation -------------------------------------------------------- */

static void input_layout_choose(struct conv_job *job)
{
    const struct conv_problem *problem = &job->conv->problem;
    const struct conv_strides *x = &problem->x;
    if (!conv_windows_are_elements(problem) ||
        !conv_strides_are_flat(x, job->conv->out_lengths))
        return;
    job->x_is_transposed = x->channel == 1 && x->axis[0] != 1;
    if (job->x_is_transposed)
        job->reads_x = x->axis[0] >= problem->channels && x->axis[0] <= INT_MAX;
    else
        job->reads_x = x->axis[0] == 1 && x->channel >= problem->columns &&
                       x->channel <= INT_MAX;
}

static void block_size_choose(struct conv_job *job)
{
    const struct conv_problem *problem = &job->conv->problem;
    int64_t columns = PATCH_FLOATS / problem->depth;
    columns = columns / COLUMN_MULTIPLE * COLUMN_MULTIPLE;
    columns = min64(max64(columns, MIN_COLUMNS), MAX_COLUMNS);
    job->columns = min64(columns, problem->columns);
    job->column_blocks = ceil_div(problem->columns, job->columns);
    /* Blocks of equal width. */
    job->columns = ceil_div(problem->columns, job->column_blocks);
    int64_t blocks = problem->batch * problem->groups * job->column_blocks;
    int64_t parts = max64(ceil_div(2 * job->threads, blocks), 1);
    job->rows = max64(ceil_div(problem->rows, parts), MIN_ROWS);
    job->rows = min64(job->rows, problem->rows);
    job->row_blocks = ceil_div(problem->rows, job->rows);
}

/* Returns true if the elements of a row of the weight follow one another. */
static bool weight_rows_are_contiguous(const struct conv_problem *problem)
{
    int64_t step = 1;
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++) {
        int64_t length = problem->window.axis[i].kernel;
        if (length > 1 && problem->weight_tap[i] != step)
            return false;
        step *= length;
    }
    return (problem->channels == 1 || problem->weight_channel == step) &&
           (problem->rows == 1 || (problem->weight_row >= problem->depth &&
                                   problem->weight_row <= INT_MAX));
}

struct weight_copy {
    const struct conv_problem *problem;
    const float *from;
    float *to;
};

/* Thread-pool function.  Each task copies one row of the weight. */
static void weight_rows_copy(const void *context, int64_t first, int64_t end)
{
    const struct weight_copy *copy = context;
    const struct conv_problem *problem = copy->problem;
    const struct window_axis *axes = problem->window.axis;
    for (int64_t row = first; row < end; row++) {
        const float *from = copy->from +
                            row / problem->rows * problem->weight_group +
                            row % problem->rows * problem->weight_row;
        float *to = copy->to + row * problem->depth;
        for (int64_t c = 0; c < problem->channels; c++)
            for (int64_t z = 0; z < axes[2].kernel; z++)
                for (int64_t y = 0; y < axes[1].kernel; y++) {
                    elements_copy(to, 1,
                                  from + c * problem->weight_channel +
                                      z * problem->weight_tap[2] +
                                      y * problem->weight_tap[1],
                                  problem->weight_tap[0], axes[0].kernel,
                                  sizeof *to);
                    to += axes[0].kernel;
                }
    }
}

uint64_t conv_gemm_prepare(struct conv_job *job, const struct conv *conv)
{
    const struct conv_problem *problem = &conv->problem;
    *job = (struct conv_job){
        .conv = conv,
        .threads = min64(pool_threads(conv->pool), MAX_BLAS_THREADS),
        .weight = conv->weight,
        .weight_ld = problem->rows == 1 ? problem->depth : problem->weight_row,
        .weight_group = problem->weight_group};
    input_layout_choose(job);
    block_size_choose(job);
    job->writes_out =
        problem->out.axis[0] == 1 &&
        conv_strides_are_flat(&problem->out, conv->out_lengths) &&
        (problem->rows == 1 || (problem->out.channel >= problem->columns &&
                                problem->out.channel <= INT_MAX));
    if (!job->reads_x)
        job->patch_floats = round_to_lines(problem->depth * job->columns);
    if (!job->writes_out)
        job->block_floats = round_to_lines(job->rows * job->columns);
    job->slot_floats =
        job->patch_floats + job->block_floats + round_to_lines(job->columns);
    if (!weight_rows_are_contiguous(problem))
        job->weight_floats =
            round_to_lines(problem->groups * problem->rows * problem->depth);
    return sizeof(float) *
           (uint64_t)(job->weight_floats + job->threads * job->slot_floats);
}

void conv_gemm_run(struct conv_job *job, void *workspace)
{
    const struct conv *conv = job->conv;
    const struct conv_problem *problem = &conv->problem;
    atomic_uchar slot_taken[MAX_BLAS_THREADS] = {0};
    job->slots = (float *)workspace + job->weight_floats;
    job->slot_taken = slot_taken;
    if (job->weight_floats > 0) {
        const struct weight_copy copy = {problem, conv->weight, workspace};
        pool_run(conv->pool, conv->op + POOL_VARIANT, weight_rows_copy, &copy,
                 problem->groups * problem->rows, problem->depth);
        job->weight = workspace;
        job->weight_ld = problem->depth;
        job->weight_group = problem->rows * problem->depth;
    }
    bool limited = blas_limit();
    pool_run(conv->pool, conv->op, blocks_run, job,
             problem->batch * problem->groups * job->column_blocks *
                 job->row_blocks,
             job->rows * job->columns * (problem->depth + 1));
    if (limited)
        blas_release();
}
