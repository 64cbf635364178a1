/* SPDX-License-Identifier: Apache-2.0 */
/* The processor time that control groups leave to this process.  Any thread. */
#ifndef TANDEM_CPU_QUOTA_H
#define TANDEM_CPU_QUOTA_H

#include <stdint.h>

/* The smallest quota of the process's control groups (version 2: cpu.max,
 * version 1: cpu.cfs_quota_us), in processors, rounded up; limit where none is
 * smaller.  root: what stands before "/proc" and "/sys", "" but for tests. */
uint32_t quota_processors(const char *root, uint32_t limit);

#endif
