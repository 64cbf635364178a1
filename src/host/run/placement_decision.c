/* SPDX-License-Identifier: Apache-2.0 */
/* The last placement decision of each thread, and its conversion to a struct
 * tandem_explanation; see run.h. */
#include <config.h>

#include "host/run/run.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Each thread's decisions are on the heap, because a library loaded with dlopen
 * gets little static thread-local storage.  A context's serial number modulo
 * DECISIONS_PER_THREAD is the index of its decision. */
#define DECISIONS_PER_THREAD 4u

static __thread struct placement_decision *decisions;
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
    struct placement_decision *made;

    pthread_once(&once, key_make);
    if (!key_made)
        return;
    made = calloc(DECISIONS_PER_THREAD, sizeof(*made));
    if (made == NULL || pthread_setspecific(key, made) != 0) {
        free(made);
        return;
    }
    decisions = made;
}

struct placement_decision *
placement_decision_find(const struct tandem_context *context)
{
    struct placement_decision *own = decisions;

    return own != NULL ? &own[context->serial % DECISIONS_PER_THREAD] : NULL;
}

struct placement_decision *
placement_decision_get(const struct tandem_context *context)
{
    struct placement_decision *decision;

    if (decisions == NULL)
        decisions_allocate();
    decision = placement_decision_find(context);
    if (decision == NULL)
        return NULL;
    decision->context = context;
    decision->serial = context->serial;
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
    return device->state == DEVICE_FAILED ? TANDEM_NO_DEVICE : TANDEM_OK;
}

static void candidate_fill(struct placement_decision *decision,
                           const struct device *device,
                           struct tandem_candidate *out)
{
    const struct prediction *prediction = &decision->predictions[device->id];

    memset(out, 0, sizeof(*out));
    out->device = device->id;
    out->status = device_status(decision, device);
    out->ready = !(decision->must_compile >> device->id & 1);
    out->calibrated =
        device->context->calibrated[decision->request.cost_class] >>
            device->id &
        1;
    out->wait_ns = prediction->wait_ns;
    out->transfer_ns = prediction->transfer_ns;
    out->launch_ns = prediction->launch_ns;
    out->execute_ns = prediction->execute_ns;
    out->download_ns = prediction->download_ns;
    out->predicted_ns = prediction->total_ns;
    if (!out->ready)
        out->compile_ns =
            device->cost
                .scalars[decision->request.cost_class == TANDEM_COST_GEMM
                             ? COST_GEMM_COMPILE
                             : COST_COMPILE];
}

void explanation_fill(struct tandem_context *context,
                      struct placement_decision *decision,
                      struct tandem_explanation *out)
{
    const struct placement_request *request = &decision->request;

    out->struct_size = sizeof(*out);
    out->op = request->op;
    out->cost_class = request->cost_class;
    out->elements = request->elements;
    out->bytes = request->bytes;
    out->chosen = decision->chosen;
    out->forced = decision->forced;
    out->measured_ns = decision->measured_ns;
    out->candidate_count = 0;
    out->reserved = 0;
    for (uint32_t i = 0; i < context->device_count; i++) {
        const struct device *device = context->devices[i];

        if (device->duplicate && decision->chosen != i)
            continue;
        /* chooser_pick predicts no total time for devices that are too slow. */
        if (!(decision->predicted >> i & 1))
            chooser_predict(decision, device);
        candidate_fill(decision, device,
                       &out->candidates[out->candidate_count++]);
    }
}
