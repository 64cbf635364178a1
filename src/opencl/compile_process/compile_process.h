/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, uses and ends one process of the program tandem-compile.  One thread
 * at a time uses a process.  The functions block. */
#ifndef TANDEM_OPENCL_COMPILE_PROCESS_COMPILE_PROCESS_H
#define TANDEM_OPENCL_COMPILE_PROCESS_COMPILE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "opencl/compile_process/compile_message.h"

struct tandem_device;

struct compile_process {
    pid_t pid; /* 0 if no process is running */
    int socket;
};

/* Starts a process that compiles for the hardware of `device`.  Returns false
 * and logs the cause at the level DEBUG if that is not possible. */
bool compile_process_start(struct compile_process *process,
                           struct tandem_device *device);
/* Builds a program from the source or binary `text` and returns its binary,
 * which the caller frees.  Returns NULL if the build fails, or if the process
 * ends or exceeds the blocking timeout; it then does not run any longer. */
unsigned char *compile_process_build(struct compile_process *process,
                                     struct tandem_device *device,
                                     enum compile_input input,
                                     const char *options, const void *text,
                                     size_t bytes, size_t *out_bytes);
/* Ends the process, if one is running, and waits for its end. */
void compile_process_stop(struct compile_process *process);

#endif
