/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel matrix products.  Each task computes a block of c (a region) by the
 * single-threaded CBLAS.  If c is small and k is large, k is split into parts,
 * whose sums are added at the end (split-k).  The CBLAS packs an operand again
 * for each region that needs it, but unlike the CBLAS's own threading this
 * keeps all cores busy for batches of small products and for long, narrow ones.
 * 16-bit operands are converted to f32 in a workspace (a room), one slab of k
 * at a time.  A depth is an extent along k.  Callable from any thread.
 */
#include "config.h"

#include <cblas.h>
#include <stdatomic.h>
#include <string.h>

#include "cpu/gemm/blas_guard.h"
#include "cpu/gemm/gemm.h"

/* Sides of regions are multiples of the CBLAS kernels' block sizes. */
#define GRAIN_ROWS 8
#define GRAIN_COLUMNS 32
/* Multiplications per thread below which fewer threads are used. */
#define REGION_LEAST 65536
/* Estimated cost of packing an element, in multiplications. */
#define PACK_COST 16.0
/* Maximum sides of a region, and depth of a slab, with 16-bit types. */
#define WIDE_ROWS 512
#define WIDE_COLUMNS 1024
#define WIDE_DEPTHS 512
/* Constants of slab_depth. */
#define CHAIN_ELEMENTS 4096
#define CHAIN_TERMS 512
#define VECTOR_TERMS 4096
#define FEW_ROWS 8
/* k is split if c has at most PART_ELEMENTS elements and k is at least
 * PART_LEAST, into at most PARTS parts of at least PART_DEPTH each. */
#define PART_ELEMENTS 16384
#define PART_LEAST 4096
#define PART_DEPTH 1024
#define PARTS 64
/* f32 elements in a cache line. */
#define LINE 16
/* Maximum threads inside the CBLAS at a time.  OpenBLAS prints a warning above
 * the number that it was built for, which is at least 64. */
#define THREADS 64

/* Partition of a product into regions and parts, with its workspace. */
struct tiles {
    struct product *product;
    const struct tandem_gemm *gemm;
    struct pool *pool;
    void (*widen_ab)(float *y, const uint16_t *x, int64_t n); /* or NULL */
    void (*widen_c)(float *y, const uint16_t *x, int64_t n);
    void (*narrow_c)(uint16_t *y, const float *x, int64_t n); /* or NULL */
    bool ta, tb;
    int64_t threads;
    /* Maximum extents of a region, and the number of regions. */
    int64_t rows, columns, depth;
    int64_t row_regions, column_regions, parts;
    /* Workspace of one thread for each matrix, in f32 elements; 0 if the matrix
     * is used in place. */
    int64_t a_room, b_room, c_room;
    struct tandem_buffer *memory;
    float *rooms, *sums; /* sums holds the results of the parts in order */
    atomic_uchar *taken; /* THREADS flags: workspace slot is in use */
};

/* One region, or one part of a region, that a thread computes. */
struct region {
    const struct tiles *tiles;
    int64_t batch, row, column, from; /* `from` is the first index of k */
    int64_t rows, columns, depth;
    float *a, *b; /* workspaces for converted slabs */
    float *c;
    int64_t ld;
    float alpha, beta;
    bool whole; /* covers all of k: bias and activation follow at once */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t pieces(int64_t n, int64_t piece)
{
    return (n + piece - 1) / piece;
}

static unsigned char *matrix_at(const struct tandem_matrix *matrix,
                                uint32_t dtype, int64_t batch, int64_t row,
                                int64_t column)
{
    int64_t at = batch * matrix->batch_stride + row * matrix->ld + column;
    return matrix->buffer->base + matrix->byte_offset +
           at * (int64_t)TANDEM_DTYPE_BYTES(dtype);
}

/* ---- one region --------------------------------------------------------- */

/* Prepares c before the product is added: converts a 16-bit c to f32 if beta is
 * not 0.  `scaled` means that no product follows, so beta is applied here. */
static void rows_begin(const struct region *region, bool scaled)
{
    const struct tiles *tiles = region->tiles;
    const struct tandem_gemm *gemm = tiles->gemm;
    bool widened =
        region->whole && tiles->narrow_c != NULL && region->beta != 0;
    for (int64_t i = 0; (widened || scaled) && i < region->rows; i++) {
        float *c = region->c + i * region->ld;
        if (widened)
            tiles->widen_c(c,
                           (const uint16_t *)(const void *)matrix_at(
                               &gemm->c, gemm->c_dtype, region->batch,
                               region->row + i, region->column),
                           region->columns);
        for (int64_t j = 0; scaled && j < region->columns; j++)
            c[j] = region->beta == 0 ? 0.0f : c[j] * region->beta;
    }
}

/* Applies bias and activation, and converts the result to c's type. */
static void rows_end(const struct region *region)
{
    const struct tiles *tiles = region->tiles;
    const struct tandem_gemm *gemm = tiles->gemm;
    if (gemm->bias_kind == TANDEM_BIAS_NONE &&
        gemm->activation == TANDEM_OP_INVALID && tiles->narrow_c == NULL)
        return;
    for (int64_t i = 0; i < region->rows; i++) {
        float *c = region->c + i * region->ld;
        product_row_finish(tiles->product, c, region->row + i, region->column,
                           region->columns);
        if (tiles->narrow_c != NULL)
            tiles->narrow_c((uint16_t *)(void *)matrix_at(
                                &gemm->c, gemm->c_dtype, region->batch,
                                region->row + i, region->column),
                            c, region->columns);
    }
}

/* Returns rows x columns elements of an operand, from (row, column) on, as f32:
 * in place, or converted into `room`.  *out_ld is the row pitch in elements. */
static const float *operand_take(const struct region *region, float *room,
                                 const struct tandem_matrix *matrix,
                                 int64_t row, int64_t column, int64_t rows,
                                 int64_t columns, int *out_ld)
{
    const struct tiles *tiles = region->tiles;
    const unsigned char *from =
        matrix_at(matrix, tiles->gemm->dtype, region->batch, row, column);
    *out_ld = (int)matrix->ld;
    if (tiles->widen_ab == NULL)
        return (const float *)(const void *)from;
    const uint16_t *x = (const uint16_t *)(const void *)from;
    for (int64_t i = 0; i < rows; i++)
        tiles->widen_ab(room + i * columns, x + i * matrix->ld, columns);
    *out_ld = (int)columns;
    return room;
}

/*
 * Returns how much of k one call of the CBLAS sums.  OpenBLAS blocks large
 * products along k, but its kernels for small products accumulate all of k in
 * one f32, which is too inaccurate for terms of one sign.  If a's rows lie
 * along k, and b's do too or the region is tiny, the kernels accumulate in the
 * lanes of a vector, so the limit is higher.
 */
static int64_t slab_depth(const struct region *region)
{
    const struct tiles *tiles = region->tiles;
    bool few = region->rows <= FEW_ROWS && region->columns <= FEW_ROWS;
    if (tiles->widen_ab != NULL)
        return WIDE_DEPTHS;
    if (region->rows * region->columns > CHAIN_ELEMENTS)
        return region->depth;
    return !tiles->ta && (tiles->tb || few) ? VECTOR_TERMS : CHAIN_TERMS;
}

static void region_multiply(const struct region *region)
{
    const struct tiles *tiles = region->tiles;
    const struct tandem_gemm *gemm = tiles->gemm;
    bool ta = tiles->ta, tb = tiles->tb;
    int64_t slab = slab_depth(region);
    for (int64_t done = 0; done < region->depth; done += slab) {
        int64_t from = region->from + done;
        int64_t depth = least(slab, region->depth - done);
        int a_ld, b_ld;
        const float *a = operand_take(
            region, region->a, &gemm->a, ta ? from : region->row,
            ta ? region->row : from, ta ? depth : region->rows,
            ta ? region->rows : depth, &a_ld);
        const float *b = operand_take(
            region, region->b, &gemm->b, tb ? region->column : from,
            tb ? from : region->column, tb ? region->columns : depth,
            tb ? depth : region->columns, &b_ld);
        blas_enter();
        cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans,
                    tb ? CblasTrans : CblasNoTrans, (int)region->rows,
                    (int)region->columns, (int)depth, region->alpha, a, a_ld,
                    b, b_ld, done == 0 ? region->beta : 1.0f, region->c,
                    (int)region->ld);
        blas_leave();
    }
}

/* Initializes the region with number `index`, to use workspace slot `slot`. */
static void region_start(const struct tiles *tiles, struct region *out,
                         int64_t index, int64_t slot)
{
    const struct tandem_gemm *gemm = tiles->gemm;
    int64_t part = index % tiles->parts;
    memset(out, 0, sizeof *out);
    out->tiles = tiles;
    index /= tiles->parts;
    out->column = index % tiles->column_regions * tiles->columns;
    index /= tiles->column_regions;
    out->row = index % tiles->row_regions * tiles->rows;
    out->batch = index / tiles->row_regions;
    out->rows = least(tiles->rows, gemm->m - out->row);
    out->columns = least(tiles->columns, gemm->n - out->column);
    out->from = part * tiles->depth;
    out->depth = least(tiles->depth, gemm->k - out->from);
    out->alpha = (float)gemm->alpha;
    out->beta = (float)gemm->beta;
    out->whole = tiles->parts == 1;
    out->ld = out->columns;
    if (tiles->memory != NULL) {
        out->a = tiles->rooms +
                 slot * (tiles->a_room + tiles->b_room + tiles->c_room);
        out->b = out->a + tiles->a_room;
        out->c = out->b + tiles->b_room;
    }
    if (!out->whole) {
        out->c = tiles->sums +
                 (out->batch * tiles->parts + part) * gemm->m * gemm->n +
                 out->row * gemm->n + out->column;
        out->ld = gemm->n;
        out->alpha = 1;
        out->beta = 0;
    } else if (tiles->c_room == 0) {
        out->c = (float *)(void *)matrix_at(&gemm->c, TANDEM_F32, out->batch,
                                            out->row, out->column);
        out->ld = gemm->c.ld;
    }
}

/* pool_fn: each task computes one region or one part of a region. */
static void regions_run(const void *context, int64_t first, int64_t end)
{
    const struct tiles *tiles = context;
    bool product = tiles->gemm->k > 0 && (float)tiles->gemm->alpha != 0;
    int64_t slot = 0;
    while (atomic_exchange(&tiles->taken[slot], 1) != 0)
        slot = slot + 1 < tiles->threads ? slot + 1 : 0;
    for (int64_t index = first; index < end; index++) {
        struct region region;
        region_start(tiles, &region, index, slot);
        rows_begin(&region, !product);
        if (product)
            region_multiply(&region);
        if (region.whole)
            rows_end(&region);
    }
    atomic_store(&tiles->taken[slot], 0);
}

/* pool_fn: each task computes c = alpha * (sum of the parts) + beta * c for one
 * row of one batch. */
static void parts_join(const void *context, int64_t first, int64_t end)
{
    const struct tiles *tiles = context;
    const struct tandem_gemm *gemm = tiles->gemm;
    float alpha = (float)gemm->alpha, beta = (float)gemm->beta;
    int64_t elements = gemm->m * gemm->n;
    for (int64_t task = first; task < end; task++) {
        struct region region = {.tiles = tiles,
                                .batch = task / gemm->m,
                                .row = task % gemm->m,
                                .rows = 1,
                                .columns = gemm->n,
                                .ld = gemm->n,
                                .beta = beta,
                                .whole = true};
        float *sum = tiles->sums + region.batch * tiles->parts * elements +
                     region.row * gemm->n;
        for (int64_t part = 1; part < tiles->parts; part++)
            for (int64_t i = 0; i < gemm->n; i++)
                sum[i] += sum[part * elements + i];
        region.c = sum + elements; /* part 1 is no longer needed: scratch */
        if (tiles->narrow_c == NULL)
            region.c = (float *)(void *)matrix_at(&gemm->c, TANDEM_F32,
                                                  region.batch, region.row, 0);
        rows_begin(&region, false);
        for (int64_t i = 0; i < gemm->n; i++)
            region.c[i] =
                alpha * sum[i] + (beta != 0 ? beta * region.c[i] : 0.0f);
        rows_end(&region);
    }
}

/* ---- partition ---------------------------------------------------------- */

/* Returns the estimated time until the last thread finishes, in multiplications
 * per index of k, with regions of rows x columns elements. */
static double cut_cost(const struct tiles *tiles, int64_t threads, int64_t rows,
                       int64_t columns)
{
    const struct tandem_gemm *gemm = tiles->gemm;
    int64_t count = pieces(gemm->m, rows) * pieces(gemm->n, columns) *
                    gemm->batch * tiles->parts;
    double one = (double)rows * (double)columns +
                 PACK_COST * (double)(rows + columns);
    return one * (double)pieces(count, threads);
}

/* Chooses the region size with the lowest cut_cost. */
static void regions_cut(struct tiles *tiles)
{
    const struct tandem_gemm *gemm = tiles->gemm;
    bool wide = tiles->widen_ab == NULL && tiles->narrow_c == NULL;
    int64_t most_rows = wide ? gemm->m : WIDE_ROWS;
    int64_t most_columns = wide ? gemm->n : WIDE_COLUMNS;
    double worth = (double)gemm->batch * (double)gemm->m * (double)gemm->n *
                   (double)gemm->k / REGION_LEAST;
    int64_t threads =
        worth < (double)tiles->threads ? (int64_t)worth : tiles->threads;
    double best = 0;
    threads = threads > 1 ? threads : 1;
    for (int64_t down = 1; down <= 4 * threads; down += 1 + down / 2) {
        int64_t rows =
            pieces(pieces(gemm->m, down), GRAIN_ROWS) * GRAIN_ROWS;
        rows = least(rows, most_rows);
        for (int64_t across = 1; across <= 4 * threads;
             across += 1 + across / 2) {
            int64_t columns = pieces(pieces(gemm->n, across), GRAIN_COLUMNS) *
                              GRAIN_COLUMNS;
            columns = least(columns, most_columns);
            double cost = cut_cost(tiles, threads, rows, columns);
            if (best != 0 && cost >= best)
                continue;
            best = cost;
            tiles->rows = rows;
            tiles->columns = columns;
        }
    }
    tiles->rows = least(tiles->rows, gemm->m);
    tiles->columns = least(tiles->columns, gemm->n);
    tiles->row_regions = pieces(gemm->m, tiles->rows);
    tiles->column_regions = pieces(gemm->n, tiles->columns);
}

/* Splits k into parts if c is small and k is large.  `may` false forbids it. */
static void parts_cut(struct tiles *tiles, bool may)
{
    const struct tandem_gemm *gemm = tiles->gemm;
    tiles->parts = 1;
    tiles->depth = gemm->k;
    if (!may || gemm->k < PART_LEAST || (float)gemm->alpha == 0 ||
        gemm->m * gemm->n > PART_ELEMENTS)
        return;
    int64_t depth = pieces(gemm->k, PARTS);
    tiles->depth = depth > PART_DEPTH ? depth : PART_DEPTH;
    tiles->parts = pieces(gemm->k, tiles->depth);
}

static int64_t to_lines(int64_t elements)
{
    return pieces(elements, LINE) * LINE;
}

/* Allocates the workspace for the threads' regions, the sums of the parts and
 * the f32 bias, and converts the bias.  Allocates nothing if none is needed. */
static enum tandem_status workspace_alloc(struct tiles *tiles,
                                     struct tandem_device *device)
{
    const struct tandem_gemm *gemm = tiles->gemm;
    int64_t depth = least(WIDE_DEPTHS, tiles->depth), slots = tiles->threads;
    int64_t biases = gemm->bias_kind == TANDEM_BIAS_PER_COLUMN ? gemm->n
                     : gemm->bias_kind == TANDEM_BIAS_PER_ROW  ? gemm->m
                                                               : 0;
    int64_t sums = 0;
    if (tiles->widen_ab != NULL) {
        tiles->a_room = to_lines(tiles->rows * depth);
        tiles->b_room = to_lines(tiles->columns * depth);
    }
    if (tiles->parts > 1)
        sums = to_lines(gemm->batch * tiles->parts * gemm->m * gemm->n);
    else if (tiles->narrow_c != NULL)
        tiles->c_room = to_lines(tiles->rows * tiles->columns);
    if (tiles->narrow_c == NULL)
        biases = 0;
    int64_t rooms = slots * (tiles->a_room + tiles->b_room + tiles->c_room);
    if (rooms + sums + biases == 0)
        return TANDEM_OK;
    uint64_t floats = (uint64_t)(rooms + sums + to_lines(biases));
    enum tandem_status status =
        memory_alloc(device, floats * sizeof(float), &tiles->memory);
    if (status != TANDEM_OK)
        return status;
    tiles->rooms = (float *)(void *)tiles->memory->base;
    tiles->sums = tiles->rooms + rooms;
    float *bias = tiles->sums + sums;
    if (biases > 0) {
        tiles->widen_c(bias,
                       (const uint16_t *)(const void *)(gemm->bias->base +
                                                        gemm->bias_byte_offset),
                       biases);
        tiles->product->bias = bias;
    }
    return TANDEM_OK;
}

static void regions_multiply(struct tiles *tiles)
{
    const struct tandem_gemm *gemm = tiles->gemm;
    bool limited = blas_limit(1);
    pool_run(tiles->pool, POOL_PRODUCT, regions_run, tiles,
             gemm->batch * tiles->row_regions * tiles->column_regions *
                 tiles->parts,
             tiles->rows * tiles->columns * (tiles->depth + 1));
    if (tiles->parts > 1)
        pool_run(tiles->pool, POOL_PRODUCT_JOIN, parts_join, tiles,
                 gemm->batch * gemm->m, gemm->n * tiles->parts);
    if (limited)
        blas_release();
}

enum tandem_status parallel_gemm_run(struct tandem_device *device,
                             struct product *product)
{
    const struct tandem_gemm *gemm = product->gemm;
    const struct kernels *kernels = product->kernels;
    bool bf16_c = gemm->c_dtype == TANDEM_BF16;
    atomic_uchar taken[THREADS] = {0};
    struct tiles tiles = {
        .product = product,
        .gemm = gemm,
        .pool = device->pool,
        .widen_ab = gemm->dtype == TANDEM_BF16  ? kernels->bf16_widen
                    : gemm->dtype == TANDEM_F16 ? kernels->f16_widen
                                                : NULL,
        .widen_c = bf16_c ? kernels->bf16_widen : kernels->f16_widen,
        .narrow_c = bf16_c                        ? kernels->bf16_narrow
                    : gemm->c_dtype == TANDEM_F16 ? kernels->f16_narrow
                                                  : NULL,
        .ta = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0,
        .tb = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0,
        .threads = least(pool_threads(device->pool), THREADS),
        .taken = taken};
    parts_cut(&tiles, true);
    regions_cut(&tiles);
    enum tandem_status status = workspace_alloc(&tiles, device);
    if (status == TANDEM_OUT_OF_MEMORY && tiles.widen_ab == NULL &&
        tiles.narrow_c == NULL) {
        /* f32 needs a workspace only for split-k: compute without. */
        parts_cut(&tiles, false);
        regions_cut(&tiles);
        status = TANDEM_OK;
    }
    if (status == TANDEM_OK)
        regions_multiply(&tiles);
    memory_free(tiles.memory);
    return status;
}
