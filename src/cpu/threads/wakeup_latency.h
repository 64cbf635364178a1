/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the time that the worker threads of a pool take to start a job. */
#ifndef TANDEM_CPU_THREADS_WAKEUP_LATENCY_H
#define TANDEM_CPU_THREADS_WAKEUP_LATENCY_H

#include "cpu/threads/worker.h"

/* Minimum duration in ns of a job that runs in parallel.  No machine wakes its
 * threads in half of this time. */
#define MIN_PARALLEL_NS 1000.0

/* Measures the wake-up latencies of sleeping and of spinning workers, and sets
 * the time that idle workers spin.  The caller holds pool->busy. */
void wakeup_latencies_measure(struct pool *pool);
/* Called after a job of job_ns that ran on fewer threads than possible.  The
 * caller does not hold pool->busy.  Latencies that were measured while other
 * processes used the processors could keep jobs on few threads forever.  They
 * are measured again after pool->remeasure_ns of such jobs. */
void wakeup_latencies_recheck(struct pool *pool, double job_ns);

#endif
