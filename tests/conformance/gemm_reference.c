/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values of gemm; see gemm.h. */
#include "gemm.h"

#include "element_value.h"
#include "elementwise_reference.h"
#include "tolerance.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double element_at(const unsigned char *image, uint32_t dtype,
                         uint64_t byte_offset, int64_t at)
{
    uint32_t bytes = TANDEM_DTYPE_BYTES(dtype);

    return bits_real(dtype, bits_read(image + byte_offset + at * bytes, bytes));
}

static double matrix_at(const struct tandem_matrix *matrix, uint32_t dtype,
                        const unsigned char *image, int64_t batch, int64_t row,
                        int64_t column)
{
    return element_at(image, dtype, matrix->byte_offset,
                      batch * matrix->batch_stride + row * matrix->ld + column);
}

static uint32_t c_dtype_of(const struct tandem_gemm *gemm)
{
    bool there = gemm->struct_size > TANDEM_GEMM_MIN_SIZE_1_0;

    return there && gemm->c_dtype != 0 ? gemm->c_dtype : gemm->dtype;
}

static double bias_at(const struct tandem_gemm *gemm, const unsigned char *bias,
                      int64_t row, int64_t column)
{
    if (gemm->bias_kind == TANDEM_BIAS_NONE)
        return 0.0;
    return element_at(bias, c_dtype_of(gemm), gemm->bias_byte_offset,
                      gemm->bias_kind == TANDEM_BIAS_PER_ROW ? row : column);
}

static void activation_parameters(const struct tandem_gemm *gemm, double *out)
{
    bool there = gemm->struct_size >=
                 TANDEM_SIZE_THROUGH(struct tandem_gemm, activation_parameter2);

    out[0] = gemm->activation_parameter;
    out[1] = there ? gemm->activation_parameter2 : 0.0;
}

/*
 * Returns the additional error that backend.h allows with the flags. largest
 * is the product of the largest magnitudes in a's row and b's column.
 */
static double allowed_error(const struct tandem_gemm *gemm, double scale,
                            double largest)
{
    double flag_error = 0.0;

    if (gemm->dtype != TANDEM_F32)
        return 0.0;
    /* Inputs are truncated or rounded to the precision of TF32. */
    if (gemm->flags & TANDEM_GEMM_ALLOW_TF32)
        flag_error = 0x1p-9 * scale;
    if (gemm->flags & TANDEM_GEMM_ALLOW_NORMWISE_ERROR)
        flag_error += 0x1p-21 * scale +
                      0x1p-38 * (double)gemm->k * fabs(gemm->alpha) * largest;
    return flag_error;
}

/* Returns the tolerance of the activation's argument. */
static double tolerance_of(const struct tandem_gemm *gemm, double scale,
                           double flag_error)
{
    return (op_find(TANDEM_OP_GEMM)->tolerance + 2.0 * sqrt((double)gemm->k)) *
               TOLERANCE_2EPS * scale +
           flag_error;
}

/* Returns what is lost if subnormal products are flushed to zero. */
static double flushed_error(const struct tandem_gemm *gemm)
{
    return ((double)gemm->k + 2.0) * fmax(fabs(gemm->alpha), 1.0) *
           (double)FLT_MIN;
}

/*
 * Returns true if sums may leave the range of f32 in some order of summation.
 * scale is the sum of the magnitudes of the finite terms.
 */
static bool sums_may_overflow(const struct tandem_gemm *gemm, double scale)
{
    double size = (float)gemm->alpha != 0.0f ? fabs(gemm->alpha) : 1.0;

    return scale / fmin(size, 1.0) > 0x1p127;
}

static double size_if_finite(double x)
{
    return isfinite(x) ? fabs(x) : 0.0;
}

/* The number of columns of b that are summed together. */
#define STRIP 8

/* The operands of one batch in float64, in the order of the sums. */
struct operands {
    double *a; /* In row-major order. */
    /* In strips of STRIP columns, in the order of k, filled up with zeros. */
    double *b;
    /* The largest magnitude of each row of a and each column of b. */
    double *largest_a, *largest_b;
};

static int64_t strips_of(const struct tandem_gemm *gemm)
{
    return (gemm->n + STRIP - 1) / STRIP;
}

static void operands_init(struct operands *operands,
                          const struct tandem_gemm *gemm)
{
    uint64_t m = (uint64_t)gemm->m, k = (uint64_t)gemm->k;
    uint64_t columns = (uint64_t)strips_of(gemm) * STRIP;

    operands->a = must_allocate(m * k * sizeof(double));
    operands->b = must_allocate(k * columns * sizeof(double));
    operands->largest_a = must_allocate(m * sizeof(double));
    operands->largest_b = must_allocate(columns * sizeof(double));
}

static void operands_finish(struct operands *operands)
{
    free(operands->a);
    free(operands->b);
    free(operands->largest_a);
    free(operands->largest_b);
}

static void operands_fill_a(struct operands *operands,
                            const struct tandem_gemm *gemm,
                            const unsigned char *image, int64_t batch)
{
    bool transposed = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    double *to = operands->a;

    for (int64_t row = 0; row < gemm->m; row++) {
        double most = 0.0;

        for (int64_t p = 0; p < gemm->k; p++) {
            *to = matrix_at(&gemm->a, gemm->dtype, image, batch,
                            transposed ? p : row, transposed ? row : p);
            most = fmax(most, fabs(*to++));
        }
        operands->largest_a[row] = most;
    }
}

static void operands_fill_b(struct operands *operands,
                            const struct tandem_gemm *gemm,
                            const unsigned char *image, int64_t batch)
{
    bool transposed = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;

    for (int64_t column = 0; column < strips_of(gemm) * STRIP; column++) {
        double *to = operands->b + column / STRIP * STRIP * gemm->k;
        double most = 0.0;

        to += column % STRIP;
        for (int64_t p = 0; p < gemm->k; p++, to += STRIP) {
            *to = 0.0;
            if (column < gemm->n)
                *to =
                    matrix_at(&gemm->b, gemm->dtype, image, batch,
                              transposed ? column : p, transposed ? p : column);
            most = fmax(most, fabs(*to));
        }
        operands->largest_b[column] = most;
    }
}

/*
 * Multiplies a row of a by a strip of b. Computes the sums of the products and
 * of their magnitudes.
 */
static void strip_sum(int64_t k, const double *a, const double *b, double *sums,
                      double *scales)
{
    double sum[STRIP] = {0.0}, scale[STRIP] = {0.0};

    for (int64_t p = 0; p < k; p++, b += STRIP)
        for (int j = 0; j < STRIP; j++) {
            double product = a[p] * b[j];

            sum[j] += product;
            scale[j] += fabs(product);
        }
    memcpy(sums, sum, sizeof(sum));
    memcpy(scales, scale, sizeof(scale));
}

/* Returns the sum of the magnitudes of the finite products of one column. */
static double finite_scale(int64_t k, const double *a, const double *b)
{
    double scale = 0.0;

    for (int64_t p = 0; p < k; p++)
        scale += size_if_finite(a[p] * b[p * STRIP]);
    return scale;
}

/* The sums over k for one element. */
struct products {
    double sum, scale;
    double finite;  /* The scale of the finite products. */
    double largest; /* See allowed_error. */
};

/* Computes an element from its products. */
static void element_fill(const struct call *call, const int64_t *at,
                         struct products products, struct expected *out)
{
    const struct tandem_gemm *gemm = &call->gemm;
    int64_t i = (at[0] * gemm->m + at[1]) * gemm->n + at[2];
    double before = 0.0, added, scale, sum, finite, error, parameters[2];

    if ((float)gemm->beta != 0.0f)
        before = gemm->beta * matrix_at(&gemm->c, c_dtype_of(gemm),
                                        call->operands[3].image, at[0], at[1],
                                        at[2]);
    added = bias_at(gemm, call->operands[2].image, at[1], at[2]);
    /* In this case a and b are not read. */
    if (gemm->k == 0 || (float)gemm->alpha == 0.0f)
        products = (struct products){0};
    scale = fabs(gemm->alpha) * products.scale;
    error = allowed_error(gemm, scale, products.largest);
    scale += fabs(before) + fabs(added);
    error = tolerance_of(gemm, scale, error);
    if (call->any_magnitude)
        error += flushed_error(gemm);
    sum = gemm->alpha * products.sum + before + added;
    finite = fabs(gemm->alpha) * products.finite + size_if_finite(before) +
             size_if_finite(added);
    activation_parameters(gemm, parameters);
    if (!reference_activation(gemm->activation, parameters, sum, error,
                              &out->real[i], &out->tolerance[i]) ||
        sums_may_overflow(gemm, finite))
        out->unspecified[i] = UNSPECIFIED;
}

static void row_fill(const struct call *call, const struct operands *operands,
                     int64_t batch, int64_t row, struct expected *out)
{
    const struct tandem_gemm *gemm = &call->gemm;
    double sums[STRIP], scales[STRIP];

    for (int64_t column = 0; column < gemm->n; column++) {
        const double *a = operands->a + row * gemm->k;
        const double *strip = operands->b + column / STRIP * STRIP * gemm->k;
        const int64_t at[3] = {batch, row, column}, j = column % STRIP;
        struct products products;

        if (j == 0)
            strip_sum(gemm->k, a, strip, sums, scales);
        products.sum = sums[j];
        products.scale = products.finite = scales[j];
        if (!isfinite(scales[j]))
            products.finite = finite_scale(gemm->k, a, strip + j);
        products.largest =
            operands->largest_a[row] * operands->largest_b[column];
        element_fill(call, at, products, out);
    }
}

void gemm_reference(const struct call *call, const struct dense *inputs,
                    struct expected *out)
{
    const struct tandem_gemm *gemm = &call->gemm;
    int64_t shape[3] = {gemm->batch, gemm->m, gemm->n};
    struct operands operands;

    (void)inputs;
    expected_init(out, EXPECTED_REAL, shape_count(3, shape));
    out->subnormal_tolerance = TOLERANCE_SUBNORMAL;
    expected_allow_unspecified(out);
    operands_init(&operands, gemm);
    for (int64_t batch = 0; batch < gemm->batch; batch++) {
        operands_fill_a(&operands, gemm, call->operands[0].image, batch);
        operands_fill_b(&operands, gemm, call->operands[1].image, batch);
        for (int64_t row = 0; row < gemm->m; row++)
            row_fill(call, &operands, batch, row, out);
    }
    operands_finish(&operands);
}
