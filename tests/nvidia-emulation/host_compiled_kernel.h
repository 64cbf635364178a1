/* SPDX-License-Identifier: Apache-2.0 */
/* Runs plans whose kernels are compiled for this processor.  One thread. */
#ifndef TANDEM_TESTS_NVIDIA_PROGRAM_H
#define TANDEM_TESTS_NVIDIA_PROGRAM_H

#include <stdbool.h>

#include "opencl/plan/plan.h"
#include "opencl/device/device_enumeration.h"

struct compiler {
    const char *directory; /* for what it writes */
    char *const *words;    /* and its options; ended by NULL */
    const struct platform_device *hardware;
};

/* A buffer's bytes are at its mem; temporary has plan->temp_bytes, where there
 * are any.  false, with a line on stderr, where a kernel does not compile.  One
 * compiler a program. */
bool plan_run(const struct compiler *by, const struct launch_plan *plan,
              void *temporary);

#endif
