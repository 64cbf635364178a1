/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the work-groups of a kernel that was compiled for the host CPU, with
 * the instructions of cl/nvidia/ptx_sm80.cl and ptx_sm90a.cl as functions. A
 * work-item is a fiber, and the 32 items of a warp wait for each other where a
 * warp acts together. Call it from one thread.
 */
#ifndef TANDEM_TESTS_NVIDIA_EMULATE_H
#define TANDEM_TESTS_NVIDIA_EMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "opencl/plan/tensor_core_packing.h"

#define MAX_ITEMS 512u

/*
 * Calls body(argument) in every item of each work-group. Returns false with a
 * line on stderr if memory runs out.
 */
bool groups_run(uint64_t groups, uint32_t items, void (*body)(void *),
                void *argument);
/*
 * Returns the number of copies with an address or size that hardware would not
 * accept, since the program started.
 */
uint64_t copies_misaligned(void);

/* For ptx_sm90a_emulator.c. */

/* Return the current item, and the number of started work-groups. */
uint32_t item_now(void);
uint64_t group_run_now(void);
/* Runs another item. Ends the program if all items are blocked. */
void item_yield(void);
/* Reports progress that another item may wait for. */
void item_progress(void);
/* Waits until all items of the warp have arrived. */
void warp_barrier(void);
char *local_at(uint32_t address);
/* Returns the 32-bit address of local memory. */
uint32_t local_address(const void *at);
void copy_misaligned(void);
/*
 * Returns an f16 or bf16 element of a word (the second one if odd is set), or
 * a TF32 element, of which hardware reads the upper 19 bits. format: enum
 * packed_format.
 */
double operand_value(uint32_t format, uint32_t word, uint32_t odd);

#endif
