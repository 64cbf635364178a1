/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call cache; see call_cache.h.  The context's mutex must be held.
 */
#include <config.h>

#include "host/run/call_cache.h"

#include <stdlib.h>
#include <string.h>

/* Returns true if the call can be cached and a key can represent it. */
static bool call_kept(const struct call *call)
{
    const struct tandem_op *op = call->op;

    if (op->program != NULL ||
        call->input_count + call->output_count > JUDGED_OPERANDS ||
        op->int_count > JUDGED_INTS || op->struct_size != sizeof(*op) ||
        (op->int_count > 0 && op->ints == NULL) ||
        (op->float_count > 0 && op->floats == NULL))
        return false;
    /* In storages with gaps, operand.partial depends on the layouts written so
     * far, so it cannot be cached. */
    for (uint32_t i = 0; i < call->output_count; i++) {
        if (call->outputs[i]->storage->gaps)
            return false;
    }
    return true;
}

static uint64_t input_serial(const struct call *call, uint32_t input)
{
    return call->inputs[input] != NULL ? call->inputs[input]->serial : 0;
}

/* Returns the GELU variant: 0 for erf, 1 for tanh, 2 for an invalid
 * activation_parameter.  Each valid variant has its own kernels. */
static int64_t gelu_form(const struct tandem_gemm *gemm)
{
    if (gemm->activation != TANDEM_OP_GELU || gemm->activation_parameter == 0)
        return 0;
    return gemm->activation_parameter == 1 ? 1 : 2;
}

static int64_t attribute(const struct call *call, uint32_t k)
{
    const struct tandem_gemm *gemm = call->gemm;

    /* Adam: all valid step numbers, from 1, share an entry. */
    if (gemm == NULL && k == 0 && call->op->id == TANDEM_OP_ADAM)
        return call->op->ints[0] < 1 ? call->op->ints[0] : 1;
    if (gemm == NULL)
        return call->op->ints[k];
    if (k == 0)
        return gemm->flags | (int64_t)gemm->activation << 32;
    return gemm->bias_kind | (int64_t)(gemm->beta != 0) << 32 |
           (int64_t)(gemm->alpha != 0) << 33 | gelu_form(gemm) << 34;
}

static uint32_t attribute_count(const struct call *call)
{
    return call->gemm != NULL ? 2 : call->op->int_count;
}

void judged_key_make(const struct call *call, struct judged_key *out)
{
    const uint32_t inputs = call->input_count;

    memset(out, 0, sizeof(*out));
    out->op = call->op->id;
    out->int_count = attribute_count(call);
    out->float_count = call->op->float_count;
    out->input_count = (uint16_t)inputs;
    out->output_count = (uint16_t)call->output_count;
    for (uint32_t i = 0; i < inputs; i++)
        out->tensors[i] = input_serial(call, i);
    for (uint32_t i = 0; i < call->output_count; i++)
        out->tensors[inputs + i] = call->outputs[i]->serial;
    for (uint32_t i = 0; i < out->int_count; i++)
        out->ints[i] = attribute(call, i);
}

static bool key_equal(const struct judged_key *key, const struct call *call)
{
    const struct tandem_op *op = call->op;
    const uint32_t inputs = call->input_count;

    if (key->op != op->id || key->int_count != attribute_count(call) ||
        key->float_count != op->float_count || key->input_count != inputs ||
        key->output_count != call->output_count)
        return false;
    for (uint32_t i = 0; i < inputs; i++) {
        if (key->tensors[i] != input_serial(call, i))
            return false;
    }
    for (uint32_t i = 0; i < call->output_count; i++) {
        if (key->tensors[inputs + i] != call->outputs[i]->serial)
            return false;
    }
    for (uint32_t i = 0; i < key->int_count; i++) {
        if (key->ints[i] != attribute(call, i))
            return false;
    }
    return true;
}

struct judged *call_cache_find(const struct call *call, bool *out_found)
{
    struct tandem_context *context = call->context;
    struct judged *entry;
    uint64_t hash = call->op->id;

    *out_found = false;
    if (!call_kept(call))
        return NULL;
    if (context->judged == NULL) {
        context->judged = calloc(1, sizeof(*context->judged));
        if (context->judged == NULL)
            return NULL;
    }
    for (uint32_t i = 0; i < call->input_count; i++)
        hash = hash * 31 + input_serial(call, i);
    for (uint32_t i = 0; i < call->output_count; i++)
        hash = hash * 31 + call->outputs[i]->serial;
    entry =
        &context->judged->entries[hash * UINT64_C(0x9e3779b97f4a7c15) >> 57];
    *out_found = key_equal(&entry->key, call);
    return entry;
}

void judged_query(struct judged *judged, struct query *out)
{
    out->op = judged->key.op;
    out->cost_class = judged->cost_class;
    out->elements = judged->elements;
    out->bytes = judged->bytes;
    memcpy(out->product, judged->product, sizeof(out->product));
    out->work = &judged->work;
}

/* Returns the first open device in `usable` (a mask) that is synchronous,
 * computes in host memory and supports all core operators, or NULL. */
static struct device *home_find(const struct tandem_context *context,
                                uint32_t usable)
{
    for (uint32_t i = 0; i < context->device_count; i++) {
        struct device *device = context->devices[i];

        if ((usable >> i & 1) && device->shares_host && !device->async &&
            device->state == DEVICE_OPEN &&
            (device->info.caps & TANDEM_CAP_CORE_OPERATORS))
            return device;
    }
    return NULL;
}

/* Chooses the host fast path device of a cached call, see judged.home. */
static struct device *home_choose(struct tandem_context *context,
                                  struct judged *judged)
{
    const uint32_t usable =
        context->usable & ~context->rejecting[judged->key.op];
    struct device *home = home_find(context, usable);
    struct query query;
    uint32_t rivals;

    judged->home = NULL;
    if (home == NULL)
        return NULL;
    judged_query(judged, &query);
    judged->usable = context->usable;
    chooser_predict_run_cost(&query, home, &judged->launch_ns,
                             &judged->execute_ns);
    rivals = chooser_eligible_candidates(context, judged->cost_class, usable);
    if (!(rivals >> home->id & 1))
        return NULL;
    for (uint32_t i = 0; i < context->device_count; i++) {
        const struct device *device = context->devices[i];
        double launch_ns, execute_ns;

        if (device == home || !(rivals >> i & 1))
            continue;
        chooser_predict_run_cost(&query, device, &launch_ns, &execute_ns);
        if (launch_ns + execute_ns < judged->launch_ns + judged->execute_ns)
            return NULL;
    }
    judged->home = home;
    return home;
}

struct device *judged_home(struct tandem_context *context,
                           struct judged *judged)
{
    if (judged->usable == context->usable)
        return judged->home;
    return home_choose(context, judged);
}
