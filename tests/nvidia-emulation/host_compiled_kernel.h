/* SPDX-License-Identifier: Apache-2.0 */
/* Runs plans whose kernels are compiled for the host CPU, in one thread. */
#ifndef TANDEM_TESTS_NVIDIA_PROGRAM_H
#define TANDEM_TESTS_NVIDIA_PROGRAM_H

#include <stdbool.h>

#include "opencl/plan/plan.h"
#include "opencl/device/device_enumeration.h"

/*
 * Runs the plan. memory[slot] points to the bytes of an operand. Returns false
 * with a line on stderr if a kernel does not compile. Call it from
 * emulation_main.
 */
bool plan_run(const struct launch_plan *plan, void *memory[SLOT_COUNT]);

/* Returns a number in [-1, 1). */
float random_next(void);

/*
 * Runs the cases 0 to case_count - 1 on this hardware, and fails if a case
 * returns false or a copy was misaligned. The arguments are a directory for the
 * compiled kernels, the compiler and its options. Returns main's result.
 */
int emulation_main(int argc, char **argv,
                   const struct platform_device *hardware, uint32_t case_count,
                   bool (*case_run)(uint32_t number));

#endif
