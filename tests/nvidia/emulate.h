/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the work-groups of a kernel that was compiled for this processor, with
 * cl/nvidia/mma.cl's instructions as functions: an item is a fiber, and 32 of
 * them wait for each other where a warp acts as one.  One thread.
 */
#ifndef TANDEM_TESTS_NVIDIA_EMULATE_H
#define TANDEM_TESTS_NVIDIA_EMULATE_H

#include <stdbool.h>
#include <stdint.h>

#define MOST_ITEMS 256u

/* Calls body(argument) in every item of each group; false, with a line on
 * stderr, where memory fails. */
bool groups_run(uint64_t groups, uint32_t items, void (*body)(void *),
                void *argument);
/* Copies from addresses that are not aligned, since the program began. */
uint64_t copies_misaligned(void);

#endif
