/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads in one context: the tensors of each thread, and the reference values
 * of these tensors. A worker belongs to one thread; all threads read the
 * shared tensors and none writes them.
 */
#ifndef TANDEM_TESTS_THREAD_STRESS_H
#define TANDEM_TESTS_THREAD_STRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/host.h>

#define SIDE 16
#define ELEMENTS (SIDE * SIDE)
#define SLOTS 6
#define SHARED 3

/* A matrix and its expected content. Each element is off by at most error. */
struct slot {
    struct tandem_tensor *tensor;
    float *memory; /* Wrapped memory, or NULL. */
    double expected[ELEMENTS];
    double error;
};

struct worker {
    struct tandem_context *context;
    const struct slot *shared; /* An array of SHARED slots. */
    uint32_t devices;
    uint64_t random;
    uint64_t operations, wanted;
    struct slot slots[SLOTS];
    float memory[SLOTS][ELEMENTS];
    char failure[512]; /* "" */
};

uint32_t random_below(struct worker *worker, uint32_t limit);
/* Records the first failure. Returns false. */
bool worker_fail(struct worker *worker, const char *what);

/* ---- slots ---- */

/* Creates a tensor with random values, wrapped or owned. */
bool slot_make(struct worker *worker, struct slot *slot, float *memory);
void slot_destroy(struct slot *slot);
/* Reads the tensor with a random function and compares its content. */
bool slot_check(struct worker *worker, struct slot *slot);
/* Writes random values with a random function. */
bool slot_write(struct worker *worker, struct slot *slot);
double slot_largest(const struct slot *slot);

/* ---- operations ---- */

/* Runs one random operation on the worker's slots. */
bool operation_run(struct worker *worker);

#endif
