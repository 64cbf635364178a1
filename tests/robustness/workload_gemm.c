/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GEMM section: plain, strided, with an epilogue, batched, and large
 * enough for a temporary buffer.
 */
#include "opencl_workload.h"

#include <stdlib.h>
#include <string.h>

#define SIDE 24
#define BATCH 2
#define PITCH 32 /* Elements from one row to the next. */
#define ELEMENTS (BATCH * SIDE * PITCH)
#define BYTES (ELEMENTS * sizeof(float))

static float a[ELEMENTS], b[ELEMENTS], want[ELEMENTS];

struct operands {
    struct tandem_buffer *a, *b, *c, *bias;
};

static struct tandem_gemm product(const struct operands *on, int64_t batch)
{
    const int64_t stride = SIDE * PITCH;

    return (struct tandem_gemm){.struct_size = sizeof(struct tandem_gemm),
                                .dtype = TANDEM_F32,
                                .m = SIDE,
                                .n = SIDE,
                                .k = SIDE,
                                .batch = batch,
                                .alpha = 1,
                                .a = {on->a, 0, PITCH, stride},
                                .b = {on->b, 0, PITCH, stride},
                                .c = {on->c, 0, PITCH, stride}};
}

/* Computes want = a b by definition, plus by; then relu if set. */
static void reference(int batch, float by, bool relu)
{
    memset(want, 0, sizeof want);
    for (int l = 0; l < batch; l++)
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < SIDE; j++) {
                const int row = (l * SIDE + i) * PITCH;
                float sum = by;

                for (int k = 0; k < SIDE; k++)
                    sum += a[row + k] * b[(l * SIDE + k) * PITCH + j];
                want[row + j] = relu && sum < 0 ? 0 : sum;
            }
}

static bool multiply(struct workload *work, const struct operands *on,
                     const struct tandem_gemm *gemm, const char *what)
{
    const uint32_t zero = 0;

    return CALL(work, fill, work->stream, on->c, 0, BYTES, &zero, 4) &&
           call_succeeded(work, work->api->gemm(work->stream, gemm), what) &&
           content_matches(work, on->c, want, ELEMENTS, what);
}

static bool products(struct workload *work, const struct operands *on)
{
    struct tandem_gemm gemm = product(on, 1);

    reference(1, 0, false);
    if (!multiply(work, on, &gemm, "gemm"))
        return false;
    gemm.bias = on->bias;
    gemm.bias_kind = TANDEM_BIAS_PER_COLUMN;
    gemm.activation = TANDEM_OP_RELU;
    reference(1, -20.0f, true);
    if (!multiply(work, on, &gemm, "gemm with an epilogue"))
        return false;
    gemm = product(on, BATCH);
    reference(BATCH, 0, false);
    return multiply(work, on, &gemm, "batched gemm");
}

bool section_products(struct workload *work, struct tandem_buffer *first,
                      struct tandem_buffer *second)
{
    const float minus = -20.0f;
    struct operands on = {NULL, NULL, NULL, NULL};
    bool passed;

    (void)first;
    (void)second;
    for (int i = 0; i < ELEMENTS; i++) {
        a[i] = (float)(i % 7 - 3);
        b[i] = (float)(i % 5 - 2);
    }
    passed = buffer_new(work, BYTES, &on.a) && buffer_new(work, BYTES, &on.b) &&
             buffer_new(work, BYTES, &on.c) &&
             buffer_new(work, SIDE * sizeof(float), &on.bias) &&
             upload(work, on.a, a, BYTES) && upload(work, on.b, b, BYTES) &&
             CALL(work, fill, work->stream, on.bias, 0, SIDE * sizeof(float),
                  &minus, 4) &&
             products(work, &on);
    work->api->free(on.a);
    work->api->free(on.b);
    work->api->free(on.c);
    work->api->free(on.bias);
    return passed;
}
