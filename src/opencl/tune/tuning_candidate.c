/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and times sets of CLBlast parameters; see tuning_candidate.h. */
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
/* Maximum number of elements of a matrix in a correctness check. */
#define CHECK_ELEMENTS (UINT64_C(1) << 17)
#define MIN_SIDE 256
/* Matrix size for the direct kernel; CLBlast's own tuner uses this size. */
#define DIRECT_SIDE 256
/* Allowed error, in units of 2^-24 times the sum of the terms' magnitudes. */
#define TOLERANCE 32.0

/* ---- memory ---- */

void tuning_candidate_finish(struct tuning_candidate *candidate)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (candidate->buffers[i] != NULL)
            buffer_destroy(candidate->buffers[i]);
        free(candidate->host[i]);
    }
    memset(candidate, 0, sizeof(*candidate));
}

/* Creates a device buffer and fills it with the timer's random numbers. */
static enum tandem_status buffer_make(struct tuning_candidate *candidate,
                                      struct tandem_buffer **out)
{
    uint64_t elements = (uint64_t)(candidate->side * candidate->side);
    if (elements < CHECK_ELEMENTS)
        elements = CHECK_ELEMENTS;
    uint64_t bytes = elements * sizeof(float);
    struct kernel_timer *timer = candidate->timer;
    enum tandem_status status = buffer_create(timer->device, bytes, false, out);
    for (uint64_t done = 0; done < bytes && status == TANDEM_OK;) {
        uint64_t part =
            bytes - done < timer->bytes ? bytes - done : timer->bytes;
        status = buffer_copy(timer->stream, *out, done, timer->memory, 0, part);
        done += part;
    }
    return status == TANDEM_OK ? kernel_timer_drain(timer) : status;
}

static enum tandem_status buffers_make(struct tuning_candidate *candidate)
{
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < 3 && status == TANDEM_OK; i++) {
        candidate->host[i] = malloc(CHECK_ELEMENTS * sizeof(float));
        if (candidate->host[i] == NULL)
            return memory_error("tune: out of host memory");
        status = buffer_make(candidate, &candidate->buffers[i]);
    }
    return status;
}

enum tandem_status tuning_candidate_init(struct tuning_candidate *candidate,
                                         struct kernel_timer *timer,
                                         int64_t side)
{
    enum tandem_status status;
    do {
        memset(candidate, 0, sizeof(*candidate));
        candidate->timer = timer;
        candidate->side = side;
        status = buffers_make(candidate);
        if (status != TANDEM_OK)
            tuning_candidate_finish(candidate);
        side /= 2;
    } while (status == TANDEM_OUT_OF_MEMORY && side >= MIN_SIDE);
    return status;
}

/* ---- calls ---- */

static bool is_transpose(enum clblast_kernel_id kernel)
{
    return kernel == CLBLAST_TRANSPOSE || kernel == CLBLAST_PADTRANSPOSE;
}

static bool is_copy(enum clblast_kernel_id kernel)
{
    return kernel == CLBLAST_COPY || kernel == CLBLAST_PAD ||
           is_transpose(kernel);
}

/* Returns true if CLBlast runs the kernel only for matrices whose sides are not
 * multiples of the tile. */
static bool is_for_odd_sizes(enum clblast_kernel_id kernel)
{
    return kernel == CLBLAST_PAD || kernel == CLBLAST_PADTRANSPOSE;
}

/* Calls the CLBlast routine that runs the kernel. Returns its status code. */
static int routine_call(const struct tuning_candidate *candidate)
{
    struct tandem_buffer *const *buffers = candidate->buffers;
    cl_command_queue *queue = &candidate->timer->stream->queue;
    size_t m = (size_t)candidate->m, n = (size_t)candidate->n;
    size_t k = (size_t)candidate->k;
    bool transpose = is_transpose(candidate->kernel);
    if (is_copy(candidate->kernel))
        return CLBlastSomatcopy(
            CLBlastLayoutColMajor,
            transpose ? CLBlastTransposeYes : CLBlastTransposeNo, m, n, ALPHA,
            buffers[0]->mem, 0, m, buffers[2]->mem, 0, transpose ? n : m, queue,
            NULL);
    return CLBlastSgemm(CLBlastLayoutColMajor, CLBlastTransposeNo,
                        CLBlastTransposeNo, m, n, k, ALPHA, buffers[0]->mem, 0,
                        m, buffers[1]->mem, 0, k, BETA, buffers[2]->mem, 0, m,
                        queue, NULL);
}

/* Enqueues the CLBlast call of the struct tuning_candidate `argument`. */
static enum tandem_status candidate_launch(struct kernel_timer *timer,
                                           void *argument)
{
    const struct tuning_candidate *candidate = argument;
    struct tandem_stream *stream = timer->stream;
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < 3 && status == TANDEM_OK; i++)
        status = stream_begin_use(stream, candidate->buffers[i]);
    if (status != TANDEM_OK)
        return status;
    int code = routine_call(candidate);
    stream_next_seqno(stream);
    for (uint32_t i = 0; i < 3; i++)
        stream_note_use(stream, candidate->buffers[i], i == 2);
    return status_from_clblast(timer->device, code,
                               clblast_kernels[candidate->kernel].name);
}

/* ---- check ---- */

/* Returns the expected value of result element `i` in double precision. Sets
 * *out_scale to the sum of the magnitudes of the added terms. */
static double expected(const struct tuning_candidate *candidate, int64_t i,
                       double *out_scale)
{
    const float *x = candidate->host[0], *y = candidate->host[1];
    int64_t m = candidate->m, n = candidate->n, k = candidate->k;
    double sum, scale;
    if (is_copy(candidate->kernel)) {
        int64_t from = is_transpose(candidate->kernel) ? i % n * m + i / n : i;
        sum = (double)ALPHA * (double)x[from];
        *out_scale = fabs(sum);
        return sum;
    }
    sum = (double)BETA * (double)candidate->host[2][i];
    scale = fabs(sum);
    for (int64_t j = 0; j < k; j++) {
        double term =
            (double)ALPHA * (double)x[i % m + j * m] * (double)y[i / m * k + j];
        sum += term;
        scale += fabs(term);
    }
    *out_scale = scale;
    return sum;
}

static enum tandem_status
result_compare(const struct tuning_candidate *candidate, const float *result)
{
    for (int64_t i = 0; i < candidate->m * candidate->n; i++) {
        double scale;
        double want = expected(candidate, i, &scale);
        if (!(fabs((double)result[i] - want) <= TOLERANCE * 0x1p-24 * scale))
            return last_error_set(TANDEM_FAILED,
                                  "CLBlast kernel %s: element %lld is %g "
                                  "instead of %g",
                                  clblast_kernels[candidate->kernel].name,
                                  (long long)i, (double)result[i], want);
    }
    return TANDEM_OK;
}

/* Sets the size of the call that a correctness check makes. */
static void check_size_set(struct tuning_candidate *candidate)
{
    bool copy = is_copy(candidate->kernel);
    bool odd = is_for_odd_sizes(candidate->kernel);
    candidate->m = !copy ? 264 : odd ? 250 : 256;
    candidate->n = !copy ? 139 : odd ? 243 : 256;
    candidate->k = !copy ? 137 : 1;
}

enum tandem_status tuning_candidate_check(struct tuning_candidate *candidate)
{
    check_size_set(candidate);
    struct kernel_timer *timer = candidate->timer;
    uint64_t bytes = (uint64_t)(candidate->m * candidate->n) * sizeof(float);
    enum tandem_status status = TANDEM_OK;
    float *result = malloc(bytes);
    if (result == NULL)
        return memory_error("tune: out of host memory");
    for (uint32_t i = 0; i < 3 && status == TANDEM_OK; i++) {
        clblast_self_test_fill(candidate->host[i], CHECK_ELEMENTS, i + 1);
        status = transfer_upload(timer->stream, candidate->buffers[i], 0,
                                 candidate->host[i],
                                 CHECK_ELEMENTS * sizeof(float), 0);
    }
    if (status == TANDEM_OK)
        status = candidate_launch(timer, candidate);
    if (status == TANDEM_OK)
        status =
            transfer_download(timer->stream, candidate->buffers[2], 0, result,
                              bytes, 0, device_timeout_ns(timer->device));
    if (status == TANDEM_OK)
        status = result_compare(candidate, result);
    free(result);
    return status;
}

/* ---- time ---- */

enum tandem_status tuning_candidate_time(struct tuning_candidate *candidate,
                                         int64_t side, double *out_ns)
{
    if (side == 0)
        side = candidate->kernel == CLBLAST_XGEMM_DIRECT ? DIRECT_SIDE
                                                         : candidate->side;
    bool odd = is_for_odd_sizes(candidate->kernel);
    candidate->m = odd ? side - 5 : side;
    candidate->n = odd ? side - 13 : side;
    candidate->k = side;
    return kernel_timer_measure(candidate->timer, candidate_launch, candidate,
                                out_ns);
}
