/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator run through the library on tensors that wrap memory of the
 * host.  Single-threaded.
 */
#ifndef TANDEM_BENCH_LIBRARY_RUN_H
#define TANDEM_BENCH_LIBRARY_RUN_H

#include "bench.h"

/* Points into itself: never copy one.  Zeros are a closed one. */
struct library_run {
    struct bench *bench;
    struct op_case c;
    void *memory[2 * TANDEM_MAX_OPERANDS]; /* inputs, then outputs */
    struct tandem_tensor *in[TANDEM_MAX_OPERANDS];
    struct tandem_tensor *out[TANDEM_MAX_OPERANDS];
    struct tandem_tensor *bias; /* of a product that has one, over in[1] */
};

/* The bench's row on its device (or the library's choice); false, having said
 * why, where it cannot be had.  library_run_close accepts half-opened ones. */
bool library_run_open(struct library_run *library_run, struct bench *bench);
void library_run_close(struct library_run *library_run);
/* Whether the result, brought home, is right; false having failed the row. */
bool library_run_check(struct library_run *library_run);

/* bench_fns: the inputs were written by the host, the result is read there;
 * the inputs are where the device wants them, one wait at the end. */
double library_run_host_to_host(void *library_run, uint64_t count);
double library_run_resident(void *library_run, uint64_t count);

#endif
