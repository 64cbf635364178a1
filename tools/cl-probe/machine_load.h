/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects that other programs disturb measurements.  Reads /proc; if that is
 * not possible, the machine counts as idle.
 */
#ifndef CL_PROBE_MACHINE_LOAD_H
#define CL_PROBE_MACHINE_LOAD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* The time that the threads of this process ran, and that they waited for a CPU
 * while they were ready to run. */
struct cpu_delay {
    double run_ns, wait_ns;
};

struct cpu_delay cpu_delay_now(void);

/* Sets the members "spread", "cpu_wait" and "busy" of the result.  The spread
 * is the median of `spreads`, which the function sorts.  cpu_wait is the
 * fraction of the time since `start` in which threads of this process waited
 * for a CPU.  The machine was busy if one of them is too large. */
void machine_load_note(const struct cpu_delay *start, double *spreads,
                       size_t count, json_t *result);

/* [blocks] Returns true as soon as other programs use less than a quarter of
 * the CPUs on which this process may run, and false after limit_s seconds.  The
 * process must be idle. */
bool machine_wait_idle(unsigned limit_s);

#endif
