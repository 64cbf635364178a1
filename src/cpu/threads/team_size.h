/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the number of threads (the team) for a job.  Compares the job's
 * estimated single-threaded time with the measured wake-up latency of the
 * threads.  The functions access only their arguments; any thread may call. */
#ifndef TANDEM_CPU_THREADS_TEAM_SIZE_H
#define TANDEM_CPU_THREADS_TEAM_SIZE_H

#include <stdint.h>

/* Wake-up latencies in nanoseconds.  A wake-up latency is the time from the
 * start of a job until its threads run it. */
struct team_costs {
    /* Latency of two spinning threads, all spinning threads, and all sleeping
     * threads.  `two` is 0 before the first measurement. */
    double two, all, cold;
    double least;       /* minimum alone_ns of a two-thread job */
    double fixed, each; /* latency of n spinning threads: fixed + each * n */
};

/* `ns` is the time in ns that recent jobs lost because sleeping threads were
 * not woken.  `at` is the expected end time in ns of the last of these jobs. */
struct team_credit {
    double ns, at;
};

/* Returns the number of threads that a latency measurement waits for: three
 * quarters of `threads`.  Other processes can delay the last threads by a
 * scheduler time slice, but a job does not wait for them either. */
uint32_t team_counted(uint32_t threads);

/* Updates `known` with new latencies of 2 spinning threads (`two`), `threads`
 * spinning threads (`all`) and `threads` sleeping threads (`cold`).  Keeps the
 * minimum of all measurements, because noise can only increase a latency. */
void team_measured(struct team_costs *known, double two, double all,
                   uint32_t threads, double cold);

/* Returns the number of threads, at most `limit`, for a job that takes alone_ns
 * on one thread.  `awake` is the number of spinning threads, including the
 * caller.  Includes sleeping threads if they save more than their wake-up
 * latency in this job, or in the series of jobs that *credit describes.  A
 * series ends if no job follows within spin_ns, because threads then fall
 * asleep.  Updates *credit. */
uint32_t team_size_choose(const struct team_costs *costs,
                          struct team_credit *credit, double alone_ns,
                          uint32_t limit, uint32_t awake, double now_ns,
                          double spin_ns);

/* Returns the new estimate of the nanoseconds per unit of work after a job took
 * `seen` nanoseconds per unit.  `known` is the old estimate, or 0.  The
 * estimate falls at once and rises slowly, because page faults and preemption
 * can only make a job slower. */
float team_learn(float known, float seen);

#endif
