/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compile processes of a device.  They are started when several programs
 * must be compiled at the same time, and are killed when they have been idle
 * for a second.  Thread-safe.
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
    bool is_used;  /* a thread starts the process or compiles with it */
    bool is_ended; /* the process is killed, but has not been waited for */
    uint64_t idle_since_ns;
};

struct compile_pool {
    pthread_mutex_t mutex;
    uint32_t limit;   /* maximum number of processes; not 1 */
    uint32_t local;   /* builds that run in this process */
    uint32_t running; /* processes that have opened their device */
    bool has_failed;  /* a process could not be started; no retry */
    bool is_stopping; /* set by compile_pool_stop() */
    struct compile_pool_entry entries[MAX_COMPILE_PROCESSES];
};

/* Sets the limit to that of the hardware, but at most to `maximum`.  For tests,
 * `forced` replaces the limit unless it is 0. */
void compile_pool_init(struct tandem_device *device, uint64_t maximum,
                       uint64_t forced);
/* Kills all processes, so that the builds that use them fail, and starts no
 * more. */
void compile_pool_stop(struct tandem_device *device);
/* Waits for the ends of all processes, each for at most a second.  No thread
 * may use the pool. */
void compile_pool_free(struct tandem_device *device);

/* Decides where the calling thread builds a program.  Returns a process, or
 * NULL if this process must build it.  Can start a process, which takes 0.3 to
 * 1 s.  The caller calls compile_pool_leave() after the build. */
struct compile_pool_entry *compile_pool_enter(struct tandem_device *device);
/* `entry` is the result of compile_pool_enter(), and may be NULL.  Kills the
 * process if is_lost is set. */
void compile_pool_leave(struct tandem_device *device,
                        struct compile_pool_entry *entry, bool is_lost);
/* Returns true if compile_pool_stop() was called: the caller must not build
 * anything. */
bool compile_pool_is_stopping(struct tandem_device *device);
/* Kills the processes that have been idle for a second.  Returns true if the
 * function must be called again later. */
bool compile_pool_trim(struct tandem_device *device);
/* Kills all idle processes and waits for their ends, so that their device
 * memory is free. */
void compile_pool_end_idle(struct tandem_device *device);

#endif
