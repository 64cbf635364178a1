/* SPDX-License-Identifier: Apache-2.0 */
/* Where the calling thread may run.  Any thread; a microsecond, or the few of
 * a move. */
#ifndef TANDEM_CPU_THREADS_AFFINITY_H
#define TANDEM_CPU_THREADS_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct affinity {
    cpu_set_t found, narrow;
};

/* Keeps the thread off the count processors, until affinity_back: it leaves
 * one of these at once, and is woken on none.  Of count numbers those that are
 * no processor's are passed over.  False where it may run on no other, or the
 * system does not let it; then nothing has changed. */
bool affinity_avoid(struct affinity *out, const int *processors,
                    uint32_t count);

/* The thread may run where it might before.  An affinity that it was given
 * meanwhile stays. */
void affinity_back(const struct affinity *affinity);

#endif
