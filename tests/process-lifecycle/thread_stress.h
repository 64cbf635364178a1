/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads in one context: what each owns, and the reference that its tensors
 * are compared with.  A worker is one thread's; the shared tensors are read by
 * all and written by none.
 */
#ifndef TANDEM_TESTS_PROCESS_STRESS_H
#define TANDEM_TESTS_PROCESS_STRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/host.h>

#define SIDE 16
#define ELEMENTS (SIDE * SIDE)
#define SLOTS 6
#define SHARED 3

/* A matrix and what it should hold: each element is off by error at most. */
struct slot {
    struct tandem_tensor *tensor;
    float *memory; /* wrapped, or NULL */
    double expected[ELEMENTS];
    double error;
};

struct worker {
    struct tandem_context *context;
    const struct slot *shared; /* SHARED of them */
    uint32_t devices;
    uint64_t random;
    uint64_t operations, wanted;
    struct slot slots[SLOTS];
    float memory[SLOTS][ELEMENTS];
    char failure[512]; /* "" */
};

uint32_t random_below(struct worker *worker, uint32_t limit);
/* Notes the first failure.  Returns false. */
bool worker_fail(struct worker *worker, const char *what);

/* ---- slots ---- */

/* A tensor, wrapped or the library's, that holds random values. */
bool slot_make(struct worker *worker, struct slot *slot, float *memory);
void slot_destroy(struct slot *slot);
/* Reads the tensor in one of the ways there are, and compares. */
bool slot_check(struct worker *worker, struct slot *slot);
/* Writes random values in one of the ways there are. */
bool slot_write(struct worker *worker, struct slot *slot);
double slot_largest(const struct slot *slot);

/* ---- operations ---- */

/* One operation of the mix, on the worker's slots. */
bool operation_run(struct worker *worker);

#endif
