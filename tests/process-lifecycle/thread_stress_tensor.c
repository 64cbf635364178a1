/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors of the thread stress test and their reference; see thread_stress.h.
 */
#include <config.h>

#include <math.h>
#include <stdio.h>

#include "thread_stress.h"

static const int64_t square[2] = {SIDE, SIDE};

uint32_t random_below(struct worker *worker, uint32_t limit)
{
    worker->random = worker->random * UINT64_C(6364136223846793005) +
                     UINT64_C(1442695040888963407);
    return (uint32_t)(worker->random >> 33) % limit;
}

bool worker_fail(struct worker *worker, const char *what)
{
    if (worker->failure[0] == '\0')
        snprintf(worker->failure, sizeof worker->failure,
                 "operation %llu: %s: %s",
                 (unsigned long long)worker->operations, what,
                 tandem_last_error());
    return false;
}

#define MUST(call)                                                           \
    do {                                                                     \
        if ((call) != TANDEM_OK)                                             \
            return worker_fail(worker, #call);                               \
    } while (0)

/* Sets multiples of 1/8 from -4 to 4. */
static void values_make(struct worker *worker, struct slot *slot, float *out)
{
    for (int i = 0; i < ELEMENTS; i++) {
        out[i] = ((float)random_below(worker, 65) - 32) / 8;
        slot->expected[i] = (double)out[i];
    }
    slot->error = 0;
}

bool slot_make(struct worker *worker, struct slot *slot, float *memory)
{
    float values[ELEMENTS];

    slot->memory = memory;
    if (memory) {
        values_make(worker, slot, memory);
        MUST(tandem_tensor_wrap(worker->context, memory, TANDEM_F32, 2, square,
                                NULL, 0, &slot->tensor));
        return true;
    }
    values_make(worker, slot, values);
    MUST(tandem_tensor_create(worker->context, TANDEM_F32, 2, square,
                              &slot->tensor));
    MUST(tandem_tensor_write(slot->tensor, values, sizeof values));
    return true;
}

void slot_destroy(struct slot *slot)
{
    tandem_tensor_destroy(slot->tensor);
    slot->tensor = NULL;
}

bool slot_write(struct worker *worker, struct slot *slot)
{
    float values[ELEMENTS];

    if (slot->memory && random_below(worker, 2)) {
        /* No device may still use the memory. */
        MUST(tandem_tensor_sync(slot->tensor, TANDEM_TIMEOUT_INFINITE));
        values_make(worker, slot, slot->memory);
        MUST(tandem_tensor_host_written(slot->tensor));
        return true;
    }
    values_make(worker, slot, values);
    MUST(tandem_tensor_write(slot->tensor, values, sizeof values));
    return true;
}

static bool values_compare(struct worker *worker, struct slot *slot,
                           const float *values)
{
    char text[160];

    for (int i = 0; i < ELEMENTS; i++) {
        const double off = fabs((double)values[i] - slot->expected[i]);

        if (off <= slot->error)
            continue;
        snprintf(text, sizeof text,
                 "element %d is %.9g, not %.9g (+- %.3g)", i,
                 (double)values[i], slot->expected[i], slot->error);
        return worker_fail(worker, text);
    }
    for (int i = 0; i < ELEMENTS; i++)
        slot->expected[i] = (double)values[i];
    slot->error = 0;
    return true;
}

bool slot_check(struct worker *worker, struct slot *slot)
{
    const void *data = slot->memory;
    float values[ELEMENTS];

    switch (random_below(worker, 3)) {
    case 0:
        MUST(tandem_tensor_read(slot->tensor, values, sizeof values,
                                TANDEM_TIMEOUT_INFINITE));
        data = values;
        break;
    case 1:
        MUST(tandem_tensor_host_data(slot->tensor, TANDEM_TIMEOUT_INFINITE,
                                     &data));
        break;
    default:
        MUST(tandem_tensor_sync(slot->tensor, TANDEM_TIMEOUT_INFINITE));
        if (!data)
            MUST(tandem_tensor_host_data(slot->tensor, TANDEM_TIMEOUT_INFINITE,
                                         &data));
    }
    return values_compare(worker, slot, data);
}

double slot_largest(const struct slot *slot)
{
    double largest = 0;

    for (int i = 0; i < ELEMENTS; i++)
        largest = fmax(largest, fabs(slot->expected[i]));
    return largest + slot->error;
}
