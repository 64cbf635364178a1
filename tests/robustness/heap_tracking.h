/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks heap blocks of the tested libraries, and makes chosen allocations
 * fail. The test program defines malloc and its relatives, pthread_create and
 * dlopen, which counts as one allocation, whatever it allocates. Blocks of
 * drivers are not recorded.
 *
 * In builds with a sanitizer, which have their own malloc and LeakSanitizer,
 * nothing is recorded, and no allocation fails. One thread sets the failures;
 * any thread may call the other functions.
 */
#ifndef TANDEM_TESTS_HEAP_TRACKING_H
#define TANDEM_TESTS_HEAP_TRACKING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Records what the library that contains this address allocates from now on.
 */
void heap_watch(const void *address);
/*
 * Record that the calling thread enters and leaves a call of the library. All
 * that is allocated meanwhile is recorded, also by the C library. Exceptions
 * are the simulated GPU and OpenBLAS, which ends the process when it has no
 * memory.
 */
void heap_call_enter(void);
void heap_call_leave(void);

/*
 * Returns the number of recorded blocks that are not freed, without the pools
 * of handles and the messages of threads, which are kept.
 */
uint64_t heap_blocks(void);
uint64_t heap_bytes(void);
/* Prints where each block was allocated, as an offset into the library. */
void heap_print(void);

/*
 * Lets the nth recorded allocation from now on, counted from 1, and the next
 * times - 1 fail. 0 means that no allocation fails.
 */
void heap_fail(uint64_t nth, uint64_t times);
/* Returns the number of allocations that failed since heap_fail. */
uint64_t heap_failed(void);
/* Prints the stack of the first allocation that failed, if there was one. */
void heap_failure_print(void);

#endif
