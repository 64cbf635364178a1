/* SPDX-License-Identifier: Apache-2.0 */
/* Number of CPUs that this process may use. May be called from any thread. */
#ifndef TANDEM_COMMON_CPU_COUNT_H
#define TANDEM_COMMON_CPU_COUNT_H

#include <stdint.h>

/* Returns the smallest CPU quota of the process's control groups (version 2:
 * cpu.max, version 1: cpu.cfs_quota_us) in CPUs, rounded up. Returns `limit` if
 * the quota is larger. Tests set `root`, the directory that contains "proc" and
 * "sys". */
uint32_t quota_processors(const char *root, uint32_t limit);

/* Returns the number of CPUs in the calling thread's affinity mask, or the
 * control groups' CPU quota if that is smaller. The result is at least 1. */
uint32_t cpu_count_available(void);

#endif
