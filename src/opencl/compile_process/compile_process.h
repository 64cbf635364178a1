/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process of the program tandem-compile.  Needs Linux 5.4, since a pidfd
 * stands for the process: a host that waits for any child may take its status,
 * and its number may then belong to another process.  One thread at a time uses
 * a process, except for compile_process_kill().
 */
#ifndef TANDEM_OPENCL_COMPILE_PROCESS_COMPILE_PROCESS_H
#define TANDEM_OPENCL_COMPILE_PROCESS_COMPILE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "opencl/compile_process/compile_message.h"

struct tandem_device;

struct compile_process {
    pid_t pid; /* 0 if there is no process */
    int pidfd;
    int socket;
};

/* Starts a process that compiles for the hardware of `device`.  Returns false
 * and logs the cause at the level DEBUG if that is not possible. */
bool compile_process_start(struct compile_process *process,
                           struct tandem_device *device);
/* Waits until the process has opened its device, for at most 30 s.  Returns
 * false and logs the cause at the level DEBUG if it does not succeed, or if it
 * uses another device or driver. */
bool compile_process_await(const struct compile_process *process,
                           struct tandem_device *device);
/* Builds a program from the source or binary `text` and returns its binary,
 * which the caller frees.  Blocks until the blocking timeout.  Returns NULL if
 * the build fails.  Sets *out_lost if the process cannot be used again. */
unsigned char *compile_process_build(const struct compile_process *process,
                                     struct tandem_device *device,
                                     enum compile_input input,
                                     const char *options, const void *text,
                                     size_t bytes, size_t *out_bytes,
                                     bool *out_lost);
/* Kills the process.  Does not wait for its end. */
void compile_process_kill(const struct compile_process *process);
/* Waits for the end of a killed process, for at most limit_ms, and closes what
 * belongs to it.  Returns false if it has not ended. */
bool compile_process_reap(struct compile_process *process, int limit_ms);

#endif
