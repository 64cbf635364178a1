/* SPDX-License-Identifier: Apache-2.0 */
/* Packs operands of GEMMs into the pack cache; see packed_copies.h. */
#include "opencl/launch/packed_copies.h"

#include "opencl/memory/block_pool.h"
#include "opencl/plan/gemm_params.h"
#include "opencl/plan/operand_packing.h"
#include "opencl/plan/tensor_core_packing.h"
#include "opencl/queue/hazard_tracking.h"

/* Returns the kernel of the plan. */
static enum gemm_kernel_id kernel_of(const struct launch_plan *plan)
{
    return (enum gemm_kernel_id)(plan->selected_gemm - 1);
}

static struct pack_cache_key operand_key(const struct launch_plan *plan,
                                         const struct launch_memory *memory,
                                         enum operand_id id)
{
    const struct tandem_gemm *gemm = &plan->gemm.gemm;
    struct gemm_operand operand = operand_of(gemm, id);
    uint32_t slot = SLOT_INPUT + (uint32_t)id;
    return (struct pack_cache_key){
        .byte_offset = memory->byte_offsets[slot],
        .rows = operand.rows,
        .depth = gemm->k,
        .ld = operand.matrix->ld,
        .batch_stride = operand.matrix->batch_stride,
        .batches = operand.batches,
        .layout = packing_layout_id(gemm, kernel_of(plan), id),
        .mn_major = operand.is_mn_major,
        .dtype = gemm->dtype};
}

/* Packs an operand into a new cache entry. Returns NULL if packing fails. */
static struct pack_cache_entry *entry_pack(struct tandem_stream *stream,
                                           const struct launch_plan *plan,
                                           const struct launch_memory *operands,
                                           enum operand_id id)
{
    struct tandem_device *device = stream->device;
    const struct tandem_gemm *gemm = &plan->gemm.gemm;
    struct launch_plan packing = {.step_count = 0};
    struct launch_memory memory = *operands;
    struct tandem_gemm packed = *gemm;
    struct block *block;
    plan_operand_packing(&packing, gemm, kernel_of(plan), 1u << id,
                         device->programs.group_log2, &packed);
    if (!pack_cache_make_room(device, packing.temp_bytes) ||
        block_acquire(device, packing.temp_bytes, &block) != TANDEM_OK)
        return NULL;
    struct pack_cache_entry *entry =
        pack_cache_entry_create(device, block, packing.temp_bytes);
    if (entry == NULL)
        return NULL;
    launch_memory_set(&memory, SLOT_TEMP, &entry->memory, 0);
    if (launch_steps(stream, &packing, &memory) != TANDEM_OK) {
        pack_cache_entry_destroy(entry);
        return NULL;
    }
    /* Other streams must wait for the packing before they use the entry. */
    atomic_store(&entry->memory.prior_seqno,
                 atomic_load(&stream->issued_seqno));
    atomic_store(&entry->memory.synced_stream, 0);
    atomic_store(&entry->memory.prior_stream, stream->id);
    return entry;
}

/* Returns the cached copy of operand `id`, packed for the kernel of the plan,
 * or NULL if the cache has no copy. The first call for an operand only records
 * that the operand is used. The second call packs the operand on `stream`. The
 * caller releases the entry with pack_cache_release(). */
static struct pack_cache_entry *
acquire_or_pack(struct tandem_stream *stream, const struct launch_plan *plan,
                const struct launch_memory *memory, enum operand_id id)
{
    struct tandem_buffer *buffer = memory->buffers[SLOT_INPUT + (uint32_t)id];
    struct buffer_version version = buffer_version_get(buffer);
    if (stream->device->pool.pack_cache_limit_bytes == 0 ||
        buffer->block == NULL || version.stream == 0)
        return NULL;
    struct pack_cache_key key = operand_key(plan, memory, id);
    bool seen_before;
    struct pack_cache_entry *entry =
        pack_cache_acquire(buffer, &key, version, &seen_before);
    /* If another stream may still write the buffer, do not pack the operand,
     * because the copy could mix two versions of it. */
    if (!seen_before || !stream_sees_last_write(stream, buffer))
        return entry;
    entry = entry_pack(stream, plan, memory, id);
    if (entry == NULL)
        return NULL;
    entry->key = key;
    entry->version = version;
    return pack_cache_insert(buffer, entry, &stream->status);
}

uint32_t packed_copies_acquire(struct packed_copies *out,
                               struct tandem_stream *stream,
                               const struct launch_plan *plan,
                               struct launch_memory *memory)
{
    uint32_t copies = 0;
    for (enum operand_id i = OPERAND_A; i < OPERAND_COUNT; i++) {
        struct pack_cache_entry *entry = NULL;
        if ((plan->gemm.packs >> i & 1u) != 0)
            entry = acquire_or_pack(stream, plan, memory, i);
        out->entries[i] = entry;
        if (entry == NULL)
            continue;
        launch_memory_set(memory, SLOT_PACKED_A + (uint32_t)i, &entry->memory,
                          0);
        copies |= 1u << i;
    }
    return copies;
}

void packed_copies_release(const struct packed_copies *copies)
{
    for (uint32_t i = 0; i < OPERAND_COUNT; i++)
        pack_cache_release(copies->entries[i]);
}
