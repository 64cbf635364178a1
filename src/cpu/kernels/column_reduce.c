/* SPDX-License-Identifier: Apache-2.0 */
/* Column reductions; see column_reduce.h.  A band is a block of columns. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "cpu/kernels/column_reduce.h"
#include "cpu/kernels/reduce.h"

/* Minimum rows of a chunk, maximum chunks of a band, and the number of
 * accumulators on the stack, which limits the chunks too. */
#define CHUNK_ROWS 512
#define CHUNKS 32
#define ACCUMULATORS (4 * COLUMNS)
/* Minimum bands per thread, if that leaves COLUMNS_LEAST columns in each. */
#define BANDS_PER_THREAD 2
#define COLUMNS_LEAST 64

struct columns {
    const struct kernels *kernels;
    struct pool *pool; /* runs the chunks of a band; NULL means one thread */
    uint32_t op;
    const struct layout_reduction *layout;
    const float *in;
    void *out;     /* f32, or i64 for arg reductions */
    int64_t width, bands; /* columns per band, bands per line of results */
    int64_t chunk, chunks; /* rows per chunk, chunks per band */
};

/* The band of columns that a thread reduces. */
struct band {
    const struct columns *columns;
    const float *start;
    int64_t width;
    bool shifted;  /* true in the second pass of log_sum_exp */
    double *sums;  /* `width` sums for each chunk */
    float *values; /* `width` products, maxima or minima for each chunk.  In the
                    * second pass of log_sum_exp, the maxima of all chunks. */
};

static double *sums_of(const struct band *band, int64_t chunk)
{
    return band->sums + chunk * band->width;
}

static float *values_of(const struct band *band, int64_t chunk)
{
    return band->values + chunk * band->width;
}

bool columns_suit(const struct layout_reduction *layout)
{
    uint32_t inner = layout->kept.rank - 1;
    return layout->kept.strides[1][inner] == 1 &&
           layout->kept.shape[inner] >= 4 &&
           layout->reduced.strides[0][layout->reduced.rank - 1] != 1 &&
           layout->reduced.elements > 1;
}

/* Returns true if this pass computes `values`, false if it computes `sums`. */
static bool computes_values(const struct band *band)
{
    uint32_t op = band->columns->op;
    return !band->shifted &&
           (op == TANDEM_OP_PROD || op == TANDEM_OP_REDUCE_MAX ||
            op == TANDEM_OP_REDUCE_MIN || op == TANDEM_OP_LOG_SUM_EXP);
}

/* Adds `rows` rows, `stride` elements apart, to the accumulators of a chunk. */
static void rows_add(const struct band *band, int64_t chunk, const float *x,
                     int64_t rows, int64_t stride)
{
    const struct kernels *kernels = band->columns->kernels;
    int64_t width = band->width;
    switch (band->columns->op) {
    case TANDEM_OP_SUM:
    case TANDEM_OP_MEAN:
        kernels->column_sum(x, rows, stride, width, sums_of(band, chunk));
        break;
    case TANDEM_OP_PROD:
        kernels->column_product(x, rows, stride, width,
                                values_of(band, chunk));
        break;
    case TANDEM_OP_REDUCE_MIN:
        kernels->column_min(x, rows, stride, width, values_of(band, chunk));
        break;
    case TANDEM_OP_REDUCE_MAX:
        kernels->column_max(x, rows, stride, width, values_of(band, chunk));
        break;
    case TANDEM_OP_LOG_SUM_EXP:
        if (band->shifted)
            kernels->column_exp(NULL, 0, x, rows, stride, width,
                                band->values, sums_of(band, chunk));
        else
            kernels->column_max(x, rows, stride, width,
                                values_of(band, chunk));
        break;
    default:
        kernels->column_sum_square(x, rows, stride, width,
                                   sums_of(band, chunk));
    }
}

static void accumulators_start(const struct band *band, int64_t chunk)
{
    uint32_t op = band->columns->op;
    float start = op == TANDEM_OP_PROD         ? 1.0f
                  : op == TANDEM_OP_REDUCE_MIN ? INFINITY
                                               : -INFINITY;
    for (int64_t i = 0; i < band->width; i++) {
        sums_of(band, chunk)[i] = 0.0;
        if (!band->shifted)
            values_of(band, chunk)[i] = start;
    }
}

static void chunks_run(const void *context, int64_t first, int64_t end)
{
    const struct band *band = context;
    const struct columns *columns = band->columns;
    const struct layout *rows = &columns->layout->reduced;
    uint32_t inner = rows->rank - 1;
    for (int64_t chunk = first; chunk < end; chunk++) {
        int64_t from = chunk * columns->chunk;
        int64_t to = rows->elements - from < columns->chunk
                         ? rows->elements
                         : from + columns->chunk;
        struct cursor cursor;
        accumulators_start(band, chunk);
        cursor_seek(&cursor, rows, from);
        for (int64_t n; from < to; from += n) {
            n = rows->shape[inner] - cursor.index[inner];
            n = n < to - from ? n : to - from;
            rows_add(band, chunk, band->start + cursor.offsets[0], n,
                     rows->strides[0][inner]);
            cursor_move(&cursor, rows, inner, n);
        }
    }
}

/* Combines the chunks' accumulators in order into those of chunk 0. */
static void chunks_join(const struct band *band)
{
    const struct columns *columns = band->columns;
    for (int64_t chunk = 1; chunk < columns->chunks; chunk++) {
        if (computes_values(band)) {
            rows_add(band, 0, values_of(band, chunk), 1, 0);
            continue;
        }
        for (int64_t i = 0; i < band->width; i++)
            band->sums[i] += sums_of(band, chunk)[i];
    }
}

static void band_pass(const struct band *band)
{
    const struct columns *columns = band->columns;
    if (columns->pool != NULL)
        pool_run(columns->pool, columns->op + POOL_VARIANT, chunks_run, band,
                 columns->chunks,
                 columns->chunk * band->width);
    else
        chunks_run(band, 0, columns->chunks);
    chunks_join(band);
}

static void band_run(const struct columns *columns, const float *start,
                     float *out, int64_t width)
{
    const struct layout_reduction *layout = columns->layout;
    double sums[ACCUMULATORS];
    float values[ACCUMULATORS];
    int64_t step = layout->kept.strides[0][layout->kept.rank - 1];
    struct band band = {columns, start, width, false, sums, values};
    band_pass(&band);
    if (columns->op == TANDEM_OP_LOG_SUM_EXP) {
        band.shifted = true;
        band_pass(&band);
    }
    for (int64_t i = 0; i < width; i++)
        out[i * step] =
            reduction_finish(columns->op, sums[i], values[i],
                             layout->reduced.elements);
}

/* Stores the argmax or argmin of each column of a band. */
static void band_find(const struct columns *columns, const float *start,
                      int64_t *out, int64_t width)
{
    const struct kernels *kernels = columns->kernels;
    const struct layout_reduction *layout = columns->layout;
    int64_t rows = layout->reduced.elements; /* arg reductions have one axis */
    int64_t stride = layout->reduced.strides[0][layout->reduced.rank - 1];
    int64_t step = layout->kept.strides[0][layout->kept.rank - 1];
    float best[COLUMNS];
    float found[COLUMNS]; /* -1 if the block of rows has no new winner */
    for (int64_t i = 0; i < width; i++) {
        best[i] = start[i];
        out[i * step] = 0;
    }
    for (int64_t done = 0; done < rows; done += FIND_ROWS) {
        int64_t block = rows - done < FIND_ROWS ? rows - done : FIND_ROWS;
        for (int64_t i = 0; i < width; i++)
            found[i] = -1;
        (columns->op == TANDEM_OP_ARGMIN
             ? kernels->column_argmin
             : kernels->column_argmax)(start + done * stride, block, stride,
                                       width, best, found);
        for (int64_t i = 0; i < width; i++)
            if (found[i] >= 0)
                out[i * step] = done + (int64_t)found[i];
    }
}

static void bands_run(const void *context, int64_t first, int64_t end)
{
    const struct columns *columns = context;
    const struct layout *kept = &columns->layout->kept;
    uint32_t inner = kept->rank - 1;
    for (int64_t task = first; task < end; task++) {
        int64_t column = task % columns->bands * columns->width;
        int64_t width = kept->shape[inner] - column < columns->width
                            ? kept->shape[inner] - column
                            : columns->width;
        struct cursor cursor;
        cursor_seek(&cursor, kept,
                    task / columns->bands * kept->shape[inner] + column);
        const float *start = columns->in + cursor.offsets[1];
        if (columns->op == TANDEM_OP_ARGMAX || columns->op == TANDEM_OP_ARGMIN)
            band_find(columns, start,
                      (int64_t *)columns->out + cursor.offsets[0], width);
        else
            band_run(columns, start, (float *)columns->out + cursor.offsets[0],
                     width);
    }
}

/* Chooses the width of the bands: a page of each row, or less if threads would
 * be idle.  The width does not affect the results. */
static void bands_cut(struct columns *columns, int64_t threads)
{
    const struct layout *kept = &columns->layout->kept;
    int64_t width = kept->shape[kept->rank - 1];
    int64_t lines = kept->elements / width;
    columns->width = COLUMNS;
    while (threads > 1 && columns->width > COLUMNS_LEAST &&
           lines * ((width + columns->width - 1) / columns->width) <
               BANDS_PER_THREAD * threads)
        columns->width /= 2;
    columns->bands = (width + columns->width - 1) / columns->width;
}

/* Chooses the chunks of rows by the shape alone and not by the number of
 * threads, because the rounding of the sums depends on the chunks. */
static void chunks_cut(struct columns *columns)
{
    const struct layout *kept = &columns->layout->kept;
    int64_t rows = columns->layout->reduced.elements;
    int64_t width = kept->shape[kept->rank - 1];
    int64_t most = width < COLUMNS ? ACCUMULATORS / width
                                   : ACCUMULATORS / COLUMNS;
    most = most < CHUNKS ? most : CHUNKS;
    columns->chunk = CHUNK_ROWS;
    if (rows > CHUNK_ROWS * most)
        columns->chunk = (rows + most - 1) / most;
    columns->chunks = (rows + columns->chunk - 1) / columns->chunk;
}

void columns_run(const struct work *work, const struct layout_reduction *layout,
                 const float *in, float *out)
{
    int64_t rows = layout->reduced.elements;
    int64_t width = layout->kept.shape[layout->kept.rank - 1];
    struct columns columns = {.kernels = work->device->kernels,
                              .op = work->op->id,
                              .layout = layout,
                              .in = in,
                              .out = out};
    int64_t threads = pool_threads(work->device->pool);
    bands_cut(&columns, threads);
    chunks_cut(&columns);
    int64_t tasks = layout->kept.elements / width * columns.bands;
    bool finds =
        columns.op == TANDEM_OP_ARGMAX || columns.op == TANDEM_OP_ARGMIN;
    if (tasks < threads && columns.chunks > 1 && !finds) {
        columns.pool = work->device->pool;
        bands_run(&columns, 0, tasks);
        return;
    }
    pool_run(work->device->pool, columns.op + POOL_VARIANT, bands_run,
             &columns, tasks,
             rows * ((width + columns.bands - 1) / columns.bands));
}
