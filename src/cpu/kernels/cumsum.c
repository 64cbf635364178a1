/* SPDX-License-Identifier: Apache-2.0 */
/* Cumulative sums, with running totals in f64.  Works row by row.  If another
 * axis than the summed one is contiguous, works on blocks of columns.  Runs on
 * the caller's thread and on the thread pool. */
#include "config.h"

#include "cpu/kernels/reduction.h"

/* Columns per block: enough for whole cache lines, few enough for many tasks.
 */
#define BLOCK_COLUMNS 128

struct cumsum {
    const struct iteration_space *kept;
    const float *in;
    float *out;
    int64_t n, in_step, out_step;
    bool exclusive;
    int64_t blocks; /* blocks of columns per row of the kept space */
};

static void row_scan(const struct cumsum *cumsum, const float *x, float *y)
{
    double total = 0;
    for (int64_t i = 0; i < cumsum->n; i++) {
        double before = total;
        total += x[i * cumsum->in_step];
        y[i * cumsum->out_step] = (float)(cumsum->exclusive ? before : total);
    }
}

/* Processes `width` neighbouring columns. */
static void columns_scan(const struct cumsum *cumsum, const float *x, float *y,
                         int64_t width)
{
    double totals[BLOCK_COLUMNS] = {0};
    for (int64_t i = 0; i < cumsum->n; i++) {
        const float *in = x + i * cumsum->in_step;
        float *out = y + i * cumsum->out_step;
        for (int64_t j = 0; j < width; j++) {
            double before = totals[j];
            totals[j] += in[j];
            out[j] = (float)(cumsum->exclusive ? before : totals[j]);
        }
    }
}

static void blocks_run(const void *context, int64_t first, int64_t end)
{
    const struct cumsum *cumsum = context;
    for (int64_t task = first; task < end; task++) {
        struct cursor cursor;
        int64_t width = columns_seek(&cursor, cumsum->kept, task,
                                     cumsum->blocks, BLOCK_COLUMNS);
        columns_scan(cumsum, cumsum->in + cursor.offsets[1],
                     cumsum->out + cursor.offsets[0], width);
    }
}

static void rows_run(const void *context, int64_t first, int64_t end)
{
    const struct cumsum *cumsum = context;
    struct cursor cursor;
    cursor_seek(&cursor, cumsum->kept, first);
    for (int64_t i = first; i < end; i++) {
        row_scan(cumsum, cumsum->in + cursor.offsets[1],
                 cumsum->out + cursor.offsets[0]);
        cursor_move(&cursor, cumsum->kept, cumsum->kept->rank - 1, 1);
    }
}

static enum tandem_status cumsum_run(const struct work *work)
{
    struct reduction_spaces spaces;
    space_along_axis(&spaces, work->inputs[0], work->outputs[0],
                     work->op->ints[0]);
    const struct iteration_space *kept = &spaces.kept;
    struct cumsum cumsum = {.kept = kept,
                            .in = tensor_data(work->inputs[0]),
                            .out = tensor_data(work->outputs[0]),
                            .n = spaces.reduced.elements,
                            .in_step = spaces.reduced.strides[0][0],
                            .out_step = spaces.reduced.strides[1][0],
                            .exclusive = work->op->ints[1] != 0};
    if (kept->elements == 0 || cumsum.n == 0)
        return TANDEM_OK;
    if (work->op->ints[2] != 0) {
        cumsum.in += (cumsum.n - 1) * cumsum.in_step;
        cumsum.out += (cumsum.n - 1) * cumsum.out_step;
        cumsum.in_step = -cumsum.in_step;
        cumsum.out_step = -cumsum.out_step;
    }
    int64_t extent = kept->shape[kept->rank - 1];
    if (!column_reduce_supports(&spaces) ||
        kept->strides[0][kept->rank - 1] != 1) {
        pool_run(work->device->pool, work->op->id, rows_run, &cumsum,
                 kept->elements, cumsum.n);
        return TANDEM_OK;
    }
    cumsum.blocks = ceil_div(extent, BLOCK_COLUMNS);
    pool_run(work->device->pool, work->op->id + POOL_VARIANT, blocks_run,
             &cumsum, kept->elements / extent * cumsum.blocks,
             cumsum.n * ceil_div(extent, cumsum.blocks));
    return TANDEM_OK;
}

const struct cpu_class cpu_class_cumsum = {.run = cumsum_run};
