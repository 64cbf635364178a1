/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated DIRECTORY COMPILER OPTION...: plans products for the tensor cores of
 * NVIDIA GPUs, compiles their kernels for this processor into DIRECTORY, runs
 * them step by step, and compares with the same in double.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/float16.h"
#include "ptx_emulator.h"
#include "opencl/memory/buffer.h"
#include "opencl/plan/gemm_plan.h"
#include "host_compiled_kernel.h"

#define GROUP_LOG2 8u

static struct compiler compiler;

/* ---- products ---- */

struct product_case {
    const char *tile;
    int64_t m, n, k, batch;
    uint32_t flags, splits;
    int64_t pad[3]; /* of a's, b's and c's rows */
    float beta;
    enum { UNIFORM, SCALED, TINY, INFINITE } numbers;
    uint32_t dtype; /* of a and b; 0: f32 */
    uint32_t split_tiles; /* tiles whose k is in chunks; 0: all */
};

#define TA TANDEM_GEMM_TRANSPOSE_A
#define TB TANDEM_GEMM_TRANSPOSE_B
/* No flag of gemm's: all batches have one a. */
#define ONE_A (1u << 31)

static const struct product_case cases[] = {
    /* Rows along k, and across it; edges of tiles, slices and pieces. */
    {"tf32-128x256", 132, 260, 100, 1, TB, 1, {4, 8, 3}, 0, UNIFORM, 0, 0},
    {"tf32-128x256", 132, 260, 37, 1, TA, 1, {0, 0, 0}, 2, UNIFORM, 0, 0},
    {"tf32-128x64", 132, 68, 100, 2, TA | TB, 2, {0, 4, 0}, -1, UNIFORM, 0, 2},
    {"tf32-128x64", 131, 67, 101, 2, 0, 1, {0, 0, 0}, 0, UNIFORM, 0, 0},
    {"tf32-128x64", 3, 5, 7, 1, 0, 1, {0, 0, 0}, 0, INFINITE, 0, 0},
    {"fp16x3-128x128", 132, 140, 100, 1, 0, 1, {0, 0, 4}, 0.5f, SCALED, 0, 0},
    {"fp16x3-128x128",
     260,
     132,
     300,
     1,
     TA | TB,
     3,
     {0, 0, 0},
     0,
     INFINITE,
     0,
     2},
    {"fp16x3-64x64", 67, 131, 101, 2, TA, 1, {1, 2, 3}, 1, INFINITE, 0, 0},
    {"fp16x3-64x64", 67, 65, 96, 1, TB, 2, {0, 0, 0}, 0, TINY, 0, 0},
    {"fp16x3-64x64", 20, 5, 2100, 1, TB, 1, {0, 0, 0}, 0, SCALED, 0, 0},
    {"fp16x3-64x64", 18, 35, 2048, 1, 0, 1, {0, 0, 0}, 0, SCALED, 0, 0},
    {"fp16x3-64x64", 1, 1, 1, 1, 0, 1, {0, 0, 0}, 0, UNIFORM, 0, 0},
    /* Lines that are not aligned; and too long to be kept. */
    {"fp16x3-128x128", 131, 33, 99, 1, 0, 1, {2, 0, 0}, 0, INFINITE, 0, 0},
    {"fp16x3-64x64", 5, 9, 4129, 1, TB, 1, {3, 3, 0}, 0, INFINITE, 0, 0},
    /* Aligned lines, of which the last four are not all the matrix's. */
    {"fp16x3-64x64", 9, 10, 157, 2, TB, 1, {3, 3, 1}, 0, UNIFORM, 0, 0},
    {"16bit-128x256", 136, 264, 200, 1, 0, 1, {0}, 0, UNIFORM, TANDEM_F16, 0},
    {"16bit-128x256",
     136,
     264,
     75,
     1,
     TA,
     2,
     {0, 3},
     1,
     UNIFORM,
     TANDEM_BF16,
     0},
    {"16bit-128x64", 67, 65, 131, 2, TB, 1, {5, 7}, 0, UNIFORM, TANDEM_F16, 0},
    {"16bit-128x64", 3, 5, 7, 1, TA | TB, 1, {0}, 0, INFINITE, TANDEM_F16, 0},
    /* Sums that are saved: of whole tiles, and of chunks. */
    {"16bit-128x64", 131, 3, 3300, 1, 0, 2, {0}, 0, UNIFORM, TANDEM_BF16, 1},
    {"16bit-128x256", 8, 8, 1600, 1, TB, 1, {0}, 0, UNIFORM, TANDEM_F16, 0},
    /* By wgmma.  Of TF32 the copy engine brings what lies along k: pads, edges
     * of tiles and slices, chunks, batches, one operand or both. */
    {"wgmma-tf32-256x128",
     300,
     140,
     100,
     1,
     TB,
     1,
     {4, 8, 3},
     0,
     UNIFORM,
     0,
     0},
    {"wgmma-tf32-256x128",
     260,
     132,
     132,
     2,
     TB,
     2,
     {0, 4, 0},
     2,
     UNIFORM,
     0,
     3},
    {"wgmma-tf32-128x128", 132, 129, 68, 3, TB, 1, {0, 4, 1}, 0, UNIFORM, 0, 0},
    {"wgmma-tf32-128x128", 70, 260, 101, 2, 0, 1, {3, 0, 0}, 0, UNIFORM, 0, 0},
    {"wgmma-tf32-128x128", 5, 9, 36, 1, TA | TB, 1, {0}, -1, UNIFORM, 0, 0},
    {"wgmma-tf32-128x128", 3, 5, 8, 1, TB, 1, {0}, 0, INFINITE, 0, 0},
    {"wgmma-tf32-128x128",
     140,
     20,
     64,
     4,
     TB | ONE_A,
     1,
     {0},
     0,
     UNIFORM,
     0,
     0},
    {"wgmma-3xtf32-128x64", 130, 67, 100, 2, 0, 2, {1, 0, 0}, 0, SCALED, 0, 1},
    {"wgmma-3xtf32-128x128", 140, 132, 70, 1, TB, 1, {0}, 1, INFINITE, 0, 0},
    {"wgmma-fp16x3-128x128", 140, 130, 100, 1, TA, 1, {0}, 0, SCALED, 0, 0},
    {"wgmma-fp16x3-128x64", 67, 65, 96, 2, TB, 2, {0}, 0.5f, INFINITE, 0, 0},
    {"wgmma-16bit-128x128",
     136,
     130,
     200,
     2,
     TB,
     1,
     {0},
     0,
     UNIFORM,
     TANDEM_F16,
     0},
    {"wgmma-16bit-128x64",
     136,
     72,
     600,
     1,
     TA,
     2,
     {0},
     1,
     UNIFORM,
     TANDEM_BF16,
     0},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

struct matrix {
    struct tandem_buffer buffer;
    float *elements;
    uint16_t *stored; /* of 16 bits */
    int64_t ld, plane;
};

/* In [-1, 1). */
static float number_next(void)
{
    static uint32_t seed = 1;
    seed = seed * 1664525u + 1013904223u;
    return (float)(int32_t)seed / 2147483648.0f;
}

static bool matrix_make(struct matrix *out, int64_t rows, int64_t columns,
                        int64_t pad, int64_t batch)
{
    memset(out, 0, sizeof(*out));
    out->ld = columns + pad;
    out->plane = rows * out->ld;
    size_t count = (size_t)(out->plane * batch);
    out->elements =
        aligned_alloc(256, (count * sizeof(float) + 255) / 256 * 256);
    out->buffer.mem = (cl_mem)(void *)out->elements;
    for (size_t i = 0; out->elements != NULL && i < count; i++)
        out->elements[i] = number_next();
    return out->elements != NULL;
}

struct product_run {
    const struct product_case *of;
    struct tandem_gemm gemm;
    enum gemm_kernel_id tile;
    struct matrix a, b, c;
    float *before; /* c's elements */
    bool mapped[OPERAND_COUNT]; /* rounded by the copy engine */
};

static float *a_at(const struct product_run *run, int64_t batch, int64_t row,
                   int64_t k)
{
    bool turned = (run->of->flags & TA) != 0;
    return run->a.elements + batch * run->gemm.a.batch_stride +
           (turned ? k * run->a.ld + row : row * run->a.ld + k);
}

static float *b_at(const struct product_run *run, int64_t batch, int64_t column,
                   int64_t k)
{
    bool turned = (run->of->flags & TB) != 0;
    return run->b.elements + batch * run->b.plane +
           (turned ? column * run->b.ld + k : k * run->b.ld + column);
}

/* Huge numbers past the ends of rows, of which nothing may come. */
static void pads_set(struct matrix *matrix, int64_t pad, int64_t batch)
{
    for (int64_t i = 0; i < matrix->plane * batch; i++)
        if (i % matrix->ld >= matrix->ld - pad)
            matrix->elements[i] = 3e38f;
}

/* Rows and columns of very different sizes; elements too small for a half, or
 * for f32's own digits; what is not finite, in the last tiles. */
static void numbers_set(struct product_run *run)
{
    const struct product_case *of = run->of;
    for (int64_t row = 0; row < of->m; row++)
        for (int64_t k = 0; k < of->k; k++) {
            if (of->numbers == SCALED)
                *a_at(run, 0, row, k) *= ldexpf(1, (int)(row * 7 % 41) - 20);
            if (of->numbers == TINY)
                *a_at(run, 0, row, k) *= row % 2 ? 1e-44f : 1e-30f;
        }
    for (int64_t column = 0; column < of->n; column++)
        for (int64_t k = 0; k < of->k; k++) {
            if (of->numbers == SCALED)
                *b_at(run, 0, column, k) *=
                    ldexpf(1, (int)(column * 5 % 41) - 20);
            if (of->numbers == TINY)
                *b_at(run, 0, column, k) *= column % 2 ? 1e25f : 1e30f;
        }
    if (of->numbers == INFINITE) {
        *a_at(run, of->batch - 1, of->m - 1, of->k / 2) = INFINITY;
        *b_at(run, 0, of->n - 1, 1) = NAN;
    }
}

/* The elements as they are stored, and as they are read then. */
static bool matrix_narrow(struct matrix *matrix, uint32_t dtype, int64_t batch)
{
    size_t count = (size_t)(matrix->plane * batch);
    matrix->stored = aligned_alloc(256, (count * 2 + 255) / 256 * 256);
    matrix->buffer.mem = (cl_mem)(void *)matrix->stored;
    for (size_t i = 0; matrix->stored != NULL && i < count; i++) {
        float *x = &matrix->elements[i];
        matrix->stored[i] =
            dtype == TANDEM_F16 ? f16_round(*x) : bf16_round(*x);
        *x = dtype == TANDEM_F16 ? f16_value(matrix->stored[i])
                                 : bf16_value(matrix->stored[i]);
    }
    return matrix->stored != NULL;
}

static bool run_make(struct product_run *run, const struct product_case *of)
{
    bool ta = (of->flags & TA) != 0, tb = (of->flags & TB) != 0;
    memset(run, 0, sizeof(*run));
    run->of = of;
    while (strcmp(gemm_configs[run->tile].name, of->tile) != 0)
        run->tile++;
    if (!matrix_make(&run->a, ta ? of->k : of->m, ta ? of->m : of->k,
                     of->pad[0], of->batch) ||
        !matrix_make(&run->b, tb ? of->n : of->k, tb ? of->k : of->n,
                     of->pad[1], of->batch) ||
        !matrix_make(&run->c, of->m, of->n, of->pad[2], of->batch))
        return false;
    size_t bytes = (size_t)(run->c.plane * of->batch) * sizeof(float);
    run->before = malloc(bytes);
    if (run->before == NULL)
        return false;
    memcpy(run->before, run->c.elements, bytes);
    run->gemm = (struct tandem_gemm){
        .struct_size = sizeof(run->gemm),
        .dtype = TANDEM_F32,
        .flags = (of->flags & ~ONE_A) | TANDEM_GEMM_ALLOW_TF32 |
                 TANDEM_GEMM_ALLOW_NORMWISE_ERROR,
        .m = of->m,
        .n = of->n,
        .k = of->k,
        .batch = of->batch,
        .alpha = 1,
        .beta = of->beta,
        .a = {&run->a.buffer, 0, run->a.ld,
              (of->flags & ONE_A) != 0 ? 0 : run->a.plane},
        .b = {&run->b.buffer, 0, run->b.ld, run->b.plane},
        .c = {&run->c.buffer, 0, run->c.ld, run->c.plane},
        .c_dtype = TANDEM_F32};
    uint64_t key = tensor_core_variant_key(&run->gemm, run->tile);
    bool maps = KEY_KERNEL(key) == KERNEL_GEMM_WGMMA;
    run->mapped[OPERAND_A] = maps && KEY_A_LAYOUT(key) == LAYOUT_K_MAJOR;
    run->mapped[OPERAND_B] = maps && KEY_B_LAYOUT(key) == LAYOUT_K_MAJOR;
    pads_set(&run->a, of->pad[0], of->batch);
    pads_set(&run->b, of->pad[1], of->batch);
    numbers_set(run);
    if (of->dtype == 0)
        return true;
    run->gemm.dtype = of->dtype;
    return matrix_narrow(&run->a, of->dtype, of->batch) &&
           matrix_narrow(&run->b, of->dtype, of->batch);
}

static void run_free(struct product_run *run)
{
    free(run->a.elements);
    free(run->b.elements);
    free(run->a.stored);
    free(run->b.stored);
    free(run->c.elements);
    free(run->before);
}

/* As TF32, of eleven digits: the nearest, of two the larger, or where the copy
 * engine rounds, the even one. */
static double operand_read(const struct product_run *run, enum operand_id id,
                           float x)
{
    uint32_t word;
    if (gemm_configs[run->tile].mma_format != MMA_TF32 || !isfinite(x))
        return (double)x;
    memcpy(&word, &x, sizeof(word));
    word += run->mapped[id] ? 0xfffu + (word >> 13 & 1u) : 0x1000u;
    word &= 0xffffe000u;
    memcpy(&x, &word, sizeof(word));
    return (double)x;
}

/* The error of pairs is as backend.h says; all are added in f32. */
static double tolerance(const struct product_run *run, double sizes,
                        double a_most, double b_most)
{
    double k = (double)run->of->k;
    double added = (8 + 2 * sqrt(k)) * 0x1p-24 * sizes;
    if (gemm_configs[run->tile].mma_format == MMA_16BIT ||
        gemm_configs[run->tile].mma_format == MMA_TF32)
        return added;
    return added + 0x1p-21 * sizes + 0x1p-38 * k * a_most * b_most + 0x1p-146;
}

static bool element_right(const struct product_run *run, int64_t batch,
                          int64_t i, int64_t j)
{
    double sum = 0, sizes = 0, a_most = 0, b_most = 0;
    int64_t at = batch * run->c.plane + i * run->c.ld + j;
    double got = run->c.elements[at];
    for (int64_t k = 0; k < run->of->k; k++) {
        double x = operand_read(run, OPERAND_A, *a_at(run, batch, i, k));
        double y = operand_read(run, OPERAND_B, *b_at(run, batch, j, k));
        sum += x * y;
        sizes += fabs(x * y);
        a_most = fmax(a_most, fabs(x));
        b_most = fmax(b_most, fabs(y));
    }
    if (run->of->beta != 0) {
        sum += (double)run->of->beta * run->before[at];
        sizes += fabs((double)run->of->beta * run->before[at]);
    }
    if (isnan(sum) || isinf(sum))
        return isnan(sum) ? isnan(got) : got == sum;
    return fabs(got - sum) <= tolerance(run, sizes, a_most, b_most);
}

/* Elements past the ends of rows are as they were. */
static bool run_right(const struct product_run *run)
{
    for (int64_t batch = 0; batch < run->of->batch; batch++)
        for (int64_t i = 0; i < run->of->m; i++)
            for (int64_t j = 0; j < run->c.ld; j++) {
                int64_t at = batch * run->c.plane + i * run->c.ld + j;
                bool kept = memcmp(&run->c.elements[at], &run->before[at],
                                   sizeof(float)) == 0;
                if (j < run->of->n ? element_right(run, batch, i, j) : kept)
                    continue;
                fprintf(stderr,
                        "(%" PRId64 ", %" PRId64 ", %" PRId64 ") is %g\n",
                        batch, i, j, (double)run->c.elements[at]);
                return false;
            }
    return true;
}

static bool case_run(const struct product_case *of)
{
    struct product_run run;
    struct launch_plan plan;
    void *temporary = NULL;
    bool right = run_make(&run, of);
    if (right && !gemm_kernel_supports(&run.gemm, run.tile)) {
        fprintf(stderr, "the tile does not take the product\n");
        right = false;
    }
    if (right) {
        plan_gemm(&plan, &run.gemm, run.tile,
                  (struct split_k){of->splits, of->split_tiles != 0
                                                   ? of->split_tiles
                                                   : ALL_GEMM_TILES},
                  NULL, GROUP_LOG2);
        temporary = aligned_alloc(256, (plan.temp_bytes + 511) / 256 * 256);
        right = temporary != NULL && plan_run(&compiler, &plan, temporary) &&
                run_right(&run);
    }
    free(temporary);
    run_free(&run);
    printf("%s%s %" PRId64 " x %" PRId64 " x %" PRId64 ", flags %u, %u chunks: "
           "%s\n",
           of->tile,
           of->dtype == TANDEM_F16    ? " of f16"
           : of->dtype == TANDEM_BF16 ? " of bf16"
                                      : "",
           of->m, of->n, of->k, of->flags, of->splits,
           right ? "right" : "WRONG");
    return right;
}

int main(int argc, char **argv)
{
    static const struct platform_device hardware = {.correct_divide = true};
    bool right = true;
    if (argc < 3) {
        fprintf(stderr, "usage: %s DIRECTORY COMPILER OPTION...\n", argv[0]);
        return 2;
    }
    compiler = (struct compiler){argv[1], argv + 2, &hardware};
    for (uint32_t i = 0; i < CASES; i++)
        right = case_run(&cases[i]) && right;
    if (copies_misaligned() != 0) {
        printf("%" PRIu64 " copies are not aligned\n", copies_misaligned());
        right = false;
    }
    return right ? 0 : 1;
}
