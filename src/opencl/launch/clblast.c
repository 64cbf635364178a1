/* SPDX-License-Identifier: Apache-2.0 */
/* Computes GEMMs with CLBlast; see clblast.h. */
#include "opencl/launch/clblast.h"

#include <clblast_c.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "opencl/program/kernel_variants.h"
#include "common/secure_file.h"
#include "common/thread_state_guard.h"
#include "opencl/device/cl_status.h"
#include "opencl/queue/hazard_tracking.h"

/* Arguments of a CLBlast call. CLBlast's fastest kernel is column-major. With
 * row-major arguments, CLBlast would also have to transpose the result.
 * Therefore the call computes c^T = b^T a^T with column-major matrices. */
struct clblast_call {
    cl_mem a, b, c;
    CLBlastTranspose transpose_a, transpose_b;
    size_t m, n, k;
    float alpha, beta;
    size_t a_offset, b_offset, c_offset;
    size_t a_ld, b_ld, c_ld;
};

static CLBlastTranspose transpose_of(const struct tandem_gemm *gemm,
                                     uint32_t flag)
{
    return (gemm->flags & flag) != 0 ? CLBlastTransposeYes : CLBlastTransposeNo;
}

static void call_init(struct clblast_call *out, const struct tandem_gemm *gemm)
{
    *out = (struct clblast_call){
        .a = gemm->b.buffer->mem,
        .b = gemm->a.buffer->mem,
        .c = gemm->c.buffer->mem,
        .transpose_a = transpose_of(gemm, TANDEM_GEMM_TRANSPOSE_B),
        .transpose_b = transpose_of(gemm, TANDEM_GEMM_TRANSPOSE_A),
        .m = (size_t)gemm->n,
        .n = (size_t)gemm->m,
        .k = (size_t)gemm->k,
        .alpha = (float)gemm->alpha,
        .beta = (float)gemm->beta,
        .a_offset = gemm->b.byte_offset / sizeof(float),
        .b_offset = gemm->a.byte_offset / sizeof(float),
        .c_offset = gemm->c.byte_offset / sizeof(float),
        .a_ld = (size_t)gemm->b.ld,
        .b_ld = (size_t)gemm->a.ld,
        .c_ld = (size_t)gemm->c.ld};
}

bool clblast_supports_alignment(const struct tandem_gemm *gemm)
{
    uint32_t misalignment = buffer_misalignment(gemm->a.buffer) |
                            buffer_misalignment(gemm->b.buffer) |
                            buffer_misalignment(gemm->c.buffer);
    return misalignment % CLBLAST_ALIGNMENT == 0;
}

/* Initializes CLBlast. Must be called before any other function of CLBlast. In
 * the first call of the process, CLBlast fills its table of parameters without
 * a lock. Two simultaneous first calls would free each other's table, so one
 * thread makes the first call, which needs no kernel, under a mutex. */
static void clblast_init_once(cl_command_queue *queue)
{
    static atomic_bool done;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const size_t n = 16;
    size_t bytes;
    if (atomic_load_explicit(&done, memory_order_acquire))
        return;
    pthread_mutex_lock(&mutex);
    if (!atomic_load_explicit(&done, memory_order_relaxed) &&
        CLBlastSGemmTempBufferSize(CLBlastLayoutRowMajor, CLBlastTransposeNo,
                                   CLBlastTransposeNo, n, n, n, 0, n, 0, n, 0,
                                   n, queue, &bytes) == CLBlastSuccess)
        atomic_store_explicit(&done, true, memory_order_release);
    pthread_mutex_unlock(&mutex);
}

/* The product is so small that CLBlast allocates no buffer. If it fails to
 * allocate one, CLBlast 1.5 to 1.7 end the process: the destructor of a buffer
 * that was not created throws an exception. All kernels are in one program. */
enum tandem_status clblast_warm(struct tandem_device *device)
{
    const size_t n = 4;
    /* The compile lock is needed because CLBlast asks drivers for binaries. */
    bool waited;
    int lock = compile_lock_acquire(device, &waited);
    cl_int code = CL_SUCCESS;
    cl_command_queue queue =
        clCreateCommandQueue(device->context, device->hardware->id, 0, &code);
    enum tandem_status status =
        status_from_cl(device, code, "clCreateCommandQueue");
    cl_mem memory = NULL;
    if (status == TANDEM_OK) {
        memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                2 * n * n * sizeof(float), NULL, &code);
        status = status_from_cl(device, code, "clCreateBuffer");
    }
    if (status == TANDEM_OK) {
        clblast_init_once(&queue);
        code = CLBlastSgemm(CLBlastLayoutColMajor, CLBlastTransposeNo,
                            CLBlastTransposeNo, n, n, n, 1.0f, memory, 0, n,
                            memory, 0, n, 0.0f, memory, n * n, n, &queue, NULL);
        if (code == CLBlastSuccess)
            code = clFinish(queue);
        status = status_from_clblast(device, code, "CLBlastSgemm");
    }
    if (memory != NULL)
        clReleaseMemObject(memory);
    if (queue != NULL)
        clReleaseCommandQueue(queue);
    lock_release(lock);
    return status;
}

void clblast_clear_cache(void)
{
    CLBlastClearCache();
}

/* Returns the size of the temporary buffer that CLBlast needs for the call,
 * from the stream's cache if the cache contains the size. */
static enum tandem_status temp_size(struct tandem_stream *stream,
                                    const struct clblast_call *p,
                                    size_t *out_bytes)
{
    uint64_t transposes =
        (uint64_t)p->transpose_a << 32 | (uint64_t)p->transpose_b;
    uint64_t offsets = p->a_offset << 42 ^ p->b_offset << 21 ^ p->c_offset;
    const uint64_t shape[8] = {transposes, p->m,    p->n,    p->k,
                               p->a_ld,    p->b_ld, p->c_ld, offsets};
    /* The cache key `shape` is only exact if each offset fits in 21 bits. */
    bool exact = (p->a_offset | p->b_offset | p->c_offset) >> 21 == 0;
    uint64_t hash = 0;
    for (uint32_t i = 0; i < 8; i++)
        hash = (hash ^ shape[i]) * 0x9e3779b97f4a7c15u;
    struct clblast_temp_size_entry *entry =
        &stream->clblast_temp_sizes[hash >> 32 & (CLBLAST_TEMP_SIZE_COUNT - 1)];
    *out_bytes = entry->temp_bytes;
    if (exact && memcmp(entry->shape, shape, sizeof(shape)) == 0)
        return TANDEM_OK;
    clblast_init_once(&stream->queue);
    int code = CLBlastSGemmTempBufferSize(
        CLBlastLayoutColMajor, p->transpose_a, p->transpose_b, p->m, p->n, p->k,
        p->a_offset, p->a_ld, p->b_offset, p->b_ld, p->c_offset, p->c_ld,
        &stream->queue, out_bytes);
    if (code == CLBlastSuccess && exact) {
        memcpy(entry->shape, shape, sizeof(shape));
        entry->temp_bytes = *out_bytes;
    }
    return status_from_clblast(stream->device, code,
                               "CLBlastSGemmTempBufferSize");
}

static enum tandem_status call_once(struct tandem_stream *stream,
                                    const struct clblast_call *p)
{
    struct tandem_buffer *temp = NULL;
    size_t temp_bytes = 0;
    enum tandem_status status = temp_size(stream, p, &temp_bytes);
    if (status == TANDEM_OK && temp_bytes != 0)
        status = buffer_create(stream->device, temp_bytes, true, &temp);
    if (status == TANDEM_OK && temp != NULL)
        status = stream_begin_use(stream, temp);
    if (status == TANDEM_OK) {
        int code = CLBlastSgemmWithTempBuffer(
            CLBlastLayoutColMajor, p->transpose_a, p->transpose_b, p->m, p->n,
            p->k, p->alpha, p->a, p->a_offset, p->a_ld, p->b, p->b_offset,
            p->b_ld, p->beta, p->c, p->c_offset, p->c_ld, &stream->queue, NULL,
            temp != NULL ? temp->mem : NULL);
        status = status_from_clblast(stream->device, code, "CLBlastSgemm");
    }
    stream_next_seqno(stream);
    if (temp != NULL) {
        stream_note_use(stream, temp, true);
        buffer_destroy(temp);
    }
    return status;
}

/* Returns the maximum k of one CLBlast call. CLBlast sums all k terms in one
 * f32. If all terms have the same sign, the error of the sum grows faster than
 * the bound in backend.h, which grows with sqrt(k). With the returned k, the
 * error stays below 0.6 times the bound (measured with a = 0.7, b = 1). */
static size_t k_per_call(size_t k)
{
    double max = fmax(16 * sqrt((double)k), CLBLAST_MAX_UNSPLIT_K);
    size_t calls = (size_t)ceil((double)k / max);
    return (k + calls - 1) / calls;
}

/* Computes a GEMM with several CLBlast calls, each of which sums a part of k.
 * All calls except the first add their sums to c. */
static enum tandem_status call_in_parts(struct tandem_stream *stream,
                                        struct clblast_call call)
{
    enum tandem_status status = TANDEM_OK;
    size_t part = k_per_call(call.k), left = call.k;
    size_t a_step = call.transpose_a == CLBlastTransposeYes ? 1 : call.a_ld;
    size_t b_step = call.transpose_b == CLBlastTransposeYes ? call.b_ld : 1;
    for (; left > 0 && status == TANDEM_OK; left -= call.k) {
        call.k = left < part ? left : part;
        status = call_once(stream, &call);
        call.a_offset += call.k * a_step;
        call.b_offset += call.k * b_step;
        call.beta = 1.0f;
    }
    return status;
}

/* Runs the first GEMM of a device. CLBlast compiles its kernels during this
 * call. */
static enum tandem_status first_call(struct tandem_stream *stream,
                                     const struct clblast_call *call)
{
    struct tandem_device *device = stream->device;
    struct thread_state host;
    bool waited;
    thread_state_guard_enter(&host);
    int lock = compile_lock_acquire(device, &waited);
    enum tandem_status status = call_in_parts(stream, *call);
    lock_release(lock);
    thread_state_guard_leave(&host);
    return status;
}

enum tandem_status clblast_gemm_launch(struct tandem_stream *stream,
                                       const struct tandem_gemm *gemm)
{
    struct clblast_call call;
    const struct kernel_key key = clblast_key();
    struct tandem_buffer *buffers[3] = {gemm->a.buffer, gemm->b.buffer,
                                        gemm->c.buffer};
    enum tandem_status status = TANDEM_OK;
    call_init(&call, gemm);
    for (uint32_t i = 0; i < 3 && status == TANDEM_OK; i++)
        status = stream_begin_use(stream, buffers[i]);
    if (status != TANDEM_OK)
        return status;
    /* A build in the background would compile the same kernels. */
    bool is_first = kernel_variant_wait(stream->device, &key) != TANDEM_OK;
    status = is_first ? first_call(stream, &call) : call_in_parts(stream, call);
    for (uint32_t i = 0; i < 3; i++)
        stream_note_use(stream, buffers[i], i == 2);
    if (status == TANDEM_OK && is_first)
        kernel_variant_mark_ready(stream->device, &key);
    return status;
}
