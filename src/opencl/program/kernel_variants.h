/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs and kernel variants of a device.  Each is built once, by a build
 * thread.  A launch waits for its build until the blocking timeout.  Any
 * thread; a mutex for each device guards the tables and is never held during a
 * build.
 */
#ifndef TANDEM_OPENCL_PROGRAM_KERNEL_VARIANTS_H
#define TANDEM_OPENCL_PROGRAM_KERNEL_VARIANTS_H

#include <pthread.h>
#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

struct kernel_step;
struct program;

#define VARIANT_BUCKETS 256u

enum build_state {
    BUILD_NONE = 0,
    BUILD_QUEUED = 1,
    BUILD_RUNNING = 2,
    BUILD_DONE = 3,
    BUILD_FAILED = 4
};

/* One kernel of one program.  The variants CLBLAST_KEY and CLBLAST_BATCHED_KEY
 * stand for all kernels that CLBlast compiles itself. */
struct kernel_variant {
    uint64_t key;
    enum build_state state;
    enum tandem_status status; /* of the failed build */
    uint32_t failure_count;    /* not for lack of memory */
    char message[256];
    cl_program program; /* owned by the program table */
    struct kernel_variant *next_in_bucket, *next_job;
    uint64_t start_ns; /* of the running build; 0 if a caller's thread builds */
    bool in_job_list;
};

/* CLBlast's kernels for single and for strided batched GEMMs. */
#define CLBLAST_KEY ((uint64_t)1 << 60)
#define CLBLAST_BATCHED_KEY ((uint64_t)1 << 61)

/* Another thread is started only if all others are busy and a launch waits, or
 * if all their builds have timed out. */
#define MAX_BUILD_THREADS 8u
struct build_thread {
    bool is_running;
    uint64_t start_ns; /* of its build; 0 if it is idle */
};

/* Functions that build threads call in folders above this one. */
struct program_callbacks {
    /* Compiles CLBlast's kernels.  Blocks. */
    enum tandem_status (*clblast_compile)(struct tandem_device *device,
                                          bool batched);
    void (*device_free)(struct tandem_device *device);
};

struct programs {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a state, or the job list */
    const struct program_callbacks *callbacks;
    struct kernel_variant *buckets[VARIANT_BUCKETS];
    struct program *first_program;
    struct kernel_variant *first_job, *last_job;
    struct build_thread threads[MAX_BUILD_THREADS];
    uint32_t thread_count;
    bool is_stopping;
    bool last_thread_frees_device; /* the device is closed */
    _Atomic uint32_t group_log2; /* log2 of the work-group size to plan with */
    uint64_t built_count;
};

/* `callbacks` must be static. */
void programs_init(struct tandem_device *device,
                   const struct program_callbacks *callbacks);
/* Releases all programs.  No build thread is left. */
void programs_free(struct tandem_device *device);
/* Returns true if a kernel needed smaller groups than the device allows. */
bool programs_need_smaller_groups(const struct tandem_device *device);
/* Returns the number of variants that were built. */
uint64_t programs_built_count(struct programs *programs);

/* Creates a cl_kernel of the step's variant, which is built first if necessary.
 * Blocks.  Returns NOT_READY if the kernel needs smaller groups than planned;
 * the caller plans again. */
enum tandem_status kernel_variant_create_kernel(struct tandem_device *device,
                                                const struct kernel_step *step,
                                                cl_kernel *out_kernel);
/* Queues a build of the variant, unless it is built or queued. */
enum tandem_status kernel_variant_prepare(struct tandem_device *device,
                                          uint64_t key);
/* Returns TANDEM_OK, NOT_READY, or the status of a failed build. */
enum tandem_status kernel_variant_query(struct tandem_device *device,
                                        uint64_t key);
/* Called after a GEMM by CLBlast, which has compiled the kernels of `key`. */
void kernel_variant_mark_ready(struct tandem_device *device, uint64_t key);

/* ---- program_build.c ---- */

/* Builds the variant's program and tests its kernel.  If `warms_up`, launches
 * the kernel once (warmup_call.h).  The caller does not hold the mutex. */
enum tandem_status kernel_variant_build(struct tandem_device *device,
                                        struct kernel_variant *variant,
                                        bool warms_up);
/* Releases the program table. */
void programs_release_built(struct programs *programs);
static inline uint32_t log2_floor(uint64_t value)
{
    return value == 0 ? 0 : 63u - (uint32_t)__builtin_clzll(value);
}

/* ---- build_threads.c; the caller holds the mutex unless stated ---- */

/* Returns true if nobody builds the variant and it may be built. */
bool kernel_variant_can_build(const struct kernel_variant *variant);
/* The caller does not hold the mutex. */
void kernel_variant_set_result(struct programs *programs,
                               struct kernel_variant *variant,
                               enum tandem_status status);
/* Returns the status of a finished build, or NOT_READY. */
enum tandem_status build_result(const struct kernel_variant *variant);
/* Queues the variant if it can be built.  The caller does not hold the mutex.
 */
void build_enqueue(struct tandem_device *device,
                   struct kernel_variant *variant);
/* Queues the variant if necessary and waits for its build.  *out_status is
 * FAILED if this build, or the builds of all threads, time out.  Returns false
 * if there is no thread and the caller must build. */
bool build_wait(struct tandem_device *device, struct kernel_variant *variant,
                enum tandem_status *out_status);
/* Returns FAILED if the variant's build timed out, otherwise NOT_READY.  May
 * start another build thread. */
enum tandem_status build_pending_status(struct tandem_device *device,
                                        const struct kernel_variant *variant);
/* start_ns is 0 if a caller's thread builds. */
void build_mark_running(struct kernel_variant *variant, uint64_t start_ns);
/* Starts no more builds and waits for the running ones, except for those that
 * timed out.  The caller does not hold the mutex. */
void build_threads_stop(struct tandem_device *device);

#endif
