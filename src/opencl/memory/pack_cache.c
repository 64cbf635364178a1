/* SPDX-License-Identifier: Apache-2.0 */
/* Packed operands that are kept; see pack_cache.h. */
#include "opencl/memory/pack_cache.h"

#include <stdlib.h>
#include <string.h>

#include "common/argument_check.h"
#include "opencl/queue/kernel_launch.h"
#include "opencl/plan/operand_packing.h"

/* Which operand, and what is made of it; compared as bytes. */
struct form {
    uint64_t byte_offset;
    int64_t rows, depth, ld, batch_stride, batches;
    uint64_t layout; /* packing_layout's */
    uint32_t outer, dtype;
};

/* A buffer's last write. */
struct version {
    uint64_t stream, serial;
};

struct kept {
    struct form form;
    struct version version;
    struct tandem_device *device;
    struct tandem_buffer *of; /* NULL: forgotten while it was in use */
    struct tandem_buffer memory; /* no handle: nobody else's */
    struct tandem_matrix matrix;
    uint32_t users;
    struct kept *next;           /* of the same buffer */
    struct kept *newer, *older;  /* by last use */
};

/* ---- what an operand is ---- */

static struct form form_of(const struct tandem_gemm *gemm, enum tile_id tile,
                           enum operand_id id)
{
    const struct tandem_matrix *matrix =
        id == OPERAND_A ? &gemm->a : &gemm->b;
    struct form form;
    memset(&form, 0, sizeof(form));
    form.byte_offset = matrix->byte_offset;
    form.rows = id == OPERAND_A ? gemm->m : gemm->n;
    form.depth = gemm->k;
    form.ld = matrix->ld;
    form.batch_stride = matrix->batch_stride;
    form.batches = matrix->batch_stride == 0 ? 1 : gemm->batch;
    form.layout = packing_layout(gemm, tile, id);
    form.outer = operand_is_mn_major(gemm, id);
    form.dtype = gemm->dtype;
    return form;
}

static struct version version_of(const struct tandem_buffer *buffer)
{
    return (struct version){atomic_load(&buffer->written_stream),
                            atomic_load(&buffer->written_seqno)};
}

static bool version_same(struct version one, struct version other)
{
    return one.stream == other.stream && one.serial == other.serial;
}

/* A number that two operands share by chance alone (FNV-1a); not 0. */
static uint64_t trace_of(const struct form *form, uint64_t address,
                         struct version version)
{
    unsigned char bytes[sizeof(*form) + sizeof(address) + sizeof(version)];
    uint64_t trace = 0xcbf29ce484222325u;
    memcpy(bytes, form, sizeof(*form));
    memcpy(bytes + sizeof(*form), &address, sizeof(address));
    memcpy(bytes + sizeof(*form) + sizeof(address), &version, sizeof(version));
    for (size_t i = 0; i < sizeof(bytes); i++)
        trace = (trace ^ bytes[i]) * 0x100000001b3u;
    return trace != 0 ? trace : 1;
}

/* ---- the list; the pool is locked ---- */

static void order_leave(struct pool *pool, struct kept *kept)
{
    if (kept->newer != NULL)
        kept->newer->older = kept->older;
    else
        pool->kept_newest = kept->older;
    if (kept->older != NULL)
        kept->older->newer = kept->newer;
    else
        pool->kept_oldest = kept->newer;
}

static void order_enter(struct pool *pool, struct kept *kept)
{
    kept->newer = NULL;
    kept->older = pool->kept_newest;
    if (kept->older != NULL)
        kept->older->newer = kept;
    else
        pool->kept_oldest = kept;
    pool->kept_newest = kept;
}

/* Its memory to the pool's cache. */
static void kept_free(struct pool *pool, struct kept *kept)
{
    pool->stats.cached_bytes -= kept->memory.block->bytes;
    block_inherit(kept->memory.block, &kept->memory);
    block_put(pool, kept->memory.block);
    free(kept);
}

static void kept_leave(struct pool *pool, struct kept *kept)
{
    struct kept **at = &kept->of->kept;
    while (*at != kept)
        at = &(*at)->next;
    *at = kept->next;
    order_leave(pool, kept);
    pool->kept_bytes -= kept->memory.bytes;
    kept->of = NULL;
    if (kept->users == 0)
        kept_free(pool, kept);
}

void kept_forget(struct pool *pool, struct tandem_buffer *buffer)
{
    while (buffer->kept != NULL)
        kept_leave(pool, buffer->kept);
}

/* The oldest that nobody uses, until bytes are left at most. */
static void kept_shrink(struct pool *pool, uint64_t bytes)
{
    struct kept *newer;
    for (struct kept *at = pool->kept_oldest;
         at != NULL && pool->kept_bytes > bytes; at = newer) {
        newer = at->newer;
        if (at->users == 0)
            kept_leave(pool, at);
    }
}

void kept_drop(struct pool *pool)
{
    kept_shrink(pool, 0);
}

void kept_poison(struct pool *pool, uint64_t stream, uint64_t serial,
                 uint32_t status)
{
    for (struct kept *at = pool->kept_newest; at != NULL; at = at->older)
        if (atomic_load(&at->memory.written_stream) == stream &&
            atomic_load(&at->memory.written_seqno) > serial)
            atomic_store(&at->memory.poison, status);
}

/* What is kept of the operand as it is now; what is out of date leaves. */
static struct kept *kept_find(struct pool *pool, struct tandem_buffer *buffer,
                              const struct form *form, struct version version)
{
    struct kept *at = buffer->kept;
    while (at != NULL && memcmp(&at->form, form, sizeof(*form)) != 0)
        at = at->next;
    if (at == NULL || (version_same(at->version, version) &&
                       atomic_load(&at->memory.poison) == TANDEM_OK))
        return at;
    kept_leave(pool, at);
    return NULL;
}

static struct kept *kept_use(struct pool *pool, struct kept *kept)
{
    if (kept == NULL)
        return NULL;
    kept->users++;
    order_leave(pool, kept);
    order_enter(pool, kept);
    return kept;
}

/* Whether the operand is seen for the second time, as it is now. */
static bool seen_again(struct pool *pool, uint64_t trace)
{
    uint64_t *place = &pool->kept_traces[trace % KEPT_TRACES];
    bool again = *place == trace;
    *place = trace;
    return again;
}

/* ---- making ---- */

/* Memory that is worth it; none is given back for it. */
static bool room_for(struct pool *pool, uint64_t bytes)
{
    const struct tandem_memory_stats *stats = &pool->stats;
    if (bytes > pool->kept_cap ||
        (stats->limit_bytes != 0 &&
         stats->allocated_bytes + stats->cached_bytes + bytes >
             stats->limit_bytes))
        return false;
    kept_shrink(pool, pool->kept_cap - bytes);
    return pool->kept_bytes <= pool->kept_cap - bytes;
}

static bool memory_make(struct kept *kept, uint64_t bytes)
{
    struct pool *pool = &kept->device->pool;
    struct tandem_buffer *memory = &kept->memory;
    pthread_mutex_lock(&pool->mutex);
    bool room = room_for(pool, bytes);
    pthread_mutex_unlock(&pool->mutex);
    if (!room || block_get(kept->device, bytes, &memory->block) != TANDEM_OK)
        return false;
    memory->device = kept->device;
    memory->mem = memory->block->mem;
    memory->bytes = bytes;
    memory->address = memory->block->address;
    memory->internal = true;
    atomic_store(&memory->former_stream, memory->block->stream);
    atomic_store(&memory->former_serial, memory->block->serial);
    pthread_mutex_lock(&pool->mutex);
    pool->stats.allocated_bytes -= memory->block->bytes;
    pool->stats.cached_bytes += memory->block->bytes;
    pthread_mutex_unlock(&pool->mutex);
    return true;
}

/* Packs the operand; other streams are to wait for it. */
static bool memory_fill(struct kept *kept, struct tandem_stream *stream,
                        struct plan *plan)
{
    struct tandem_buffer *memory = &kept->memory;
    if (launch_steps(stream, plan, memory) != TANDEM_OK)
        return false;
    atomic_store(&memory->former_serial, atomic_load(&stream->issued));
    atomic_store(&memory->synced_stream, 0);
    atomic_store(&memory->former_stream, stream->id);
    return true;
}

static struct kept *kept_make(struct tandem_stream *stream,
                              const struct tandem_gemm *gemm,
                              enum tile_id tile, enum operand_id id)
{
    struct tandem_device *device = stream->device;
    struct plan plan = {.steps = 0};
    struct tandem_gemm whole;
    struct kept *kept = calloc(1, sizeof(*kept));
    if (kept == NULL)
        return NULL;
    gemm_args_normalize(&whole, gemm);
    struct tandem_gemm packed = whole;
    packing_plan(&plan, &whole, tile, 1u << id, device->programs.group_log2,
                 &packed);
    kept->device = device;
    kept->matrix = id == OPERAND_A ? packed.a : packed.b;
    kept->matrix.buffer = &kept->memory;
    if (!memory_make(kept, plan.temp_bytes)) {
        free(kept);
        return NULL;
    }
    if (memory_fill(kept, stream, &plan))
        return kept;
    pthread_mutex_lock(&device->pool.mutex);
    kept_free(&device->pool, kept);
    pthread_mutex_unlock(&device->pool.mutex);
    return NULL;
}

/* Into the lists; another thread may have been faster.  The pool is locked. */
static struct kept *kept_enter(struct pool *pool, struct tandem_buffer *buffer,
                               struct kept *made)
{
    struct kept *found = kept_find(pool, buffer, &made->form, made->version);
    if (found != NULL) {
        kept_free(pool, made);
        return kept_use(pool, found);
    }
    made->of = buffer;
    made->next = buffer->kept;
    buffer->kept = made;
    made->users = 1;
    order_enter(pool, made);
    pool->kept_bytes += made->memory.bytes;
    return made;
}

/* ---- for gemm.c ---- */

struct kept *pack_cache_acquire_or_pack(struct tandem_stream *stream,
                       const struct tandem_gemm *gemm, enum tile_id tile,
                       enum operand_id id)
{
    struct pool *pool = &stream->device->pool;
    struct tandem_buffer *buffer =
        id == OPERAND_A ? gemm->a.buffer : gemm->b.buffer;
    struct version version = version_of(buffer);
    if (pool->kept_cap == 0 || buffer->block == NULL || version.stream == 0)
        return NULL;
    struct form form = form_of(gemm, tile, id);
    uint64_t trace = trace_of(&form, buffer->address, version);
    pthread_mutex_lock(&pool->mutex);
    struct kept *kept =
        kept_use(pool, kept_find(pool, buffer, &form, version));
    bool make = kept == NULL && seen_again(pool, trace);
    pthread_mutex_unlock(&pool->mutex);
    /* Were it packed while another stream writes it, what is kept would be of
     * neither version, and stay so. */
    if (!make || !stream_has(stream, buffer))
        return kept;
    kept = kept_make(stream, gemm, tile, id);
    if (kept == NULL)
        return NULL;
    kept->form = form;
    kept->version = version;
    pthread_mutex_lock(&pool->mutex);
    kept = kept_enter(pool, buffer, kept);
    /* Another thread may have seen the stream fail before it was listed. */
    uint32_t failed = atomic_load(&stream->status);
    if (failed != TANDEM_OK)
        atomic_store(&kept->memory.poison, failed);
    pthread_mutex_unlock(&pool->mutex);
    return kept;
}

void pack_cache_release(struct kept *kept)
{
    if (kept == NULL)
        return;
    struct pool *pool = &kept->device->pool;
    pthread_mutex_lock(&pool->mutex);
    if (--kept->users == 0 && kept->of == NULL)
        kept_free(pool, kept);
    pthread_mutex_unlock(&pool->mutex);
}

const struct tandem_matrix *kept_matrix(const struct kept *kept)
{
    return kept != NULL ? &kept->matrix : NULL;
}
