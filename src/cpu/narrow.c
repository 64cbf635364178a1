/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products with few rows, or columns: a matrix by one vector, or by few, which
 * takes as long as reading the matrix once.
 */
#include "cpu/narrow.h"

#include <string.h>

/* Vectors, and with more than one the multiplications, from which on a CBLAS
 * is slower: OpenBLAS has kernels for small products, and copies the operands
 * of others. */
#define MOST_VECTORS 8
#define LEAST_WORK (1 << 20)
/* Sums, and elements of vectors that lie apart, on a task's stack. */
#define SUMS 8192
#define PACKED 4096
/* Rows along k whose sums are in cache until all vectors are done; columns
 * across k that are read side by side. */
#define BLOCK_ROWS 64
#define BLOCK_COLUMNS 4096
#define BLOCK_LEAST 256
/* Rows that are read as so many streams, or that are in cache anyhow. */
#define DEEP 8
#define DEEP_CACHED 32
#define CACHED_ELEMENTS 16384

struct narrow {
    const struct kernels *kernels;
    /* The matrix: rows by k, with k contiguous or (outer) the rows. */
    const float *matrix;
    int64_t rows, k, ld, matrix_batch;
    bool outer;
    /* The vectors. */
    const float *vectors;
    int64_t count, apart, step, vectors_batch;
    float *c;
    int64_t c_row, c_vector, c_batch;
    float alpha, beta;
    int64_t block, blocks; /* of the matrix's rows */
};

bool narrow_takes(const struct tandem_gemm *gemm,
                  const struct kernels *kernels)
{
    int64_t count = gemm->m < gemm->n ? gemm->m : gemm->n;
    int64_t rows = gemm->m < gemm->n ? gemm->n : gemm->m;
    return kernels->rows_dot != NULL && gemm->k > 0 && gemm->alpha != 0 &&
           (count == 1 || (count <= MOST_VECTORS &&
                           (double)count * (double)rows * (double)gemm->k >
                               LEAST_WORK));
}

/* ---- a task ------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Adds the products of deep elements of each vector to the sums of rows rows;
 * vector i's are i * apart from the first's. */
static void panel_add(const struct narrow *narrow, float *sums,
                      const float *matrix, int64_t rows, int64_t deep,
                      const float *vectors, int64_t apart)
{
    if (!narrow->outer) {
        for (int64_t i = 0; i < narrow->count; i++)
            narrow->kernels->rows_dot(sums + i * rows, matrix, narrow->ld,
                                      rows, deep, vectors + i * apart);
        return;
    }
    int64_t step =
        narrow->rows * narrow->k <= CACHED_ELEMENTS ? DEEP_CACHED : DEEP;
    for (int64_t at = 0; at < deep; at += step)
        for (int64_t i = 0; i < narrow->count; i++)
            narrow->kernels->columns_dot(
                sums + i * rows, matrix + at * narrow->ld, narrow->ld,
                least(deep - at, step), rows, vectors + i * apart + at);
}

static void vectors_pack(const struct narrow *narrow, float *out,
                         const float *vectors, int64_t deep)
{
    for (int64_t i = 0; i < narrow->count; i++)
        for (int64_t k = 0; k < deep; k++)
            *out++ = vectors[i * narrow->apart + k * narrow->step];
}

static void sums_store(const struct narrow *narrow, float *c,
                       const float *sums, int64_t rows)
{
    if (narrow->c_row == 1 && narrow->beta == 0) {
        for (int64_t i = 0; i < narrow->count; i++)
            narrow->kernels->scale_row(c + i * narrow->c_vector,
                                       sums + i * rows, rows, narrow->alpha);
        return;
    }
    for (int64_t i = 0; i < narrow->count; i++)
        for (int64_t row = 0; row < rows; row++) {
            float *to = c + row * narrow->c_row + i * narrow->c_vector;
            float x = narrow->alpha * *sums++;
            *to = narrow->beta == 0 ? x : x + narrow->beta * *to;
        }
}

static void block_run(const struct narrow *narrow, int64_t batch,
                      int64_t first)
{
    float sums[SUMS], packed[PACKED];
    int64_t rows = least(narrow->rows - first, narrow->block);
    const float *matrix = narrow->matrix + batch * narrow->matrix_batch +
                          first * (narrow->outer ? 1 : narrow->ld);
    const float *vectors = narrow->vectors + batch * narrow->vectors_batch;
    bool packs = narrow->step != 1;
    int64_t panel = packs || !narrow->outer ? PACKED / narrow->count
                                            : narrow->k;
    memset(sums, 0, (size_t)(narrow->count * rows) * sizeof(float));
    for (int64_t k = 0; k < narrow->k; k += panel) {
        int64_t deep = least(narrow->k - k, panel);
        const float *from = vectors + k * narrow->step;
        if (packs)
            vectors_pack(narrow, packed, from, deep);
        panel_add(narrow, sums, matrix + k * (narrow->outer ? narrow->ld : 1),
                  rows, deep, packs ? packed : from,
                  packs ? deep : narrow->apart);
    }
    sums_store(narrow,
               narrow->c + batch * narrow->c_batch + first * narrow->c_row,
               sums, rows);
}

/* Tasks are the blocks of all batches. */
static void blocks_run(const void *context, int64_t first, int64_t end)
{
    const struct narrow *narrow = context;
    for (int64_t task = first; task < end; task++)
        block_run(narrow, task / narrow->blocks,
                  task % narrow->blocks * narrow->block);
}

/* ---- the product -------------------------------------------------------- */

/* As many blocks as threads want, of no less than keeps a stream going. */
static void blocks_cut(struct narrow *narrow, uint32_t threads)
{
    int64_t most = narrow->outer ? BLOCK_COLUMNS : BLOCK_ROWS;
    narrow->block = least(most, SUMS / narrow->count);
    if (narrow->outer && threads > 1) {
        int64_t share = (narrow->rows + threads - 1) / threads;
        share = (share + BLOCK_LEAST - 1) / BLOCK_LEAST * BLOCK_LEAST;
        narrow->block = least(narrow->block, share);
    }
    narrow->blocks = (narrow->rows + narrow->block - 1) / narrow->block;
}

/* An operand as rows of m, or n, by k. */
struct side {
    const struct tandem_matrix *matrix;
    const float *data;
    int64_t rows;
    bool outer;
};

void narrow_run(const struct tandem_gemm *gemm, const struct kernels *kernels,
                struct pool *pool, const float *a, const float *b, float *c)
{
    const struct side sides[2] = {
        {&gemm->a, a, gemm->m, (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0},
        {&gemm->b, b, gemm->n, (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) == 0}};
    bool across = gemm->m < gemm->n; /* c's rows are the vectors' */
    const struct side *wide = &sides[across], *thin = &sides[!across];
    struct narrow narrow = {
        .kernels = kernels,
        .matrix = wide->data,
        .rows = wide->rows,
        .k = gemm->k,
        .ld = wide->matrix->ld,
        .matrix_batch = wide->matrix->batch_stride,
        .outer = wide->outer,
        .vectors = thin->data,
        .count = thin->rows,
        .apart = thin->outer ? 1 : thin->matrix->ld,
        .step = thin->outer ? thin->matrix->ld : 1,
        .vectors_batch = thin->matrix->batch_stride,
        .c = c,
        .c_row = across ? 1 : gemm->c.ld,
        .c_vector = across ? gemm->c.ld : 1,
        .c_batch = gemm->c.batch_stride,
        .alpha = (float)gemm->alpha,
        .beta = (float)gemm->beta};
    blocks_cut(&narrow, pool_threads(pool));
    pool_run(pool, blocks_run, &narrow, narrow.blocks * gemm->batch,
             narrow.block * narrow.k * narrow.count);
}
