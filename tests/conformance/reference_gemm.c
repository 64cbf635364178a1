/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expected values of gemm.  See reference.h.
 */
#include "reference.h"

#include "number.h"

#include <math.h>

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

static double operand_at(const struct tandem_matrix *matrix, uint32_t dtype,
                         const unsigned char *image, bool transposed,
                         int64_t batch, int64_t row, int64_t column)
{
    if (transposed)
        return matrix_at(matrix, dtype, image, batch, column, row);
    return matrix_at(matrix, dtype, image, batch, row, column);
}

static uint32_t c_dtype_of(const struct tandem_gemm *gemm)
{
    bool there = gemm->struct_size > TANDEM_GEMM_BYTES_1_0;

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

static double activated(const struct tandem_gemm *gemm, double x)
{
    int64_t tanh_form = gemm->activation_alpha == 1.0;

    if (gemm->activation == TANDEM_OP_INVALID)
        return x;
    return reference_unary(gemm->activation, x, &tanh_form,
                           &gemm->activation_alpha);
}

/* What backend.h's flags add; largest: of a row's elements and a column's, the
 * product. */
static double allowed(const struct tandem_gemm *gemm, double scale,
                      double largest)
{
    double more = 0.0;

    if (gemm->dtype != TANDEM_F32)
        return 0.0;
    /* Digits of TF32, cut off or rounded. */
    if (gemm->flags & TANDEM_GEMM_ALLOW_TF32)
        more = 0x1p-9 * scale;
    if (gemm->flags & TANDEM_GEMM_ALLOW_ROW_SCALED)
        more += 0x1p-21 * scale + 0x1p-38 * (double)gemm->k *
                                      fabs(gemm->alpha) * largest;
    return more;
}

static double tolerance_of(const struct tandem_gemm *gemm, double scale,
                           double more, double real)
{
    double tolerance =
        (op_find(TANDEM_OP_GEMM)->tolerance + 2.0 * sqrt((double)gemm->k)) *
            REFERENCE_2EPS * scale +
        more;

    if (gemm->activation == TANDEM_OP_INVALID)
        return tolerance;
    tolerance *= 2.0;
    /* However small the argument, this result is near 1/2. */
    if (gemm->activation == TANDEM_OP_SIGMOID)
        tolerance += reference_ulp(op_find(TANDEM_OP_SIGMOID)->tolerance, real);
    return tolerance;
}

static void element_fill(const struct tandem_gemm *gemm, const unsigned char *a,
                         const unsigned char *b, const unsigned char *c,
                         const unsigned char *bias, const int64_t *at,
                         struct expected *out, int64_t i)
{
    bool transpose_a = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool transpose_b = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    double sum = 0.0, scale = 0.0, before = 0.0, added, more;
    double most[2] = {0.0, 0.0};

    for (int64_t p = 0; p < gemm->k; p++) {
        double x = operand_at(&gemm->a, gemm->dtype, a, transpose_a, at[0],
                              at[1], p);
        double y = operand_at(&gemm->b, gemm->dtype, b, transpose_b, at[0], p,
                              at[2]);

        sum += x * y;
        scale += fabs(x * y);
        most[0] = fmax(most[0], fabs(x));
        most[1] = fmax(most[1], fabs(y));
    }
    if (gemm->beta != 0.0)
        before = gemm->beta * matrix_at(&gemm->c, c_dtype_of(gemm), c, at[0],
                                        at[1], at[2]);
    added = bias_at(gemm, bias, at[1], at[2]);
    more = allowed(gemm, fabs(gemm->alpha) * scale, most[0] * most[1]);
    scale = fabs(gemm->alpha) * scale + fabs(before) + fabs(added);
    sum = gemm->k == 0 ? 0.0 : gemm->alpha * sum;
    out->real[i] = activated(gemm, sum + before + added);
    out->tolerance[i] = tolerance_of(gemm, scale, more, out->real[i]);
}

void reference_gemm(const struct tandem_gemm *gemm, const unsigned char *a,
                    const unsigned char *b, const unsigned char *c,
                    const unsigned char *bias, struct expected *out)
{
    int64_t shape[3] = {gemm->batch, gemm->m, gemm->n};
    int64_t at[3] = {0, 0, 0};

    expected_init(out, EXPECTED_REAL, shape_count(3, shape));
    out->subnormal_tolerance = REFERENCE_SUBNORMAL;
    for (int64_t i = 0; i < out->elements; i++) {
        element_fill(gemm, a, b, c, bias, at, out, i);
        index_next(3, shape, at);
    }
}
