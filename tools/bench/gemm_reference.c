/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of GEMM operands, their transfer, and samples of the result in
 * float64; see gemm_case.h.
 */
#include <config.h>

#include "gemm_case.h"

#include "../../src/common/float16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

/* Returns the exponent of the power of 2 that scales row, column or depth i. */
static int power(uint64_t i)
{
    return (int)(mix((uint32_t)i + 3000) % 21) - 10;
}

static float scale(const struct gemm_case *p, char operand, uint64_t index)
{
    uint64_t n = (uint64_t)p->gemm.n, k = (uint64_t)p->gemm.k;
    uint64_t m = (uint64_t)p->gemm.m;
    bool a = operand == 'a', b = operand == 'b';

    switch (p->inputs) {
    case ROWSCALE:
        return a ? ldexpf(1, power(index / k % m)) : 1;
    case COLUMNSCALE:
        return b ? ldexpf(1, power(index % n)) : 1;
    case DEPTHSCALE:
        return a   ? ldexpf(1, power(index % k))
               : b ? ldexpf(1, -power(index / n % k))
                   : 1;
    case EXTREME:
        return a ? 1e25f : b ? 1e-25f : 1;
    default:
        return 1;
    }
}

float gemm_case_value(const struct gemm_case *p, char operand, uint64_t index)
{
    uint32_t bits = mix((uint32_t)index + (uint32_t)operand * 0x9e3779b9u);
    float value = (float)(int32_t)((bits >> 8) - (1u << 23)) * 0x1p-23f;

    /* Multiples of 1/128 are exact in bf16 and in f16. */
    if (p->dtype != TANDEM_F32)
        return floorf(value * 128) / 128;
    if (p->inputs == POSITIVE)
        return (value + 1) / 2;
    return p->inputs == UNIFORM ? value : value * scale(p, operand, index);
}

uint64_t gemm_case_elements(const struct gemm_case *p, char operand)
{
    const struct tandem_gemm *g = &p->gemm;
    int64_t one = operand == 'a'   ? g->m * g->k
                  : operand == 'b' ? g->k * g->n
                                   : g->m * g->n;

    return operand == '+' ? (uint64_t)g->n : (uint64_t)(one * g->batch);
}

enum tandem_status operand_upload(const struct gemm_case *p,
                                  struct tandem_buffer *buffer,
                                  const float *values, uint64_t count)
{
    struct device_session *session = &p->bench->session;
    enum tandem_status status;
    uint16_t *narrow;

    if (p->dtype == TANDEM_F32)
        return session->backend->upload(session->stream, buffer, 0, values,
                                        count * sizeof *values, 0);
    narrow = malloc(count * sizeof *narrow + 1);
    if (narrow == NULL)
        return TANDEM_OUT_OF_MEMORY;
    for (uint64_t i = 0; i < count; i++)
        narrow[i] = p->dtype == TANDEM_F16 ? f16_round(values[i])
                                           : bf16_round(values[i]);
    status = session->backend->upload(session->stream, buffer, 0, narrow,
                                      count * sizeof *narrow, 0);
    free(narrow);
    return status;
}

bool operand_row(const struct gemm_case *p, struct tandem_buffer *buffer,
                 int64_t row, float *out)
{
    struct device_session *session = &p->bench->session;
    uint64_t n = (uint64_t)p->gemm.n, bytes = n * TANDEM_DTYPE_BYTES(p->dtype);

    if (session->backend->download(session->stream, buffer,
                                   (uint64_t)row * bytes, out, bytes, 0,
                                   TANDEM_TIMEOUT_INFINITE) != TANDEM_OK)
        return false;
    /* Widens in place, from the last element to the first. */
    for (uint64_t i = p->dtype == TANDEM_F32 ? 0 : n; i-- > 0;) {
        uint16_t bits;

        memcpy(&bits, (const char *)out + i * sizeof bits, sizeof bits);
        out[i] = p->dtype == TANDEM_F16 ? f16_value(bits) : bf16_value(bits);
    }
    return true;
}

static uint32_t draw_indices(int64_t *out, int64_t extent, uint32_t seed)
{
    uint32_t count = extent < SAMPLE_SIDE ? (uint32_t)extent : SAMPLE_SIDE;

    for (uint32_t i = 0; i < count; i++)
        out[i] = extent <= SAMPLE_SIDE
                     ? (int64_t)i
                     : (int64_t)(mix(seed + i) % (uint64_t)extent);
    return count;
}

static void sample_entry(const struct gemm_case *p,
                         struct sampled_entries *samples, uint32_t i,
                         uint32_t j, const float *column)
{
    const struct tandem_gemm *g = &p->gemm;
    bool turned = (g->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    const float *row = p->a + samples->rows[i] * (turned ? 1 : g->k);
    int64_t step = turned ? g->m : 1;
    double sum = 0, magnitude = 0;
    uint32_t entry = i * SAMPLE_SIDE + j;

    for (int64_t q = 0; q < g->k; q++) {
        double term = (double)row[q * step] * (double)column[q];

        sum += term;
        magnitude += fabs(term);
    }
    if (p->bias) {
        double bias = (double)p->bias_values[samples->columns[j]];

        sum += bias;
        magnitude += fabs(bias);
    }
    samples->want[entry] = p->relu && sum < 0 ? 0 : sum;
    samples->magnitude[entry] = magnitude;
}

void samples_fill(const struct gemm_case *p, struct sampled_entries *samples)
{
    const struct tandem_gemm *g = &p->gemm;
    bool turned = (g->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    float *column = malloc((size_t)g->k * sizeof *column);

    samples->row_count = draw_indices(samples->rows, g->m, 1000);
    samples->column_count = draw_indices(samples->columns, g->n, 2000);
    for (uint32_t j = 0; j < samples->column_count && column != NULL; j++) {
        int64_t at = samples->columns[j];

        for (int64_t q = 0; q < g->k; q++)
            column[q] = p->b[turned ? at * g->k + q : q * g->n + at];
        for (uint32_t i = 0; i < samples->row_count; i++)
            sample_entry(p, samples, i, j, column);
    }
    if (column == NULL)
        samples->row_count = 0;
    free(column);
}

void gemm_reference_errors(const struct sampled_entries *samples,
                           const float *rows, int64_t n,
                           double *out_componentwise, double *out_max_relative)
{
    double componentwise = 0, error = 0, largest = 0;

    for (uint32_t i = 0; i < samples->row_count; i++)
        for (uint32_t j = 0; j < samples->column_count; j++) {
            uint32_t entry = i * SAMPLE_SIDE + j;
            double got = (double)rows[i * n + samples->columns[j]];
            double e = fabs(got - samples->want[entry]);

            /* A NaN counts as an infinite error. */
            if (!(e <= error))
                error = isnan(e) ? HUGE_VAL : e;
            e /= fmax(samples->magnitude[entry], 1e-30);
            if (!(e <= componentwise))
                componentwise = isnan(e) ? HUGE_VAL : e;
            largest = fmax(largest, fabs(samples->want[entry]));
        }
    *out_componentwise = componentwise;
    *out_max_relative = error / fmax(largest, 1e-30);
}
