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
    row_fn row_function; /* NULL: the general path */
    struct row row;      /* without the addresses of tensors */
    struct params params;
    float scalar;
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
            prepared->scalar = (float)call->op.floats[0];
            row->in[i] = &prepared->scalar;
            row->constants |= 1u << i;
        }
}

static void prepared_free(struct tandem_prepared *prepared)
{
    free(prepared->base.call);
    handle_free(&prepared_pool, prepared);
}

enum tandem_status prepared_create(
    struct tandem_device *device, const struct tandem_op *op,
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
            status = memory_error("op_prepare: out of host memory");
    }
    if (prepared == NULL) {
        free(call);
        return status;
    }
    prepared->base.call = call;
    prepared->base.device = device;
    prepared->base.device_id = device->id;
    atomic_store(&prepared->base.references, 1);
    struct float_env host = float_env_enter();
    row_prepare(prepared);
    float_env_leave(host);
    *out_prepared = prepared;
    return TANDEM_OK;
}

/* ---- handles ------------------------------------------------------------ */

static void reference_drop(struct tandem_prepared *prepared)
{
    if (prepared_drop(&prepared->base))
        prepared_free(prepared);
}

static enum tandem_status reference_take(struct tandem_prepared *prepared)
{
    enum tandem_status status = prepared_take(&prepared_pool, &prepared->base);
    if (status != TANDEM_OK)
        return status;
    const struct tandem_device *device = prepared->base.device;
    if (handle_live(&device_pool, device) &&
        device->id == prepared->base.device_id)
        return TANDEM_OK;
    reference_drop(prepared);
    return prepared_device_closed();
}

enum tandem_status prepared_wait(struct tandem_prepared *prepared,
                                 uint64_t timeout_ns)
{
    (void)timeout_ns;
    enum tandem_status status = reference_take(prepared);
    if (status == TANDEM_OK)
        reference_drop(prepared);
    return status;
}

void prepared_release(struct tandem_prepared *prepared)
{
    if (!handle_live(&prepared_pool, prepared))
        return;
    handle_hide(prepared);
    reference_drop(prepared);
}

/* ---- launches ----------------------------------------------------------- */

static void row_run(const struct tandem_prepared *prepared,
                    const struct tandem_memory *memory)
{
    const struct prepared_call *call = prepared->base.call;
    const struct tandem_memory *out = &memory[call->input_count];
    struct row row = prepared->row;
    for (uint32_t i = 0; i < call->input_count; i++)
        if ((row.constants >> i & 1u) == 0)
            row.in[i] = memory[i].buffer->base + memory[i].byte_offset;
    row.out[0] = out->buffer->base + out->byte_offset;
    prepared->row_function(&row);
}

static enum tandem_status call_run(struct tandem_device *device,
                                   const struct prepared_call *call,
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
                              &call->op,
                              pointers,
                              pointers + call->input_count,
                              call->input_count,
                              call->output_count};
    return cpu_class_of(call->op.id)->run(&work);
}

enum tandem_status prepared_launch(struct tandem_stream *stream,
                                   struct tandem_prepared *prepared,
                                   const struct tandem_memory *memory,
                                   uint32_t count)
{
    if (!handle_live(&stream_pool, stream))
        return stream_check(stream);
    struct tandem_device *device = stream->owned.device;
    enum tandem_status status = reference_take(prepared);
    if (status != TANDEM_OK)
        return status;
    if (prepared->base.device != device)
        status = argument_error(
            "the stream belongs to another device than the prepared operator");
    else
        status = prepared_call_check_memory(prepared->base.call, memory, count,
                                            buffer_span, device);
    if (status == TANDEM_OK) {
        struct float_env host = float_env_enter();
        if (prepared->row_function != NULL)
            row_run(prepared, memory);
        else
            status = call_run(device, prepared->base.call, memory);
        float_env_leave(host);
    }
    reference_drop(prepared);
    return status;
}
