/* SPDX-License-Identifier: Apache-2.0 */
/* The last placement decision of each thread, and its conversion to a struct
 * tandem_explanation; see placement.h. */
#include <config.h>

#include "common/thread_local.h"
#include "host/run/placement.h"

#include <pthread.h>
#include <stdlib.h>

/* Each thread's decisions are on the heap; see thread_local.h.  A context's
 * serial number modulo DECISIONS_PER_THREAD is the index of its decision. */
#define DECISIONS_PER_THREAD 4u

static THREAD_LOCAL struct placement_decision *decisions;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

static void decisions_free(void *made)
{
    free(made);
    decisions = NULL;
}

static void key_make(void)
{
    key_made = pthread_key_create(&key, decisions_free) == 0;
}

static void decisions_allocate(void)
{
    pthread_once(&once, key_make);
    if (key_made)
        decisions = calloc(DECISIONS_PER_THREAD, sizeof(*decisions));
    if (decisions != NULL && pthread_setspecific(key, decisions) != 0) {
        free(decisions);
        decisions = NULL;
    }
}

struct placement_decision *
placement_decision_find(const struct tandem_context *context)
{
    return decisions != NULL
               ? &decisions[context->serial % DECISIONS_PER_THREAD]
               : NULL;
}

struct placement_decision *
placement_decision_get(const struct tandem_context *context)
{
    struct placement_decision *decision;

    if (decisions == NULL)
        decisions_allocate();
    decision = placement_decision_find(context);
    if (decision != NULL && decision->serial != context->serial) {
        decision->serial = context->serial;
        decision->unclocked_ns = 0;
    }
    return decision;
}

/* Returns the error that stopped the call on the device, or TANDEM_OK. */
static uint32_t device_status(const struct placement_decision *decision,
                              const struct device *device)
{
    if (decision->failed >> device->id & 1)
        return decision->status[device->id];
    if (device->state == DEVICE_LOST)
        return TANDEM_DEVICE_LOST;
    return device->state == DEVICE_FAILED ? device->open_status : TANDEM_OK;
}

static struct tandem_candidate
candidate_describe(const struct placement_decision *decision,
                   const struct device *device)
{
    const uint32_t cost_class = decision->request.workload.cost_class;
    const struct prediction *prediction = &decision->predictions[device->id];
    const bool must_compile = decision->must_compile >> device->id & 1;
    const double compile_ns =
        device->cost.scalars[cost_class == TANDEM_COST_GEMM ? COST_GEMM_COMPILE
                                                            : COST_COMPILE];

    return (struct tandem_candidate){
        .device = device->id,
        .status = device_status(decision, device),
        .ready = !must_compile,
        .calibrated = device->context->calibrated[cost_class] >> device->id & 1,
        .wait_ns = prediction->wait_ns,
        .transfer_ns = prediction->transfer_ns,
        .launch_ns = prediction->run.launch_ns,
        .execute_ns = prediction->run.execute_ns,
        .download_ns = prediction->download_ns,
        .compile_ns = must_compile ? compile_ns : 0,
        .predicted_ns = prediction->total_ns,
    };
}

void explanation_fill(struct tandem_context *context,
                      struct placement_decision *decision,
                      struct tandem_explanation *out)
{
    const struct workload *workload = &decision->request.workload;

    *out = (struct tandem_explanation){
        .struct_size = sizeof(*out),
        .op = workload->op,
        .cost_class = workload->cost_class,
        .elements = workload->elements,
        .bytes = workload->bytes,
        .chosen = decision->chosen,
        .forced = decision->forced,
        .measured_ns = decision->measured_ns,
    };
    for (uint32_t i = 0; i < context->device_count; i++) {
        const struct device *device = context->devices[i];

        if (device->duplicate && decision->chosen != i)
            continue;
        /* chooser_pick predicts no total time for a device whose launch and run
         * alone are too slow.  Predict it now. */
        if (!(decision->predicted >> i & 1))
            chooser_predict(decision, device);
        out->candidates[out->candidate_count++] =
            candidate_describe(decision, device);
    }
}
