/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of a workspace.  A job of the thread pool has one slot for each thread;
 * a thread takes any free one while it runs tasks.  Callable from any thread.
 */
#ifndef TANDEM_CPU_THREADS_SLOTS_H
#define TANDEM_CPU_THREADS_SLOTS_H

#include <stdatomic.h>
#include <stdint.h>

#define CACHE_LINE_FLOATS 16
/* Maximum number of slots: the maximum number of threads of a pool. */
#define MAX_SLOTS 256

/* Returns the number of floats, rounded up to whole cache lines. */
static inline int64_t round_to_lines(int64_t floats)
{
    return (floats + CACHE_LINE_FLOATS - 1) / CACHE_LINE_FLOATS *
           CACHE_LINE_FLOATS;
}

/* Takes a slot and returns its number.  taken[i] is 1 if slot i is in use. */
static inline int64_t slot_take(atomic_uchar *taken, int64_t slots)
{
    int64_t slot = 0;
    while (atomic_exchange(&taken[slot], 1) != 0)
        slot = slot + 1 < slots ? slot + 1 : 0;
    return slot;
}

static inline void slot_return(atomic_uchar *taken, int64_t slot)
{
    atomic_store(&taken[slot], 0);
}

#endif
