/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs plans whose kernels are compiled for the host CPU. Call it from one
 * thread.
 */
#ifndef TANDEM_TESTS_NVIDIA_PROGRAM_H
#define TANDEM_TESTS_NVIDIA_PROGRAM_H

#include <stdbool.h>

#include "opencl/plan/plan.h"
#include "opencl/device/device_enumeration.h"

struct compiler {
    const char *directory; /* The directory for compiled kernels. */
    char *const *words;    /* The compiler and its options, ended by NULL. */
    const struct platform_device *hardware;
};

/*
 * Runs the plan. The mem of a buffer points to its bytes; temporary has
 * plan->temp_bytes. Returns false with a line on stderr if a kernel does not
 * compile. A program uses one compiler.
 */
bool plan_run(const struct compiler *by, const struct launch_plan *plan,
              void *temporary);

#endif
