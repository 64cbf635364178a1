/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads for large operators.  Callable from any thread.  The first
 * large operator starts the workers, which do not run signal handlers of the
 * host process.  A job uses the workers if it takes longer than their measured
 * wake-up latency.  The workers serve one caller at a time; a second caller
 * runs its job on its own thread. */
#ifndef TANDEM_CPU_THREADS_THREAD_POOL_H
#define TANDEM_CPU_THREADS_THREAD_POOL_H

#include <stdint.h>

struct pool;

/* Type of a function that runs the tasks first <= task < end of a job. */
typedef void (*pool_fn)(const void *work, int64_t first, int64_t end);

/* The kind of a job is a constant of enum pool_kind or an operator's id.
 * POOL_VARIANT is added for an operator's second algorithm.  The pool estimates
 * the time per unit of work for each kind separately. */
#define POOL_VARIANT 256u
enum pool_kind {
    POOL_GEMM = 512,
    POOL_GEMM_SPLITS,
    POOL_GEMV,
    POOL_KIND_COUNT
};

/* Creates a pool of at most `threads` threads, including the caller. 0 means
 * one thread per available processor.  Returns NULL if memory is exhausted. */
struct pool *pool_create(uint32_t threads);
/* Returns the maximum number of threads of a job, including the caller. */
uint32_t pool_threads(const struct pool *pool);
/* Ends the worker threads and frees the pool.  Accepts NULL. */
void pool_destroy(struct pool *pool);
/* Returns how many processors this process may use according to its affinity
 * mask and its cgroup quota. */
uint32_t pool_processors(void);

/* Runs `tasks` tasks of `units` units of work each by calling `fn` on one or
 * more threads, in any order.  Blocks until all tasks are complete.  The result
 * of a task must not depend on how tasks are grouped into calls of `fn`.
 * Repeated calls of the same size assign the same tasks to the same threads, so
 * that each thread finds its data in its cache.  Idle threads steal tasks of
 * slow threads. */
void pool_run(struct pool *pool, uint32_t kind, pool_fn fn, const void *work,
              int64_t tasks, int64_t units);

#endif
