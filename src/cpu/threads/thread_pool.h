/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that help with large operators.  They are started at the first one,
 * leave signals to the host, and are asked for where the work takes longer
 * than asking, both as measured on this machine.  After a job they look out
 * for the next one for as long as waking them would take, then they sleep.
 * Any thread may call; one caller at a time gets the helpers, another works
 * alone.
 */
#ifndef TANDEM_CPU_THREADS_THREAD_POOL_H
#define TANDEM_CPU_THREADS_THREAD_POOL_H

#include <stdint.h>

struct pool;

/* Does the tasks first <= task < end. */
typedef void (*pool_fn)(const void *work, int64_t first, int64_t end);

/* Kinds of work: each has its own time for a unit, which the pool learns.  An
 * operator's id is one, and so is that plus POOL_VARIANT, for a way of its
 * work that takes another time. */
#define POOL_VARIANT 256u
enum pool_kind {
    POOL_PRODUCT = 512,
    POOL_PRODUCT_JOIN,
    POOL_PRODUCT_VECTOR,
    POOL_KINDS
};

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
 * depend on which others are done with it.  The same tasks of a call of the
 * same size go to the same threads, as far as these keep pace, so that each
 * finds in its cache what it left there. */
void pool_run(struct pool *pool, uint32_t kind, pool_fn fn, const void *work,
              int64_t tasks, int64_t units);

#endif
