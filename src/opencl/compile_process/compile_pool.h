/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compile processes of a device.  They are started when several programs
 * must be compiled at the same time, and are ended when they have been idle for
 * IDLE_LIMIT_NS.  Thread-safe.
 */
#ifndef TANDEM_OPENCL_COMPILE_PROCESS_COMPILE_POOL_H
#define TANDEM_OPENCL_COMPILE_PROCESS_COMPILE_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "opencl/compile_process/compile_process.h"

#define MAX_COMPILE_PROCESSES 8u

struct tandem_device;

struct compile_pool_entry {
    struct compile_process process;
    bool is_used; /* a thread compiles with it, starts it or ends it */
    uint64_t idle_since_ns;
};

struct compile_pool {
    pthread_mutex_t mutex;
    uint32_t limit;   /* maximum number of processes */
    uint32_t local;   /* builds that run in this process */
    uint32_t running; /* processes that can compile */
    bool has_failed;  /* a process could not be started; no retry */
    struct compile_pool_entry entries[MAX_COMPILE_PROCESSES];
};

/* Sets the limit, or the device's default if `limit` is
 * COMPILE_PROCESSES_DEFAULT. */
#define COMPILE_PROCESSES_DEFAULT UINT64_MAX
void compile_pool_start(struct tandem_device *device, uint64_t limit);
void compile_pool_finish(struct tandem_device *device);

/* Decides where the calling thread builds a program.  Returns a process, or
 * NULL if this process must build it.  Can start a process, which takes 0.3 to
 * 1 s.  The caller calls compile_pool_leave() after the build. */
struct compile_pool_entry *compile_pool_enter(struct tandem_device *device);
/* `entry` is the result of compile_pool_enter(), and may be NULL. */
void compile_pool_leave(struct tandem_device *device,
                        struct compile_pool_entry *entry);
/* Ends the processes that are idle for long enough.  Returns true if others
 * are idle, so that the function must be called again later. */
bool compile_pool_trim(struct tandem_device *device);

#endif
