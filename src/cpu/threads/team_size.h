/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many threads a job is worth: its time alone, as learnt from jobs of its
 * kind, against the measured time that threads take to come together.  Pure
 * functions, but for the learning, which any thread may do.
 */
#ifndef TANDEM_CPU_THREADS_TEAM_SIZE_H
#define TANDEM_CPU_THREADS_TEAM_SIZE_H

#include <stdint.h>

/* Nanoseconds in which threads come together. */
struct team_costs {
    double two, all, cold; /* of so many that look out, and of all asleep,
                              less those that do not count; two is 0: not
                              measured */
    double least;       /* of the smallest job that is worth it */
    double fixed, each; /* of threads that look out, and of each more */
};

/* What was saved by not waking threads, or lost, of late. */
struct team_credit {
    double ns, at;
};

/* Of so many threads those whose coming is waited for when it is measured.  The
 * last ones do not count: where other work has a processor, one of them is late
 * by a time slice, for which no job waits. */
uint32_t team_counted(uint32_t threads);

/* Takes the times in which 2 of threads came together, those that count, and
 * those when all were asleep.  Of each time the least counts that was ever
 * taken: threads may be late for many reasons, and early for none. */
void team_measured(struct team_costs *known, double two, double all,
                   uint32_t threads, double cold);

/* The threads for a job of alone_ns, of at most limit, where awake of them
 * look out; now_ns: the time.  Threads that sleep are woken for a job that
 * makes up for it, or for the last of a row of jobs that together would have:
 * those between which none of the threads would have fallen asleep. */
uint32_t team_size_choose(const struct team_costs *costs,
                     struct team_credit *credit, double alone_ns,
                     uint32_t limit, uint32_t awake, double now_ns,
                     double spin_ns);

/* Nanoseconds of a unit of work, after one that took seen: falls at once to a
 * lower one and rises slowly, as pages touched for the first time and
 * processors taken away make work slower, and nothing makes it faster. */
float team_learn(float known, float seen);

#endif
