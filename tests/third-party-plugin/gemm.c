/* SPDX-License-Identifier: Apache-2.0 */
/* gemm of f32, without bias and activation; see plugin.h. */
#include "plugin.h"

#include <stdlib.h>
#include <time.h>

#define SIDE_MAX 4096

/* A matrix and its strides. */
struct view {
    const struct tandem_matrix *matrix;
    int64_t rows, columns; /* The shape as stored. */
};

static void views_of(const struct tandem_gemm *gemm, struct view out[3])
{
    const bool ta = gemm->flags & TANDEM_GEMM_TRANSPOSE_A;
    const bool tb = gemm->flags & TANDEM_GEMM_TRANSPOSE_B;

    out[0] =
        (struct view){&gemm->a, ta ? gemm->k : gemm->m, ta ? gemm->m : gemm->k};
    out[1] =
        (struct view){&gemm->b, tb ? gemm->n : gemm->k, tb ? gemm->k : gemm->n};
    out[2] = (struct view){&gemm->c, gemm->m, gemm->n};
}

/*
 * Checks the shape and computes the bytes of all batches, [0, *out_end) from
 * the offset on.
 */
static enum tandem_status view_check(const struct view *view, int64_t batch,
                                     __int128 *out_end)
{
    const struct tandem_matrix *matrix = view->matrix;

    *out_end = 0;
    if (view->rows == 0 || view->columns == 0)
        return TANDEM_OK;
    if ((view->rows > 1 && matrix->ld < view->columns) ||
        (batch > 1 && matrix->batch_stride < 0))
        return invalid_status(fail(TANDEM_INVALID_ARGUMENT,
                                   "a leading dimension or batch stride is too "
                                   "small"));
    *out_end = ((__int128)(batch - 1) * matrix->batch_stride +
                (__int128)(view->rows - 1) * matrix->ld + view->columns) *
               (int)sizeof(float);
    return TANDEM_OK;
}

static enum tandem_status buffer_check(const struct view *view, __int128 end,
                                       const struct object *device)
{
    const struct object *buffer = object_get(view->matrix->buffer, KIND_BUFFER);

    if (buffer == NULL || buffer->device != device)
        return fail(TANDEM_INVALID_ARGUMENT, "a matrix' buffer is none of this "
                                             "device");
    if (view->matrix->byte_offset % sizeof(float) != 0 ||
        view->matrix->byte_offset + end > buffer->bytes)
        return fail(TANDEM_INVALID_ARGUMENT, "a matrix leaves its buffer, or "
                                             "begins within an element");
    return TANDEM_OK;
}

static bool batches_overlap(const struct tandem_gemm *gemm, __int128 end)
{
    const __int128 each = end / (int)sizeof(float) -
                          (__int128)(gemm->batch - 1) * gemm->c.batch_stride;

    return gemm->batch > 1 && end > 0 && gemm->c.batch_stride < each;
}

static enum tandem_status views_check(const struct tandem_gemm *gemm,
                                      const struct object *device)
{
    struct view views[3];
    __int128 ends[3];
    enum tandem_status status = TANDEM_OK;

    views_of(gemm, views);
    for (int i = 0; i < 3 && status == TANDEM_OK; i++) {
        status = view_check(&views[i], gemm->batch, &ends[i]);
        if (status == TANDEM_OK && device != NULL)
            status = buffer_check(&views[i], ends[i], device);
    }
    if (status != TANDEM_OK)
        return status;
    if (batches_overlap(gemm, ends[2]))
        return fail(TANDEM_INVALID_ARGUMENT, "batches of c overlap");
    for (int i = 0; i < 2 && device != NULL; i++) {
        const struct tandem_matrix *in = views[i].matrix, *c = &gemm->c;

        if (in->buffer == c->buffer && ends[i] > 0 && ends[2] > 0 &&
            in->byte_offset < c->byte_offset + ends[2] &&
            c->byte_offset < in->byte_offset + ends[i])
            return fail(TANDEM_INVALID_ARGUMENT, "c overlaps a or b");
    }
    return TANDEM_OK;
}

static enum tandem_status gemm_is_supported(const struct tandem_gemm *gemm)
{
    const int64_t most = (int64_t)setting_number("side", SIDE_MAX);

    if (!op_is_enabled("gemm"))
        return fail(TANDEM_UNSUPPORTED, "gemm is not served");
    if (gemm->dtype != TANDEM_F32 ||
        (gemm->struct_size >=
             TANDEM_SIZE_THROUGH(struct tandem_gemm, c_dtype) &&
         gemm->c_dtype != 0 && gemm->c_dtype != TANDEM_F32))
        return fail(TANDEM_UNSUPPORTED, "a dtype other than f32");
    if (gemm->bias_kind != TANDEM_BIAS_NONE ||
        gemm->activation != TANDEM_OP_INVALID)
        return fail(TANDEM_UNSUPPORTED, "a bias or an activation");
    if (gemm->m > most || gemm->n > most || gemm->k > most)
        return fail(TANDEM_UNSUPPORTED, "too long a side");
    if (setting("even") != NULL && (gemm->m | gemm->n | gemm->k) % 2 != 0)
        return fail(TANDEM_UNSUPPORTED, "an odd side");
    if (setting("large") != NULL && gemm->m * gemm->n * gemm->k < 4096)
        return fail(TANDEM_UNSUPPORTED, "a small product");
    return TANDEM_OK;
}

enum tandem_status gemm_check(const struct tandem_gemm *gemm,
                              const struct object *device)
{
    enum tandem_status status;

    if (gemm == NULL || gemm->struct_size < TANDEM_GEMM_MIN_SIZE_1_0)
        return fail(TANDEM_INVALID_ARGUMENT, "gemm is NULL or too short");
    if (gemm->m < 0 || gemm->n < 0 || gemm->k < 0 || gemm->batch < 1)
        return invalid_status(
            fail(TANDEM_INVALID_ARGUMENT, "a negative side or no batch"));
    if ((gemm->flags &
         ~(uint32_t)(TANDEM_GEMM_TRANSPOSE_A | TANDEM_GEMM_TRANSPOSE_B |
                     TANDEM_GEMM_ALLOW_TF32 |
                     TANDEM_GEMM_ALLOW_NORMWISE_ERROR)) != 0)
        return fail(TANDEM_INVALID_ARGUMENT, "unknown flags");
    status = gemm_is_supported(gemm);
    return status == TANDEM_OK ? views_check(gemm, device) : status;
}

static float *start(const struct tandem_matrix *matrix, int64_t batch)
{
    const struct object *buffer =
        (const struct object *)(const void *)matrix->buffer;

    return (float *)(void *)(buffer->memory + matrix->byte_offset) +
           batch * matrix->batch_stride;
}

static void batch_compute(const struct tandem_gemm *gemm, int64_t batch)
{
    const bool ta = gemm->flags & TANDEM_GEMM_TRANSPOSE_A;
    const bool tb = gemm->flags & TANDEM_GEMM_TRANSPOSE_B;
    const int64_t a_row = ta ? 1 : gemm->a.ld, a_column = ta ? gemm->a.ld : 1;
    const int64_t b_row = tb ? 1 : gemm->b.ld, b_column = tb ? gemm->b.ld : 1;
    const float *a = start(&gemm->a, batch), *b = start(&gemm->b, batch);
    float *c = start(&gemm->c, batch);
    const double alpha = (float)gemm->alpha, beta = (float)gemm->beta;

    for (int64_t i = 0; i < gemm->m; i++)
        for (int64_t j = 0; j < gemm->n; j++) {
            float *out = c + i * gemm->c.ld + j;
            double sum = 0;

            for (int64_t p = 0; alpha != 0 && p < gemm->k; p++)
                sum += (double)a[i * a_row + p * a_column] *
                       (double)b[p * b_row + j * b_column];
            *out = (float)(alpha * sum + (beta != 0 ? beta * (double)*out : 0));
        }
}

void gemm_compute(const struct tandem_gemm *gemm)
{
    const char *slow = setting("slow");

    for (int64_t batch = 0; batch < gemm->batch; batch++)
        batch_compute(gemm, batch);
    if (slow != NULL) {
        const long us = strtol(slow, NULL, 10);
        const struct timespec pause = {us / 1000000, us % 1000000 * 1000};

        nanosleep(&pause, NULL);
    }
}
