/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fresh process has to show: the program itself, started anew to be
 * timed by the suite cold-start.  Single-threaded.
 */
#ifndef TANDEM_BENCH_COLD_START_PROCESS_H
#define TANDEM_BENCH_COLD_START_PROCESS_H

#include "open_options.h"

/* argv[1] that makes the program such a process. */
#define FIRST_OPTION "--first"

/* Points in time, ns since start_ns of the process that started it. */
enum first_point {
    FIRST_OPENED,  /* the device and a stream */
    FIRST_RESULT,  /* an addition's, on the host */
    FIRST_PRODUCT, /* a small matrix product's, on the host */
    FIRST_POINTS
};

/* The device, as each of them finds it; equals: reference.h. */
struct first_device {
    const char *text, *platform, *name;
    uint32_t equals;
};

/* Starts WHO ("tandem", "chosen", "raw") and takes its points.  0, or why
 * not in error. */
int cold_start_process_spawn(const char *who, const struct first_device *device,
                             const struct open_options *open_options,
                             double out_ns[FIRST_POINTS], char error[256]);

/* What the process does: FIRST_OPTION WHO START_NS DEVICE PLATFORM NAME EQUALS
 * [KEY VALUE]...  Prints its points on one line; its exit status. */
int first_main(int argc, char **argv);

#endif
