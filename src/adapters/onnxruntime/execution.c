/* SPDX-License-Identifier: Apache-2.0 */
/* Creates tensors for a form and runs its steps; see execution.h. */
#include <config.h>

#include "adapters/onnxruntime/execution.h"
#include "adapters/onnxruntime/weight.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Alignment of a query's tensors: as large as that of separate allocations. */
#define QUERY_ALIGNMENT 4096u

static enum tandem_status create_vector(struct tandem_context *context,
                                        uint32_t dtype, int64_t elements,
                                        struct tandem_tensor **out)
{
    return tandem_tensor_create(context, dtype, 1, &elements, out);
}

/* Returns the bytes of a storage, with a gap to the next storage of a query. */
static size_t query_bytes(const struct form_storage *storage)
{
    const size_t bytes =
        (size_t)storage->elements * TANDEM_DTYPE_BYTES(storage->dtype);

    return storage->used ? (bytes / QUERY_ALIGNMENT + 1) * QUERY_ALIGNMENT : 0;
}

static enum tandem_status create_storages(struct execution *execution)
{
    const struct form *form = execution->form;
    char *memory = execution->memory;

    for (uint32_t i = 0; i < form->storage_count; i++) {
        const struct form_storage *storage = &form->storages[i];
        enum tandem_status status = TANDEM_OK;

        if (!storage->used)
            continue;
        if (memory != NULL)
            status = tandem_tensor_wrap(execution->context, memory,
                                        storage->dtype, 1, &storage->elements,
                                        NULL, 0, &execution->storages[i]);
        else if (storage->kind == STORAGE_INPUT)
            status = create_vector(execution->context, storage->dtype,
                                   storage->elements, &execution->storages[i]);
        if (status != TANDEM_OK)
            return status;
        if (memory != NULL)
            memory += query_bytes(storage);
    }
    return TANDEM_OK;
}

static enum tandem_status create_slots(struct execution *execution)
{
    const struct form *form = execution->form;

    for (uint32_t i = 0; i < form->slot_count; i++) {
        const enum tandem_status status =
            create_vector(execution->context, form->slot_dtypes[i],
                          form->slot_elements[i], &execution->slots[i]);

        if (status != TANDEM_OK)
            return status;
    }
    return TANDEM_OK;
}

static struct tandem_tensor *storage_tensor(const struct execution *execution,
                                            int32_t index)
{
    const struct form_storage *storage = &execution->form->storages[index];

    if (execution->storages[index] != NULL)
        return execution->storages[index];
    return storage->kind == STORAGE_TEMPORARY ? execution->slots[storage->slot]
                                              : storage->weight->tensor;
}

static enum tandem_status create_views(struct execution *execution)
{
    const struct form *form = execution->form;

    for (uint32_t i = 0; i < form->view_count; i++) {
        const struct form_view *view = &form->views[i];
        enum tandem_status status;

        if (!form->storages[view->storage].used)
            continue;
        status = tandem_tensor_view(
            storage_tensor(execution, view->storage), view->first_element,
            view->rank, view->shape, view->strides, &execution->views[i]);
        if (status != TANDEM_OK)
            return status;
    }
    return TANDEM_OK;
}

/* Creates an execution, which becomes the owner of `memory`. */
static enum tandem_status create(struct tandem_context *context,
                                 const struct form *form, void *memory,
                                 size_t memory_bytes, struct execution **out)
{
    struct execution *execution = calloc(1, sizeof(*execution));
    enum tandem_status status = TANDEM_OUT_OF_MEMORY;

    *out = NULL;
    if (execution == NULL) {
        if (memory != NULL)
            munmap(memory, memory_bytes);
        return status;
    }
    execution->form = form;
    execution->context = context;
    execution->memory = memory;
    execution->memory_bytes = memory_bytes;
    execution->storages = calloc(form->storage_count + 1, sizeof(void *));
    execution->slots = calloc(form->slot_count + 1, sizeof(void *));
    execution->views = calloc(form->view_count + 1, sizeof(void *));
    if (execution->storages != NULL && execution->slots != NULL &&
        execution->views != NULL)
        status = create_storages(execution);
    if (status == TANDEM_OK && memory == NULL)
        status = create_slots(execution);
    if (status == TANDEM_OK)
        status = create_views(execution);
    if (status != TANDEM_OK) {
        execution_destroy(execution);
        return status;
    }
    *out = execution;
    return TANDEM_OK;
}

enum tandem_status execution_create(struct tandem_context *context,
                                    const struct form *form,
                                    struct execution **out)
{
    return create(context, form, NULL, 0, out);
}

enum tandem_status execution_create_query(struct tandem_context *context,
                                          const struct form *form,
                                          struct execution **out)
{
    size_t bytes = 1;
    void *memory;

    *out = NULL;
    for (uint32_t i = 0; i < form->storage_count; i++)
        bytes += query_bytes(&form->storages[i]);
    memory = mmap(NULL, bytes, PROT_READ,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return TANDEM_OUT_OF_MEMORY;
    return create(context, form, memory, bytes, out);
}

static void destroy_tensors(struct tandem_tensor **tensors, uint32_t count)
{
    for (uint32_t i = 0; tensors != NULL && i < count; i++)
        tandem_tensor_destroy(tensors[i]);
    free(tensors);
}

void execution_destroy(struct execution *execution)
{
    if (execution == NULL)
        return;
    destroy_tensors(execution->views, execution->form->view_count);
    destroy_tensors(execution->slots, execution->form->slot_count);
    destroy_tensors(execution->storages, execution->form->storage_count);
    if (execution->memory != NULL)
        munmap(execution->memory, execution->memory_bytes);
    free(execution);
}

enum tandem_status execution_write_inputs(struct execution *execution,
                                          const void *const *contents)
{
    const struct form *form = execution->form;

    for (uint32_t i = 0; i < form->storage_count; i++) {
        const struct form_storage *storage = &form->storages[i];
        enum tandem_status status;

        if (execution->storages[i] == NULL)
            continue;
        /* The content of an empty tensor may be NULL. */
        status = tandem_tensor_write(
            execution->storages[i],
            storage->elements == 0 ? "" : contents[storage->input],
            (uint64_t)storage->elements * TANDEM_DTYPE_BYTES(storage->dtype));
        if (status != TANDEM_OK)
            return status;
    }
    return TANDEM_OK;
}

/* ---- steps ---- */

/* A step as arguments for libtandem. */
struct step_call {
    struct tandem_op op;
    struct tandem_matmul_options matmul; /* for TANDEM_OP_GEMM */
    struct tandem_tensor *inputs[MAX_STEP_INPUTS];
    uint32_t input_count;
    struct tandem_tensor *outputs[MAX_STEP_OUTPUTS];
    uint32_t output_count;
};

static void step_call_init(const struct execution *execution,
                           const struct step_arguments *arguments,
                           struct step_call *call)
{
    const struct form_step *step = &execution->form->steps[arguments->step];

    for (uint32_t i = 0; i < step->input_count; i++)
        call->inputs[i] = step->inputs[i] == NO_VIEW
                              ? NULL
                              : execution->views[step->inputs[i]];
    call->input_count = step->input_count;
    for (uint32_t i = 0; i < step->output_count; i++)
        call->outputs[i] = execution->views[step->outputs[i]];
    call->output_count = step->output_count;
    call->op = (struct tandem_op){
        .struct_size = sizeof(call->op),
        .id = step->op,
        .flags = (arguments->flags & TANDEM_GEMM_ALLOW_TF32) != 0
                     ? TANDEM_OP_ALLOW_TF32
                     : 0,
        .int_count = step->int_count,
        .float_count = step->float_count,
        .ints = step->ints,
        .floats = step->floats,
    };
    if (step->op != TANDEM_OP_GEMM)
        return;
    call->matmul = (struct tandem_matmul_options){
        .struct_size = sizeof(call->matmul),
        .alpha = step->alpha,
        .beta = step->beta,
        .bias = call->inputs[2],
        .activation = step->activation,
        .activation_parameter = step->activation_parameters[0],
        .activation_parameter2 = step->activation_parameters[1],
        .flags = arguments->flags,
        .device = arguments->device,
    };
}

enum tandem_status execution_run(const struct execution *execution,
                                 struct step_arguments arguments)
{
    struct step_call call;

    step_call_init(execution, &arguments, &call);
    if (call.op.id == TANDEM_OP_GEMM)
        return tandem_matmul(execution->context, &call.matmul, call.inputs[0],
                             call.inputs[1], call.outputs[0]);
    return tandem_run(execution->context, &call.op, call.inputs,
                      call.input_count, call.outputs, call.output_count,
                      TANDEM_RUN_ON(arguments.device));
}

enum tandem_status execution_prepare(const struct execution *execution,
                                     struct step_arguments arguments)
{
    struct step_call call;

    step_call_init(execution, &arguments, &call);
    if (call.op.id == TANDEM_OP_GEMM)
        return tandem_prepare_matmul(execution->context, &call.matmul,
                                     call.inputs[0], call.inputs[1],
                                     call.outputs[0]);
    return tandem_prepare_on(execution->context, arguments.device, &call.op,
                             call.inputs, call.input_count, call.outputs,
                             call.output_count);
}

enum tandem_status execution_explain(const struct execution *execution,
                                     struct step_arguments arguments,
                                     struct tandem_explanation *out)
{
    struct step_call call;

    step_call_init(execution, &arguments, &call);
    if (call.op.id == TANDEM_OP_GEMM)
        return tandem_explain_matmul(execution->context, &call.matmul,
                                     call.inputs[0], call.inputs[1],
                                     call.outputs[0], out);
    return tandem_explain_op(execution->context, &call.op, call.inputs,
                             call.input_count, call.outputs, call.output_count,
                             out);
}

enum tandem_status execution_read_output(const struct execution *execution,
                                         uint32_t number, void *memory)
{
    const struct form_output *output = &execution->form->outputs[number];

    if (output->bytes == 0)
        return TANDEM_OK;
    if (output->view == NO_VIEW) {
        memcpy(memory, output->content, output->bytes);
        return TANDEM_OK;
    }
    return tandem_tensor_read(execution->views[output->view], memory,
                              output->bytes, TANDEM_TIMEOUT_INFINITE);
}
