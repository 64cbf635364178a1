/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage: emulated DIRECTORY COMPILER OPTION...
 *
 * Plans GEMMs for the tensor cores of NVIDIA GPUs, and GEMVs with shuffles.
 * Compiles their kernels for the host CPU into DIRECTORY, runs them step by
 * step, and compares the results with a float64 reference.
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

/* ---- cases ---- */

struct gemm_case {
    const char *tile;
    int64_t m, n, k, batch;
    uint32_t flags, splits;
    int64_t pad[3]; /* Padding of the rows of a, b and c. */
    float beta;
    enum { UNIFORM, SCALED, TINY, INFINITE } numbers;
    uint32_t dtype; /* dtype of a and b; 0 stands for f32. */
    /* The number of tiles that are split along k; 0 stands for all. */
    uint32_t split_tiles;
};

#define TA TANDEM_GEMM_TRANSPOSE_A
#define TB TANDEM_GEMM_TRANSPOSE_B
/* Not a flag of gemm: all batches share one a. */
#define ONE_A (1u << 31)

static const struct gemm_case cases[] = {
    /* K-major and MN-major operands; boundaries of tiles, slices and copies. */
    {"tf32-128x256", 132, 260, 100, 1, TB, 1, .pad = {4, 8, 3}},
    {"tf32-128x256", 132, 260, 37, 1, TA, 1, .beta = 2},
    {"tf32-128x64", 132, 68, 100, 2, TA | TB, 2, .pad = {0, 4}, .beta = -1,
     .split_tiles = 2},
    {"tf32-128x64", 131, 67, 101, 2, 0, 1, .beta = 0},
    {"tf32-128x64", 3, 5, 7, 1, 0, 1, .numbers = INFINITE},
    {"fp16x3-128x128", 132, 140, 100, 1, 0, 1, .pad = {0, 0, 4}, .beta = 0.5f,
     .numbers = SCALED},
    {"fp16x3-128x128", 260, 132, 300, 1, TA | TB, 3, .numbers = INFINITE,
     .split_tiles = 2},
    {"fp16x3-64x64", 67, 131, 101, 2, TA, 1, .pad = {1, 2, 3}, .beta = 1,
     .numbers = INFINITE},
    {"fp16x3-64x64", 67, 65, 96, 1, TB, 2, .numbers = TINY},
    {"fp16x3-64x64", 20, 5, 2100, 1, TB, 1, .numbers = SCALED},
    {"fp16x3-64x64", 18, 35, 2048, 1, 0, 1, .numbers = SCALED},
    {"fp16x3-64x64", 1, 1, 1, 1, 0, 1, .beta = 0},
    /* Unaligned rows, and rows that are too long to be cached. */
    {"fp16x3-128x128", 131, 33, 99, 1, 0, 1, .pad = {2}, .numbers = INFINITE},
    {"fp16x3-64x64", 5, 9, 4129, 1, TB, 1, .pad = {3, 3}, .numbers = INFINITE},
    /* Aligned rows whose last vector of four exceeds the matrix. */
    {"fp16x3-64x64", 9, 10, 157, 2, TB, 1, .pad = {3, 3, 1}},
    {"16bit-128x256", 136, 264, 200, 1, 0, 1, .dtype = TANDEM_F16},
    {"16bit-128x256", 136, 264, 75, 1, TA, 2, .pad = {0, 3}, .beta = 1,
     .dtype = TANDEM_BF16},
    {"16bit-128x64", 67, 65, 131, 2, TB, 1, .pad = {5, 7}, .dtype = TANDEM_F16},
    {"16bit-128x64", 3, 5, 7, 1, TA | TB, 1, .numbers = INFINITE,
     .dtype = TANDEM_F16},
    /* Partial sums of whole tiles, and of slices. */
    {"16bit-128x64", 131, 3, 3300, 1, 0, 2, .dtype = TANDEM_BF16,
     .split_tiles = 1},
    {"16bit-128x256", 8, 8, 1600, 1, TB, 1, .dtype = TANDEM_F16},
    /*
     * GEMM by wgmma. The TMA engine loads K-major TF32 operands: padding,
     * boundaries of tiles and slices, splits, batches, one operand or both.
     */
    {"wgmma-tf32-256x128", 300, 140, 100, 1, TB, 1, .pad = {4, 8, 3}},
    {"wgmma-tf32-256x128", 260, 132, 132, 2, TB, 2, .pad = {0, 4}, .beta = 2,
     .split_tiles = 3},
    {"wgmma-tf32-128x128", 132, 129, 68, 3, TB, 1, .pad = {0, 4, 1}},
    {"wgmma-tf32-128x128", 70, 260, 101, 2, 0, 1, .pad = {3}},
    {"wgmma-tf32-128x128", 5, 9, 36, 1, TA | TB, 1, .beta = -1},
    {"wgmma-tf32-128x128", 3, 5, 8, 1, TB, 1, .numbers = INFINITE},
    {"wgmma-tf32-128x128", 140, 20, 64, 4, TB | ONE_A, 1, .beta = 0},
    {"wgmma-3xtf32-128x64", 130, 67, 100, 2, 0, 2, .pad = {1},
     .numbers = SCALED, .split_tiles = 1},
    {"wgmma-3xtf32-128x128", 140, 132, 70, 1, TB, 1, .beta = 1,
     .numbers = INFINITE},
    {"wgmma-fp16x3-128x128", 140, 130, 100, 1, TA, 1, .numbers = SCALED},
    {"wgmma-fp16x3-128x64", 67, 65, 96, 2, TB, 2, .beta = 0.5f,
     .numbers = INFINITE},
    {"wgmma-16bit-128x128", 136, 130, 200, 2, TB, 1, .dtype = TANDEM_F16},
    {"wgmma-16bit-128x64", 136, 72, 600, 1, TA, 2, .beta = 1,
     .dtype = TANDEM_BF16},
    /* GEMV, whose lanes add up their sums by shuffles. */
    {"gemv-1", 70, 1, 500, 1, 0, 1, .beta = 0},
    {"gemv-4", 67, 3, 260, 2, 0, 1, .pad = {1}, .beta = 1},
    {"gemv-4", 3, 70, 1100, 1, TB, 2, .beta = 0},
    {"gemv-8", 40, 7, 1300, 1, 0, 1, .beta = 0},
    {"gemv-8", 6, 131, 1029, 1, TB, 1, .pad = {3, 3}},
    {"gemv-8", 7, 65, 300, 1, 0, 1, .beta = 0},
    {"gemv-16", 15, 66, 700, 1, TB, 1, .beta = 0},
    {"gemv-16", 33, 16, 600, 1, 0, 2, .beta = 0},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

struct matrix {
    float *elements;
    uint16_t *stored; /* The elements in a 16-bit dtype. */
    int64_t ld, plane;
};

static bool matrix_make(struct matrix *out, int64_t rows, int64_t columns,
                        int64_t pad, int64_t batch)
{
    memset(out, 0, sizeof(*out));
    out->ld = columns + pad;
    out->plane = rows * out->ld;
    size_t count = (size_t)(out->plane * batch);
    out->elements =
        aligned_alloc(256, (count * sizeof(float) + 255) / 256 * 256);
    for (size_t i = 0; out->elements != NULL && i < count; i++)
        out->elements[i] = random_next();
    return out->elements != NULL;
}

struct gemm_run {
    const struct gemm_case *of;
    struct tandem_gemm gemm;
    enum gemm_kernel_id tile;
    struct matrix a, b, c;
    float *c_before; /* The elements of c before the GEMM. */
    bool
        uses_tma[OPERAND_COUNT]; /* The operand is rounded by the TMA engine. */
};

static float *a_at(const struct gemm_run *run, int64_t batch, int64_t row,
                   int64_t k)
{
    bool transposed = (run->of->flags & TA) != 0;
    return run->a.elements + batch * run->gemm.a.batch_stride +
           (transposed ? k * run->a.ld + row : row * run->a.ld + k);
}

static float *b_at(const struct gemm_run *run, int64_t batch, int64_t column,
                   int64_t k)
{
    bool transposed = (run->of->flags & TB) != 0;
    return run->b.elements + batch * run->b.plane +
           (transposed ? column * run->b.ld + k : k * run->b.ld + column);
}

/* Fills the padding with huge numbers, which must not affect any result. */
static void padding_fill(struct matrix *matrix, int64_t pad, int64_t batch)
{
    for (int64_t i = 0; i < matrix->plane * batch; i++)
        if (i % matrix->ld >= matrix->ld - pad)
            matrix->elements[i] = 3e38f;
}

/*
 * Sets rows and columns of very different magnitudes, elements that are
 * subnormal in f16 or f32, and elements that are not finite in the last tiles.
 */
static void elements_set(struct gemm_run *run)
{
    const struct gemm_case *of = run->of;
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

/* Replaces the elements by their values rounded to the stored dtype. */
static bool matrix_round_to_dtype(struct matrix *matrix, uint32_t dtype,
                                  int64_t batch)
{
    size_t count = (size_t)(matrix->plane * batch);
    matrix->stored = aligned_alloc(256, (count * 2 + 255) / 256 * 256);
    for (size_t i = 0; matrix->stored != NULL && i < count; i++) {
        float *x = &matrix->elements[i];
        matrix->stored[i] =
            dtype == TANDEM_F16 ? f16_round(*x) : bf16_round(*x);
        *x = dtype == TANDEM_F16 ? f16_value(matrix->stored[i])
                                 : bf16_value(matrix->stored[i]);
    }
    return matrix->stored != NULL;
}

static bool gemm_run_make(struct gemm_run *run, const struct gemm_case *of)
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
    run->c_before = malloc(bytes);
    if (run->c_before == NULL)
        return false;
    memcpy(run->c_before, run->c.elements, bytes);
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
        .a = {slot_buffer(SLOT_INPUT, MAX_SLOT_ALIGNMENT), 0, run->a.ld,
              (of->flags & ONE_A) != 0 ? 0 : run->a.plane},
        .b = {slot_buffer(SLOT_INPUT + 1, MAX_SLOT_ALIGNMENT), 0, run->b.ld,
              run->b.plane},
        .c = {slot_buffer(SLOT_OUTPUT, MAX_SLOT_ALIGNMENT), 0, run->c.ld,
              run->c.plane},
        .c_dtype = TANDEM_F32};
    if (gemm_configs[run->tile].uses_wgmma) {
        struct kernel_key key = tensor_core_key(&run->gemm, run->tile);
        run->uses_tma[OPERAND_A] = key.a_layout == LAYOUT_K_MAJOR;
        run->uses_tma[OPERAND_B] = key.b_layout == LAYOUT_K_MAJOR;
    }
    padding_fill(&run->a, of->pad[0], of->batch);
    padding_fill(&run->b, of->pad[1], of->batch);
    elements_set(run);
    if (of->dtype == 0)
        return true;
    run->gemm.dtype = of->dtype;
    return matrix_round_to_dtype(&run->a, of->dtype, of->batch) &&
           matrix_round_to_dtype(&run->b, of->dtype, of->batch);
}

static void gemm_run_free(struct gemm_run *run)
{
    free(run->a.elements);
    free(run->b.elements);
    free(run->a.stored);
    free(run->b.stored);
    free(run->c.elements);
    free(run->c_before);
}

/*
 * Rounds an element to TF32 with eleven significant bits: to nearest, with
 * ties to the larger magnitude, or with ties to even if the TMA engine rounds.
 */
static double operand_element(const struct gemm_run *run, enum operand_id id,
                              float x)
{
    uint32_t word;
    if (gemm_configs[run->tile].mma_format != MMA_TF32 || !isfinite(x))
        return (double)x;
    memcpy(&word, &x, sizeof(word));
    word += run->uses_tma[id] ? 0xfffu + (word >> 13 & 1u) : 0x1000u;
    word &= 0xffffe000u;
    memcpy(&x, &word, sizeof(word));
    return (double)x;
}

/* The error of products is that of backend.h; all sums are in f32. */
static double tolerance(const struct gemm_run *run, double sizes, double a_most,
                        double b_most)
{
    double k = (double)run->of->k;
    double added = (8 + 2 * sqrt(k)) * 0x1p-24 * sizes;
    if (gemm_configs[run->tile].mma_format == MMA_16BIT ||
        gemm_configs[run->tile].mma_format == MMA_TF32)
        return added;
    return added + 0x1p-21 * sizes + 0x1p-38 * k * a_most * b_most + 0x1p-146;
}

static bool element_right(const struct gemm_run *run, int64_t batch, int64_t i,
                          int64_t j)
{
    double sum = 0, sizes = 0, a_most = 0, b_most = 0;
    int64_t at = batch * run->c.plane + i * run->c.ld + j;
    double got = run->c.elements[at];
    for (int64_t k = 0; k < run->of->k; k++) {
        double x = operand_element(run, OPERAND_A, *a_at(run, batch, i, k));
        double y = operand_element(run, OPERAND_B, *b_at(run, batch, j, k));
        sum += x * y;
        sizes += fabs(x * y);
        a_most = fmax(a_most, fabs(x));
        b_most = fmax(b_most, fabs(y));
    }
    if (run->of->beta != 0) {
        sum += (double)run->of->beta * run->c_before[at];
        sizes += fabs((double)run->of->beta * run->c_before[at]);
    }
    if (isnan(sum) || isinf(sum))
        return isnan(sum) ? isnan(got) : got == sum;
    return fabs(got - sum) <= tolerance(run, sizes, a_most, b_most);
}

/*
 * Checks that elements in the padding are unchanged, and compares the others.
 */
static bool result_is_correct(const struct gemm_run *run)
{
    for (int64_t batch = 0; batch < run->of->batch; batch++)
        for (int64_t i = 0; i < run->of->m; i++)
            for (int64_t j = 0; j < run->c.ld; j++) {
                int64_t at = batch * run->c.plane + i * run->c.ld + j;
                bool kept = memcmp(&run->c.elements[at], &run->c_before[at],
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

static bool gemm_plan_run(const struct launch_plan *plan,
                          const struct gemm_run *run)
{
    void *memory[SLOT_COUNT];
    const struct matrix *inputs[] = {&run->a, &run->b};
    for (uint32_t i = 0; i < 2; i++)
        memory[SLOT_INPUT + i] = inputs[i]->stored != NULL
                                     ? (void *)inputs[i]->stored
                                     : inputs[i]->elements;
    memory[SLOT_OUTPUT] = run->c.elements;
    return plan_run(plan, memory, (uint64_t[SLOT_COUNT]){0});
}

static bool case_run(uint32_t number)
{
    const struct gemm_case *of = &cases[number];
    struct gemm_run run;
    struct launch_plan plan;
    bool right = gemm_run_make(&run, of);
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
        right = gemm_plan_run(&plan, &run) && result_is_correct(&run);
    }
    gemm_run_free(&run);
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
    static const struct platform_device hardware = {.nvidia = true,
                                                    .correct_divide = true};
    uint32_t passed = 0;
    if (!emulation_begin(argc, argv, &hardware))
        return 2;
    for (uint32_t i = 0; i < CASES; i++)
        passed += case_run(i);
    return emulation_end(passed, CASES - passed);
}
