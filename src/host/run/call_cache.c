/* SPDX-License-Identifier: Apache-2.0 */
/* The call cache; see call_cache.h.  The context's mutex must be held. */
#include <config.h>

#include "host/run/call_cache.h"

#include <stdlib.h>
#include <string.h>

static bool call_is_cacheable(const struct call *call)
{
    const struct tandem_op *op = call->op;

    if (op->program != NULL ||
        call->input_count + call->output_count > MAX_CACHED_OPERANDS ||
        op->int_count > MAX_CACHED_INTS || op->struct_size != sizeof(*op) ||
        (op->int_count > 0 && op->ints == NULL) ||
        (op->float_count > 0 && op->floats == NULL))
        return false;
    /* If an output's memory has gaps, the result of the argument check depends
     * on earlier writes to the memory, so the call cannot be cached. */
    for (uint32_t i = 0; i < call->output_count; i++) {
        if (call->outputs[i]->storage->has_gaps)
            return false;
    }
    return true;
}

static uint64_t input_serial(const struct call *call, uint32_t input)
{
    return call->inputs[input] != NULL ? call->inputs[input]->serial : 0;
}

/* Returns the formula of a GEMM's GELU activation: 0 for erf or no GELU, 1 for
 * tanh, 2 for an invalid formula.  Each valid formula has its own kernels. */
static int64_t gelu_form(const struct tandem_gemm *gemm)
{
    if (gemm->activation != TANDEM_OP_GELU || gemm->activation_parameter == 0)
        return 0;
    return gemm->activation_parameter == 1 ? 1 : 2;
}

static int64_t attribute(const struct call *call, uint32_t k)
{
    const struct tandem_gemm *gemm = call->gemm;

    /* Adam calls with any step number of at least 1 share a cache entry. */
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

void call_key_make(const struct call *call, struct call_key *out)
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

static bool call_key_matches(const struct call_key *key,
                             const struct call *call)
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

struct call_descriptor *call_cache_find(const struct call *call,
                                        bool *out_found)
{
    struct tandem_context *context = call->context;
    struct call_descriptor *entry;
    uint64_t hash = call->op->id;

    *out_found = false;
    if (!call_is_cacheable(call))
        return NULL;
    if (context->call_cache == NULL) {
        context->call_cache = calloc(1, sizeof(*context->call_cache));
        if (context->call_cache == NULL)
            return NULL;
    }
    for (uint32_t i = 0; i < call->input_count; i++)
        hash = hash * 31 + input_serial(call, i);
    for (uint32_t i = 0; i < call->output_count; i++)
        hash = hash * 31 + call->outputs[i]->serial;
    entry = &context->call_cache
                 ->entries[hash * UINT64_C(0x9e3779b97f4a7c15) >> 57];
    *out_found = call_key_matches(&entry->key, call);
    return entry;
}

void call_descriptor_to_request(struct call_descriptor *cached,
                                struct placement_request *out)
{
    out->op = cached->key.op;
    out->cost_class = cached->cost_class;
    out->elements = cached->elements;
    out->bytes = cached->bytes;
    memcpy(out->gemm_size, cached->gemm_size, sizeof(out->gemm_size));
    out->run_cost = &cached->run_cost;
}

/* Returns the first open device in `usable` (a mask) that is synchronous,
 * computes in host memory and supports all core operators, or NULL. */
static struct device *host_device_find(const struct tandem_context *context,
                                       uint32_t usable)
{
    for (uint32_t i = 0; i < context->device_count; i++) {
        struct device *device = context->devices[i];

        if ((usable >> i & 1) && device->is_zero_copy && !device->async &&
            device->state == DEVICE_OPEN &&
            (device->info.caps & TANDEM_CAP_CORE_OPERATORS))
            return device;
    }
    return NULL;
}

static struct device *host_fast_path_choose(struct tandem_context *context,
                                            struct call_descriptor *cached)
{
    const uint32_t usable =
        context->usable & ~context->op_blocked[cached->key.op];
    struct device *host_device = host_device_find(context, usable);
    struct placement_request request;
    uint32_t eligible;

    cached->host_device = NULL;
    if (host_device == NULL)
        return NULL;
    call_descriptor_to_request(cached, &request);
    cached->usable = context->usable;
    chooser_predict_run_cost(&request, host_device, &cached->launch_ns,
                             &cached->execute_ns);
    eligible = chooser_eligible_candidates(context, cached->cost_class, usable);
    if (!(eligible >> host_device->id & 1))
        return NULL;
    for (uint32_t i = 0; i < context->device_count; i++) {
        const struct device *device = context->devices[i];
        double launch_ns, execute_ns;

        if (device == host_device || !(eligible >> i & 1))
            continue;
        chooser_predict_run_cost(&request, device, &launch_ns, &execute_ns);
        if (launch_ns + execute_ns < cached->launch_ns + cached->execute_ns)
            return NULL;
    }
    cached->host_device = host_device;
    return host_device;
}

struct device *host_fast_path_device(struct tandem_context *context,
                                     struct call_descriptor *cached)
{
    if (cached->usable == context->usable)
        return cached->host_device;
    return host_fast_path_choose(context, cached);
}
