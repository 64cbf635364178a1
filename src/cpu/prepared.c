/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared operators.  Small element-wise operators on contiguous tensors of
 * the same shape keep the arguments of their row function; the others keep the
 * checked call.  Any thread may call these functions. */
#include "config.h"

#include <stdlib.h>

#include "common/fp_environment.h"
#include "common/last_error.h"
#include "common/op_class.h"
#include "common/prepared_call.h"
#include "common/struct_size.h"
#include "cpu/kernels/elementwise.h"
#include "cpu/objects.h"

/* Larger operators can use several threads, so they take the general path. */
#define ROW_ELEMENTS 8192

struct tandem_prepared {
    struct prepared_base base;
    void *plan;          /* of the operator's class, or NULL */
    row_fn row_function; /* NULL: the general path */
    struct row row;      /* without the addresses of tensors */
    struct params params;
};

static struct handle_pool prepared_pool =
    HANDLE_POOL(struct tandem_prepared, 0x63707265u);

/* ---- preparing ---------------------------------------------------------- */

/* Returns true if the tensors are contiguous and have the output's shape, so
 * that one call of a row function computes the operator. */
static bool is_row(const struct prepared_call *call,
                   const struct cpu_class *class)
{
    const struct tandem_tensor_desc *out = call->outputs[0];
    int64_t n = shape_elements(out->rank, out->shape);
    uint32_t scalars = 0;
    if (class->small_output_dtype == 0 || call->output_count != 1 ||
        out->dtype != class->small_output_dtype || n == 0 || n > ROW_ELEMENTS ||
        !tensor_contiguous(out))
        return false;
    for (uint32_t i = 0; i < call->input_count; i++) {
        const struct tandem_tensor_desc *in = call->inputs[i];
        if (in == NULL ? ++scalars > 1
                       : in->dtype != TANDEM_F32 || !shapes_equal(in, out) ||
                             !tensor_contiguous(in))
            return false;
    }
    return true;
}

static void row_prepare(struct tandem_prepared *prepared)
{
    const struct prepared_call *call = prepared->base.call;
    const struct tandem_tensor_desc *out = call->outputs[0];
    struct row *row = &prepared->row;
    if (!is_row(call, cpu_class_of(call->op.id)))
        return;
    prepared->row_function = prepared->base.device->kernels->rows[call->op.id];
    row->n = shape_elements(out->rank, out->shape);
    row->params = &prepared->params;
    if (call->info->ints + call->info->floats > 0)
        elementwise_params(&prepared->params, &call->op);
    for (uint32_t i = 0; i < call->input_count; i++)
        if (call->inputs[i] == NULL) {
            row->constants |= 1u << i;
        }
}

/* Plans the call and allocates *out_plan, which is NULL if the class has no
 * plans.  The tensors have no memory. */
static enum tandem_status class_plan(struct tandem_device *device,
                                     const struct prepared_call *call,
                                     const struct tandem_op *op,
                                     void **out_plan)
{
    const struct cpu_class *class = cpu_class_of(op->id);
    const struct work work = {device,
                              op,
                              call->inputs,
                              call->outputs,
                              call->input_count,
                              call->output_count};
    *out_plan = NULL;
    if (class->plan_bytes == 0)
        return TANDEM_OK;
    *out_plan = malloc(class->plan_bytes);
    if (*out_plan == NULL)
        return memory_error("prepare: out of host memory");
    return class->plan(*out_plan, &work);
}

static void prepared_free(struct tandem_prepared *prepared)
{
    free(prepared->plan);
    free(prepared->base.call);
    handle_free(&prepared_pool, prepared);
}

static enum tandem_status
create(struct tandem_device *device, const struct tandem_op *op,
       const struct tandem_operand_desc *const *inputs, uint32_t input_count,
       const struct tandem_operand_desc *const *outputs, uint32_t output_count,
       uint32_t flags, struct tandem_prepared_info *out_info,
       struct tandem_prepared **out_prepared)
{
    const struct tandem_prepared_info info = {.struct_size = sizeof info,
                                              .is_ready = 1};
    struct prepared_call *call;
    if (out_prepared != NULL)
        *out_prepared = NULL;
    enum tandem_status status = device_check(device);
    if (status == TANDEM_OK)
        status = prepare_arguments_check(flags, out_info, out_prepared);
    if (status == TANDEM_OK)
        status = prepared_call_create(op, inputs, input_count, outputs,
                                      output_count, &call);
    if (status != TANDEM_OK)
        return status;
    if (out_info != NULL)
        struct_size_fill(out_info, &info, sizeof info);
    struct tandem_prepared *prepared = NULL;
    if ((flags & TANDEM_PREPARE_QUERY) == 0) {
        prepared = handle_new(&prepared_pool);
        if (prepared == NULL)
            status = memory_error("prepare: out of host memory");
    }
    if (prepared == NULL) {
        free(call);
        return status;
    }
    prepared->base.call = call;
    prepared->base.device = device;
    prepared->base.device_id = device->id;
    row_prepare(prepared);
    status = class_plan(device, call, &call->op, &prepared->plan);
    if (status == TANDEM_OK)
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
    /* The checks convert attributes to f32. */
    struct float_env host = float_env_enter();
    enum tandem_status status =
        create(device, op, inputs, input_count, outputs, output_count, flags,
               out_info, out_prepared);
    float_env_leave(host);
    return status;
}

/* ---- handles ------------------------------------------------------------ */

/* Fails if the operator is not live, or if its device is closed. */
static enum tandem_status check_live(const struct tandem_prepared *prepared)
{
    if (!handle_live(&prepared_pool, prepared))
        return prepared_check(&prepared_pool, prepared);
    const struct tandem_device *device = prepared->base.device;
    return handle_live(&device_pool, device) &&
                   device->id == prepared->base.device_id
               ? TANDEM_OK
               : prepared_device_closed();
}

enum tandem_status prepared_wait(struct tandem_prepared *prepared,
                                 uint64_t timeout_ns)
{
    (void)timeout_ns;
    return check_live(prepared);
}

void prepared_release(struct tandem_prepared *prepared)
{
    if (handle_live(&prepared_pool, prepared))
        prepared_free(prepared);
}

/* ---- launches ----------------------------------------------------------- */

/* Sets *out to the address of an operand of the row function.  Returns false if
 * the memory is wrong; the general path says why. */
static inline bool row_address(const struct tandem_device *device,
                               const struct tandem_memory *memory,
                               const struct prepared_operand *operand,
                               unsigned char **out)
{
    const struct tandem_buffer *buffer = memory->buffer;
    uint64_t offset = memory->byte_offset;
    if (!handle_live(&buffer_pool, buffer) || buffer->owned.device != device ||
        __atomic_load_n(&buffer->is_mapped, __ATOMIC_RELAXED) != 0 ||
        offset > buffer->bytes || operand->bytes_after > buffer->bytes - offset)
        return false;
    *out = buffer->base + offset;
    return ((uintptr_t)*out & (operand->alignment - 1)) == 0;
}

/* Computes a small element-wise operator.  Returns false, and computes nothing,
 * if the memory is wrong. */
static bool row_run(const struct tandem_device *device,
                    const struct tandem_prepared *prepared,
                    const struct tandem_memory *memory, uint32_t count,
                    const struct tandem_op *op)
{
    const struct prepared_call *call = prepared->base.call;
    const struct prepared_operand *output = &call->operands[call->input_count];
    struct row row = prepared->row;
    unsigned char *to, *from;
    float scalar;
    if (memory == NULL || count != call->input_count + 1 ||
        !row_address(device, &memory[call->input_count], output, &to) ||
        __atomic_load_n(&memory[call->input_count].buffer->is_sealed,
                        __ATOMIC_RELAXED))
        return false;
    for (uint32_t i = 0; i < call->input_count; i++) {
        const struct prepared_operand *input = &call->operands[i];
        if (input->is_scalar) {
            scalar = (float)op->floats[0];
            row.in[i] = &scalar;
            continue;
        }
        if (!row_address(device, &memory[i], input, &from))
            return false;
        bool overlaps =
            from < to + output->bytes_after && to < from + input->bytes_after;
        if (output->same_as_input == i + 1
                ? from != to
                : overlaps && (from != to || output->same_as_input == 0))
            return false;
        row.in[i] = from;
    }
    row.out[0] = to;
    prepared->row_function(&row);
    return true;
}

static enum tandem_status plan_run(struct tandem_device *device,
                                   const struct prepared_call *call,
                                   const struct tandem_op *op, const void *plan,
                                   const struct tandem_memory *memory)
{
    const struct work work = {device,
                              op,
                              call->inputs,
                              call->outputs,
                              call->input_count,
                              call->output_count};
    unsigned char *addresses[2 * TANDEM_MAX_OPERANDS];
    for (uint32_t i = 0; i < call->input_count + call->output_count; i++)
        addresses[i] = call->operands[i].is_scalar
                           ? NULL
                           : memory[i].buffer->base + memory[i].byte_offset;
    return cpu_class_of(op->id)->run_plan(plan, &work, addresses);
}

static enum tandem_status call_run(struct tandem_device *device,
                                   const struct prepared_call *call,
                                   const struct tandem_op *op,
                                   const struct tandem_memory *memory)
{
    struct tandem_tensor_desc tensors[2 * TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *pointers[2 * TANDEM_MAX_OPERANDS];
    for (uint32_t i = 0; i < call->input_count + call->output_count; i++) {
        pointers[i] = NULL;
        if (call->operands[i].is_scalar)
            continue;
        tensors[i] = call->operands[i].tensor;
        tensors[i].buffer = memory[i].buffer;
        tensors[i].byte_offset = memory[i].byte_offset;
        pointers[i] = &tensors[i];
    }
    const struct work work = {device,
                              op,
                              pointers,
                              pointers + call->input_count,
                              call->input_count,
                              call->output_count};
    return cpu_class_of(op->id)->run(&work);
}

/* Computes a call whose memory was checked. */
static enum tandem_status run(struct tandem_device *device,
                              const struct tandem_prepared *prepared,
                              const struct tandem_memory *memory,
                              const struct tandem_op *op, bool is_changed)
{
    const struct prepared_call *call = prepared->base.call;
    void *plan;
    if (prepared->plan == NULL)
        return call_run(device, call, op, memory);
    if (!is_changed)
        return plan_run(device, call, op, prepared->plan, memory);
    enum tandem_status status = class_plan(device, call, op, &plan);
    if (status == TANDEM_OK)
        status = plan_run(device, call, op, plan, memory);
    free(plan);
    return status;
}

static enum tandem_status launch(struct tandem_stream *stream,
                                 struct tandem_prepared *prepared,
                                 const struct tandem_memory *memory,
                                 uint32_t count, const double *scalars,
                                 uint32_t scalar_count)
{
    struct launch_scalars set;
    const struct tandem_op *op;
    bool is_changed = false;
    if (!handle_live(&stream_pool, stream))
        return stream_check(stream);
    struct tandem_device *device = stream->owned.device;
    enum tandem_status status = check_live(prepared);
    if (status == TANDEM_OK && prepared->base.device != device)
        status = prepared_other_device();
    if (status != TANDEM_OK)
        return status;
    op = &prepared->base.call->op;
    if (scalars != NULL || scalar_count != 0) {
        status = prepared_call_set_scalars(&set, prepared->base.call, scalars,
                                           scalar_count);
        if (status != TANDEM_OK)
            return status;
        op = &set.op;
        is_changed = set.are_changed;
    }
    if (prepared->row_function != NULL &&
        row_run(device, prepared, memory, count, op))
        return TANDEM_OK;
    status = prepared_call_check_memory(prepared->base.call, memory, count,
                                        buffer_span, device);
    if (status != TANDEM_OK)
        return status;
    return run(device, prepared, memory, op, is_changed);
}

enum tandem_status prepared_launch(struct tandem_stream *stream,
                                   struct tandem_prepared *prepared,
                                   const struct tandem_memory *memory,
                                   uint32_t count, const double *scalars,
                                   uint32_t scalar_count)
{
    struct float_env host = float_env_enter();
    enum tandem_status status =
        launch(stream, prepared, memory, count, scalars, scalar_count);
    float_env_leave(host);
    return status;
}

/* ---- the entry gemm ----------------------------------------------------- */

const struct gemm_call_functions gemm_functions = {
    prepared_create, prepared_launch, prepared_release};

enum tandem_status gemm_run(struct tandem_stream *stream,
                            const struct tandem_gemm *gemm)
{
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    struct tandem_device *device = stream->owned.device;
    struct float_env host = float_env_enter();
    status = gemm_call_launch(&device->gemm_calls, device, stream, gemm,
                              buffer_span);
    float_env_leave(host);
    return status;
}
