/* SPDX-License-Identifier: Apache-2.0 */
/* Detects forks without a system call per check: a context stores the
 * generation at its creation, and a child process has a different one. */
#ifndef TANDEM_HOST_CONTEXT_FORK_GENERATION_H
#define TANDEM_HOST_CONTEXT_FORK_GENERATION_H

#include <stdbool.h>
#include <stdint.h>

/* The number of forks up to this process, plus one.  Incremented in the child
 * of every fork, while the child has only one thread. */
extern volatile uint32_t fork_generation;

/* Installs the fork handler at the first call.  Returns false if memory runs
 * out.  The handle pools have their own handlers (common/handle_pool.c). */
bool fork_watch(void);

#endif
