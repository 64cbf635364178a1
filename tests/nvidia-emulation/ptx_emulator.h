/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the work-groups of a kernel that was compiled for this processor, with
 * the instructions of cl/nvidia/ptx_sm80.cl and ptx_sm90a.cl as functions: an
 * item is a fiber, and 32 of them wait for each other where a warp acts as one.
 * One thread.
 */
#ifndef TANDEM_TESTS_NVIDIA_EMULATE_H
#define TANDEM_TESTS_NVIDIA_EMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "opencl/plan/tensor_core_packing.h"

#define MOST_ITEMS 512u

/* Calls body(argument) in every item of each group; false, with a line on
 * stderr, where memory fails. */
bool groups_run(uint64_t groups, uint32_t items, void (*body)(void *),
                void *argument);
/* Copies from addresses that are not aligned, or that no hardware would take,
 * since the program began. */
uint64_t copies_misaligned(void);

/* For ptx_sm90a_emulator.c. */

/* The item that runs, and which group's run it is, from 1. */
uint32_t item_now(void);
uint64_t group_run_now(void);
/* Lets another item go on; ends the program where all wait for ever. */
void item_yield(void);
/* Something has come that an item may wait for. */
void item_progress(void);
/* Until all items of the warp have come. */
void warp_meet(void);
char *local_at(uint32_t address);
/* Where local memory's address is said first. */
uint32_t local_address(const void *at);
void copy_misaligned(void);
/* f16, bf16, of two in a word the second if odd, or TF32, of which hardware
 * reads the upper 19 bits; format: enum packed_format. */
double operand_value(uint32_t format, uint32_t word, uint32_t odd);

#endif
