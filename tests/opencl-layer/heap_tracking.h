/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks heap blocks of the tested libraries. The test program defines malloc
 * and its relatives. Blocks that a watched library itself allocates are
 * recorded until they are freed; those of drivers are not. Does nothing in
 * builds with a sanitizer, which have their own malloc and LeakSanitizer. Any
 * thread may call these functions.
 */
#ifndef TANDEM_TESTS_LAYER_HEAP_H
#define TANDEM_TESTS_LAYER_HEAP_H

#include <stdint.h>

/* Watches the library that contains this address from now on. */
void heap_watch(const void *address);
/*
 * Returns the number of blocks of watched libraries that are not freed,
 * without the pools of handles, which are never freed.
 */
uint64_t heap_blocks(void);
uint64_t heap_bytes(void);
/* Prints where each block was allocated, as an offset into the library. */
void heap_print(void);

#endif
