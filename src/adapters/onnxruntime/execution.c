/* SPDX-License-Identifier: Apache-2.0 */
/* Creates tensors for a form and runs its steps; see execution.h. */
#include <config.h>

#include "adapters/onnxruntime/execution.h"

#include <stdlib.h>
#include <string.h>

static enum tandem_status create_vector(struct tandem_context *context,
                                        uint32_t dtype, int64_t elements,
                                        struct tandem_tensor **out)
{
    return tandem_tensor_create(context, dtype, 1, &elements, out);
}

static enum tandem_status create_inputs(struct execution *execution)
{
    const struct form *form = execution->form;

    for (uint32_t i = 0; i < form->storage_count; i++) {
        const struct form_storage *storage = &form->storages[i];
        enum tandem_status status;

        if (storage->kind != STORAGE_INPUT || !storage->used)
            continue;
        status = create_vector(execution->context, storage->dtype,
                               storage->elements, &execution->storages[i]);
        if (status != TANDEM_OK)
            return status;
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

    switch (storage->kind) {
    case STORAGE_INPUT:
        return execution->storages[index];
    case STORAGE_TEMPORARY:
        return execution->slots[storage->slot];
    default:
        return storage->weight->tensor;
    }
}

static enum tandem_status create_views(struct execution *execution)
{
    const struct form *form = execution->form;

    for (uint32_t i = 0; i < form->view_count; i++) {
        const struct form_view *view = &form->views[i];
        const enum tandem_status status = tandem_tensor_view(
            storage_tensor(execution, view->storage), view->first_element,
            view->rank, view->shape, view->strides, &execution->views[i]);

        if (status != TANDEM_OK)
            return status;
    }
    return TANDEM_OK;
}

enum tandem_status execution_create(struct tandem_context *context,
                                    const struct form *form,
                                    struct execution **out)
{
    struct execution *execution = calloc(1, sizeof(*execution));
    enum tandem_status status = TANDEM_OUT_OF_MEMORY;

    *out = NULL;
    if (execution == NULL)
        return status;
    execution->form = form;
    execution->context = context;
    execution->storages = calloc(form->storage_count + 1, sizeof(void *));
    execution->slots = calloc(form->slot_count + 1, sizeof(void *));
    execution->views = calloc(form->view_count + 1, sizeof(void *));
    if (execution->storages != NULL && execution->slots != NULL &&
        execution->views != NULL)
        status = create_inputs(execution);
    if (status == TANDEM_OK)
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
    free(execution);
}

enum tandem_status execution_write_inputs(struct execution *execution,
                                          const void *const *contents)
{
    const struct form *form = execution->form;

    for (uint32_t i = 0; i < form->storage_count; i++) {
        const struct form_storage *storage = &form->storages[i];
        enum tandem_status status;

        if (execution->storages[i] == NULL || storage->elements == 0)
            continue;
        status = tandem_tensor_write(
            execution->storages[i], contents[storage->input],
            (uint64_t)storage->elements * TANDEM_DTYPE_BYTES(storage->dtype));
        if (status != TANDEM_OK)
            return status;
    }
    return TANDEM_OK;
}

static struct tandem_tensor *view_tensor(const struct execution *execution,
                                         uint32_t view)
{
    return view == NO_VIEW ? NULL : execution->views[view];
}

static enum tandem_status run_matmul(const struct execution *execution,
                                     const struct form_step *step,
                                     uint32_t device, uint32_t flags)
{
    const struct tandem_matmul_options options = {
        .struct_size = sizeof(options),
        .alpha = step->alpha,
        .beta = step->beta,
        .bias = view_tensor(execution, step->inputs[2]),
        .activation = step->activation,
        .activation_parameter = step->activation_parameter,
        .flags = flags,
        .device = device,
    };

    return tandem_matmul(execution->context, &options,
                         view_tensor(execution, step->inputs[0]),
                         view_tensor(execution, step->inputs[1]),
                         execution->views[step->output]);
}

enum tandem_status execution_run_step(struct execution *execution,
                                      uint32_t number, uint32_t device,
                                      uint32_t flags)
{
    const struct form_step *step = &execution->form->steps[number];
    struct tandem_tensor *inputs[MAX_STEP_INPUTS];
    struct tandem_tensor *const output = execution->views[step->output];
    const struct tandem_op op = {
        .struct_size = sizeof(op),
        .id = step->op,
        .int_count = step->int_count,
        .float_count = step->float_count,
        .ints = step->ints,
        .floats = step->floats,
    };

    if (step->op == TANDEM_OP_GEMM)
        return run_matmul(execution, step, device, flags);
    for (uint32_t i = 0; i < step->input_count; i++)
        inputs[i] = view_tensor(execution, step->inputs[i]);
    return tandem_run_on(execution->context, device, &op, inputs,
                         step->input_count, &output, 1);
}

enum tandem_status execution_read_output(struct execution *execution,
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
