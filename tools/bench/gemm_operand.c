/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads and reads operands in their dtype; see gemm_case.h.
 */
#include <config.h>

#include "gemm_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns the f16 bits of a multiple of 1/128 in [-1, 1]. */
static uint16_t half_bits(float value)
{
    uint32_t units = (uint32_t)(fabsf(value) * 128), exponent = 0;

    if (units == 0)
        return 0;
    while (units >> exponent > 1)
        exponent++;
    return (uint16_t)((value < 0 ? 0x8000u : 0u) | (exponent + 8) << 10 |
                      ((units << (10 - exponent)) & 0x3ffu));
}

static float half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    float fraction = (float)(bits & 0x3ff);
    float value = exponent == 0    ? ldexpf(fraction, -24)
                  : exponent == 31 ? (fraction == 0 ? HUGE_VALF : NAN)
                                   : ldexpf(fraction + 1024, exponent - 25);

    return bits & 0x8000 ? -value : value;
}

static uint16_t brain_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static float brain_value(uint16_t narrow)
{
    uint32_t bits = (uint32_t)narrow << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
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
        narrow[i] = p->dtype == TANDEM_F16 ? half_bits(values[i])
                                           : brain_bits(values[i]);
    status = session->backend->upload(session->stream, buffer, 0, narrow,
                                      count * sizeof *narrow, 0);
    free(narrow);
    return status;
}

static void widen(uint32_t dtype, const uint16_t *narrow, int64_t count,
                  float *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = dtype == TANDEM_F16 ? half_value(narrow[i])
                                     : brain_value(narrow[i]);
}

bool operand_row(const struct gemm_case *p, struct tandem_buffer *buffer,
                 int64_t row, float *out)
{
    struct device_session *session = &p->bench->session;
    uint64_t bytes = (uint64_t)p->gemm.n * TANDEM_DTYPE_BYTES(p->dtype);
    void *memory = p->dtype == TANDEM_F32 ? out : malloc(bytes);
    bool ok = memory != NULL &&
              session->backend->download(
                  session->stream, buffer, (uint64_t)row * bytes, memory, bytes,
                  0, TANDEM_TIMEOUT_INFINITE) == TANDEM_OK;

    if (ok && memory != out)
        widen(p->dtype, memory, p->gemm.n, out);
    if (memory != out)
        free(memory);
    return ok;
}
