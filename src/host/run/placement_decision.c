/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last placement decision of each thread, and its conversion to a struct
 * tandem_explanation; see run.h.
 */
#include <config.h>

#include "host/run/run.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Number of records per thread.  The records are on the heap, because a library
 * loaded with dlopen gets little static thread-local storage.  Contexts whose
 * serials differ by a multiple of RECORDS share a record. */
#define RECORDS 4u

static __thread struct record *records;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

static void records_free(void *made)
{
    free(made);
    records = NULL;
}

static void key_make(void)
{
    key_made = pthread_key_create(&key, records_free) == 0;
}

/* Allocates the thread's records; `records` stays NULL if that fails. */
static void records_make(void)
{
    struct record *made;

    pthread_once(&once, key_make);
    if (!key_made)
        return;
    made = calloc(RECORDS, sizeof(*made));
    if (made == NULL || pthread_setspecific(key, made) != 0) {
        free(made);
        return;
    }
    records = made;
}

struct record *record_find(const struct tandem_context *context)
{
    struct record *own = records;

    return own != NULL ? &own[context->serial % RECORDS] : NULL;
}

struct record *record_get(const struct tandem_context *context)
{
    struct record *record;

    if (records == NULL)
        records_make();
    record = record_find(context);
    if (record == NULL)
        return NULL;
    record->context = context;
    record->serial = context->serial;
    return record;
}

/* Returns the reason why the device could not run the call, or TANDEM_OK. */
static uint32_t device_status(const struct record *record,
                              const struct device *device)
{
    if (record->failed >> device->id & 1)
        return record->status[device->id];
    if (device->state == DEVICE_GONE)
        return TANDEM_DEVICE_LOST;
    return device->state == DEVICE_FAILED ? TANDEM_NO_DEVICE : TANDEM_OK;
}

static void candidate_fill(struct record *record, const struct device *device,
                           struct tandem_candidate *out)
{
    const struct prediction *prediction = &record->predictions[device->id];

    memset(out, 0, sizeof(*out));
    out->device = device->id;
    out->status = device_status(record, device);
    out->ready = !(record->unready >> device->id & 1);
    out->calibrated =
        device->context->measured[record->query.cost_class] >> device->id & 1;
    out->wait_ns = prediction->wait_ns;
    out->transfer_ns = prediction->transfer_ns;
    out->launch_ns = prediction->launch_ns;
    out->execute_ns = prediction->execute_ns;
    out->download_ns = prediction->download_ns;
    out->predicted_ns = prediction->total_ns;
    if (!out->ready)
        out->compile_ns =
            device->cost.scalars[record->query.cost_class == TANDEM_COST_GEMM
                                     ? COST_GEMM_COMPILE
                                     : COST_COMPILE];
}

void explanation_fill(struct tandem_context *context, struct record *record,
                      struct tandem_explanation *out)
{
    const struct query *query = &record->query;

    out->struct_size = sizeof(*out);
    out->op = query->op;
    out->cost_class = query->cost_class;
    out->elements = query->elements;
    out->bytes = query->bytes;
    out->chosen = record->chosen;
    out->forced = record->forced;
    out->measured_ns = record->measured_ns;
    out->candidate_count = 0;
    out->reserved = 0;
    for (uint32_t i = 0; i < context->device_count; i++) {
        const struct device *device = context->devices[i];

        if (device->duplicate && record->chosen != i)
            continue;
        /* chooser_pick skips devices that lose even without transfers. */
        if (!(record->predicted >> i & 1))
            chooser_predict(record, device);
        candidate_fill(record, device,
                       &out->candidates[out->candidate_count++]);
    }
}
