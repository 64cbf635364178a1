/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices forks: a context remembers the generation it was made in, and a
 * child process has another.  No system call per check.
 */
#ifndef TANDEM_HOST_CONTEXT_FORK_GENERATION_H
#define TANDEM_HOST_CONTEXT_FORK_GENERATION_H

#include <stdbool.h>
#include <stdint.h>

/* Raised by one in the child of every fork; only the child's one thread
 * writes it. */
extern volatile uint32_t fork_generation;

/* Starts noticing, once a process.  false: no memory.  (The handle pools stay
 * usable in the child by themselves, see common/handle_pool.c.) */
bool fork_watch(void);

#endif
