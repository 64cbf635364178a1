/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts this program again as a child process, which opens a device and
 * computes a first result.  The suite cold-start times it.  Single-threaded.
 */
#ifndef TANDEM_BENCH_COLD_START_PROCESS_H
#define TANDEM_BENCH_COLD_START_PROCESS_H

#include "open_options.h"

/* argv[1] of such a child process. */
#define FIRST_OPTION "--first"

/* Points in time, in ns since the parent started the child. */
enum first_point {
    FIRST_OPENED,  /* the device and a stream are open */
    FIRST_RESULT,  /* the host has the result of an addition */
    FIRST_PRODUCT, /* the host has the result of a small GEMM */
    FIRST_POINTS
};

/* The device by its names in Tandem and in OpenCL; equals:
 * opencl_device_match.h. */
struct first_device {
    const char *text, *platform, *name;
    uint32_t equals;
};

/* Starts a child that uses `who`: "tandem", "chosen" (Tandem with the device
 * that the library chooses) or "raw" (OpenCL), and stores its points.  Returns
 * 0, or another value with a message in `error`. */
int cold_start_process_spawn(const char *who, const struct first_device *device,
                             const struct open_options *open_options,
                             double out_ns[FIRST_POINTS], char error[256]);

/* Main function of the child.  The arguments are FIRST_OPTION WHO START_NS
 * DEVICE PLATFORM NAME EQUALS [KEY VALUE]...  Prints the points on one line and
 * returns the exit status. */
int first_main(int argc, char **argv);

#endif
