/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the system lets this process start threads.  Some libraries cannot
 * bear a refusal: OpenBLAS prints to stderr and raises SIGINT.  Any thread.
 */
#ifndef TANDEM_COMMON_THREADS_H
#define TANDEM_COMMON_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true if count more threads with default attributes can exist at the
 * same time.  The function starts that many, ends them and waits until the
 * system has forgotten them.  Call it within a shelter
 * (common/thread_state_guard.h): the threads inherit the signal mask.  Another
 * process can use up the same limit after the call. */
bool threads_can_start(uint32_t count);

/* What limits the number of threads, for messages. */
#define THREADS_LIMITS                                                         \
    "the limit on the user's processes (ulimit -u, RLIMIT_NPROC), on the "     \
    "control group's (pids.max), or memory"

#endif
