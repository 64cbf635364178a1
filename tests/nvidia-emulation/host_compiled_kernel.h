/* SPDX-License-Identifier: Apache-2.0 */
/* Runs plans whose kernels are compiled for the host CPU, in one thread. */
#ifndef TANDEM_TESTS_NVIDIA_PROGRAM_H
#define TANDEM_TESTS_NVIDIA_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "opencl/plan/plan.h"
#include "opencl/device/device_enumeration.h"

/*
 * Runs the plan. memory[slot] points to the bytes of a buffer, which are
 * aligned to 64 bytes, and offsets[slot] is the number of bytes before the
 * operand. Returns false with a line on stderr if a kernel does not compile.
 */
bool plan_run(const struct launch_plan *plan, void *memory[SLOT_COUNT],
              const uint64_t offsets[SLOT_COUNT]);

/* Returns a number in [-1, 1). */
float random_next(void);

/*
 * Call it first. The arguments of the program are a directory for the compiled
 * kernels, the compiler and its options. Returns false with a line on stderr if
 * one is missing.
 */
bool emulation_begin(int argc, char **argv,
                     const struct platform_device *hardware);
/*
 * Prints the numbers of cases. Misaligned copies count as a failure. Returns
 * main's result.
 */
int emulation_end(uint64_t passed, uint64_t failed);

#endif
