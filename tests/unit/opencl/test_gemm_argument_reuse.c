/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMMs on the same buffers, each of which differs in one field from the
 * previous one. The state that the OpenCL plugin caches for a call (the
 * selected kernel, CLBlast's temporary memory, kernel arguments) must not be
 * used for another call. The elements are integers, so that the sums are exact
 * in any order.
 */
#include <config.h>

#include <string.h>

#include "support/test_list.h"
#include "support.h"

#define SIZE 20
/* Size of each buffer: two batches of the largest matrices, and offsets. */
#define FLOATS 4096

static struct tandem_buffer *buffers[4], *other_bias;
static float a[FLOATS], b[FLOATS], bias[2][FLOATS], c[FLOATS];

static struct tandem_gemm base(void)
{
    return gemm_of(SIZE, SIZE, SIZE, buffers[0], buffers[1], buffers[2]);
}

/* ---- fields that may differ ---- */

#define CHANGE(name, change)                                                   \
    static void name(struct tandem_gemm *gemm)                                 \
    {                                                                          \
        change;                                                                \
    }
CHANGE(nothing, (void)gemm)
CHANGE(other_alpha, gemm->alpha = -3)
CHANGE(other_beta, gemm->beta = 1)
CHANGE(another_beta, gemm->beta = 2)
CHANGE(turned_a, gemm->flags |= TANDEM_GEMM_TRANSPOSE_A)
CHANGE(turned_b, gemm->flags |= TANDEM_GEMM_TRANSPOSE_B)
CHANGE(turned_both,
       gemm->flags |= TANDEM_GEMM_TRANSPOSE_A | TANDEM_GEMM_TRANSPOSE_B)
CHANGE(wide_a, gemm->a.ld += 4)
CHANGE(wide_b, gemm->b.ld += 4)
CHANGE(wide_c, gemm->c.ld += 4)
CHANGE(later_a, gemm->a.byte_offset = 64)
CHANGE(later_b, gemm->b.byte_offset = 64)
CHANGE(later_c, gemm->c.byte_offset = 64)
CHANGE(odd_a, gemm->a.byte_offset = 4)
CHANGE(odd_c, gemm->c.byte_offset = 4)
CHANGE(same_a_and_b, gemm->b.buffer = gemm->a.buffer)
CHANGE(fewer_rows, gemm->m -= 3)
CHANGE(fewer_columns, gemm->n -= 3)
CHANGE(less_depth, gemm->k -= 3)
CHANGE(no_depth, gemm->k = 0)
CHANGE(allowed, gemm->flags |= TANDEM_GEMM_ALLOW_TF32)
static void biased(struct tandem_gemm *gemm)
{
    gemm->bias = buffers[3];
    gemm->bias_kind = TANDEM_BIAS_PER_COLUMN;
}
CHANGE(biased_by_row, biased(gemm); gemm->bias_kind = TANDEM_BIAS_PER_ROW)
CHANGE(biased_later, biased(gemm); gemm->bias_byte_offset = 64)
CHANGE(biased_by_another, biased(gemm); gemm->bias = other_bias)
CHANGE(biased_residual, biased(gemm); gemm->beta = 1)
CHANGE(clipped, gemm->activation = TANDEM_OP_RELU)
static void batched(struct tandem_gemm *gemm)
{
    gemm->batch = 2;
    gemm->a.batch_stride = gemm->b.batch_stride = SIZE * SIZE;
    gemm->c.batch_stride = SIZE * SIZE;
}
CHANGE(batched_a_once, batched(gemm); gemm->a.batch_stride = 0)
CHANGE(batched_b_once, batched(gemm); gemm->b.batch_stride = 0)
CHANGE(batched_apart, batched(gemm); gemm->a.batch_stride += 16)
CHANGE(batched_c_apart, batched(gemm); gemm->c.batch_stride += 16)
CHANGE(three, batched(gemm); gemm->batch = 3)

typedef void (*change_fn)(struct tandem_gemm *);
static const change_fn changes[] = {
    other_alpha,     other_beta,    another_beta,    turned_a,
    turned_b,        turned_both,   wide_a,          wide_b,
    wide_c,          later_a,       later_b,         later_c,
    odd_a,           odd_c,         same_a_and_b,    fewer_rows,
    fewer_columns,   less_depth,    no_depth,        allowed,
    biased,          biased_by_row, biased_later,    biased_by_another,
    biased_residual, clipped,       batched,         batched_a_once,
    batched_b_once,  batched_apart, batched_c_apart, three};
#define CHANGES (sizeof(changes) / sizeof(changes[0]))

/* ---- the reference ---- */

static double operand(const float *numbers, const struct tandem_matrix *matrix,
                      bool transposed, int64_t batch, int64_t row,
                      int64_t column)
{
    const int64_t along = transposed ? column : row,
                  across = transposed ? row : column;
    return (double)
        numbers[(int64_t)(matrix->byte_offset / sizeof(float)) +
                batch * matrix->batch_stride + along * matrix->ld + across];
}

static double wanted(const struct tandem_gemm *gemm, double before,
                     int64_t batch, int64_t row, int64_t column)
{
    const float *right = gemm->b.buffer == buffers[0] ? a : b;
    double sum = 0;
    for (int64_t k = 0; k < gemm->k; k++)
        sum +=
            operand(a, &gemm->a, (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0,
                    batch, row, k) *
            operand(right, &gemm->b,
                    (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0, batch, k,
                    column);
    sum *= gemm->alpha;
    if (gemm->beta != 0)
        sum += gemm->beta * before;
    if (gemm->bias_kind != TANDEM_BIAS_NONE)
        sum += (double)
            bias[gemm->bias == other_bias]
                [gemm->bias_byte_offset / sizeof(float) +
                 (uint64_t)(gemm->bias_kind == TANDEM_BIAS_PER_ROW ? row
                                                                   : column)];
    return gemm->activation != TANDEM_OP_INVALID && sum < 0 ? 0 : sum;
}

/* Checks c where the GEMM writes, and that all other elements are unchanged. */
static void expect_result(const struct tandem_gemm *gemm, const float *before,
                          float *out)
{
    memcpy(out, before, sizeof(c));
    for (int64_t batch = 0; batch < gemm->batch; batch++)
        for (int64_t row = 0; row < gemm->m; row++)
            for (int64_t column = 0; column < gemm->n; column++) {
                int64_t at = (int64_t)(gemm->c.byte_offset / sizeof(float)) +
                             batch * gemm->c.batch_stride + row * gemm->c.ld +
                             column;
                out[at] =
                    (float)wanted(gemm, (double)before[at], batch, row, column);
            }
}

static void multiply(const struct tandem_gemm *gemm, size_t which, int salt)
{
    static float before[FLOATS], want[FLOATS];
    for (int i = 0; i < FLOATS; i++)
        before[i] = (float)((i * 5 + salt) % 17 - 8);
    expect_result(gemm, before, want);
    buffer_write(buffers[2], before, sizeof(c));
    OK(backend->gemm(stream, gemm));
    buffer_read(buffers[2], c, sizeof(c));
    for (int i = 0; i < FLOATS; i++)
        if (c[i] != want[i])
            ck_abort_msg("change %zu, element %d: %g, not %g", which, i,
                         (double)c[i], (double)want[i]);
}

/* ---- the tests ---- */

static void numbers_make(float *out, int salt, struct tandem_buffer **buffer)
{
    for (int i = 0; i < FLOATS; i++)
        out[i] = (float)((i * 7 + i / 31 + salt) % 9 - 4);
    OK(backend->alloc(device, TANDEM_BYTES(sizeof(c)), buffer));
    buffer_write(*buffer, out, sizeof(c));
}

static void device_new(const char *tiles)
{
    const char *const pairs[] = {"cache_dir", "",
                                 tiles != NULL ? "test.gemm_kernel" : NULL,
                                 tiles, NULL};
    device_open(pairs, NULL);
    numbers_make(a, 1, &buffers[0]);
    numbers_make(b, 2, &buffers[1]);
    numbers_make(c, 3, &buffers[2]);
    numbers_make(bias[0], 4, &buffers[3]);
    numbers_make(bias[1], 5, &other_bias);
}

/*
 * Runs each variant after the base GEMM and the base GEMM after it, then all
 * variants in sequence.
 */
static void run_all_pairs(const char *tiles)
{
    device_new(tiles);
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < CHANGES; i++) {
            struct tandem_gemm gemm = base(), same = base();
            changes[i](&gemm);
            multiply(&gemm, i, round);
            if (round == 1)
                multiply(&same, i, 3);
        }
    struct tandem_gemm last = base();
    nothing(&last);
    multiply(&last, CHANGES, 4);
    device_close();
}

/* On PoCL the cost model selects CLBlast. */
TEST(with_selected_kernels)
{
    run_all_pairs(NULL);
}

TEST(with_split_kernels)
{
    run_all_pairs("simt-32x64:2");
}

TEST_MAIN(opencl_tests_run("calls", NULL, NULL))
