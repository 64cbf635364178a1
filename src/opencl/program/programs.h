/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a device's programs, kernel variants and builds. programs.mutex
 * guards them.  kernel_variants.h has the functions. */
#ifndef TANDEM_OPENCL_PROGRAM_PROGRAMS_H
#define TANDEM_OPENCL_PROGRAM_PROGRAMS_H

#include <pthread.h>
#include <tandem/backend.h>

#include "opencl/device/cl_api.h"
#include "opencl/plan/kernel_info.h"

struct program;

#define VARIANT_BUCKETS 256u

enum build_state {
    BUILD_NONE = 0,
    BUILD_QUEUED = 1,
    BUILD_RUNNING = 2,
    BUILD_DONE = 3,
    BUILD_FAILED = 4
};

/* A kernel with its compiler options, identified by `key`.  One variant stands
 * for all kernels of CLBlast; see clblast_key(). */
struct kernel_variant {
    struct kernel_key key;
    enum build_state state;
    enum tandem_status status; /* error if the build failed */
    uint32_t failure_count;    /* failed builds, except for lack of memory */
    char message[256];
    cl_program program; /* program owned by the program table */
    struct kernel_variant *next_in_bucket, *next_job;
    /* Start time of the build; 0 if a launching thread runs the build. */
    uint64_t start_ns;
    bool in_job_list;
    /* The launch that a build thread tries after the build, or NULL. */
    struct trial_launch *trial;
};

/* Maximum number of build threads.  A thread is added if a launch waits while
 * all threads are busy, if the builds of all threads timed out, or if compile
 * processes can build the jobs that wait. */
#define MAX_BUILD_THREADS 8u
struct build_thread {
    struct tandem_device *device;
    bool is_running;
    uint64_t start_ns; /* start time of the build; 0 if the thread is idle */
};

/* Functions of other folders that the build threads call. */
struct program_callbacks {
    /* Compiles CLBlast's kernels.  Blocks. */
    enum tandem_status (*clblast_compile)(struct tandem_device *device);
    void (*device_free)(struct tandem_device *device);
};

struct programs {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* signals a changed build state or job list */
    const struct program_callbacks *callbacks;
    struct kernel_variant *buckets[VARIANT_BUCKETS];
    struct program *first_program;
    struct kernel_variant *first_job, *last_job;
    uint32_t job_count; /* length of the list of jobs */
    struct build_thread threads[MAX_BUILD_THREADS];
    uint32_t thread_count;
    bool is_stopping;
    bool last_thread_frees_device; /* set by device_close */
    _Atomic uint32_t group_log2;   /* log2 of work-group size for new plans */
    uint64_t built_count;
};

#endif
