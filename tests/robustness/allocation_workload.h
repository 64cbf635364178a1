/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses all of libtandem, the CPU plugin and the simulated GPU
 * and checks every result. It treats a failed allocation as a caller should: a
 * call that returns TANDEM_OUT_OF_MEMORY changed nothing and may be repeated.
 *
 * Call it from one thread.
 */
#ifndef TANDEM_TESTS_MEMORY_WORKLOAD_H
#define TANDEM_TESTS_MEMORY_WORKLOAD_H

struct workload_paths {
    /* Directory that contains tandem-cpu.so and tandem-simulated.so. */
    const char *plugins;
    const char *profiles; /* An existing directory with write permission. */
};

/*
 * Runs the workload, from creating a context to destroying it. The process
 * ends with a message and status 1 if a call fails without a failed
 * allocation, fails with a status other than TANDEM_OUT_OF_MEMORY, fails again
 * when memory is available, or gives a wrong result. If memory remains
 * unavailable, the workload stops and frees what it has.
 */
void workload_run(const struct workload_paths *paths);

#endif
