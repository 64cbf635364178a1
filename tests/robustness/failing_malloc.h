/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of the process goes through here: malloc and its kin,
 * pthread_create and dlopen are defined by the test program.  Those that are
 * made inside a call of the library, by whomever it calls, are counted, can be
 * made to fail, and are remembered until they are freed.  Not those of the
 * simulated GPU, nor of OpenBLAS, which ends the process when it has no memory.
 * dlopen counts as one allocation, whatever it allocates.  One thread arms; any
 * thread allocates.
 */
#ifndef TANDEM_TESTS_MEMORY_ALLOCATION_H
#define TANDEM_TESTS_MEMORY_ALLOCATION_H

#include <stdbool.h>
#include <stdint.h>

enum allocation_mode {
    ALLOCATION_ONCE, /* the n-th fails */
    ALLOCATION_FROM  /* the n-th and all after it fail */
};

/* From here on the n-th counted allocation fails, from 1; 0: none does. */
void allocation_fail(uint64_t n, enum allocation_mode mode);
/* How many were made to fail since. */
uint64_t allocation_failed(void);

/* The calling thread enters and leaves a call of the library. */
void allocation_enter(void);
void allocation_leave(void);

/* Blocks that were allocated inside calls and are not freed. */
uint64_t allocation_live(void);
/* Names where the first failure was made, where there was one. */
void allocation_failure_print(void);
/* From here on remembers who allocates, and names those of the blocks that
 * live.  Slow. */
void allocation_trace(void);
void allocation_live_print(void);

#endif
