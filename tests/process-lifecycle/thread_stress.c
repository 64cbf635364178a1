/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage: thread-stress [OPERATIONS [SEED]]
 *
 * Runs a mix of operations in four threads of one context on all of its
 * devices, and compares the results with a reference. The exit status is 0 if
 * all results were correct.
 */
#include <config.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "thread_stress.h"
#include "support/case_summary.h"

#define THREADS 4

static struct worker
    workers[THREADS + 1]; /* The last worker creates the shared tensors. */
static float shared_memory[SHARED][ELEMENTS];

static void *worker_run(void *argument)
{
    struct worker *worker = argument;

    for (int i = 0; i < SLOTS; i++)
        if (!slot_make(worker, &worker->slots[i],
                       i % 2 ? worker->memory[i] : NULL))
            return NULL;
    while (worker->operations < worker->wanted)
        if (!operation_run(worker))
            return NULL;
    for (int i = 0; i < SLOTS; i++) {
        if (!slot_check(worker, &worker->slots[i]))
            return NULL;
        slot_destroy(&worker->slots[i]);
    }
    return NULL;
}

static bool workers_run(uint64_t operations)
{
    pthread_t threads[THREADS];
    bool good = true;

    for (int i = 0; i < THREADS; i++) {
        workers[i].wanted = operations / THREADS;
        if (pthread_create(&threads[i], NULL, worker_run, &workers[i]) != 0)
            exit(2);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (workers[i].failure[0] == '\0')
            continue;
        fprintf(stderr, "stress: thread %d: %s\n", i, workers[i].failure);
        good = false;
    }
    return good;
}

int main(int count, char **words)
{
    const uint64_t operations =
        count > 1 ? strtoull(words[1], NULL, 10) : 10000;
    const uint64_t seed = count > 2 ? strtoull(words[2], NULL, 10) : 1;
    struct worker *maker = &workers[THREADS];
    struct tandem_context *context;
    uint32_t devices;
    bool good = true;

    if (operations == 0) {
        fputs("stress: OPERATIONS must be a positive number\n", stderr);
        return 2;
    }
    if (tandem_context_create(NULL, &context) != TANDEM_OK ||
        tandem_device_count(context, &devices) != TANDEM_OK) {
        fprintf(stderr, "stress: %s\n", tandem_last_error());
        return 2;
    }
    for (uint32_t i = 0; i <= THREADS; i++) {
        workers[i].context = context;
        workers[i].shared = maker->slots;
        workers[i].devices = devices;
        workers[i].random = seed * 1000 + i;
    }
    for (int i = 0; i < SHARED; i++)
        good = good && slot_make(maker, &maker->slots[i],
                                 i % 2 ? shared_memory[i] : NULL);
    good = good && workers_run(operations);
    for (int i = 0; i < SHARED; i++)
        good = good && slot_check(maker, &maker->slots[i]);
    if (maker->failure[0] != '\0')
        fprintf(stderr, "stress: shared: %s\n", maker->failure);
    tandem_context_destroy(context);
    printf("%llu operations of %d threads on %u devices: %s\n",
           (unsigned long long)operations, THREADS, devices,
           good ? "right" : "wrong");
    return case_summary(good ? operations : 0, good ? 0 : operations);
}
