/* SPDX-License-Identifier: Apache-2.0 */
/* A prepared operator has a checked call and its launch plan.  If the device
 * turns out not to run a kernel of the plan, or only with smaller work-groups,
 * it gets another plan; the old ones live as long as the operator, because
 * other threads may be launching them. */
#include "opencl/launch/prepared.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "opencl/program/kernel_variants.h"
#include "common/prepared_call.h"
#include "common/struct_size.h"
#include "opencl/device/device.h"
#include "opencl/device/event_poll.h"
#include "opencl/plan/gemm_selector.h"
#include "opencl/plan/kernel_step.h"
#include "opencl/launch/kernel_launch.h"
#include "opencl/launch/packed_copies.h"

#define PREPARED_MAGIC 0x70726570u
#define POLL_NS 1000000

/* A plan with as many steps as it has. */
struct stored_plan {
    struct stored_plan *older;
    uint32_t group_log2; /* work-group size of the device at that time */
    /* Plans for GEMM operands with packed copies, by the mask of the operands.
     * Plan 0 does not use CLBlast.  NULL if they were not needed yet. */
    struct stored_plan *_Atomic variants[1u << OPERAND_COUNT];
    struct launch_plan plan;
};

struct tandem_prepared {
    struct prepared_base base;
    pthread_mutex_t mutex; /* held while a new plan is made */
    struct stored_plan *_Atomic newest;
};

static struct handle_pool prepared_handles =
    HANDLE_POOL(struct tandem_prepared, PREPARED_MAGIC);

/* If `status` means that the device cannot run the plan's GEMM kernel, or its
 * kernel of attention for tensor cores, disables the kernel and returns true: a
 * new plan has another. */
static bool failed_kernel_disable(struct tandem_device *device,
                                  const struct launch_plan *plan,
                                  enum tandem_status status)
{
    const struct tandem_gemm conv = {.dtype = TANDEM_F32,
                                     .c_dtype = TANDEM_F32};
    const char *name = "attention_mma";
    if ((plan->selected_gemm == 0 && !plan->uses_attention_mma) ||
        (status != TANDEM_FAILED && status != TANDEM_UNSUPPORTED))
        return false;
    if (plan->selected_gemm != 0) {
        enum gemm_kernel_id kernel =
            (enum gemm_kernel_id)(plan->selected_gemm - 1);
        name = gemm_configs[kernel].name;
        gemm_selector_disable(
            &device->gemm_selector,
            plan->gemm.gemm.struct_size != 0 ? &plan->gemm.gemm : &conv,
            kernel);
    } else {
        atomic_store(&device->attention_mma_failed, true);
    }
    device_log(device, TANDEM_LOG_WARNING, "kernel %s is disabled on %s: %s",
               name, device->hardware->info.name, last_error_get());
    return true;
}

/* ---- plans ---- */

/* Returns the slot of operand `number`; an output that is an input has the slot
 * of the input. */
static uint32_t operand_slot(const struct prepared_call *call, uint32_t number)
{
    uint32_t same = call->operands[number].same_as_input;
    if (same != 0)
        return SLOT_INPUT + same - 1;
    return number < call->input_count
               ? SLOT_INPUT + number
               : SLOT_OUTPUT + number - call->input_count;
}

/* The choices with which a variant of a plan for a GEMM is made. */
struct plan_variant {
    const struct gemm_selection *selection; /* NULL: choose */
    uint32_t packed_operands;
    bool avoids_clblast;
    const struct tandem_op *op; /* with other scalars; NULL: as prepared */
};

/* Returns true if CLBlast cannot read a matrix of a GEMM, so that no launch
 * uses it. */
static bool has_unaligned_matrix(const struct prepared_call *call)
{
    const uint32_t matrices[] = {0, 1, call->input_count};
    for (uint32_t i = 0; call->op.id == TANDEM_OP_GEMM && i < 3; i++) {
        const struct prepared_operand *operand = &call->operands[matrices[i]];
        if (operand->alignment_is_known &&
            operand->alignment < CLBLAST_ALIGNMENT)
            return true;
    }
    return false;
}

static enum tandem_status plan_make(struct launch_plan *out,
                                    struct tandem_device *device,
                                    const struct prepared_call *call,
                                    const struct plan_variant *variant)
{
    struct tandem_tensor_desc tensors[2 * TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *inputs[TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *outputs[TANDEM_MAX_OPERANDS];
    for (uint32_t i = 0; i < call->input_count + call->output_count; i++) {
        const struct prepared_operand *operand = &call->operands[i];
        const struct tandem_tensor_desc **list =
            i < call->input_count ? &inputs[i]
                                  : &outputs[i - call->input_count];
        tensors[i] = operand->tensor;
        tensors[i].buffer =
            slot_buffer(operand_slot(call, i),
                        min_u32(operand->alignment, MAX_SLOT_ALIGNMENT));
        *list = operand->is_scalar ? NULL : &tensors[i];
    }
    const struct op_request request = {
        .op = variant->op != NULL ? variant->op : &call->op,
        .inputs = inputs,
        .outputs = outputs,
        .input_count = call->input_count,
        .output_count = call->output_count,
        .avoids_clblast = variant->avoids_clblast || has_unaligned_matrix(call),
        .gemm_selection = variant->selection,
        .packed_operands = variant->packed_operands};
    return device_plan_make(device, &request, out);
}

/* Makes a plan, which the caller owns.  Returns NULL and sets *out_status if
 * that fails. */
static struct stored_plan *stored_plan_make(struct tandem_prepared *prepared,
                                            const struct plan_variant *variant,
                                            enum tandem_status *out_status)
{
    struct launch_plan plan;
    struct tandem_device *device = prepared->base.device;
    uint32_t group_log2 = atomic_load(&device->programs.group_log2);
    *out_status = plan_make(&plan, device, prepared->base.call, variant);
    if (*out_status != TANDEM_OK)
        return NULL;
    size_t bytes = offsetof(struct launch_plan, step) +
                   plan.step_count * sizeof(plan.step[0]);
    struct stored_plan *stored =
        calloc(1, offsetof(struct stored_plan, plan) + bytes);
    if (stored == NULL) {
        *out_status = memory_error("prepare: out of host memory");
        return NULL;
    }
    memcpy(&stored->plan, &plan, bytes);
    stored->group_log2 = group_log2;
    return stored;
}

/* Makes another plan, unless another thread did since `used` was the newest. */
static enum tandem_status plan_renew(struct tandem_prepared *prepared,
                                     const struct stored_plan *used)
{
    static const struct plan_variant first;
    enum tandem_status status = TANDEM_OK;
    pthread_mutex_lock(&prepared->mutex);
    struct stored_plan *newest = atomic_load(&prepared->newest);
    if (newest == used) {
        struct stored_plan *stored =
            stored_plan_make(prepared, &first, &status);
        if (stored != NULL) {
            stored->older = newest;
            atomic_store(&prepared->newest, stored);
        }
    }
    pthread_mutex_unlock(&prepared->mutex);
    return status;
}

/* Returns variant `index` of the plan, or NULL if it cannot be made. */
static struct stored_plan *variant_get(struct tandem_prepared *prepared,
                                       struct stored_plan *plan, uint32_t index)
{
    struct stored_plan *variant = atomic_load(&plan->variants[index]);
    if (variant != NULL)
        return variant;
    const struct gemm_selection selection = {
        .kernel = (enum gemm_kernel_id)(plan->plan.selected_gemm - 1),
        .split = plan->plan.gemm.split};
    const struct plan_variant change = {index != 0 ? &selection : NULL, index,
                                        index == 0, NULL};
    enum tandem_status status;
    pthread_mutex_lock(&prepared->mutex);
    variant = atomic_load(&plan->variants[index]);
    if (variant == NULL) {
        variant = stored_plan_make(prepared, &change, &status);
        atomic_store(&plan->variants[index], variant);
    }
    pthread_mutex_unlock(&prepared->mutex);
    return variant;
}

/* ---- handles ---- */

static void prepared_free(struct tandem_prepared *prepared)
{
    struct stored_plan *plan = atomic_load(&prepared->newest);
    while (plan != NULL) {
        struct stored_plan *older = plan->older;
        for (uint32_t i = 0; i < 1u << OPERAND_COUNT; i++)
            free(atomic_load(&plan->variants[i]));
        free(plan);
        plan = older;
    }
    free(prepared->base.call);
    pthread_mutex_destroy(&prepared->mutex);
    handle_free(&prepared_handles, prepared);
}

/* Fails if the operator is not live, or if its device is closed. */
static enum tandem_status check_live(const struct tandem_prepared *prepared)
{
    if (!handle_live(&prepared_handles, prepared))
        return prepared_check(&prepared_handles, prepared);
    const struct tandem_device *device = prepared->base.device;
    return !handle_live(&device_handles, device) ||
                   device->id != prepared->base.device_id
               ? prepared_device_closed()
               : device_check(device);
}

void prepared_release(struct tandem_prepared *prepared)
{
    if (handle_live(&prepared_handles, prepared))
        prepared_free(prepared);
}

/* ---- compilation ---- */

/* Returns TANDEM_OK if all kernels are built, NOT_READY, or an error. */
static enum tandem_status plan_query(struct tandem_device *device,
                                     const struct launch_plan *plan)
{
    enum tandem_status status = TANDEM_OK;
    const struct kernel_key clblast = clblast_key();
    if (plan->gemm.uses_clblast)
        status = kernel_variant_query(device, &clblast);
    for (uint32_t i = 0; status == TANDEM_OK && i < plan->step_count; i++)
        if (plan->step[i].key.kernel != NULL)
            status = kernel_variant_query(device, &plan->step[i].key);
    return status;
}

static enum tandem_status plan_start(struct tandem_device *device,
                                     const struct launch_plan *plan)
{
    enum tandem_status status = TANDEM_OK;
    if (plan->gemm.uses_clblast)
        status = kernel_variant_prepare_clblast(device);
    for (uint32_t i = 0; status == TANDEM_OK && i < plan->step_count; i++)
        if (plan->step[i].key.kernel != NULL)
            status = kernel_variant_prepare(device, plan, i);
    return status;
}

/* Queries the newest plan.  Makes another one, and starts to compile it, if the
 * device cannot run a kernel, or needs smaller work-groups. */
static enum tandem_status query_or_renew(struct tandem_prepared *prepared)
{
    struct tandem_device *device = prepared->base.device;
    const struct stored_plan *used = atomic_load(&prepared->newest);
    enum tandem_status status = plan_query(device, &used->plan);
    bool renew =
        failed_kernel_disable(device, &used->plan, status) ||
        (status == TANDEM_NOT_READY &&
         used->group_log2 != atomic_load(&device->programs.group_log2));
    if (!renew)
        return status;
    status = plan_renew(prepared, used);
    if (status == TANDEM_OK)
        status = plan_start(device, &atomic_load(&prepared->newest)->plan);
    return status == TANDEM_OK ? TANDEM_NOT_READY : status;
}

static enum tandem_status wait_for(struct tandem_prepared *prepared,
                                   uint64_t timeout_ns)
{
    const uint64_t start = monotonic_ns();
    enum tandem_status status = query_or_renew(prepared);
    while (status == TANDEM_NOT_READY) {
        static const struct timespec pause = {.tv_nsec = POLL_NS};
        if (monotonic_ns() - start >= timeout_ns)
            break;
        nanosleep(&pause, NULL);
        status = query_or_renew(prepared);
    }
    return status;
}

enum tandem_status prepared_wait(struct tandem_prepared *prepared,
                                 uint64_t timeout_ns)
{
    enum tandem_status status = check_live(prepared);
    return status == TANDEM_OK ? wait_for(prepared, timeout_ns) : status;
}

/* ---- prepare ---- */

static struct tandem_prepared *prepared_new(struct tandem_device *device)
{
    struct tandem_prepared *prepared = handle_new(&prepared_handles);
    if (prepared == NULL)
        return NULL;
    if (pthread_mutex_init(&prepared->mutex, NULL) != 0) {
        handle_free(&prepared_handles, prepared);
        return NULL;
    }
    prepared->base.device = device;
    prepared->base.device_id = device->id;
    return prepared;
}

static enum tandem_status prepared_start(struct tandem_prepared *prepared,
                                         uint32_t flags)
{
    const struct launch_plan *plan = &atomic_load(&prepared->newest)->plan;
    enum tandem_status status = TANDEM_OK;
    if ((flags & TANDEM_PREPARE_QUERY) == 0)
        status = plan_start(prepared->base.device, plan);
    if (status == TANDEM_OK && (flags & TANDEM_PREPARE_COMPILE_NOW) != 0)
        status = wait_for(prepared, device_timeout_ns(prepared->base.device));
    return status;
}

static void info_fill(const struct tandem_prepared *prepared,
                      struct tandem_prepared_info *out)
{
    const struct launch_plan *plan = &atomic_load(&prepared->newest)->plan;
    const struct tandem_device *device = prepared->base.device;
    const struct tandem_prepared_info info = {
        .struct_size = sizeof(info),
        .predicted_ns = gemm_selector_predicts(&device->gemm_selector)
                            ? plan->predicted_ns
                            : 0,
        .temporary_bytes = plan->temp_bytes,
        .is_ready = plan_query(prepared->base.device, plan) == TANDEM_OK};
    struct_size_fill(out, &info, sizeof(info));
}

/* Implements prepare.  Starts to compile if `starts` is true. */
static enum tandem_status
create(struct tandem_device *device, const struct tandem_op *op,
       const struct tandem_operand_desc *const *inputs, uint32_t input_count,
       const struct tandem_operand_desc *const *outputs, uint32_t output_count,
       uint32_t flags, struct tandem_prepared_info *out_info,
       struct tandem_prepared **out_prepared, bool starts)
{
    const bool query = (flags & TANDEM_PREPARE_QUERY) != 0;
    if (out_prepared != NULL)
        *out_prepared = NULL;
    enum tandem_status status = device_check(device);
    if (status == TANDEM_OK)
        status = prepare_arguments_check(flags, out_info, out_prepared);
    if (status != TANDEM_OK)
        return status;
    struct tandem_prepared *prepared = prepared_new(device);
    if (prepared == NULL)
        return memory_error("prepare: out of host memory");
    status = prepared_call_create(op, inputs, input_count, outputs,
                                  output_count, &prepared->base.call);
    if (status == TANDEM_OK)
        status = plan_renew(prepared, NULL);
    if (status == TANDEM_OK && starts)
        status = prepared_start(prepared, flags);
    if (status == TANDEM_OK && out_info != NULL)
        info_fill(prepared, out_info);
    if (status == TANDEM_OK && !query)
        *out_prepared = prepared;
    else
        prepared_free(prepared);
    return status;
}

enum tandem_status prepared_create(
    struct tandem_device *device, const struct tandem_op *op,
    const struct tandem_operand_desc *const *inputs, uint32_t input_count,
    const struct tandem_operand_desc *const *outputs, uint32_t output_count,
    uint32_t flags, struct tandem_prepared_info *out_info,
    struct tandem_prepared **out_prepared)
{
    return create(device, op, inputs, input_count, outputs, output_count, flags,
                  out_info, out_prepared, true);
}

/* ---- prepared_launch ---- */

static enum tandem_status memory_check(struct tandem_device *device,
                                       const struct prepared_call *call,
                                       const struct tandem_memory *memory,
                                       uint32_t count,
                                       struct launch_memory *out)
{
    enum tandem_status status = prepared_call_check_memory(
        call, memory, count, buffer_address_range, device);
    for (uint32_t i = 0; i < count && status == TANDEM_OK; i++) {
        if (call->operands[i].is_scalar)
            continue;
        launch_memory_set(out, operand_slot(call, i), memory[i].buffer,
                          memory[i].byte_offset);
        if (i < call->input_count)
            status = buffer_check_poison(memory[i].buffer);
    }
    return status;
}

/* Launches a GEMM that needs no temporary buffer, because there is no memory
 * for one.  Deterministic devices return the error instead, because that kernel
 * adds in another order. */
static enum tandem_status launch_without_temporary(
    struct tandem_stream *stream, struct tandem_prepared *prepared,
    const struct tandem_op *op, struct launch_memory *memory)
{
    static const struct gemm_selection selection = {.kernel = GEMM_SIMT_32X64,
                                                    .split = NO_SPLIT};
    const struct plan_variant change = {&selection, 0, true, op};
    enum tandem_status status;
    struct stored_plan *plan = stored_plan_make(prepared, &change, &status);
    if (plan == NULL)
        return status;
    status = launch_plan(stream, &plan->plan, memory);
    free(plan);
    return status;
}

/* Launches the plan, or the variant of it for the memory, to which *out_used is
 * set. */
static enum tandem_status variant_launch(struct tandem_stream *stream,
                                         struct tandem_prepared *prepared,
                                         struct stored_plan *used,
                                         struct launch_memory *memory,
                                         const struct stored_plan **out_used)
{
    struct packed_copies copies = {{NULL}};
    struct stored_plan *variant = NULL;
    const struct gemm_selector *selector = &stream->device->gemm_selector;
    if (used->plan.gemm.uses_clblast &&
        !launch_supports_clblast(&used->plan, memory))
        variant = variant_get(prepared, used, 0);
    const struct stored_plan *plan = variant != NULL ? variant : used;
    uint32_t packed =
        packed_copies_acquire(&copies, stream, &plan->plan, memory);
    if (packed != 0 && plan == used)
        variant = variant_get(prepared, used, packed);
    plan = variant != NULL ? variant : used;
    *out_used = plan;
    enum tandem_status status = launch_plan(stream, &plan->plan, memory);
    if (status == TANDEM_OUT_OF_MEMORY && plan->plan.temp_bytes != 0 &&
        plan->plan.selected_gemm != 0 && !selector->deterministic &&
        prepared->base.call->op.id == TANDEM_OP_GEMM &&
        atomic_load(&stream->status) == TANDEM_OK)
        status = launch_without_temporary(stream, prepared, NULL, memory);
    packed_copies_release(&copies);
    return status;
}

static enum tandem_status launch(struct tandem_stream *stream,
                                 struct tandem_prepared *prepared,
                                 struct launch_memory *memory)
{
    for (;;) {
        struct stored_plan *used = atomic_load(&prepared->newest);
        const struct stored_plan *variant = used;
        bool is_simple =
            !used->plan.gemm.uses_clblast && used->plan.selected_gemm == 0;
        enum tandem_status status =
            is_simple
                ? launch_plan(stream, &used->plan, memory)
                : variant_launch(stream, prepared, used, memory, &variant);
        bool renew =
            status == TANDEM_NOT_READY ||
            (atomic_load(&stream->status) == TANDEM_OK &&
             failed_kernel_disable(stream->device, &variant->plan, status));
        if (!renew)
            return status;
        status = plan_renew(prepared, used);
        if (status != TANDEM_OK)
            return status;
    }
}

/* Makes a plan for other scalars, and launches it.  A GEMM keeps its kernel. */
static enum tandem_status launch_with_scalars(
    struct tandem_stream *stream, struct tandem_prepared *prepared,
    const struct launch_scalars *scalars, struct launch_memory *memory)
{
    const struct stored_plan *used = atomic_load(&prepared->newest);
    const bool clblast = used->plan.gemm.uses_clblast;
    const bool has_gemm = clblast || used->plan.selected_gemm != 0;
    const struct gemm_selection selection = {
        .clblast = clblast,
        .kernel =
            (enum gemm_kernel_id)(clblast ? 0 : used->plan.selected_gemm - 1),
        .split = used->plan.gemm.split};
    const bool avoids_clblast =
        clblast && !launch_supports_clblast(&used->plan, memory);
    const struct plan_variant change = {has_gemm && !avoids_clblast ? &selection
                                                                    : NULL,
                                        0, avoids_clblast, &scalars->op};
    enum tandem_status status;
    do {
        struct stored_plan *plan = stored_plan_make(prepared, &change, &status);
        if (plan == NULL)
            return status;
        status = launch_plan(stream, &plan->plan, memory);
        if (status == TANDEM_OUT_OF_MEMORY && has_gemm &&
            plan->plan.temp_bytes != 0 &&
            !stream->device->gemm_selector.deterministic &&
            atomic_load(&stream->status) == TANDEM_OK)
            status = launch_without_temporary(stream, prepared, &scalars->op,
                                              memory);
        free(plan);
    } while (status == TANDEM_NOT_READY);
    return status;
}

enum tandem_status prepared_launch(struct tandem_stream *stream,
                                   struct tandem_prepared *prepared,
                                   const struct tandem_memory *memory,
                                   uint32_t count, const double *scalars,
                                   uint32_t scalar_count)
{
    struct launch_memory operands;
    struct launch_scalars set = {.are_changed = false};
    enum tandem_status status = stream_check(stream);
    if (status == TANDEM_OK)
        status = check_live(prepared);
    if (status == TANDEM_OK && prepared->base.device != stream->device)
        status = prepared_other_device();
    if (status == TANDEM_OK && (scalars != NULL || scalar_count != 0))
        status = prepared_call_set_scalars(&set, prepared->base.call, scalars,
                                           scalar_count);
    if (status == TANDEM_OK)
        status = memory_check(stream->device, prepared->base.call, memory,
                              count, &operands);
    if (status != TANDEM_OK)
        return status;
    return set.are_changed
               ? launch_with_scalars(stream, prepared, &set, &operands)
               : launch(stream, prepared, &operands);
}

/* ---- the entry gemm ---- */

/* The launch follows at once and builds what it needs, so nothing is built in
 * the background: the launch would wait for it. */
static enum tandem_status gemm_create(
    struct tandem_device *device, const struct tandem_op *op,
    const struct tandem_operand_desc *const *inputs, uint32_t input_count,
    const struct tandem_operand_desc *const *outputs, uint32_t output_count,
    uint32_t flags, struct tandem_prepared_info *out_info,
    struct tandem_prepared **out_prepared)
{
    return create(device, op, inputs, input_count, outputs, output_count, flags,
                  out_info, out_prepared, false);
}

const struct gemm_call_functions gemm_functions = {gemm_create, prepared_launch,
                                                   prepared_release};
