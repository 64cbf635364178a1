/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, log-softmax, cross-entropy and the cross-entropy gradient.  Softmax
 * works row by row.  If another axis than the reduced one is contiguous,
 * softmax works on blocks of columns (bands).  Special kernels process short
 * rows.  Runs on the caller's thread and on the thread pool. */
#include "config.h"

#include <math.h>

#include "common/operator_table.h"
#include "cpu/kernels/reduction.h"

/* Target number of elements in a band of columns.  A band (512 KiB of f32) is
 * read three times and should fit into the L2 cache. */
#define BAND_ELEMENTS 131072
/* Number of elements in a block of short rows. */
#define SHORT_ROWS_ELEMENTS 4096
/* Limits of the rows that rows_log_softmax reads twice.  They should fit into
 * the L1 cache. */
#define LOG_ROWS 16
#define LOG_ELEMENTS 4096
#define TILE_ELEMENTS 4096

struct softmax {
    const struct kernels *kernels;
    bool logarithm;
    struct reduction_spaces spaces;
    const float *in;
    float *out;
    int64_t bands, width; /* number of bands; columns per band */
};

/* Returns the maximum of n elements that are `step` apart. */
static float line_max(const struct kernels *kernels, const float *x,
                      int64_t step, int64_t n)
{
    float packed[PACK_ELEMENTS], pair[2] = {-INFINITY, -INFINITY};
    if (step == 1)
        return kernels->max(x, n);
    for (int64_t done = 0; done < n; done += PACK_ELEMENTS) {
        int64_t piece = min64(n - done, PACK_ELEMENTS);
        line_pack(packed, x + done * step, step, piece);
        pair[1] = kernels->max(packed, piece);
        pair[0] = kernels->max(pair, 2);
    }
    return pair[0];
}

/* Returns the sum of e^(x - m) over `n` elements that are x_step apart.  Stores
 * each e^(x - m) in `y`, unless `y` is NULL and y_step is 0. */
static double line_exp(const struct kernels *kernels, float *y, int64_t y_step,
                       const float *x, int64_t x_step, int64_t n, float m)
{
    float packed[PACK_ELEMENTS];
    double sum = 0;
    if (y_step == 1 && x_step == 1)
        return kernels->exp_row(y, x, n, m);
    if (y == NULL && x_step == 1)
        return kernels->sum_exp(x, n, m);
    for (int64_t done = 0; done < n; done += PACK_ELEMENTS) {
        int64_t piece = min64(n - done, PACK_ELEMENTS);
        line_pack(packed, x + done * x_step, x_step, piece);
        sum += y == NULL ? kernels->sum_exp(packed, piece, m)
                         : kernels->exp_row(packed, packed, piece, m);
        for (int64_t i = 0; y != NULL && i < piece; i++)
            y[(done + i) * y_step] = packed[i];
    }
    return sum;
}

static void line_scale(const struct kernels *kernels, float *y, int64_t step,
                       int64_t n, float scale)
{
    if (step == 1) {
        kernels->scale_row(y, y, n, scale);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i * step] *= scale;
}

static void line_shift(const struct kernels *kernels, float *y, int64_t y_step,
                       const float *x, int64_t x_step, int64_t n, float m,
                       float l)
{
    if (y_step == 1 && x_step == 1) {
        kernels->shift_row(y, x, n, m, l);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i * y_step] = (x[i * x_step] - m) - l;
}

/* Computes the softmax of a row. */
static void row_softmax(const struct softmax *softmax, const float *x, float *y)
{
    const struct iteration_space *along = &softmax->spaces.reduced;
    int64_t n = along->elements;
    int64_t x_step = n > 1 ? along->strides[0][0] : 1;
    int64_t y_step = n > 1 ? along->strides[1][0] : 1;
    float m = line_max(softmax->kernels, x, x_step, n);
    double sum = line_exp(softmax->kernels, y, y_step, x, x_step, n, m);
    line_scale(softmax->kernels, y, y_step, n, (float)(1.0 / sum));
}

/* Computes the log-softmax of up to LOG_ROWS rows, whose logarithms one kernel
 * call computes.  Moves the cursor behind the last row. */
static void rows_log_softmax(const struct softmax *softmax,
                             struct cursor *cursor, int64_t rows)
{
    const struct kernels *kernels = softmax->kernels;
    const struct iteration_space *kept = &softmax->spaces.kept;
    const struct iteration_space *along = &softmax->spaces.reduced;
    int64_t n = along->elements;
    int64_t x_step = n > 1 ? along->strides[0][0] : 1;
    int64_t y_step = n > 1 ? along->strides[1][0] : 1;
    float m[LOG_ROWS], logs[LOG_ROWS];
    const struct row row = {.n = rows, .in = {logs}, .out = {logs}};
    struct cursor second = *cursor;
    for (int64_t i = 0; i < rows; i++) {
        const float *x = softmax->in + cursor->offsets[1];
        m[i] = line_max(kernels, x, x_step, n);
        logs[i] = (float)line_exp(kernels, NULL, 0, x, x_step, n, m[i]);
        cursor_move(cursor, kept, kept->rank - 1, 1);
    }
    kernels->rows[TANDEM_OP_LOG](&row);
    for (int64_t i = 0; i < rows; i++) {
        line_shift(kernels, softmax->out + second.offsets[0], y_step,
                   softmax->in + second.offsets[1], x_step, n, m[i], logs[i]);
        cursor_move(&second, kept, kept->rank - 1, 1);
    }
}

static void rows_run(const void *context, int64_t first, int64_t end)
{
    const struct softmax *softmax = context;
    const struct iteration_space *kept = &softmax->spaces.kept;
    int64_t group = LOG_ELEMENTS / softmax->spaces.reduced.elements;
    struct cursor cursor;
    group = max64(1, min64(group, LOG_ROWS));
    cursor_seek(&cursor, kept, first);
    for (int64_t i = first; softmax->logarithm && i < end; i += group)
        rows_log_softmax(softmax, &cursor, min64(group, end - i));
    for (int64_t i = first; !softmax->logarithm && i < end; i++) {
        row_softmax(softmax, softmax->in + cursor.offsets[1],
                    softmax->out + cursor.offsets[0]);
        cursor_move(&cursor, kept, kept->rank - 1, 1);
    }
}

/* A band: `width` columns of `n` elements. */
struct band {
    const float *x;
    float *y;
    int64_t x_stride, y_stride, n, width;
};

/* Applies operator `op` to each row of a band: y = x op z, where `z` has one
 * value for each column. */
static void band_apply(const struct softmax *softmax, const struct band *band,
                       uint32_t op, const float *z)
{
    for (int64_t i = 0; i < band->n; i++) {
        struct row row = {.n = band->width,
                          .in = {band->x + i * band->x_stride, z},
                          .out = {band->y + i * band->y_stride}};
        softmax->kernels->rows[op](&row);
    }
}

static void band_run(const struct softmax *softmax, struct band band)
{
    const struct kernels *kernels = softmax->kernels;
    float m[MAX_COLUMNS], factors[MAX_COLUMNS];
    double sums[MAX_COLUMNS];
    for (int64_t i = 0; i < band.width; i++) {
        m[i] = -INFINITY;
        sums[i] = 0;
    }
    kernels->column_max(band.x, band.n, band.x_stride, band.width, m);
    kernels->column_exp(softmax->logarithm ? NULL : band.y, band.y_stride,
                        band.x, band.n, band.x_stride, band.width, m, sums);
    for (int64_t i = 0; i < band.width; i++)
        factors[i] = (float)(softmax->logarithm ? sums[i] : 1.0 / sums[i]);
    if (softmax->logarithm) {
        struct row row = {.n = band.width, .in = {factors}, .out = {factors}};
        kernels->rows[TANDEM_OP_LOG](&row);
        band_apply(softmax, &band, TANDEM_OP_SUB, m);
    }
    band.x = band.y;
    band.x_stride = band.y_stride;
    band_apply(softmax, &band,
               softmax->logarithm ? TANDEM_OP_SUB : TANDEM_OP_MUL, factors);
}

static void bands_run(const void *context, int64_t first, int64_t end)
{
    const struct softmax *softmax = context;
    const struct iteration_space *along = &softmax->spaces.reduced;
    struct band band = {.n = along->elements,
                        .x_stride = along->strides[0][0],
                        .y_stride = along->strides[1][0]};
    for (int64_t task = first; task < end; task++) {
        struct cursor cursor;
        band.width = columns_seek(&cursor, &softmax->spaces.kept, task,
                                  softmax->bands, softmax->width);
        band.x = softmax->in + cursor.offsets[1];
        band.y = softmax->out + cursor.offsets[0];
        band_run(softmax, band);
    }
}

/* Thread-pool function.  Each task processes a block of short rows. */
static void short_rows_run(const void *context, int64_t first, int64_t end)
{
    const struct softmax *softmax = context;
    const struct kernels *kernels = softmax->kernels;
    const struct iteration_space *kept = &softmax->spaces.kept;
    uint32_t inner = kept->rank - 1;
    for (int64_t task = first; task < end; task++) {
        struct cursor cursor;
        int64_t rows =
            columns_seek(&cursor, kept, task, softmax->bands, softmax->width);
        (softmax->logarithm ? kernels->short_log_softmax
                            : kernels->short_softmax)(
            softmax->out + cursor.offsets[0], kept->strides[0][inner],
            softmax->in + cursor.offsets[1], kept->strides[1][inner], rows,
            softmax->spaces.reduced.elements);
    }
}

/* Returns true if short_rows_run supports the rows. */
static bool rows_are_short(const struct softmax *softmax)
{
    const struct iteration_space *along = &softmax->spaces.reduced;
    return along->elements > 1 &&
           along->elements <= softmax->kernels->short_row &&
           along->strides[0][0] == 1 && along->strides[1][0] == 1;
}

static enum tandem_status softmax_run(const struct work *work)
{
    struct softmax softmax = {
        .kernels = work->device->kernels,
        .logarithm = work->op->id == TANDEM_OP_LOG_SOFTMAX,
    };
    const struct iteration_space *kept = &softmax.spaces.kept;
    space_along_axis(&softmax.spaces, work->inputs[0], work->outputs[0],
                     work->op->ints[0]);
    int64_t n = softmax.spaces.reduced.elements;
    if (kept->elements == 0 || n == 0)
        return TANDEM_OK;
    softmax.in = tensor_data(work->inputs[0]);
    softmax.out = tensor_data(work->outputs[0]);
    int64_t extent = kept->shape[kept->rank - 1];
    pool_fn fn = bands_run;
    if (column_reduce_supports(&softmax.spaces) &&
        kept->strides[0][kept->rank - 1] == 1) {
        softmax.width = max64(64, min64(BAND_ELEMENTS / n, MAX_COLUMNS));
    } else if (rows_are_short(&softmax)) {
        fn = short_rows_run;
        softmax.width = max64(1, SHORT_ROWS_ELEMENTS / n);
    } else {
        pool_run(work->device->pool, work->op->id, rows_run, &softmax,
                 kept->elements, n);
        return TANDEM_OK;
    }
    softmax.bands = ceil_div(extent, softmax.width);
    pool_run(work->device->pool, work->op->id + POOL_VARIANT, fn, &softmax,
             kept->elements / extent * softmax.bands,
             n * ceil_div(extent, softmax.bands));
    return TANDEM_OK;
}

const struct cpu_class cpu_class_softmax = {.run = softmax_run};

/* ---- cross-entropy ------------------------------------------------------ */

struct cross_entropy {
    const struct kernels *kernels;
    const float *logits;
    const void *labels;
    float *out;
    uint32_t label_bytes;
    int64_t classes, row_stride, class_stride, label_stride, out_stride,
        out_class_stride;
    float scale; /* factor of the gradient */
};

/* Returns the label (class number) of a row, or -1 if the label is invalid. */
static int64_t label_read(const struct cross_entropy *work, int64_t row)
{
    int64_t at = row * work->label_stride;
    int64_t label = work->label_bytes == 8
                        ? ((const int64_t *)work->labels)[at]
                        : ((const int32_t *)work->labels)[at];
    return label >= 0 && label < work->classes ? label : -1;
}

static void losses_run(const void *context, int64_t first, int64_t end)
{
    const struct cross_entropy *work = context;
    for (int64_t row = first; row < end; row++) {
        const float *x = work->logits + row * work->row_stride;
        float *y = work->out + row * work->out_stride;
        int64_t label = label_read(work, row);
        *y = NAN;
        if (label < 0)
            continue;
        float m = line_max(work->kernels, x, work->class_stride, work->classes);
        double sum = line_exp(work->kernels, NULL, 0, x, work->class_stride,
                              work->classes, m);
        *y = (float)(((double)m - x[label * work->class_stride]) + log(sum));
    }
}

/* Limit just above log(FLT_MIN) = -87.34.  If x is below this limit, e^x in f32
 * can be subnormal or 0. */
#define MIN_EXPONENT (-87.0f)

/* Recomputes gradients in f64 if the probability of their class is too small
 * for an accurate f32, because the factor work->scale can amplify the error. */
static void gradients_lift(const struct cross_entropy *work, float *y,
                           const float *x, float m, double factor)
{
    for (int64_t i = 0; i < work->classes; i++) {
        double d = (double)x[i * work->class_stride] - m;
        if (d < MIN_EXPONENT)
            y[i * work->out_class_stride] = (float)(exp(d) * factor);
    }
}

static void gradients_run(const void *context, int64_t first, int64_t end)
{
    const struct cross_entropy *work = context;
    int64_t step = work->out_class_stride;
    for (int64_t row = first; row < end; row++) {
        const float *x = work->logits + row * work->row_stride;
        float *y = work->out + row * work->out_stride;
        int64_t label = label_read(work, row);
        for (int64_t i = 0; label < 0 && i < work->classes; i++)
            y[i * step] = NAN;
        if (label < 0)
            continue;
        float m = line_max(work->kernels, x, work->class_stride, work->classes);
        double sum = line_exp(work->kernels, y, step, x, work->class_stride,
                              work->classes, m);
        line_scale(work->kernels, y, step, work->classes,
                   (float)(work->scale / sum));
        if (fabsf(work->scale) > 1.0f)
            gradients_lift(work, y, x, m, work->scale / sum);
        y[label * step] -= work->scale;
    }
}

static enum tandem_status cross_entropy_run(const struct work *work)
{
    const struct tandem_tensor_desc *logits = work->inputs[0];
    const struct tandem_tensor_desc *labels = work->inputs[1];
    const struct tandem_tensor_desc *out = work->outputs[0];
    bool gradient = work->op->id == TANDEM_OP_CROSS_ENTROPY_GRAD;
    struct cross_entropy entropy = {
        .kernels = work->device->kernels,
        .logits = tensor_data(logits),
        .labels = tensor_data(labels),
        .out = tensor_data(out),
        .label_bytes = TANDEM_DTYPE_BYTES(labels->dtype),
        .classes = logits->shape[1],
        .row_stride = logits->strides[0],
        .class_stride = logits->shape[1] > 1 ? logits->strides[1] : 1,
        .label_stride = labels->strides[0],
        .out_stride = out->strides[0],
        .out_class_stride =
            gradient && logits->shape[1] > 1 ? out->strides[1] : 1,
        .scale = gradient ? attribute_f32(work->op->floats[0]) : 0.0f,
    };
    pool_run(work->device->pool, work->op->id,
             gradient ? gradients_run : losses_run, &entropy, logits->shape[0],
             logits->shape[1]);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_cross_entropy = {.run = cross_entropy_run};
