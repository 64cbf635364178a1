/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of judged calls; see judged.h.
 */
#include <config.h>

#include "host/judged.h"

#include <stdlib.h>
#include <string.h>

static bool key_make(const struct call *call, struct judged_key *key)
{
    const struct tandem_op *op = call->op;
    const uint32_t inputs = call->input_count, outputs = call->output_count;

    if (inputs + outputs > JUDGED_OPERANDS || op->int_count > JUDGED_INTS ||
        op->struct_size != sizeof(*op) || op->program != NULL ||
        (op->int_count > 0 && op->ints == NULL) ||
        (op->float_count > 0 && op->floats == NULL) || call->gemm != NULL)
        return false;
    key->op = op->id;
    key->int_count = op->int_count;
    key->float_count = op->float_count;
    key->input_count = (uint16_t)inputs;
    key->output_count = (uint16_t)outputs;
    for (uint32_t i = 0; i < inputs; i++)
        key->tensors[i] =
            call->inputs[i] != NULL ? call->inputs[i]->serial : 0;
    for (uint32_t i = 0; i < outputs; i++)
        key->tensors[inputs + i] = call->outputs[i]->serial;
    for (uint32_t i = 0; i < op->int_count; i++)
        key->ints[i] = op->ints[i];
    return true;
}

static bool keys_equal(const struct judged_key *a, const struct judged_key *b)
{
    const uint32_t operands = (uint32_t)a->input_count + a->output_count;

    if (a->op != b->op || a->int_count != b->int_count ||
        a->float_count != b->float_count ||
        a->input_count != b->input_count || a->output_count != b->output_count)
        return false;
    for (uint32_t i = 0; i < operands; i++) {
        if (a->tensors[i] != b->tensors[i])
            return false;
    }
    for (uint32_t i = 0; i < a->int_count; i++) {
        if (a->ints[i] != b->ints[i])
            return false;
    }
    return true;
}

struct judged *judged_find(const struct call *call, struct judged_key *out_key,
                           bool *out_found)
{
    struct tandem_context *context = call->context;
    struct judged *entry;
    uint64_t hash = call->row->id;
    uint32_t operands;

    *out_found = false;
    if (!key_make(call, out_key))
        return NULL;
    if (context->judged == NULL) {
        context->judged = calloc(1, sizeof(*context->judged));
        if (context->judged == NULL)
            return NULL;
    }
    operands = call->input_count + call->output_count;
    for (uint32_t i = 0; i < operands; i++)
        hash = (hash ^ out_key->tensors[i]) * UINT64_C(0x9e3779b97f4a7c15);
    entry = &context->judged->entries[hash >> 57];
    *out_found = keys_equal(&entry->key, out_key);
    return entry;
}
