/* SPDX-License-Identifier: Apache-2.0 */
/* The processors that this process may use.  Any thread. */
#ifndef TANDEM_COMMON_CPU_COUNT_H
#define TANDEM_COMMON_CPU_COUNT_H

#include <stdint.h>

/* The smallest quota of the process's control groups (version 2: cpu.max,
 * version 1: cpu.cfs_quota_us), in processors, rounded up; limit where none is
 * smaller.  root: what stands before "/proc" and "/sys", "" but for tests. */
uint32_t quota_processors(const char *root, uint32_t limit);

/* Those of the calling thread's affinity, at most as many as the quota gives;
 * 1 or more. */
uint32_t cpu_count_available(void);

#endif
