/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether the system lets this process start threads. Some libraries
 * handle a failed start badly: OpenBLAS prints to stderr and raises SIGINT. May
 * be called from any thread. */
#ifndef TANDEM_COMMON_THREADS_H
#define TANDEM_COMMON_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true if `count` more threads with default attributes can exist at the
 * same time. Starts these threads, ends them and waits until the kernel has
 * removed them. Call it inside a guard (common/thread_state_guard.h), because
 * the threads inherit the signal mask. The result may change, because other
 * processes share the limit. */
bool threads_can_start(uint32_t count);

/* Names of the system's limits on the number of threads, for messages. */
#define THREADS_LIMITS                                                         \
    "the limit on the user's processes (ulimit -u, RLIMIT_NPROC), on the "     \
    "control group's (pids.max), or memory"

#endif
