/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an operator through the host library.  Single-threaded. */
#ifndef TANDEM_BENCH_LIBRARY_RUN_H
#define TANDEM_BENCH_LIBRARY_RUN_H

#include "bench.h"

/* Must not be copied, because it contains pointers into itself.  An object of
 * zeros is closed. */
struct library_run {
    struct bench *bench;
    const struct row *row;
    uint32_t device; /* that computes, or TANDEM_ANY_DEVICE */
    struct op_case c;
    void *memory[2 * TANDEM_MAX_OPERANDS]; /* inputs, then outputs */
    struct tandem_tensor *host_in[TANDEM_MAX_OPERANDS]; /* wrap `memory` */
    /* The operands of the calls.  Inputs are those of host_in, or their copies
     * after library_run_place.  Outputs wrap `memory`. */
    struct tandem_tensor *in[TANDEM_MAX_OPERANDS];
    struct tandem_tensor *out[TANDEM_MAX_OPERANDS];
    struct tandem_tensor *bias; /* of a GEMM; wraps the memory of input 1 */
};

/* Prepares the row.  On failure adds a result row with the reason and returns
 * false.  library_run_close must be called in both cases. */
bool library_run_open(struct library_run *library_run, struct bench *bench,
                      const struct row *row, uint32_t device);
void library_run_close(struct library_run *library_run);
/* [blocks] Copies the inputs to the memory of a device, or makes those in host
 * memory current if `device` is TANDEM_ANY_DEVICE.  Every call must name the
 * same device. */
enum tandem_status library_run_place(struct library_run *library_run,
                                     uint32_t device);
/* Downloads the result.  If it is wrong, fails the row and returns false. */
bool library_run_check(struct library_run *library_run);

/* Functions of type bench_fn.  host_to_host: the host has written the inputs
 * and reads the result after each run.  resident: the inputs stay where they
 * are, and there is one wait at the end. */
double library_run_host_to_host(void *library_run, uint64_t count);
double library_run_resident(void *library_run, uint64_t count);

#endif
