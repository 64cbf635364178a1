/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses all of libtandem, the CPU plugin and the simulated GPU,
 * checks every result, and takes a failed allocation as a caller should: a
 * call that says so changed nothing and may be made again.  One thread.
 */
#ifndef TANDEM_TESTS_MEMORY_WORKLOAD_H
#define TANDEM_TESTS_MEMORY_WORKLOAD_H

struct workload_paths {
    const char *plugins;  /* with tandem-cpu.so and tandem-simulated.so */
    const char *profiles; /* a directory that is there and can be written */
};

/* Runs it, from creating a context to destroying it.  A call that fails
 * though no allocation did, fails in any other way than TANDEM_OUT_OF_MEMORY,
 * fails again when memory is back, or gives a wrong result, ends the process
 * with a message and status 1.  Where memory stays out, it gives up and frees
 * what it has. */
void workload_run(const struct workload_paths *paths);

#endif
