/* SPDX-License-Identifier: Apache-2.0 */
/* Packs GEMM operands into the pack cache; see pack_cache_fill.h. */
#include "opencl/gemm/pack_cache_fill.h"

#include <string.h>

#include "opencl/memory/block_pool.h"
#include "opencl/plan/operand_packing.h"
#include "opencl/queue/hazard_tracking.h"
#include "opencl/queue/kernel_launch.h"

static struct pack_cache_key operand_key(const struct tandem_gemm *gemm,
                                         enum gemm_kernel_id tile,
                                         enum operand_id id)
{
    const struct tandem_matrix *matrix = id == OPERAND_A ? &gemm->a : &gemm->b;
    struct pack_cache_key key;
    memset(&key, 0, sizeof(key));
    key.byte_offset = matrix->byte_offset;
    key.rows = id == OPERAND_A ? gemm->m : gemm->n;
    key.depth = gemm->k;
    key.ld = matrix->ld;
    key.batch_stride = matrix->batch_stride;
    key.batches = matrix->batch_stride == 0 ? 1 : gemm->batch;
    key.layout = packing_layout_id(gemm, tile, id);
    key.mn_major = operand_is_mn_major(gemm, id);
    key.dtype = gemm->dtype;
    return key;
}

/* Packs the operand into a new cache entry. Returns NULL if this fails. */
static struct pack_cache_entry *entry_pack(struct tandem_stream *stream,
                                           const struct tandem_gemm *gemm,
                                           enum gemm_kernel_id tile,
                                           enum operand_id id)
{
    struct tandem_device *device = stream->device;
    struct launch_plan plan = {.step_count = 0};
    struct tandem_gemm packed = *gemm;
    struct block *block;
    plan_operand_packing(&plan, gemm, tile, 1u << id,
                         device->programs.group_log2, &packed);
    if (!pack_cache_make_room(device, plan.temp_bytes) ||
        block_acquire(device, plan.temp_bytes, &block) != TANDEM_OK)
        return NULL;
    struct pack_cache_entry *entry =
        pack_cache_entry_create(device, block, plan.temp_bytes);
    if (entry == NULL)
        return NULL;
    struct tandem_buffer *memory = &entry->memory;
    entry->matrix = id == OPERAND_A ? packed.a : packed.b;
    entry->matrix.buffer = memory;
    if (launch_steps(stream, &plan, memory) != TANDEM_OK) {
        pack_cache_entry_destroy(entry);
        return NULL;
    }
    /* Other streams must wait for the packing before they use the entry. */
    atomic_store(&memory->prior_seqno, atomic_load(&stream->issued_seqno));
    atomic_store(&memory->synced_stream, 0);
    atomic_store(&memory->prior_stream, stream->id);
    return entry;
}

struct pack_cache_entry *
pack_cache_acquire_or_pack(struct tandem_stream *stream,
                           const struct tandem_gemm *gemm,
                           enum gemm_kernel_id tile, enum operand_id id)
{
    struct tandem_buffer *buffer =
        id == OPERAND_A ? gemm->a.buffer : gemm->b.buffer;
    struct buffer_version version = buffer_version_get(buffer);
    if (stream->device->pool.pack_cache_limit_bytes == 0 ||
        buffer->block == NULL || version.stream == 0)
        return NULL;
    struct pack_cache_key key = operand_key(gemm, tile, id);
    bool seen_before;
    struct pack_cache_entry *entry =
        pack_cache_acquire(buffer, &key, version, &seen_before);
    /* If another stream still writes the buffer, the packed copy could mix two
     * versions of the operand. */
    if (!seen_before || !stream_sees_last_write(stream, buffer))
        return entry;
    entry = entry_pack(stream, gemm, tile, id);
    if (entry == NULL)
        return NULL;
    entry->key = key;
    entry->version = version;
    return pack_cache_insert(buffer, entry, &stream->status);
}
