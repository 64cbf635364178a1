/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products of blocks in vectors.  A cell of ROWS rows by two vectors of
 * columns is kept in registers along the whole depth of a block.  An element
 * goes through the same instructions in every cell, so that its bits do not
 * depend on where blocks are cut.
 */
#include "config.h"

#include "cpu/simd/room.h"
#include "cpu/simd/vector.h"

#define VECTORS 2
#define COLUMNS (VECTORS * LANES)
/* As many sums as there are registers for, beside a row of b and an element
 * of a; with 32 registers 8 rows keep the multipliers busy already, and divide
 * what is usual. */
#define ROWS (LANES == 8 ? 6 : 8)

/* Where a cell's operands lie: element (row, depth) of a at a[row * a_row +
 * depth * a_depth], row depth of b at b + depth * b_depth. */
struct cell {
    const float *a, *b;
    float *c;
    int64_t a_row, a_depth, b_depth, depth, ld;
    int64_t last; /* lanes of the last vector, where it is partial */
    float alpha, beta;
};

static inline vf lanes_load(const float *p, bool partial, int64_t lanes)
{
    return partial ? vf_load_part(p, lanes, vf_set(0)) : vf_load(p);
}

static inline void result_store(const struct cell *cell, float *c, vf sum,
                                bool partial)
{
    vf y = vf_mul(vf_set(cell->alpha), sum);
    if (cell->beta != 0)
        y = vf_fma(vf_set(cell->beta), lanes_load(c, partial, cell->last), y);
    if (partial)
        vf_store_part(c, cell->last, y);
    else
        vf_store(c, y);
}

/* The cell of rows by vectors; partial: the last vector; b_partial: it has to
 * be loaded so.  All four are constants where this is called. */
static inline __attribute__((always_inline)) void
cell_run(const struct cell *cell, int rows, int vectors, bool partial,
         bool b_partial)
{
    const float *a = cell->a, *b = cell->b;
    int64_t a_row = cell->a_row, a_depth = cell->a_depth;
    int64_t b_depth = cell->b_depth;
    vf sums[ROWS][VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            sums[i][j] = vf_set(0);
    for (int64_t k = cell->depth; k > 0; k--, a += a_depth, b += b_depth) {
        vf row[VECTORS];
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            row[j] = lanes_load(b + j * LANES, b_partial && j == vectors - 1,
                                cell->last);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            vf x = vf_set(a[i * a_row]);
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++)
                sums[i][j] = vf_fma(x, row[j], sums[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            result_store(cell, cell->c + i * cell->ld + j * LANES, sums[i][j],
                         partial && j == vectors - 1);
}

/* ---- packed operands ---------------------------------------------------- */

typedef void (*cell_fn)(const struct cell *cell);

/* As packed: the strides are constants, too. */
#define PACKED_CELL(rows)                                                      \
    static void packed_##rows(const struct cell *from)                         \
    {                                                                          \
        struct cell cell = *from;                                              \
        cell.a_row = 1;                                                        \
        cell.a_depth = ROWS;                                                   \
        if (cell.last == COLUMNS) {                                            \
            cell.b_depth = COLUMNS;                                            \
            cell_run(&cell, rows, 2, false, false);                            \
        } else if (cell.last > LANES) {                                        \
            cell.b_depth = COLUMNS;                                            \
            cell.last -= LANES;                                                \
            cell_run(&cell, rows, 2, true, false);                             \
        } else {                                                               \
            cell.b_depth = LANES;                                              \
            if (cell.last == LANES)                                            \
                cell_run(&cell, rows, 1, false, false);                        \
            else                                                               \
                cell_run(&cell, rows, 1, true, false);                         \
        }                                                                      \
    }

/* As operands lie. */
#define LYING_CELL(rows)                                                       \
    static void lying_##rows(const struct cell *from)                          \
    {                                                                          \
        struct cell cell = *from;                                              \
        if (cell.last == COLUMNS) {                                            \
            cell_run(&cell, rows, 2, false, false);                            \
        } else if (cell.last > LANES) {                                        \
            cell.last -= LANES;                                                \
            cell_run(&cell, rows, 2, true, true);                              \
        } else if (cell.last == LANES) {                                       \
            cell_run(&cell, rows, 1, false, false);                            \
        } else {                                                               \
            cell_run(&cell, rows, 1, true, true);                              \
        }                                                                      \
    }

#if LANES == 8
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#else
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#endif
EACH_ROWS(PACKED_CELL)
EACH_ROWS(LYING_CELL)
#define PACKED_ENTRY(rows) packed_##rows,
#define LYING_ENTRY(rows) lying_##rows,
static const cell_fn packed_cells[] = {EACH_ROWS(PACKED_ENTRY)};
static const cell_fn lying_cells[] = {EACH_ROWS(LYING_ENTRY)};

static void packed_multiply(const struct block *block)
{
    struct cell cell = {.depth = block->depth,
                        .ld = block->ld,
                        .alpha = block->alpha,
                        .beta = block->beta};
    for (int64_t j = 0; j < block->columns; j += COLUMNS) {
        int64_t columns = block->columns - j;
        cell.b = block->b + j / COLUMNS * block->b_stride;
        for (int64_t i = 0; i < block->rows; i += ROWS) {
            int64_t rows = block->rows - i < ROWS ? block->rows - i : ROWS;
            cell.a = block->a + i / ROWS * block->a_stride;
            cell.c = block->c + i * block->ld + j;
            cell.last = columns < COLUMNS ? columns : COLUMNS;
            packed_cells[rows - 1](&cell);
        }
    }
}

static void lying_multiply(const struct block *block)
{
    struct cell cell = {.a_row = block->a_stride,
                        .a_depth = block->a_depth,
                        .b_depth = block->b_stride,
                        .depth = block->depth,
                        .ld = block->ld,
                        .alpha = block->alpha,
                        .beta = block->beta};
    for (int64_t j = 0; j < block->columns; j += COLUMNS) {
        int64_t columns = block->columns - j;
        cell.b = block->b + j;
        for (int64_t i = 0; i < block->rows; i += ROWS) {
            int64_t rows = block->rows - i < ROWS ? block->rows - i : ROWS;
            cell.a = block->a + i * block->a_stride;
            cell.c = block->c + i * block->ld + j;
            cell.last = columns < COLUMNS ? columns : COLUMNS;
            lying_cells[rows - 1](&cell);
        }
    }
}

static void pack_across(float *to, int64_t width, const float *x, int64_t ld,
                        int64_t n, int64_t depth)
{
    vf zero = vf_set(0);
    for (int64_t k = 0; k < depth; k++, to += width, x += ld)
        for (int64_t i = 0; i < width; i += LANES) {
            vf p = n - i >= LANES ? vf_load(x + i)
                   : n > i        ? vf_load_part(x + i, n - i, zero)
                                  : zero;
            if (width - i >= LANES)
                vf_store(to + i, p);
            else
                vf_store_part(to + i, width - i, p);
        }
}

void ISA(product_kernels)(struct kernels *table)
{
    table->cell_rows = ROWS;
    table->cell_columns = COLUMNS;
    table->vector_columns = LANES;
    table->packed_multiply = packed_multiply;
    table->lying_multiply = lying_multiply;
    table->pack_across = pack_across;
}
