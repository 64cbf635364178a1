/* SPDX-License-Identifier: Apache-2.0 */
/* Detects forks without a system call per check.  A context stores the value of
 * fork_generation at its creation, and the value differs in a child process. */
#ifndef TANDEM_HOST_CONTEXT_FORK_GENERATION_H
#define TANDEM_HOST_CONTEXT_FORK_GENERATION_H

#include <stdbool.h>
#include <stdint.h>

/* Number of forks that led to this process, plus one.  Incremented in the child
 * of every fork, while the child has only one thread. */
extern volatile uint32_t fork_generation;

/* Installs the fork handler that increments fork_generation, if not yet
 * installed.  Returns false if memory runs out. */
bool fork_watch(void);

#endif
