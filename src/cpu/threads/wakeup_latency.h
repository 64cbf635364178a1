/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long the worker threads of a pool take to start a job. */
#ifndef TANDEM_CPU_THREADS_WAKEUP_LATENCY_H
#define TANDEM_CPU_THREADS_WAKEUP_LATENCY_H

#include "cpu/threads/worker.h"

/* Lower bound of the shortest parallel job: no machine wakes its threads in
 * half of this time. */
#define MIN_PARALLEL_NS 1000.0

/* Measures the wake-up latencies of sleeping and of spinning workers and
 * derives the spin time.  The caller holds `busy`. */
void wakeup_latencies_measure(struct pool *pool);
/* Called after a job of job_ns that ran on fewer threads than possible, by a
 * thread that does not hold `busy`.  The latencies may have been measured while
 * other processes used the processors, and would then keep jobs on few threads
 * forever.  Measures them again when such jobs have taken remeasure_ns. */
void wakeup_latencies_recheck(struct pool *pool, double job_ns);

#endif
