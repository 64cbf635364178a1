/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the processor affinity of the calling thread.  A call takes about 1
 * us, or a few us if the thread must migrate.  Callable from any thread. */
#ifndef TANDEM_CPU_THREADS_AFFINITY_H
#define TANDEM_CPU_THREADS_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct affinity {
    cpu_set_t found, narrow;
};

/* Removes `count` processors from the calling thread's affinity mask, until
 * affinity_back.  The thread leaves these processors at once and does not wake
 * up on them.  Ignores processor numbers outside 0 to CPU_SETSIZE - 1.  Returns
 * false and changes nothing if no processor would be left or the call fails. */
bool affinity_avoid(struct affinity *out, const int *processors,
                    uint32_t count);

/* Restores the mask that the calling thread had before affinity_avoid, unless
 * other code has changed the mask since then. */
void affinity_back(const struct affinity *affinity);

#endif
