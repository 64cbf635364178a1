/* SPDX-License-Identifier: Apache-2.0 */
/* CLBlast, with our temporary memory. */
#include "opencl/gemm/clblast.h"

#include <clblast_c.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/thread_state_guard.h"
#include "opencl/program/compile_lock.h"
#include "opencl/device/cl_status.h"
#include "opencl/queue/hazard_tracking.h"

/* What a call of CLBlast takes, in its own terms: by columns, so that
 * c' = b' a' is asked for.  Its fastest kernel reads and writes columns: for
 * rows it would transpose the result, too. */
struct product {
    cl_mem a, b;
    CLBlastTranspose transpose_a, transpose_b;
    size_t m, n, k, batch;
    float alpha, beta;
    size_t a_offset, b_offset, c_offset;
    size_t a_ld, b_ld, c_ld;
    size_t a_stride, b_stride, c_stride;
};

static void product_fill(struct product *out, const struct tandem_gemm *gemm)
{
    out->transpose_a = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0
                           ? CLBlastTransposeYes
                           : CLBlastTransposeNo;
    out->transpose_b = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0
                           ? CLBlastTransposeYes
                           : CLBlastTransposeNo;
    out->a = gemm->b.buffer->mem;
    out->b = gemm->a.buffer->mem;
    out->m = (size_t)gemm->n;
    out->n = (size_t)gemm->m;
    out->k = (size_t)gemm->k;
    out->batch = (size_t)gemm->batch;
    out->alpha = (float)gemm->alpha;
    out->beta = (float)gemm->beta;
    out->a_offset = gemm->b.byte_offset / sizeof(float);
    out->b_offset = gemm->a.byte_offset / sizeof(float);
    out->c_offset = gemm->c.byte_offset / sizeof(float);
    out->a_ld = (size_t)gemm->b.ld;
    out->b_ld = (size_t)gemm->a.ld;
    out->c_ld = (size_t)gemm->c.ld;
    out->a_stride = (size_t)gemm->b.batch_stride;
    out->b_stride = (size_t)gemm->a.batch_stride;
    out->c_stride = (size_t)gemm->c.batch_stride;
}

bool clblast_supports_alignment(struct tandem_device *device,
                                const struct tandem_gemm *gemm)
{
    uint32_t skew = buffer_misalignment(gemm->a.buffer) |
                    buffer_misalignment(gemm->b.buffer) |
                    buffer_misalignment(gemm->c.buffer);
    if (skew == 0)
        return true;
    clblast_init_once(&device->utility);
    return skew % clblast_operand_alignment(device->hardware) == 0;
}

/* ---- readiness ---- */

uint64_t clblast_variant_key(const struct tandem_gemm *gemm)
{
    return gemm->batch > 1 ? CLBLAST_BATCHED_KEY : CLBLAST_KEY;
}

/* CLBlast fills its list of tuned parameters at the process's first call, and
 * locks nothing meanwhile: two threads there free each other's list.  So the
 * first call is one that needs no kernel, by one thread; to be called before
 * any other of CLBlast's. */
void clblast_init_once(cl_command_queue *queue)
{
    static atomic_bool filled;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const size_t n = 16;
    size_t bytes;
    if (atomic_load_explicit(&filled, memory_order_acquire))
        return;
    pthread_mutex_lock(&mutex);
    if (!atomic_load_explicit(&filled, memory_order_relaxed) &&
        CLBlastSGemmTempBufferSize(CLBlastLayoutRowMajor, CLBlastTransposeNo,
                                   CLBlastTransposeNo, n, n, n, 0, n, 0, n, 0,
                                   n, queue, &bytes) == CLBlastSuccess)
        atomic_store_explicit(&filled, true, memory_order_release);
    pthread_mutex_unlock(&mutex);
}

static enum tandem_status warm_once(struct tandem_device *device,
                                    cl_command_queue queue, cl_mem memory,
                                    size_t n, bool batched)
{
    int code;
    clblast_init_once(&queue);
    if (batched)
        code = CLBlastSgemmStridedBatched(
            CLBlastLayoutColMajor, CLBlastTransposeNo, CLBlastTransposeNo, n, n,
            n, 1.0f, memory, 0, n, 0, memory, 0, n, 0, 0.0f, memory, n * n, n,
            n * n, 2, &queue, NULL);
    else
        code = CLBlastSgemm(CLBlastLayoutColMajor, CLBlastTransposeNo,
                            CLBlastTransposeNo, n, n, n, 1.0f, memory, 0, n,
                            memory, 0, n, 0.0f, memory, n * n, n, &queue, NULL);
    if (code == CLBlastSuccess)
        code = clFinish(queue);
    return status_from_clblast(device, code, "CLBlastSgemm");
}

/* CLBlast takes a direct kernel for small products and an indirect one for
 * large ones; on a CPU the large one would cost more than its compile. */
enum tandem_status clblast_warm(struct tandem_device *device, bool batched)
{
    const size_t small = 16, large = 1024;
    /* CLBlast asks for its programs' binaries, too. */
    bool waited;
    int lock = compile_lock_acquire(device, &waited);
    clblast_overrides_self_test(device, batched);
    bool both = device->hardware->info.kind != TANDEM_DEVICE_CPU;
    size_t most = both ? large : small;
    cl_int code = CL_SUCCESS;
    cl_command_queue queue =
        clCreateCommandQueue(device->context, device->hardware->id, 0, &code);
    enum tandem_status status =
        status_from_cl(device, code, "clCreateCommandQueue");
    cl_mem memory = NULL;
    if (status == TANDEM_OK) {
        memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                3 * most * most * sizeof(float), NULL, &code);
        status = status_from_cl(device, code, "clCreateBuffer");
    }
    if (status == TANDEM_OK)
        status = warm_once(device, queue, memory, small, batched);
    if (status == TANDEM_OK && both)
        status = warm_once(device, queue, memory, large, batched);
    if (memory != NULL)
        clReleaseMemObject(memory);
    if (queue != NULL)
        clReleaseCommandQueue(queue);
    compile_lock_release(lock);
    return status;
}

void clblast_clear_cache(void)
{
    CLBlastClearCache();
}

/* ---- the call ---- */

/* The temporary memory that CLBlast wants, remembered by shape. */
static enum tandem_status temp_size(struct tandem_stream *stream,
                                    const struct product *p, size_t *out_bytes)
{
    uint64_t shape[8] = {(uint64_t)p->transpose_a << 32 |
                             (uint64_t)p->transpose_b,
                         p->m,
                         p->n,
                         p->k,
                         p->a_ld,
                         p->b_ld,
                         p->c_ld,
                         p->a_offset << 42 ^ p->b_offset << 21 ^ p->c_offset};
    uint64_t mix = 0;
    for (uint32_t i = 0; i < 8; i++)
        mix = (mix ^ shape[i]) * 0x9e3779b97f4a7c15u;
    struct clblast_temp_size_entry *entry =
        &stream->clblast_temp_sizes[mix >> 32 & (CLBLAST_TEMP_SIZE_COUNT - 1)];
    /* Offsets of 2^21 and more would not be told apart. */
    bool exact = (p->a_offset | p->b_offset | p->c_offset) >> 21 == 0;
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

static enum tandem_status product_single(struct tandem_stream *stream,
                                         const struct tandem_gemm *gemm,
                                         const struct product *p)
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
            p->k, p->alpha, p->a, p->a_offset, p->a_ld,
            p->b, p->b_offset, p->b_ld, p->beta,
            gemm->c.buffer->mem, p->c_offset, p->c_ld, &stream->queue, NULL,
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

static enum tandem_status product_batched(struct tandem_stream *stream,
                                          const struct tandem_gemm *gemm,
                                          const struct product *p)
{
    clblast_init_once(&stream->queue);
    int code = CLBlastSgemmStridedBatched(
        CLBlastLayoutColMajor, p->transpose_a, p->transpose_b, p->m, p->n, p->k,
        p->alpha, p->a, p->a_offset, p->a_ld, p->a_stride,
        p->b, p->b_offset, p->b_ld, p->b_stride, p->beta,
        gemm->c.buffer->mem, p->c_offset, p->c_ld, p->c_stride, p->batch,
        &stream->queue, NULL);
    stream_next_seqno(stream);
    return status_from_clblast(stream->device, code,
                               "CLBlastSgemmStridedBatched");
}

/* CLBlast adds up all of k in one f32.  Terms of one sign are passed so many at
 * a time that their sum is off by no more than 0.6 of what backend.h allows,
 * which grows with the root of k (measured for a = 0.7, b = 1). */
static size_t slab_terms(size_t k)
{
    double most = fmax(16 * sqrt((double)k), CLBLAST_MAX_UNSPLIT_K);
    size_t slabs = (size_t)ceil((double)k / most);
    return (k + slabs - 1) / slabs;
}

/* The product in slabs of k, each added to c. */
static enum tandem_status slabs_multiply(struct tandem_stream *stream,
                                         const struct tandem_gemm *gemm,
                                         struct product product)
{
    enum tandem_status status = TANDEM_OK;
    size_t terms = slab_terms(product.k), left = product.k;
    size_t a_step = product.transpose_a == CLBlastTransposeYes ? 1
                                                               : product.a_ld;
    size_t b_step = product.transpose_b == CLBlastTransposeYes ? product.b_ld
                                                               : 1;
    for (; left > 0 && status == TANDEM_OK; left -= product.k) {
        product.k = left < terms ? left : terms;
        status = product.batch > 1 ? product_batched(stream, gemm, &product)
                                   : product_single(stream, gemm, &product);
        product.a_offset += product.k * a_step;
        product.b_offset += product.k * b_step;
        product.beta = 1.0f;
    }
    return status;
}

enum tandem_status clblast_gemm_launch(struct tandem_stream *stream,
                                       const struct tandem_gemm *gemm)
{
    struct product product;
    struct tandem_buffer *buffers[3] = {gemm->a.buffer, gemm->b.buffer,
                                        gemm->c.buffer};
    enum tandem_status status = TANDEM_OK;
    product_fill(&product, gemm);
    for (uint32_t i = 0; i < 3 && status == TANDEM_OK; i++)
        status = stream_begin_use(stream, buffers[i]);
    if (status != TANDEM_OK)
        return status;
    /* CLBlast compiles at a product's first call. */
    bool cold = kernel_variant_query(stream->device,
                                     clblast_variant_key(gemm)) != TANDEM_OK;
    struct thread_state host;
    bool waited;
    int lock = -1;
    if (cold) {
        thread_state_guard_enter(&host);
        lock = compile_lock_acquire(stream->device, &waited);
        clblast_overrides_self_test(stream->device, gemm->batch > 1);
    }
    status = slabs_multiply(stream, gemm, product);
    compile_lock_release(lock);
    if (cold)
        thread_state_guard_leave(&host);
    for (uint32_t i = 0; i < 3; i++)
        stream_note_use(stream, buffers[i], i == 2);
    if (status == TANDEM_OK && cold)
        kernel_variant_mark_ready(stream->device, clblast_variant_key(gemm));
    return status;
}
