/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap blocks of the libraries under test: malloc and its kin are defined
 * by the test program, and what a watched library itself asks for is
 * remembered until somebody frees it.  What a driver allocates is none of it.
 * Nothing is seen in builds with a sanitizer, which have a malloc of their
 * own and LeakSanitizer.  Any thread.
 */
#ifndef TANDEM_TESTS_LAYER_HEAP_H
#define TANDEM_TESTS_LAYER_HEAP_H

#include <stdint.h>

/* From here on the library that holds this address is watched. */
void heap_watch(const void *address);
/* Of those libraries, what is not freed; not the pools of handles, which are
 * kept by design. */
uint64_t heap_blocks(void);
uint64_t heap_bytes(void);
/* Names where each block was asked for, as an offset into the library. */
void heap_print(void);

#endif
