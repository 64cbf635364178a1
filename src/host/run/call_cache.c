/* SPDX-License-Identifier: Apache-2.0 */
/* Finds calls in the call cache and decides which calls use the host fast path;
 * see call_cache.h.  The context's mutex must be held. */
#include <config.h>

#include "host/run/call_cache.h"

#include <stdlib.h>

static bool call_is_cacheable(const struct call *call)
{
    const struct tandem_op *op = call->op;

    if (call->input_count + call->output_count > MAX_CACHED_OPERANDS ||
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

/* Returns 1 for the formula of GELU that has tanh, which has its own kernels,
 * 2 if the parameter of the activation is invalid, otherwise 0. */
static int64_t activation_form(const struct tandem_gemm *gemm)
{
    double parameter = gemm->activation_parameter;

    if (gemm->activation == TANDEM_OP_GELU)
        return parameter == 0 ? 0 : parameter == 1 ? 1 : 2;
    return gemm->activation == TANDEM_OP_CELU && !isgreater(parameter, 0) ? 2
                                                                          : 0;
}

static int64_t attribute(const struct call *call, uint32_t k)
{
    const struct tandem_gemm *gemm = call->gemm;

    /* Adam's step number changes per call.  All valid ones share an entry. */
    if (gemm == NULL && k == 0 && call->op->id == TANDEM_OP_ADAM)
        return call->op->ints[0] < 1 ? call->op->ints[0] : 1;
    if (gemm == NULL)
        return call->op->ints[k];
    if (k == 0)
        return gemm->flags | (int64_t)gemm->activation << 32;
    return gemm->bias_kind | (int64_t)(gemm->beta != 0) << 32 |
           (int64_t)(gemm->alpha != 0) << 33 | activation_form(gemm) << 34;
}

uint32_t call_key_make(const struct call *call, uint64_t out[MAX_KEY_WORDS])
{
    const uint32_t ints = call->gemm != NULL ? 2 : call->op->int_count;
    uint32_t count = 0;

    /* In a cacheable call, the operator number and all counts fit in 8 bits. */
    out[count++] = (uint64_t)call->op->float_count << 32 | call->op->id << 24 |
                   call->input_count << 16 | call->output_count << 8 | ints;
    for (uint32_t i = 0; i < call->input_count; i++)
        out[count++] = call->inputs[i] != NULL ? call->inputs[i]->serial : 0;
    for (uint32_t i = 0; i < call->output_count; i++)
        out[count++] = call->outputs[i]->serial;
    for (uint32_t i = 0; i < ints; i++)
        out[count++] = (uint64_t)attribute(call, i);
    return count;
}

struct call_descriptor *call_cache_find(const struct call *call,
                                        bool *out_found)
{
    struct tandem_context *context = call->context;
    struct call_descriptor *entry;
    uint64_t key[MAX_KEY_WORDS], hash = 0;
    uint32_t count;
    bool equal = true;

    *out_found = false;
    if (!call_is_cacheable(call))
        return NULL;
    if (context->call_cache == NULL) {
        context->call_cache = calloc(1, sizeof(*context->call_cache));
        if (context->call_cache == NULL)
            return NULL;
    }
    count = call_key_make(call, key);
    for (uint32_t i = 0; i < count; i++)
        hash = hash * 31 + key[i];
    entry = &context->call_cache
                 ->entries[hash * UINT64_C(0x9e3779b97f4a7c15) >> 57];
    for (uint32_t i = 0; i < count; i++)
        equal &= entry->key[i] == key[i];
    *out_found = equal;
    return entry;
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

struct device *host_fast_path_device(struct tandem_context *context,
                                     struct call_descriptor *cached)
{
    struct device *host_device;
    struct run_time best;
    uint32_t usable, eligible;

    if (cached->usable == context->usable)
        return cached->host_device;
    cached->host_device = NULL;
    usable = context->usable & ~context->op_blocked[cached->workload.op];
    host_device = host_device_find(context, usable);
    if (host_device == NULL)
        return NULL;
    cached->usable = context->usable;
    best = chooser_predict_run_time(&cached->workload, &cached->run_cost,
                                    host_device);
    eligible = chooser_eligible_candidates(context, cached->workload.cost_class,
                                           usable);
    if (!(eligible >> host_device->id & 1))
        return NULL;
    for (uint32_t i = 0; i < context->device_count; i++) {
        struct run_time time;

        if (i == host_device->id || !(eligible >> i & 1))
            continue;
        time = chooser_predict_run_time(&cached->workload, &cached->run_cost,
                                        context->devices[i]);
        if (time.launch_ns + time.execute_ns < best.launch_ns + best.execute_ns)
            return NULL;
    }
    cached->host_device = host_device;
    return host_device;
}
