/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts this program again as a child process, which opens a device and
 * computes a first result.  The suite cold-start times it.  Single-threaded.
 */
#ifndef TANDEM_BENCH_COLD_START_PROCESS_H
#define TANDEM_BENCH_COLD_START_PROCESS_H

#include "bench.h"

/* argv[1] of such a child process. */
#define COLD_START_OPTION "--cold-start"

/* Points in time, in ns since the parent started the child. */
enum cold_start_point {
    POINT_OPENED, /* the device and a stream are open */
    POINT_RESULT, /* the host has the result of an addition */
    POINT_GEMM,   /* the host has the result of a small GEMM */
    COLD_START_POINTS
};

/* Starts a child that uses `who`: "tandem", "chosen" (Tandem with the device
 * that the library chooses) or "raw" (OpenCL), and stores its points.  All
 * caches of the child are in the directory `caches`.  Returns true, or false
 * with a message in `error`. */
bool cold_start_process_spawn(const struct bench *bench, const char *who,
                              const char *caches,
                              double out_ns[COLD_START_POINTS],
                              char error[256]);

/* Main function of the child.  The arguments are COLD_START_OPTION WHO START_NS
 * CACHES DEVICE PLATFORM NAME EQUALS [KEY VALUE]...  Prints the points on one
 * line and returns the exit status. */
int cold_start_main(int argc, char **argv);

#endif
