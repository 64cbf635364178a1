/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a network on a device; see network_run.h. */
#include <config.h>

#include "network_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- content ---- */

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d) >> 32;
}

void network_content_write(const struct network *network, uint32_t array,
                           void *out)
{
    const struct network_array *a = &network->arrays[array];
    /* A uniform distribution of [-1, 1) has the variance 1/3. */
    const double scale = sqrt(3) * a->deviation * 0x1p-31;
    const double lowest = a->mean - sqrt(3) * a->deviation;
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15) * (array + 1);

    if (a->content == CONTENT_NUMBERS) {
        memcpy(out, a->numbers, (size_t)a->elements * sizeof(float));
        return;
    }
    for (int64_t i = 0; i < a->elements; i++) {
        const uint64_t number = random_next(&state);

        if (a->content == CONTENT_INDICES)
            ((int64_t *)out)[i] = (int64_t)(number % (uint64_t)a->limit);
        else
            ((float *)out)[i] = (float)(lowest + scale * (double)number);
    }
}

static enum tandem_status content_create(struct network_run *run,
                                         uint32_t array)
{
    const struct network_array *a = &run->network->arrays[array];
    const uint64_t bytes = (uint64_t)a->elements * TANDEM_DTYPE_BYTES(a->dtype);
    void *memory = malloc(bytes + 1);
    enum tandem_status status = TANDEM_OUT_OF_MEMORY;

    if (memory == NULL)
        return status;
    network_content_write(run->network, array, memory);
    status = tandem_tensor_create(run->context, a->dtype, 1, &a->elements,
                                  &run->arrays[array]);
    if (status == TANDEM_OK)
        status = tandem_tensor_write(run->arrays[array], memory, bytes);
    free(memory);
    return status;
}

/* ---- memory of results ---- */

#define NO_SLOT UINT32_MAX

/* Memory that results use one after the other. */
struct slot {
    uint32_t dtype;
    int64_t elements; /* of the largest of these results */
    bool is_used;
};

struct slot_plan {
    struct slot slots[MAX_NETWORK_ARRAYS];
    uint32_t slot_count;
    uint32_t slot_of[MAX_NETWORK_ARRAYS]; /* slot of each array, or NO_SLOT */
};

/* Returns the free slot whose size is closest to that of the array, or a new
 * one. */
static uint32_t slot_take(struct slot_plan *plan,
                          const struct network_array *array)
{
    uint32_t best = plan->slot_count;

    for (uint32_t i = 0; i < plan->slot_count; i++)
        if (!plan->slots[i].is_used && plan->slots[i].dtype == array->dtype &&
            (best == plan->slot_count ||
             llabs(plan->slots[i].elements - array->elements) <
                 llabs(plan->slots[best].elements - array->elements)))
            best = i;
    if (best == plan->slot_count)
        plan->slots[plan->slot_count++] = (struct slot){.dtype = array->dtype};
    plan->slots[best].is_used = true;
    if (plan->slots[best].elements < array->elements)
        plan->slots[best].elements = array->elements;
    return best;
}

/* Frees the slot of an operand that call `index` is the last one to use. */
static void slot_give(const struct network *network, struct slot_plan *plan,
                      uint32_t index, const struct value *x)
{
    if (x->array == NO_ARRAY || plan->slot_of[x->array] == NO_SLOT ||
        network->arrays[x->array].kept ||
        network->arrays[x->array].last_call != index)
        return;
    plan->slots[plan->slot_of[x->array]].is_used = false;
}

static void slots_plan(const struct network *network, struct slot_plan *plan)
{
    for (uint32_t i = 0; i < network->array_count; i++)
        plan->slot_of[i] = NO_SLOT;
    for (uint32_t i = 0; i < network->call_count; i++) {
        const struct network_call *call = &network->calls[i];
        const uint32_t output = call->output.array;

        if (plan->slot_of[output] == NO_SLOT)
            plan->slot_of[output] = slot_take(plan, &network->arrays[output]);
        for (uint32_t j = 0; j < call->input_count; j++)
            slot_give(network, plan, i, &call->inputs[j]);
    }
}

/* Creates the slots, and sets run->arrays of results. */
static enum tandem_status slots_create(struct network_run *run)
{
    const struct network *network = run->network;
    struct slot_plan *plan = calloc(1, sizeof *plan);
    enum tandem_status status = TANDEM_OK;

    if (plan == NULL)
        return TANDEM_OUT_OF_MEMORY;
    slots_plan(network, plan);
    for (uint32_t i = 0; i < plan->slot_count && status == TANDEM_OK; i++)
        status = tandem_tensor_create(run->context, plan->slots[i].dtype, 1,
                                      &plan->slots[i].elements, &run->slots[i]);
    for (uint32_t i = 0; i < network->array_count; i++)
        if (plan->slot_of[i] != NO_SLOT)
            run->arrays[i] = run->slots[plan->slot_of[i]];
    free(plan);
    return status;
}

/* ---- opening ---- */

static enum tandem_status operand_create(struct network_run *run,
                                         const struct value *x,
                                         struct tandem_tensor **out)
{
    if (x->array == NO_ARRAY)
        return TANDEM_OK;
    return tandem_tensor_view(run->arrays[x->array], x->first_element, x->rank,
                              x->shape, x->strides, out);
}

enum tandem_status network_run_open(struct network_run *run,
                                    const struct network *network,
                                    struct tandem_context *context,
                                    uint32_t device)
{
    enum tandem_status status;

    memset(run, 0, sizeof *run);
    run->network = network;
    run->context = context;
    run->device = device;
    status = slots_create(run);
    for (uint32_t i = 0; i < network->array_count && status == TANDEM_OK; i++)
        if (network->arrays[i].content != CONTENT_RESULT)
            status = content_create(run, i);
    for (uint32_t i = 0; i < network->call_count; i++) {
        const struct network_call *call = &network->calls[i];

        for (uint32_t j = 0; j < call->input_count && status == TANDEM_OK; j++)
            status = operand_create(run, &call->inputs[j], &run->inputs[i][j]);
        if (status == TANDEM_OK)
            status = operand_create(run, &call->output, &run->outputs[i]);
    }
    return status;
}

static bool run_wait(void *network_run)
{
    struct network_run *run = network_run;

    return tandem_context_synchronize(run->context, TANDEM_TIMEOUT_INFINITE) ==
           TANDEM_OK;
}

void network_run_close(struct network_run *run)
{
    const struct network *network = run->network;

    if (network == NULL)
        return;
    run_wait(run);
    for (uint32_t i = 0; i < network->call_count; i++) {
        for (uint32_t j = 0; j < MAX_CALL_INPUTS; j++)
            tandem_tensor_destroy(run->inputs[i][j]);
        tandem_tensor_destroy(run->outputs[i]);
    }
    for (uint32_t i = 0; i < network->array_count; i++) {
        if (network->arrays[i].content != CONTENT_RESULT)
            tandem_tensor_destroy(run->arrays[i]);
        tandem_tensor_destroy(run->slots[i]);
    }
    memset(run, 0, sizeof *run);
}

/* ---- running ---- */

static enum tandem_status run_call(struct network_run *run, uint32_t index)
{
    const struct network_call *call = &run->network->calls[index];
    struct tandem_tensor *const *inputs = run->inputs[index];
    const struct tandem_op op = {
        .struct_size = sizeof op,
        .id = call->op,
        .int_count = call->int_count,
        .float_count = call->float_count,
        .ints = call->ints,
        .floats = call->floats,
    };
    const struct tandem_matmul_options options = {
        .struct_size = sizeof options,
        .alpha = 1,
        .beta = call->accumulates ? 1 : 0,
        .bias = inputs[2],
        .activation = (uint32_t)call->ints[0],
        .activation_parameter = call->floats[0],
        .activation_parameter2 = call->floats[1],
        .device = run->device,
    };

    if (call->op == TANDEM_OP_GEMM)
        return tandem_matmul(run->context, &options, inputs[0], inputs[1],
                             run->outputs[index]);
    return tandem_run(run->context, &op, inputs, call->input_count,
                      &run->outputs[index], 1, TANDEM_RUN_ON(run->device));
}

static bool run_once(void *network_run)
{
    struct network_run *run = network_run;

    for (uint32_t i = 0; i < run->network->call_count; i++)
        if (run_call(run, i) != TANDEM_OK)
            return false;
    return true;
}
BENCH_FN(network_run_stream, run_once, run_wait);

enum tandem_status network_run_output(struct network_run *run, float *out)
{
    const struct value *output = &run->network->output;
    const uint64_t bytes = (uint64_t)value_elements(output) * sizeof *out;

    for (uint32_t i = 0; i < run->network->call_count; i++) {
        enum tandem_status status = run_call(run, i);

        if (status != TANDEM_OK)
            return status;
    }
    return tandem_tensor_read(run->outputs[run->network->call_count - 1], out,
                              bytes, TANDEM_TIMEOUT_INFINITE);
}
