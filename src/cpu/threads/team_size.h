/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the number of threads for a job.  Compares the job's estimated
 * single-threaded time with the measured wake-up latency of the threads.  The
 * functions touch only their arguments and may be called from any thread.
 */
#ifndef TANDEM_CPU_THREADS_TEAM_SIZE_H
#define TANDEM_CPU_THREADS_TEAM_SIZE_H

#include <stdint.h>

/* Wake-up latencies in nanoseconds: the time until the threads of a job have
 * started it. */
struct team_costs {
    /* Latency of 2 spinning threads, of all spinning threads, and of all
     * threads when they sleep.  `two` is 0 before the first measurement. */
    double two, all, cold;
    double least;       /* shortest job that is worth two threads */
    double fixed, each; /* spinning: latency = fixed + each * threads */
};

/* Time that recent jobs lost because sleeping threads were not woken, and the
 * expected end of the last of these jobs.  Both in nanoseconds. */
struct team_credit {
    double ns, at;
};

/* Returns how many of `threads` threads a latency measurement waits for: three
 * quarters.  If other processes use a processor, the last threads can be late
 * by a scheduler time slice, but no job waits for them. */
uint32_t team_counted(uint32_t threads);

/* Updates `known` with new latencies of 2 spinning threads, of `threads`
 * spinning threads and of `threads` sleeping ones.  Keeps the minimum of each
 * latency over all measurements, because noise can only lengthen it. */
void team_measured(struct team_costs *known, double two, double all,
                   uint32_t threads, double cold);

/* Returns the number of threads, at most limit, for a job that takes alone_ns
 * on one thread.  `awake` threads are spinning, the caller included; now_ns is
 * the current time.  Wakes sleeping threads if this job repays their wake-up
 * latency, or if the recent jobs together would have repaid it: those that
 * follow each other within spin_ns, so that awake threads would not have fallen
 * asleep in between.  Updates *credit. */
uint32_t team_size_choose(const struct team_costs *costs,
                          struct team_credit *credit, double alone_ns,
                          uint32_t limit, uint32_t awake, double now_ns,
                          double spin_ns);

/* Returns the new estimate of the nanoseconds per unit of work after a job
 * took `seen` per unit; known is the old estimate, 0 if there is none.  The
 * estimate falls at once and rises slowly, because page faults and preemption
 * can only make a job slower. */
float team_learn(float known, float seen);

#endif
