/* SPDX-License-Identifier: Apache-2.0 */
/* Removes processors from a thread's affinity mask; see affinity.h. */
#include "config.h"

#include "cpu/threads/affinity.h"

bool affinity_avoid(struct affinity *out, const int *processors, uint32_t count)
{
    /* sched_getaffinity fails if cpu_set_t is too small for this machine. */
    if (sched_getaffinity(0, sizeof out->found, &out->found) != 0)
        return false;
    out->narrow = out->found;
    for (uint32_t i = 0; i < count; i++)
        if (processors[i] >= 0 && processors[i] < CPU_SETSIZE)
            CPU_CLR(processors[i], &out->narrow);
    return CPU_COUNT(&out->narrow) > 0 &&
           sched_setaffinity(0, sizeof out->narrow, &out->narrow) == 0;
}

void affinity_back(const struct affinity *affinity)
{
    cpu_set_t now;
    if (sched_getaffinity(0, sizeof now, &now) == 0 &&
        CPU_EQUAL(&now, &affinity->narrow))
        sched_setaffinity(0, sizeof affinity->found, &affinity->found);
}
