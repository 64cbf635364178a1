/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of CLBlast for each family; see tuning_candidate.h. */
#include "opencl/tune/tuning_candidate.h"

#include <clblast_c.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/gemm/clblast.h"
#include "opencl/device/device.h"
#include "opencl/device/cl_status.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/queue/hazard_tracking.h"
#include "opencl/transfer/transfer.h"

#define ALPHA 1.5f
#define BETA 0.5f
/* Each operand of a small case fits this number of elements. */
#define SMALL_ELEMENTS (UINT64_C(1) << 17)
#define LEAST_SIDE 256
/* Direct products are small: CLBlast's own tuner's size. */
#define DIRECT_SIDE 256
#define TOLERANCE 32.0 /* of eps times the sum of the magnitudes */

/* The sizes of a call: the result has n columns of m elements. */
struct size {
    int64_t m, n, k;
};

/* ---- memory ---- */

void trial_end(struct trial *trial)
{
    struct tandem_buffer *buffers[3] = {trial->x, trial->y, trial->z};
    for (uint32_t i = 0; i < 3; i++) {
        if (buffers[i] != NULL)
            buffer_destroy(buffers[i]);
        free(trial->host[i]);
    }
    memset(trial, 0, sizeof(*trial));
}

/* A buffer of the meter's random numbers. */
static enum tandem_status buffer_make(struct trial *trial,
                                      struct tandem_buffer **out)
{
    uint64_t elements = (uint64_t)(trial->side * trial->side);
    if (elements < SMALL_ELEMENTS)
        elements = SMALL_ELEMENTS;
    uint64_t bytes = elements * sizeof(float);
    struct meter *meter = trial->meter;
    enum tandem_status status =
        buffer_create(meter->device, bytes, false, out);
    for (uint64_t done = 0; done < bytes && status == TANDEM_OK;) {
        uint64_t part =
            bytes - done < meter->bytes ? bytes - done : meter->bytes;
        status =
            buffer_copy(meter->stream, *out, done, meter->memory, 0, part);
        done += part;
    }
    if (status == TANDEM_OK)
        status =
            stream_synchronize(meter->stream, device_timeout_ns(meter->device));
    return status;
}

static enum tandem_status buffers_make(struct trial *trial)
{
    enum tandem_status status = buffer_make(trial, &trial->x);
    if (status == TANDEM_OK)
        status = buffer_make(trial, &trial->y);
    if (status == TANDEM_OK)
        status = buffer_make(trial, &trial->z);
    for (uint32_t i = 0; i < 3 && status == TANDEM_OK; i++) {
        trial->host[i] = malloc(SMALL_ELEMENTS * sizeof(float));
        if (trial->host[i] == NULL)
            status = last_error_set(TANDEM_OUT_OF_MEMORY, "out of host memory");
    }
    return status;
}

enum tandem_status trial_start(struct trial *trial, struct meter *meter,
                               int64_t side)
{
    enum tandem_status status;
    do {
        memset(trial, 0, sizeof(*trial));
        trial->meter = meter;
        trial->side = side;
        status = buffers_make(trial);
        if (status != TANDEM_OK)
            trial_end(trial);
        side /= 2;
    } while (status == TANDEM_OUT_OF_MEMORY && side >= LEAST_SIDE);
    return status;
}

/* ---- calls ---- */

/* z, of m x n, from x, by copying or turning it. */
static int call_copy(const struct trial *trial, const struct size *size,
                     bool turn)
{
    return CLBlastSomatcopy(
        CLBlastLayoutColMajor, turn ? CLBlastTransposeYes : CLBlastTransposeNo,
        (size_t)size->m, (size_t)size->n, ALPHA, trial->x->mem, 0,
        (size_t)size->m, trial->z->mem, 0,
        (size_t)(turn ? size->n : size->m), &trial->meter->stream->queue,
        NULL);
}

static int call_gemm(const struct trial *trial, const struct size *size)
{
    return CLBlastSgemm(CLBlastLayoutColMajor, CLBlastTransposeNo,
                        CLBlastTransposeNo, (size_t)size->m, (size_t)size->n,
                        (size_t)size->k, ALPHA, trial->x->mem, 0,
                        (size_t)size->m, trial->y->mem, 0, (size_t)size->k,
                        BETA, trial->z->mem, 0, (size_t)size->m,
                        &trial->meter->stream->queue, NULL);
}

static int call_family(const struct trial *trial, const struct size *size)
{
    switch (trial->family) {
    case CLBLAST_COPY:
    case CLBLAST_PAD:
        return call_copy(trial, size, false);
    case CLBLAST_TRANSPOSE:
    case CLBLAST_PADTRANSPOSE:
        return call_copy(trial, size, true);
    default:
        return call_gemm(trial, size);
    }
}

/* Returns true if CLBlast runs the family's kernel only for matrices whose
 * sides are not multiples of the tile. */
static bool family_uneven(enum clblast_kernel_id family)
{
    return family == CLBLAST_PAD || family == CLBLAST_PADTRANSPOSE;
}

static enum tandem_status call(const struct trial *trial,
                               const struct size *size)
{
    struct tandem_buffer *buffers[3] = {trial->x, trial->y, trial->z};
    struct tandem_stream *stream = trial->meter->stream;
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < 3 && status == TANDEM_OK; i++)
        status = stream_begin_use(stream, buffers[i]);
    if (status != TANDEM_OK)
        return status;
    int code = call_family(trial, size);
    stream_next_seqno(stream);
    for (uint32_t i = 0; i < 3; i++)
        stream_note_use(stream, buffers[i], i == 2);
    return status_from_clblast(trial->meter->device, code,
                               clblast_kernels[trial->family].name);
}

/* ---- right? ---- */

/* Computes element `i` of the small case's result in double precision.
 * `out_scale` receives the sum of the magnitudes of its terms. */
static double expected(const struct trial *trial, const struct size *size,
                       int64_t i, double *out_scale)
{
    const float *x = trial->host[0], *y = trial->host[1], *z = trial->host[2];
    int64_t m = size->m, n = size->n, x_at = i % m, y_at = i / m * size->k;
    const double factor = (double)ALPHA;
    double sum = (double)BETA * (double)z[i], scale = fabs(sum);
    switch (trial->family) {
    case CLBLAST_COPY:
    case CLBLAST_PAD:
        *out_scale = fabs(factor * (double)x[i]);
        return factor * (double)x[i];
    case CLBLAST_TRANSPOSE:
    case CLBLAST_PADTRANSPOSE:
        x_at = i % n * m + i / n;
        *out_scale = fabs(factor * (double)x[x_at]);
        return factor * (double)x[x_at];
    default:
        break;
    }
    for (int64_t j = 0; j < size->k; j++) {
        double term = factor * (double)x[x_at + j * m] * (double)y[y_at + j];
        sum += term;
        scale += fabs(term);
    }
    *out_scale = scale;
    return sum;
}

static struct size small_size(enum clblast_kernel_id family)
{
    if (family <= CLBLAST_GEMM_ROUTINE)
        return (struct size){264, 139, 137};
    return family_uneven(family) ? (struct size){250, 243, 1}
                                 : (struct size){256, 256, 1};
}

static void numbers_fill(float *out, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (float)(int32_t)seed / 2147483648.0f;
    }
}

static enum tandem_status judge(struct trial *trial, const struct size *size,
                                const float *got, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double scale;
        double want = expected(trial, size, i, &scale);
        if (!(fabs((double)got[i] - want) <= TOLERANCE * 0x1p-24 * scale))
            return last_error_set(TANDEM_FAILED,
                                  "%s: element %lld is %g, not %g",
                                  clblast_kernels[trial->family].name,
                                  (long long)i, (double)got[i], want);
    }
    return TANDEM_OK;
}

enum tandem_status trial_check(struct trial *trial)
{
    struct size size = small_size(trial->family);
    struct meter *meter = trial->meter;
    struct tandem_buffer *buffers[3] = {trial->x, trial->y, trial->z};
    int64_t count = size.m * size.n;
    uint64_t bytes = (uint64_t)count * sizeof(float);
    enum tandem_status status = TANDEM_OK;
    float *got = malloc(bytes);
    if (got == NULL)
        return last_error_set(TANDEM_OUT_OF_MEMORY, "out of host memory");
    for (uint32_t i = 0; i < 3 && status == TANDEM_OK; i++) {
        numbers_fill(trial->host[i], SMALL_ELEMENTS, i + 1);
        status = transfer_upload(meter->stream, buffers[i], 0, trial->host[i],
                                 SMALL_ELEMENTS * sizeof(float), 0);
    }
    if (status == TANDEM_OK)
        status = call(trial, &size);
    if (status == TANDEM_OK)
        status = transfer_download(meter->stream, trial->z, 0, got, bytes, 0,
                                   device_timeout_ns(meter->device));
    if (status == TANDEM_OK)
        status = judge(trial, &size, got, count);
    free(got);
    return status;
}

/* ---- fast? ---- */

struct timed {
    const struct trial *trial;
    struct size size;
};

static enum tandem_status timed_launch(struct meter *meter, void *argument)
{
    const struct timed *timed = argument;
    (void)meter;
    return call(timed->trial, &timed->size);
}

enum tandem_status trial_time_product(struct trial *trial, int64_t side,
                                      double *out_ns)
{
    struct timed timed = {trial, {side, side, side}};
    return kernel_timer_measure(trial->meter, timed_launch, &timed, out_ns);
}

enum tandem_status tuning_candidate_time(struct trial *trial, double *out_ns)
{
    int64_t side =
        trial->family == CLBLAST_XGEMM_DIRECT ? DIRECT_SIDE : trial->side;
    struct timed timed = {trial, {side, side, side}};
    if (family_uneven(trial->family)) {
        timed.size.m -= 5;
        timed.size.n -= 13;
    }
    return kernel_timer_measure(trial->meter, timed_launch, &timed, out_ns);
}
