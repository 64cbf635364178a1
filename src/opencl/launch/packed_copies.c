/* SPDX-License-Identifier: Apache-2.0 */
/* Packs operands of GEMMs into copies; see packed_copies.h. */
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

static struct packed_copy_key operand_key(const struct launch_plan *plan,
                                          const struct launch_memory *memory,
                                          enum operand_id id)
{
    const struct tandem_gemm *gemm = &plan->gemm.gemm;
    struct gemm_operand operand = operand_of(gemm, id);
    uint32_t slot = SLOT_INPUT + (uint32_t)id;
    return (struct packed_copy_key){
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

/* Packs the operand into the copy.  Returns false if that fails. */
static bool copy_pack(struct packed_copy *copy, struct tandem_stream *stream,
                      const struct launch_plan *plan,
                      const struct launch_memory *operands, enum operand_id id)
{
    struct tandem_device *device = stream->device;
    const struct tandem_gemm *gemm = &plan->gemm.gemm;
    struct launch_plan packing = {.step_count = 0};
    struct launch_memory memory = *operands;
    struct tandem_gemm packed = *gemm;
    struct block *block;
    plan_operand_packing(&packing, gemm, kernel_of(plan), 1u << id,
                         device->programs.group_log2, &packed);
    if (!packed_copy_fits(copy, packing.temp_bytes) ||
        block_acquire(device, packing.temp_bytes, &block) != TANDEM_OK)
        return false;
    packed_copy_set_block(copy, block, packing.temp_bytes);
    launch_memory_set(&memory, SLOT_TEMP, &copy->memory, 0);
    if (launch_steps(stream, &packing, &memory) != TANDEM_OK)
        return false;
    /* Other streams must wait for the packing before they use the copy. */
    atomic_store(&copy->memory.prior_seqno, atomic_load(&stream->issued_seqno));
    atomic_store(&copy->memory.synced_stream, 0);
    atomic_store(&copy->memory.prior_stream, stream->id);
    return true;
}

/* Returns a copy of operand `id`, packed for the kernel of the plan, or NULL if
 * the operand has none. */
static struct packed_copy *copy_acquire(struct tandem_stream *stream,
                                        const struct launch_plan *plan,
                                        const struct launch_memory *memory,
                                        enum operand_id id)
{
    struct tandem_buffer *buffer = memory->buffers[SLOT_INPUT + (uint32_t)id];
    const struct packed_copy_key key = operand_key(plan, memory, id);
    /* Foreign memory can be written without the plugin's knowledge, unless it
     * is sealed.  Copies of an exposed buffer can be outdated. */
    if (atomic_load(&buffer->is_exposed) ||
        (buffer->block == NULL && !atomic_load(&buffer->is_sealed)))
        return NULL;
    struct packed_copy *copy = packed_copy_acquire(buffer, &key);
    if (copy == NULL || copy->is_packed)
        return copy;
    /* If another stream may still write the buffer, do not pack the operand,
     * because the copy could mix two versions of it. */
    if (!stream_sees_last_write(stream, buffer)) {
        packed_copy_release(copy);
        return NULL;
    }
    bool is_packed = copy_pack(copy, stream, plan, memory, id);
    packed_copy_finish(copy, is_packed);
    return is_packed ? copy : NULL;
}

uint32_t packed_copies_acquire(struct packed_copies *out,
                               struct tandem_stream *stream,
                               const struct launch_plan *plan,
                               struct launch_memory *memory)
{
    uint32_t mask = 0;
    for (enum operand_id i = OPERAND_A; i < OPERAND_COUNT; i++) {
        struct packed_copy *copy = NULL;
        if ((plan->gemm.packs >> i & 1u) != 0)
            copy = copy_acquire(stream, plan, memory, i);
        out->copies[i] = copy;
        if (copy == NULL)
            continue;
        launch_memory_set(memory, SLOT_PACKED_A + (uint32_t)i, &copy->memory,
                          0);
        mask |= 1u << i;
    }
    return mask;
}

void packed_copies_release(const struct packed_copies *copies)
{
    for (uint32_t i = 0; i < OPERAND_COUNT; i++)
        if (copies->copies[i] != NULL)
            packed_copy_release(copies->copies[i]);
}
