/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the plugin's GEMM functions. The plugin's own kernels include the
 * epilogue. For CLBlast, a separate kernel runs the epilogue after the GEMM. */
#include "opencl/gemm/gemm.h"

#include "common/argument_check.h"
#include "opencl/gemm/clblast.h"
#include "opencl/memory/block_pool.h"
#include "opencl/memory/pack_cache.h"
#include "opencl/plan/gemm_params.h"
#include "opencl/plan/operand_packing.h"
#include "opencl/plan/tensor_core_packing.h"
#include "opencl/queue/hazard_tracking.h"
#include "opencl/queue/kernel_launch.h"

/* Describes how a GEMM is computed: first by CLBlast if `clblast` is set, then
 * by the kernels of `plan`. */
struct gemm_dispatch {
    bool clblast;
    bool uses_selected_kernel; /* the plan runs selection.kernel */
    struct gemm_selection selection;
    struct launch_plan plan; /* may be empty */
};

static bool is_empty(const struct tandem_gemm *gemm)
{
    return gemm->m == 0 || gemm->n == 0 || gemm->batch == 0;
}

/* A GEMM as the caller passed it, and as it is planned: with slots instead of
 * memory. */
struct gemm_call {
    struct tandem_gemm given, planned; /* normalized */
    struct launch_memory memory;
};

static void gemm_call_init(struct gemm_call *out,
                           const struct tandem_gemm *given)
{
    gemm_args_normalize(&out->given, given);
    out->planned = out->given;
    gemm_memory_to_slots(&out->planned, &out->memory);
}

static void matrix_to_slot(struct tandem_matrix *matrix,
                           struct launch_memory *out, uint32_t slot)
{
    matrix->buffer =
        launch_memory_set(out, slot, matrix->buffer, matrix->byte_offset);
    matrix->byte_offset = 0;
}

void gemm_memory_to_slots(struct tandem_gemm *gemm, struct launch_memory *out)
{
    matrix_to_slot(&gemm->a, out, SLOT_INPUT);
    matrix_to_slot(&gemm->b, out, SLOT_INPUT + 1);
    matrix_to_slot(&gemm->c, out, SLOT_OUTPUT);
    gemm->bias = launch_memory_set(out, SLOT_INPUT + 2, gemm->bias,
                                   gemm->bias_byte_offset);
    gemm->bias_byte_offset = 0;
}

/* Selects CLBlast or a kernel. Returns false if neither CLBlast nor one of the
 * plugin's fast kernels supports the GEMM. */
static bool kernel_select(struct gemm_selection *out,
                          struct tandem_device *device,
                          const struct gemm_call *call)
{
    const struct tandem_gemm *gemm = &call->planned;
    gemm_selector_choose(&device->gemm_selector, gemm, out);
    if (!out->clblast)
        return true;
    if (!clblast_supports_gemm(gemm))
        return false;
    if (clblast_supports_gemm(&call->given) &&
        clblast_supports_alignment(device, &call->given))
        return true;
    gemm_selector_choose_without_clblast(&device->gemm_selector, gemm, out);
    return !out->clblast;
}

static void dispatch_select(struct gemm_dispatch *out,
                            struct tandem_device *device,
                            const struct gemm_call *call)
{
    const struct tandem_gemm *gemm = &call->planned;
    uint32_t group_log2 = device->programs.group_log2;
    /* If alpha or k is 0, only beta * c and the epilogue remain. CLBlast
     * rejects GEMMs with k = 0. */
    bool is_zero = gemm->k == 0 || gemm->alpha == 0;
    bool selected = !is_zero && kernel_select(&out->selection, device, call);
    out->clblast = selected && out->selection.clblast;
    out->uses_selected_kernel = selected && !out->clblast;
    out->plan.step_count = 0;
    if (is_zero)
        plan_epilogue(&out->plan, gemm, group_log2, (float)gemm->beta);
    else if (!selected)
        plan_naive_gemm(&out->plan, gemm, group_log2);
    else if (!out->clblast)
        plan_gemm(&out->plan, gemm, out->selection.kernel, out->selection.split,
                  NULL, group_log2);
    else if (gemm_has_epilogue(gemm))
        plan_epilogue(&out->plan, gemm, group_log2, 1.0f);
}

/* Disables the selected kernel if `status` means that the device cannot run it.
 * Returns true if the caller must select again. */
static bool disable_failed(struct tandem_device *device,
                           const struct tandem_gemm *gemm,
                           const struct gemm_dispatch *dispatch,
                           enum tandem_status status)
{
    if (!dispatch->uses_selected_kernel ||
        (status != TANDEM_FAILED && status != TANDEM_UNSUPPORTED))
        return false;
    device_log(device, TANDEM_LOG_WARNING,
               "gemm: kernel %s is disabled on %s: %s",
               gemm_configs[dispatch->selection.kernel].name,
               device->hardware->info.name, last_error_get());
    gemm_selector_disable(&device->gemm_selector, gemm,
                          dispatch->selection.kernel);
    return true;
}

/* Selects the kernels of a GEMM and queues their builds. */
static enum tandem_status dispatch_build(struct gemm_dispatch *out_dispatch,
                                         struct tandem_device *device,
                                         const struct gemm_call *call)
{
    enum tandem_status status = TANDEM_OK;
    const struct launch_plan *plan = &out_dispatch->plan;
    dispatch_select(out_dispatch, device, call);
    if (out_dispatch->clblast)
        status =
            kernel_variant_prepare_clblast(device, call->planned.batch > 1);
    for (uint32_t i = 0; i < plan->step_count && status == TANDEM_OK; i++)
        if (plan->step[i].key.kernel != NULL)
            status = kernel_variant_prepare(device, plan, i);
    return status;
}

/* Selects the kernels of a GEMM.  Returns TANDEM_OK if all of them are built.
 */
static enum tandem_status dispatch_query(struct gemm_dispatch *out_dispatch,
                                         struct tandem_device *device,
                                         const struct gemm_call *call)
{
    enum tandem_status status = TANDEM_OK;
    const struct launch_plan *plan = &out_dispatch->plan;
    const struct kernel_key clblast = clblast_key(call->planned.batch > 1);
    dispatch_select(out_dispatch, device, call);
    if (out_dispatch->clblast)
        status = kernel_variant_query(device, &clblast);
    for (uint32_t i = 0; i < plan->step_count && status == TANDEM_OK; i++)
        if (plan->step[i].key.kernel != NULL)
            status = kernel_variant_query(device, &plan->step[i].key);
    return status;
}

enum tandem_status gemm_prepare(struct tandem_device *device,
                                const struct tandem_gemm *given)
{
    struct gemm_call call;
    struct gemm_dispatch dispatch;
    if (is_empty(given))
        return TANDEM_OK;
    gemm_call_init(&call, given);
    return dispatch_build(&dispatch, device, &call);
}

enum tandem_status gemm_ready(struct tandem_device *device,
                              const struct tandem_gemm *given)
{
    struct gemm_call call;
    struct gemm_dispatch dispatch;
    if (is_empty(given))
        return TANDEM_OK;
    gemm_call_init(&call, given);
    enum tandem_status status = dispatch_query(&dispatch, device, &call);
    while (disable_failed(device, &call.planned, &dispatch, status)) {
        status = dispatch_build(&dispatch, device, &call);
        if (status == TANDEM_OK)
            status = dispatch_query(&dispatch, device, &call);
    }
    return status;
}

/* ---- pack cache ---- */

static struct pack_cache_key operand_key(const struct gemm_call *call,
                                         enum gemm_kernel_id kernel,
                                         enum operand_id id)
{
    const struct tandem_gemm *gemm = &call->planned;
    struct gemm_operand operand = operand_of(gemm, id);
    uint32_t slot = SLOT_INPUT + (uint32_t)id;
    return (struct pack_cache_key){
        .byte_offset = call->memory.byte_offsets[slot],
        .rows = operand.rows,
        .depth = gemm->k,
        .ld = operand.matrix->ld,
        .batch_stride = operand.matrix->batch_stride,
        .batches = operand.batches,
        .layout = packing_layout_id(gemm, kernel, id),
        .mn_major = operand.is_mn_major,
        .dtype = gemm->dtype};
}

/* Packs an operand into a new cache entry. Returns NULL if packing fails. */
static struct pack_cache_entry *entry_pack(struct tandem_stream *stream,
                                           const struct gemm_call *call,
                                           enum gemm_kernel_id kernel,
                                           enum operand_id id)
{
    struct tandem_device *device = stream->device;
    struct launch_plan plan = {.step_count = 0};
    struct launch_memory memory = call->memory;
    struct tandem_gemm packed = call->planned;
    struct block *block;
    plan_operand_packing(&plan, &call->planned, kernel, 1u << id,
                         device->programs.group_log2, &packed);
    if (!pack_cache_make_room(device, plan.temp_bytes) ||
        block_acquire(device, plan.temp_bytes, &block) != TANDEM_OK)
        return NULL;
    struct pack_cache_entry *entry =
        pack_cache_entry_create(device, block, plan.temp_bytes);
    if (entry == NULL)
        return NULL;
    entry->matrix = id == OPERAND_A ? packed.a : packed.b;
    entry->matrix.buffer =
        slot_buffer(SLOT_PACKED_A + (uint32_t)id, MAX_SLOT_ALIGNMENT);
    launch_memory_set(&memory, SLOT_TEMP, &entry->memory, 0);
    if (launch_steps(stream, &plan, &memory) != TANDEM_OK) {
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

/* Returns the cached copy of operand `id` of the GEMM, packed for `kernel`, or
 * NULL if the cache has no copy. The first call for an operand only records
 * that the operand is used. The second call packs the operand on `stream`. The
 * caller releases the entry with pack_cache_release(). */
static struct pack_cache_entry *acquire_or_pack(struct tandem_stream *stream,
                                                const struct gemm_call *call,
                                                enum gemm_kernel_id kernel,
                                                enum operand_id id)
{
    struct tandem_buffer *buffer =
        call->memory.buffers[SLOT_INPUT + (uint32_t)id];
    struct buffer_version version = buffer_version_get(buffer);
    if (stream->device->pool.pack_cache_limit_bytes == 0 ||
        buffer->block == NULL || version.stream == 0)
        return NULL;
    struct pack_cache_key key = operand_key(call, kernel, id);
    bool seen_before;
    struct pack_cache_entry *entry =
        pack_cache_acquire(buffer, &key, version, &seen_before);
    /* If another stream may still write the buffer, do not pack the operand,
     * because the copy could mix two versions of it. */
    if (!seen_before || !stream_sees_last_write(stream, buffer))
        return entry;
    entry = entry_pack(stream, call, kernel, id);
    if (entry == NULL)
        return NULL;
    entry->key = key;
    entry->version = version;
    return pack_cache_insert(buffer, entry, &stream->status);
}

/* Acquires packed copies of the operands from the pack cache, and makes a plan
 * that uses them. out_entries[i] is NULL if operand i has no copy. */
static void use_pack_cache(struct tandem_stream *stream, struct gemm_call *call,
                           struct gemm_dispatch *dispatch,
                           struct pack_cache_entry **out_entries)
{
    const struct tandem_gemm *gemm = &call->planned;
    const struct gemm_selection *selection = &dispatch->selection;
    const struct tandem_matrix *matrices[OPERAND_COUNT] = {NULL, NULL};
    bool any = false;
    uint32_t packed = 0;
    if (dispatch->uses_selected_kernel)
        packed = gemm_packed_operands(gemm, selection->kernel);
    for (enum operand_id i = OPERAND_A; i < OPERAND_COUNT; i++) {
        out_entries[i] = NULL;
        if ((packed >> i & 1u) != 0)
            out_entries[i] =
                acquire_or_pack(stream, call, selection->kernel, i);
        if (out_entries[i] == NULL)
            continue;
        matrices[i] = &out_entries[i]->matrix;
        launch_memory_set(&call->memory, SLOT_PACKED_A + (uint32_t)i,
                          &out_entries[i]->memory, 0);
        any = true;
    }
    if (any)
        plan_gemm(&dispatch->plan, gemm, selection->kernel, selection->split,
                  matrices, stream->device->programs.group_log2);
}

/* ---- launch ---- */

static enum tandem_status check_poison(const struct tandem_gemm *gemm)
{
    const struct tandem_buffer *inputs[4] = {
        gemm->a.buffer, gemm->b.buffer, gemm->bias,
        gemm->beta != 0 ? gemm->c.buffer : NULL};
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < 4 && status == TANDEM_OK; i++)
        if (inputs[i] != NULL)
            status = buffer_check_poison(inputs[i]);
    return status;
}

/* Selects the kernels and waits until they are built, so that a build failure
 * is found before any work is enqueued. */
static enum tandem_status dispatch_prepare(struct tandem_stream *stream,
                                           const struct gemm_call *call,
                                           struct gemm_dispatch *out)
{
    struct stream_kernel *kernel;
    enum tandem_status status;
    do {
        dispatch_select(out, stream->device, call);
        status = TANDEM_OK;
        for (uint32_t i = 0; i < out->plan.step_count && status == TANDEM_OK;
             i++)
            if (out->plan.step[i].key.kernel != NULL)
                status = stream_kernel_get(stream, &out->plan, i, &kernel);
    } while (status == TANDEM_NOT_READY ||
             disable_failed(stream->device, &call->planned, out, status));
    return status;
}

/* Enqueues the plan. If there is no memory for the plan's temporary buffer,
 * enqueues a kernel that needs no such buffer. In deterministic mode, returns
 * the error instead, because that kernel adds in a different order. */
static enum tandem_status plan_launch(struct tandem_stream *stream,
                                      struct gemm_call *call,
                                      struct launch_plan *plan)
{
    bool has_temporary = plan->temp_bytes != 0;
    enum tandem_status status = launch_plan(stream, plan, &call->memory);
    if (status != TANDEM_OUT_OF_MEMORY || !has_temporary ||
        stream->device->gemm_selector.deterministic ||
        atomic_load(&stream->status) != TANDEM_OK)
        return status;
    plan_gemm(plan, &call->planned, GEMM_SIMT_32X64, NO_SPLIT, NULL,
              stream->device->programs.group_log2);
    return launch_plan(stream, plan, &call->memory);
}

enum tandem_status gemm_launch(struct tandem_stream *stream,
                               const struct tandem_gemm *given)
{
    struct gemm_dispatch dispatch;
    struct gemm_call call;
    enum tandem_status status =
        check_gemm(given, buffer_address_range, stream->device);
    if (status != TANDEM_OK)
        return status;
    gemm_call_init(&call, given);
    status = check_poison(&call.given);
    if (status != TANDEM_OK || is_empty(given))
        return status;
    status = dispatch_prepare(stream, &call, &dispatch);
    if (status == TANDEM_OK && dispatch.clblast)
        status = clblast_gemm_launch(stream, &call.given);
    if (status != TANDEM_OK || dispatch.plan.step_count == 0)
        return status;
    struct pack_cache_entry *entries[OPERAND_COUNT];
    use_pack_cache(stream, &call, &dispatch, entries);
    status = plan_launch(stream, &call, &dispatch.plan);
    for (uint32_t i = 0; i < OPERAND_COUNT; i++)
        pack_cache_release(entries[i]);
    /* c is wrong if CLBlast ran without the epilogue, so the stream fails. */
    return status == TANDEM_OK || !dispatch.clblast
               ? status
               : stream_fail(stream, status);
}
