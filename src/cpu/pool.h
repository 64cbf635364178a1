/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that help with large operators.  They are started at the first one,
 * leave signals to the host, and are used only where the measured time of the
 * work exceeds the measured time of asking for help.  Any thread may call; one
 * caller at a time gets the helpers, another works alone.
 */
#ifndef TANDEM_CPU_POOL_H
#define TANDEM_CPU_POOL_H

#include <stdint.h>

struct pool;

/* Does the tasks first <= task < end. */
typedef void (*pool_fn)(const void *work, int64_t first, int64_t end);

/* threads 0: as many as this process may use.  NULL when memory is out. */
struct pool *pool_create(uint32_t threads);
/* The most threads that it uses, the caller among them. */
uint32_t pool_threads(const struct pool *pool);
/* NULL is accepted. */
void pool_destroy(struct pool *pool);
/* Processors that this process may use: affinity and cgroup quota. */
uint32_t pool_processors(void);

/* Runs fn over tasks tasks of units units of work each, in no order, on one or
 * more threads; returns when all are done.  What a task computes must not
 * depend on which others are done with it.  The caller's first tasks are
 * timed, which tells whether help with the rest is worth asking for. */
void pool_run(struct pool *pool, pool_fn fn, const void *work, int64_t tasks,
              int64_t units);

#endif
