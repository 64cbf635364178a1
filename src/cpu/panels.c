/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products of f16 and bf16: panels of a and b are made f32, multiplied
 * by the BLAS into a panel of c, which bias and activation finish and which is
 * rounded once, when k is used up.  The panels stay in the caches: a number is
 * read from memory in 16 bits.  Any thread.
 */
#include "config.h"

#include <cblas.h>

#include "cpu/gemm.h"

/* The most of a panel; of a product of few rows, whose b is used only so often,
 * panels of b fit a core's own cache. */
#define ROWS 1024
#define COLUMNS 2048
#define DEPTH 1024
#define FEW_ROWS 32
#define FEW_COLUMNS 256
#define FEW_DEPTH 512
#define SHARED_ELEMENTS (1 << 18)

/* a or b, and which part of it room holds, or is to. */
struct operand {
    const struct tandem_matrix *matrix;
    float *room; /* NULL where the matrix is f32 */
    int64_t batch, outer, depth;
};

struct panels {
    struct product *product;
    void (*widen_ab)(float *y, const uint16_t *x, int64_t n);
    void (*widen_c)(float *y, const uint16_t *x, int64_t n);
    void (*narrow_c)(uint16_t *y, const float *x, int64_t n); /* NULL: f32 */
    struct pool *pool;
    int64_t rows, columns, depth; /* of the largest panels */
    struct operand a, b;
    float *c; /* a panel; NULL where the matrix is f32 */
    struct tandem_buffer *memory;
};

/* One panel of c. */
struct panel {
    const struct panels *panels;
    int64_t batch, row, column, rows, columns;
    float *c;
    int64_t ld;
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static unsigned char *matrix_at(const struct tandem_matrix *matrix,
                                uint32_t dtype, int64_t batch, int64_t row,
                                int64_t column)
{
    int64_t at = batch * matrix->batch_stride + row * matrix->ld + column;
    return matrix->buffer->base + matrix->byte_offset +
           at * (int64_t)TANDEM_DTYPE_BYTES(dtype);
}

/* Alone where there is little to do: the BLAS wants the others' processors. */
static void rows_share(const struct panels *panels, pool_fn fn,
                       const void *work, int64_t rows, int64_t columns)
{
    if (rows * columns < SHARED_ELEMENTS)
        fn(work, 0, rows);
    else
        pool_run(panels->pool, POOL_PRODUCT_FINISH, fn, work, rows, columns);
}

/* ---- a and b ------------------------------------------------------------- */

struct widening {
    void (*widen)(float *y, const uint16_t *x, int64_t n);
    const uint16_t *from;
    float *to;
    int64_t ld, columns;
};

static void rows_widen(const void *context, int64_t first, int64_t end)
{
    const struct widening *w = context;
    for (int64_t row = first; row < end; row++)
        w->widen(w->to + row * w->columns, w->from + row * w->ld, w->columns);
}

/* Outer elements (m or n) by depth of them, in f32 as the matrix lies. */
static const float *operand_panel(const struct panels *panels,
                                  struct operand *operand, bool along_depth,
                                  int64_t batch, int64_t outer, int64_t outers,
                                  int64_t depth, int64_t depths, int *out_ld)
{
    const struct tandem_matrix *matrix = operand->matrix;
    uint32_t dtype = panels->product->gemm->dtype;
    int64_t rows = along_depth ? outers : depths;
    int64_t columns = along_depth ? depths : outers;
    const void *from = matrix_at(matrix, dtype, batch,
                                 along_depth ? outer : depth,
                                 along_depth ? depth : outer);
    *out_ld = (int)matrix->ld;
    if (operand->room == NULL)
        return from;
    *out_ld = (int)columns;
    batch = matrix->batch_stride == 0 ? 0 : batch;
    if (operand->batch == batch && operand->outer == outer &&
        operand->depth == depth)
        return operand->room;
    operand->batch = batch;
    operand->outer = outer;
    operand->depth = depth;
    const struct widening widening = {panels->widen_ab, from, operand->room,
                                      matrix->ld, columns};
    rows_share(panels, rows_widen, &widening, rows, columns);
    return operand->room;
}

/* ---- c ------------------------------------------------------------------- */

/* What is multiplied by beta, or is to be 0, in the panel. */
static void panel_begin(const struct panel *panel, float beta, bool scaled)
{
    const struct panels *panels = panel->panels;
    const struct tandem_gemm *gemm = panels->product->gemm;
    for (int64_t i = 0; i < panel->rows; i++) {
        float *c = panel->c + i * panel->ld;
        if (panels->narrow_c != NULL && beta != 0)
            panels->widen_c(c,
                            (const uint16_t *)(const void *)matrix_at(
                                &gemm->c, gemm->c_dtype, panel->batch,
                                panel->row + i, panel->column),
                            panel->columns);
        for (int64_t j = 0; scaled && j < panel->columns; j++)
            c[j] = beta == 0 ? 0.0f : c[j] * beta;
    }
}

static void rows_finish(const void *context, int64_t first, int64_t end)
{
    const struct panel *panel = context;
    const struct panels *panels = panel->panels;
    const struct tandem_gemm *gemm = panels->product->gemm;
    for (int64_t i = first; i < end; i++) {
        float *c = panel->c + i * panel->ld;
        product_row_finish(panels->product, c, panel->row + i, panel->column,
                           panel->columns);
        if (panels->narrow_c != NULL)
            panels->narrow_c((uint16_t *)(void *)matrix_at(
                                 &gemm->c, gemm->c_dtype, panel->batch,
                                 panel->row + i, panel->column),
                             c, panel->columns);
    }
}

static void panel_multiply(struct panels *panels, const struct panel *panel)
{
    const struct tandem_gemm *gemm = panels->product->gemm;
    float beta = (float)gemm->beta;
    bool ta = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool tb = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    for (int64_t k = 0; k < gemm->k; k += panels->depth) {
        int64_t depth = least(panels->depth, gemm->k - k);
        int a_ld, b_ld;
        const float *a =
            operand_panel(panels, &panels->a, !ta, panel->batch, panel->row,
                          panel->rows, k, depth, &a_ld);
        const float *b =
            operand_panel(panels, &panels->b, tb, panel->batch, panel->column,
                          panel->columns, k, depth, &b_ld);
        cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans,
                    tb ? CblasTrans : CblasNoTrans, (int)panel->rows,
                    (int)panel->columns, (int)depth, (float)gemm->alpha, a,
                    a_ld, b, b_ld, k == 0 ? beta : 1.0f, panel->c,
                    (int)panel->ld);
    }
}

static void panel_run(struct panels *panels, struct panel *panel)
{
    const struct tandem_gemm *gemm = panels->product->gemm;
    bool product = gemm->k > 0 && gemm->alpha != 0;
    panel->panels = panels;
    panel->c = panels->c;
    panel->ld = panel->columns;
    if (panels->c == NULL) {
        panel->c = (float *)(void *)matrix_at(&gemm->c, TANDEM_F32,
                                              panel->batch, panel->row,
                                              panel->column);
        panel->ld = gemm->c.ld;
    }
    panel_begin(panel, (float)gemm->beta, !product);
    if (product)
        panel_multiply(panels, panel);
    rows_share(panels, rows_finish, panel, panel->rows, panel->columns);
}

/* ---- the whole ----------------------------------------------------------- */

static void sizes_choose(struct panels *panels, const struct tandem_gemm *gemm)
{
    bool few = gemm->m <= FEW_ROWS;
    panels->rows = least(gemm->m, ROWS);
    panels->columns = least(gemm->n, few ? FEW_COLUMNS : COLUMNS);
    panels->depth = least(gemm->k, few ? FEW_DEPTH : DEPTH);
}

/* Room for the panels, and for bias, which is made f32 here. */
static enum tandem_status rooms_make(struct panels *panels,
                                     struct tandem_device *device)
{
    const struct tandem_gemm *gemm = panels->product->gemm;
    bool wide_ab = gemm->dtype == TANDEM_F32, wide_c = panels->narrow_c == NULL;
    int64_t biases = gemm->bias_kind == TANDEM_BIAS_NONE         ? 0
                     : gemm->bias_kind == TANDEM_BIAS_PER_COLUMN ? gemm->n
                                                                 : gemm->m;
    int64_t a = wide_ab ? 0 : panels->rows * panels->depth;
    int64_t b = wide_ab ? 0 : panels->columns * panels->depth;
    int64_t c = wide_c ? 0 : panels->rows * panels->columns;
    /* Each begins a line of the cache. */
    a = (a + 15) / 16 * 16;
    b = (b + 15) / 16 * 16;
    c = (c + 15) / 16 * 16;
    int64_t elements = a + b + c + (wide_c ? 0 : biases);
    enum tandem_status status = memory_alloc(
        device, (uint64_t)elements * sizeof(float), &panels->memory);
    if (status != TANDEM_OK)
        return status;
    float *room = (float *)(void *)panels->memory->base;
    panels->a.room = wide_ab ? NULL : room;
    panels->b.room = wide_ab ? NULL : room + a;
    panels->c = wide_c ? NULL : room + a + b;
    if (biases > 0) {
        const void *bias = gemm->bias->base + gemm->bias_byte_offset;
        if (!wide_c)
            panels->widen_c(room + a + b + c, bias, biases);
        panels->product->bias = wide_c ? bias : room + a + b + c;
    }
    return TANDEM_OK;
}

static void panels_multiply(struct panels *panels)
{
    const struct tandem_gemm *gemm = panels->product->gemm;
    struct panel panel;
    for (panel.batch = 0; panel.batch < gemm->batch; panel.batch++)
        for (panel.column = 0; panel.column < gemm->n;
             panel.column += panels->columns)
            for (panel.row = 0; panel.row < gemm->m;
                 panel.row += panels->rows) {
                panel.rows = least(panels->rows, gemm->m - panel.row);
                panel.columns = least(panels->columns, gemm->n - panel.column);
                panel_run(panels, &panel);
            }
}

enum tandem_status panels_run(struct tandem_device *device,
                              struct product *product)
{
    const struct tandem_gemm *gemm = product->gemm;
    const struct kernels *kernels = product->kernels;
    bool bf16_c = gemm->c_dtype == TANDEM_BF16;
    struct panels panels = {
        .product = product,
        .pool = device->pool,
        .widen_ab = gemm->dtype == TANDEM_BF16 ? kernels->bf16_widen
                                               : kernels->f16_widen,
        .widen_c = bf16_c ? kernels->bf16_widen : kernels->f16_widen,
        .narrow_c = bf16_c                         ? kernels->bf16_narrow
                    : gemm->c_dtype == TANDEM_F16 ? kernels->f16_narrow
                                                  : NULL,
        .a = {.matrix = &gemm->a, .batch = -1},
        .b = {.matrix = &gemm->b, .batch = -1}};
    sizes_choose(&panels, gemm);
    enum tandem_status status = rooms_make(&panels, device);
    if (status == TANDEM_OK)
        panels_multiply(&panels);
    memory_free(panels.memory);
    return status;
}
