/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts allocations and makes chosen ones fail. The test program defines
 * malloc and its relatives, pthread_create and dlopen, so that every
 * allocation of the process goes through this file. Allocations inside a call
 * of the library are counted, can be made to fail, and are remembered until
 * they are freed. Exceptions are those of the simulated GPU and of OpenBLAS,
 * which ends the process when it has no memory. dlopen counts as one
 * allocation, whatever it allocates.
 *
 * One thread sets the failures; any thread may allocate.
 */
#ifndef TANDEM_TESTS_MEMORY_ALLOCATION_H
#define TANDEM_TESTS_MEMORY_ALLOCATION_H

#include <stdbool.h>
#include <stdint.h>

enum allocation_mode {
    ALLOCATION_ONCE, /* The n-th allocation fails. */
    ALLOCATION_FROM  /* The n-th and all later allocations fail. */
};

/*
 * Lets the n-th counted allocation from now on fail, counted from 1. 0 means
 * that no allocation fails.
 */
void allocation_fail(uint64_t n, enum allocation_mode mode);
/* Returns the number of allocations that failed since allocation_fail(). */
uint64_t allocation_failed(void);

/* Record that the calling thread enters and leaves a call of the library. */
void allocation_enter(void);
void allocation_leave(void);

/* Returns the number of blocks of calls that are not freed. */
uint64_t allocation_live(void);
/* Prints where the first failure was injected, if there was one. */
void allocation_failure_print(void);
/*
 * Records the call stack of each allocation from now on, and prints those of
 * blocks that are not freed. Slow.
 */
void allocation_trace(void);
void allocation_live_print(void);

#endif
