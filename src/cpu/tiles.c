/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products by the kernels of the instruction set.  Three ways:
 *
 *   lying    b is small enough to be read as it lies; bands of rows are tasks
 *   regions  each thread packs and multiplies a strip or a batch of its own,
 *            or a part of a depth that is all there is to share
 *   whole    threads pack a slab of both operands together, then multiply
 *            tiles of it
 *
 * Which way, and where strips and tiles end, changes no bit of a result: every
 * element is summed up in slabs of the same depth.  Only a depth's parts do,
 * and they depend on the product's form alone.
 */
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include "cpu/gemm.h"

/* Depths of a slab: a band of b of that depth stays in the first cache. */
#define SLAB 256
/* Elements of b that are read as they lie: they stay in the second cache. */
#define LYING_ELEMENTS 65536
#define LYING_ROWS 16
/* A tile, at most: its part of a stays in the second cache. */
#define TILE_ROWS 128
#define TILE_COLUMNS 256
/* A side up to here is not cut, and the other cut in strips. */
#define STRIP_SIDE 64
#define STRIP 256
/* Sides of what is packed together. */
#define WHOLE_ROWS 2048
#define WHOLE_COLUMNS 4096
/* A product of no more elements and such a depth is cut into parts of it. */
#define PART_ELEMENTS 16384
#define PART_LEAST 4096
#define PART_DEPTH 1024
#define PARTS 64
/* Elements that are widened at a time. */
#define WIDE_ELEMENTS 2048
/* Of f32 in a line of the cache. */
#define LINE 16

struct tiles {
    struct product *product;
    const struct tandem_gemm *gemm;
    const struct kernels *kernels;
    struct pool *pool;
    void (*widen_ab)(float *y, const uint16_t *x, int64_t n); /* NULL: f32 */
    void (*widen_c)(float *y, const uint16_t *x, int64_t n);
    void (*narrow_c)(uint16_t *y, const float *x, int64_t n); /* NULL: f32 */
    bool ta, tb;
    int64_t threads;
    /* Regions: their most rows, columns and depths, and how many. */
    int64_t rows, columns, depth;
    int64_t row_regions, column_regions, parts;
    /* Rooms of one region; c: 0 where the matrix itself is written. */
    int64_t a_room, b_room, c_room;
    float *rooms, *sums; /* sums: of parts, one after the other */
    atomic_uchar *taken; /* of the threads' rooms */
};

/* A part of one product under way. */
struct region {
    const struct tiles *tiles;
    int64_t batch, row, column, from; /* from: of the depths */
    int64_t rows, columns, depth;
    float *a, *b; /* rooms for a packed slab */
    float *c;
    int64_t ld;
    float alpha, beta;
    bool whole; /* of the depths: it is finished here */
    /* The slab. */
    int64_t done, slab;
    int64_t tile_rows, tile_columns;
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

static void share(const struct tiles *tiles, bool together, uint32_t kind,
                  pool_fn fn, const void *work, int64_t tasks, int64_t units)
{
    if (together)
        pool_run(tiles->pool, kind, fn, work, tasks, units);
    else
        fn(work, 0, tasks);
}

/* ---- packing ------------------------------------------------------------ */

/* A band of outers (rows of a or columns of b) by the slab's depths, in width
 * elements a depth.  lines: an outer's depths lie side by side. */
static void band_pack(const struct region *region, float *to, int64_t width,
                      const struct tandem_matrix *matrix, bool lines,
                      int64_t outer, int64_t outers)
{
    const struct tiles *tiles = region->tiles;
    const struct kernels *kernels = tiles->kernels;
    uint32_t dtype = tiles->gemm->dtype;
    int64_t depth = region->from + region->done, ld = matrix->ld;
    const unsigned char *from =
        matrix_at(matrix, dtype, region->batch, lines ? outer : depth,
                  lines ? depth : outer);
    if (tiles->widen_ab == NULL) {
        const float *x = (const float *)(const void *)from;
        if (lines)
            kernels->pack_lines(to, width, x, ld, outers, region->slab);
        else
            kernels->pack_across(to, width, x, ld, outers, region->slab);
        return;
    }
    float wide[WIDE_ELEMENTS];
    const uint16_t *x = (const uint16_t *)(const void *)from;
    int64_t piece = WIDE_ELEMENTS / outers, n;
    for (int64_t done = 0; done < region->slab; done += n) {
        n = least(piece, region->slab - done);
        float *at = to + done * width;
        if (lines) {
            for (int64_t i = 0; i < outers; i++)
                tiles->widen_ab(wide + i * n, x + i * ld + done, n);
            kernels->pack_lines(at, width, wide, n, outers, n);
            continue;
        }
        for (int64_t i = 0; i < n; i++)
            tiles->widen_ab(wide + i * outers, x + (done + i) * ld, outers);
        kernels->pack_across(at, width, wide, outers, outers, n);
    }
}

/* Tasks are a's bands, then b's. */
static void bands_pack(const void *context, int64_t first, int64_t end)
{
    const struct region *region = context;
    const struct tiles *tiles = region->tiles;
    const struct kernels *kernels = tiles->kernels;
    int64_t height = kernels->cell_rows, width = kernels->cell_columns;
    int64_t a_bands = pieces(region->rows, height);
    for (int64_t task = first; task < end; task++) {
        if (task < a_bands) {
            int64_t row = task * height;
            band_pack(region, region->a + row * region->slab, height,
                      &tiles->gemm->a, !tiles->ta, region->row + row,
                      least(height, region->rows - row));
            continue;
        }
        int64_t column = (task - a_bands) * width;
        int64_t columns = least(width, region->columns - column);
        int64_t filled =
            columns <= kernels->vector_columns ? kernels->vector_columns
                                               : width;
        band_pack(region, region->b + column * region->slab, filled,
                  &tiles->gemm->b, tiles->tb, region->column + column,
                  columns);
    }
}

/* ---- c ------------------------------------------------------------------ */

/* What beta multiplies of an element of 16 bits. */
static void rows_begin(const struct region *region, int64_t row,
                       int64_t column, int64_t rows, int64_t columns)
{
    const struct tiles *tiles = region->tiles;
    const struct tandem_gemm *gemm = tiles->gemm;
    for (int64_t i = row; i < row + rows; i++)
        tiles->widen_c(region->c + i * region->ld + column,
                       (const uint16_t *)(const void *)matrix_at(
                           &gemm->c, gemm->c_dtype, region->batch,
                           region->row + i, region->column + column),
                       columns);
}

/* Bias and activation, and c's own type. */
static void rows_end(const struct region *region, int64_t row, int64_t column,
                     int64_t rows, int64_t columns)
{
    const struct tiles *tiles = region->tiles;
    const struct tandem_gemm *gemm = tiles->gemm;
    if (gemm->bias_kind == TANDEM_BIAS_NONE &&
        gemm->activation == TANDEM_OP_INVALID && tiles->narrow_c == NULL)
        return;
    for (int64_t i = row; i < row + rows; i++) {
        float *c = region->c + i * region->ld + column;
        product_row_finish(tiles->product, c, region->row + i,
                           region->column + column, columns);
        if (tiles->narrow_c != NULL)
            tiles->narrow_c((uint16_t *)(void *)matrix_at(
                                &gemm->c, gemm->c_dtype, region->batch,
                                region->row + i, region->column + column),
                            c, columns);
    }
}

/* ---- tiles -------------------------------------------------------------- */

static void tiles_multiply(const void *context, int64_t first, int64_t end)
{
    const struct region *region = context;
    const struct kernels *kernels = region->tiles->kernels;
    int64_t across = pieces(region->columns, region->tile_columns);
    bool begins = region->done == 0;
    bool ends = region->whole && region->done + region->slab == region->depth;
    for (int64_t task = first; task < end; task++) {
        int64_t row = task / across * region->tile_rows;
        int64_t column = task % across * region->tile_columns;
        struct block block = {
            .a = region->a + row * region->slab,
            .b = region->b + column * region->slab,
            .c = region->c + row * region->ld + column,
            .a_stride = kernels->cell_rows * region->slab,
            .b_stride = kernels->cell_columns * region->slab,
            .ld = region->ld,
            .rows = least(region->tile_rows, region->rows - row),
            .columns = least(region->tile_columns, region->columns - column),
            .depth = region->slab,
            .alpha = region->alpha,
            .beta = begins ? region->beta : 1.0f};
        if (begins && region->whole && block.beta != 0 &&
            region->tiles->narrow_c != NULL)
            rows_begin(region, row, column, block.rows, block.columns);
        kernels->packed_multiply(&block);
        if (ends)
            rows_end(region, row, column, block.rows, block.columns);
    }
}

/* Tiles of the region, small enough that each thread gets some where they are
 * shared: bands of cells. */
static void tiles_cut(struct region *region, bool together)
{
    const struct tiles *tiles = region->tiles;
    const struct kernels *kernels = tiles->kernels;
    int64_t height = kernels->cell_rows, width = kernels->cell_columns;
    int64_t rows = TILE_ROWS / height * height, columns = TILE_COLUMNS;
    int64_t wanted = together ? 2 * tiles->threads : 1;
    while (pieces(region->rows, rows) * pieces(region->columns, columns) <
               wanted &&
           (rows > 2 * height || columns > width))
        if (columns > 2 * rows || rows <= 2 * height)
            columns = columns / 2 / width * width;
        else
            rows = rows / 2 / height * height;
    region->tile_rows = rows;
    region->tile_columns = columns;
}

static void region_run(struct region *region, bool together)
{
    const struct tiles *tiles = region->tiles;
    const struct kernels *kernels = tiles->kernels;
    int64_t bands = pieces(region->rows, kernels->cell_rows) +
                    pieces(region->columns, kernels->cell_columns);
    tiles_cut(region, together);
    int64_t count = pieces(region->rows, region->tile_rows) *
                    pieces(region->columns, region->tile_columns);
    int64_t macs = least(region->tile_rows, region->rows) *
                   least(region->tile_columns, region->columns);
    for (region->done = 0; region->done < region->depth;
         region->done += region->slab) {
        region->slab = least(SLAB, region->depth - region->done);
        share(tiles, together, POOL_PRODUCT_PACK, bands_pack, region, bands,
              (region->rows + region->columns) * region->slab / bands);
        share(tiles, together, POOL_PRODUCT, tiles_multiply, region, count,
              macs * region->slab);
    }
}

/* ---- regions ------------------------------------------------------------ */

/* Number index of all regions, with room number slot. */
static void region_start(const struct tiles *tiles, struct region *out,
                         int64_t index, int64_t slot)
{
    const struct tandem_gemm *gemm = tiles->gemm;
    float *room = tiles->rooms +
                  slot * (tiles->a_room + tiles->b_room + tiles->c_room);
    memset(out, 0, sizeof *out);
    out->tiles = tiles;
    int64_t part = index % tiles->parts;
    out->column = index / tiles->parts % tiles->column_regions * tiles->columns;
    index /= tiles->parts * tiles->column_regions;
    out->row = index % tiles->row_regions * tiles->rows;
    out->batch = index / tiles->row_regions;
    out->rows = least(tiles->rows, gemm->m - out->row);
    out->columns = least(tiles->columns, gemm->n - out->column);
    out->from = part * tiles->depth;
    out->depth = least(tiles->depth, gemm->k - out->from);
    out->a = room;
    out->b = room + tiles->a_room;
    out->alpha = (float)gemm->alpha;
    out->beta = (float)gemm->beta;
    out->whole = tiles->parts == 1;
    out->ld = out->columns;
    if (!out->whole) {
        out->c = tiles->sums +
                 (out->batch * tiles->parts + part) * gemm->m * gemm->n;
        out->alpha = 1;
        out->beta = 0;
    } else if (tiles->c_room > 0) {
        out->c = room + tiles->a_room + tiles->b_room;
    } else {
        out->c = (float *)(void *)matrix_at(&gemm->c, TANDEM_F32, out->batch,
                                            out->row, out->column);
        out->ld = gemm->c.ld;
    }
}

static void regions_run(const void *context, int64_t first, int64_t end)
{
    const struct tiles *tiles = context;
    struct region region;
    int64_t slot = 0;
    while (atomic_exchange(&tiles->taken[slot], 1) != 0)
        slot = slot + 1 < tiles->threads ? slot + 1 : 0;
    for (int64_t index = first; index < end; index++) {
        region_start(tiles, &region, index, slot);
        region_run(&region, false);
    }
    atomic_store(&tiles->taken[slot], 0);
}

/* Tasks are rows of all batches: c = alpha (the parts' sum) + beta c. */
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
                                .ld = gemm->n};
        float *sum = tiles->sums + region.batch * tiles->parts * elements +
                     region.row * gemm->n;
        for (int64_t part = 1; part < tiles->parts; part++)
            for (int64_t i = 0; i < gemm->n; i++)
                sum[i] += sum[part * elements + i];
        float *c = sum + elements; /* parts are two or more */
        if (tiles->narrow_c == NULL)
            c = (float *)(void *)matrix_at(&gemm->c, TANDEM_F32, region.batch,
                                           region.row, 0);
        region.c = c;
        if (tiles->narrow_c != NULL && beta != 0)
            rows_begin(&region, 0, 0, 1, gemm->n);
        for (int64_t i = 0; i < gemm->n; i++)
            c[i] = alpha * sum[i] + (beta != 0 ? beta * c[i] : 0.0f);
        rows_end(&region, 0, 0, 1, gemm->n);
    }
}

/* ---- lying -------------------------------------------------------------- */

/* Tasks are bands of LYING_ROWS rows of all batches. */
static void lying_run(const void *context, int64_t first, int64_t end)
{
    const struct tiles *tiles = context;
    const struct tandem_gemm *gemm = tiles->gemm;
    int64_t bands = pieces(gemm->m, LYING_ROWS), count;
    for (; first < end; first += count) {
        int64_t band = first % bands;
        count = least(end - first, bands - band);
        struct region region = {.tiles = tiles, .batch = first / bands};
        int64_t row = band * LYING_ROWS;
        int64_t rows = least(count * LYING_ROWS, gemm->m - row);
        region.c = (float *)(void *)matrix_at(&gemm->c, TANDEM_F32,
                                              region.batch, 0, 0);
        region.ld = gemm->c.ld;
        struct block block = {
            .a = (const float *)(const void *)matrix_at(
                &gemm->a, TANDEM_F32, region.batch, tiles->ta ? 0 : row,
                tiles->ta ? row : 0),
            .b = (const float *)(const void *)matrix_at(
                &gemm->b, TANDEM_F32, region.batch, 0, 0),
            .c = region.c + row * region.ld,
            .a_stride = tiles->ta ? 1 : gemm->a.ld,
            .a_depth = tiles->ta ? gemm->a.ld : 1,
            .b_stride = gemm->b.ld,
            .ld = gemm->c.ld,
            .rows = rows,
            .columns = gemm->n,
            .alpha = (float)gemm->alpha,
            .beta = (float)gemm->beta};
        for (int64_t done = 0; done < gemm->k; done += SLAB) {
            block.depth = least(SLAB, gemm->k - done);
            tiles->kernels->lying_multiply(&block);
            block.a += SLAB * block.a_depth;
            block.b += SLAB * block.b_stride;
            block.beta = 1;
        }
        rows_end(&region, row, 0, rows, gemm->n);
    }
}

/* ---- the whole ---------------------------------------------------------- */

static bool lying_suits(const struct tiles *tiles)
{
    const struct tandem_gemm *gemm = tiles->gemm;
    return tiles->widen_ab == NULL && tiles->narrow_c == NULL && !tiles->tb &&
           tiles->parts == 1 && gemm->k * gemm->n <= LYING_ELEMENTS;
}

/* How the product is cut; true where each region is one thread's. */
static bool regions_cut(struct tiles *tiles)
{
    const struct tandem_gemm *gemm = tiles->gemm;
    bool few_rows = gemm->m <= STRIP_SIDE, few_columns = gemm->n <= STRIP_SIDE;
    bool alone = tiles->threads == 1 || tiles->parts > 1 || few_rows ||
                 few_columns ||
                 (gemm->batch >= 2 * tiles->threads &&
                  gemm->m + gemm->n <= WHOLE_ROWS);
    tiles->rows = least(gemm->m, few_columns ? STRIP : WHOLE_ROWS);
    tiles->columns = least(gemm->n, few_rows ? STRIP : WHOLE_COLUMNS);
    tiles->row_regions = pieces(gemm->m, tiles->rows);
    tiles->column_regions = pieces(gemm->n, tiles->columns);
    return alone;
}

/* Cuts the depth, where the product is all depth. */
static void parts_cut(struct tiles *tiles)
{
    const struct tandem_gemm *gemm = tiles->gemm;
    tiles->parts = 1;
    tiles->depth = gemm->k;
    if (gemm->k < PART_LEAST || gemm->m * gemm->n > PART_ELEMENTS)
        return;
    int64_t depth = pieces(pieces(gemm->k, PARTS), SLAB) * SLAB;
    tiles->depth = depth > PART_DEPTH ? depth : PART_DEPTH;
    tiles->parts = pieces(gemm->k, tiles->depth);
}

static int64_t to_lines(int64_t elements)
{
    return pieces(elements, LINE) * LINE;
}

/* Room for slots regions, for the parts' sums and for bias, which is made f32
 * here. */
static enum tandem_status rooms_make(struct tiles *tiles,
                                     struct tandem_device *device,
                                     int64_t slots,
                                     struct tandem_buffer **out_memory)
{
    const struct tandem_gemm *gemm = tiles->gemm;
    int64_t slab = least(SLAB, tiles->depth);
    int64_t height = tiles->kernels->cell_rows;
    int64_t width = tiles->kernels->cell_columns;
    int64_t biases = tiles->narrow_c == NULL ||
                             gemm->bias_kind == TANDEM_BIAS_NONE
                         ? 0
                     : gemm->bias_kind == TANDEM_BIAS_PER_COLUMN ? gemm->n
                                                                 : gemm->m;
    int64_t sums = 0;
    tiles->a_room = to_lines(pieces(tiles->rows, height) * height * slab);
    tiles->b_room = to_lines(pieces(tiles->columns, width) * width * slab);
    if (tiles->parts > 1)
        sums = to_lines(gemm->batch * tiles->parts * gemm->m * gemm->n);
    else if (tiles->narrow_c != NULL)
        tiles->c_room = to_lines(tiles->rows * tiles->columns);
    int64_t rooms =
        slots * (tiles->a_room + tiles->b_room + tiles->c_room);
    uint64_t bytes = (uint64_t)(rooms + sums + to_lines(biases)) *
                         sizeof(float) +
                     (uint64_t)slots;
    enum tandem_status status = memory_alloc(device, bytes, out_memory);
    if (status != TANDEM_OK)
        return status;
    tiles->rooms = (float *)(void *)(*out_memory)->base;
    tiles->sums = tiles->rooms + rooms;
    float *bias = tiles->sums + sums;
    tiles->taken = (atomic_uchar *)(void *)(bias + to_lines(biases));
    memset((void *)tiles->taken, 0, (size_t)slots);
    if (biases > 0) {
        tiles->widen_c(bias,
                       (const uint16_t *)(const void *)(gemm->bias->base +
                                                        gemm->bias_byte_offset),
                       biases);
        tiles->product->bias = bias;
    }
    return TANDEM_OK;
}

static void regions_multiply(struct tiles *tiles, bool alone)
{
    const struct tandem_gemm *gemm = tiles->gemm;
    int64_t count = gemm->batch * tiles->row_regions *
                    tiles->column_regions * tiles->parts;
    if (alone) {
        pool_run(tiles->pool, POOL_PRODUCT_REGION, regions_run, tiles, count,
                 tiles->rows * tiles->columns * tiles->depth);
    } else {
        for (int64_t index = 0; index < count; index++) {
            struct region region;
            region_start(tiles, &region, index, 0);
            region_run(&region, true);
        }
    }
    if (tiles->parts > 1)
        pool_run(tiles->pool, POOL_PRODUCT_JOIN, parts_join, tiles,
                 gemm->batch * gemm->m, gemm->n * tiles->parts);
}

enum tandem_status tiles_run(struct tandem_device *device,
                             struct product *product)
{
    const struct tandem_gemm *gemm = product->gemm;
    const struct kernels *kernels = product->kernels;
    bool bf16_c = gemm->c_dtype == TANDEM_BF16;
    struct tandem_buffer *memory = NULL;
    struct tiles tiles = {
        .product = product,
        .gemm = gemm,
        .kernels = kernels,
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
        .threads = pool_threads(device->pool)};
    parts_cut(&tiles);
    if (lying_suits(&tiles)) {
        pool_run(tiles.pool, POOL_PRODUCT_LYING, lying_run, &tiles,
                 gemm->batch * pieces(gemm->m, LYING_ROWS),
                 least(LYING_ROWS, gemm->m) * gemm->n * gemm->k);
        return TANDEM_OK;
    }
    bool alone = regions_cut(&tiles);
    enum tandem_status status =
        rooms_make(&tiles, device, alone ? tiles.threads : 1, &memory);
    if (status == TANDEM_OK)
        regions_multiply(&tiles, alone);
    memory_free(memory);
    return status;
}
