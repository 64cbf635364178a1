/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs an operator through the host library on tensors that wrap host memory.
 * Single-threaded.
 */
#ifndef TANDEM_BENCH_LIBRARY_RUN_H
#define TANDEM_BENCH_LIBRARY_RUN_H

#include "bench.h"

/* Must not be copied, because it contains pointers into itself.  An object of
 * zeros is closed. */
struct library_run {
    struct bench *bench;
    struct op_case c;
    void *memory[2 * TANDEM_MAX_OPERANDS]; /* inputs, then outputs */
    struct tandem_tensor *in[TANDEM_MAX_OPERANDS];
    struct tandem_tensor *out[TANDEM_MAX_OPERANDS];
    struct tandem_tensor
        *bias; /* bias of a GEMM; it uses the memory of in[1] */
};

/* Prepares bench->row on the bench's device, or on the device that the library
 * chooses.  On failure adds a result row with the reason and returns false.
 * library_run_close must be called in both cases. */
bool library_run_open(struct library_run *library_run, struct bench *bench);
void library_run_close(struct library_run *library_run);
/* Downloads the result.  If it is wrong, fails the row and returns false. */
bool library_run_check(struct library_run *library_run);

/* Functions of type bench_fn.  host_to_host: the host has written the inputs
 * and reads the result after each run.  resident: the inputs are in device
 * memory, and there is one wait at the end. */
double library_run_host_to_host(void *library_run, uint64_t count);
double library_run_resident(void *library_run, uint64_t count);

#endif
