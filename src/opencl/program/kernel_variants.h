/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs and kernel variants of a device, each built once, by threads of our
 * own: a launch waits for its build, but not for ever, as a compiler may never
 * come to an end.  Any thread; one mutex a device, never held during a build.
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

/* One kernel of one program, or (key CLBLAST_KEY) CLBlast's. */
struct variant {
    uint64_t key;
    enum build_state state;
    enum tandem_status status; /* of BUILD_FAILED */
    uint32_t failures;         /* not for lack of memory */
    char message[256];
    cl_program program;    /* the table's reference */
    struct variant *chain; /* of its bucket */
    struct variant *next_job;
    uint64_t since_ns; /* of BUILD_RUNNING, in a thread of ours */
    bool listed;       /* among the jobs */
};

/* CLBlast's kernels, plain and strided-batched. */
#define CLBLAST_KEY ((uint64_t)1 << 60)
#define CLBLAST_BATCHED_KEY ((uint64_t)1 << 61)

/* Threads that build.  One serves, until it is busy and a launch waits, or its
 * build is overdue. */
#define MAX_BUILD_THREADS 8u
struct worker {
    bool used;
    uint64_t since_ns; /* its build began; 0: it has none */
};

struct programs {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a state, or a job */
    struct variant *buckets[VARIANT_BUCKETS];
    struct program *list;
    struct variant *first_job, *last_job;
    struct worker workers[MAX_BUILD_THREADS];
    uint32_t worker_count;
    bool stopping;
    bool orphaned; /* the device is closed: the last worker ends it */
    _Atomic uint32_t group_log2; /* of the work-groups to plan with */
    uint64_t built;
};

void programs_start(struct tandem_device *device);
/* Releases all; no worker is left. */
void programs_finish(struct tandem_device *device);
/* Whether a kernel wanted smaller groups than the device allows. */
bool programs_need_smaller_groups(const struct tandem_device *device);
uint64_t programs_count(struct programs *programs);

/* A new kernel of the step's variant, built here or waited for.  NOT_READY:
 * the kernel needs smaller groups than planned: plan anew. */
enum tandem_status kernel_variant_create_kernel(struct tandem_device *device,
                                                const struct kernel_step *step,
                                                cl_kernel *out_kernel);
/* Queues a build of the key's variant, or of CLBlast's kernels, unless it is
 * done or under way. */
enum tandem_status kernel_variant_prepare(struct tandem_device *device,
                                          uint64_t key);
/* OK, NOT_READY, or the status of a failed build. */
enum tandem_status kernel_variant_query(struct tandem_device *device,
                                        uint64_t key);
/* A product has run: CLBlast's kernels are there. */
void kernel_variant_mark_ready(struct tandem_device *device, uint64_t key);

/* ---- program_build.c's ---- */

/* Builds the variant's program; with trial, launches it once on its sample
 * (warmup_call.h).  Locks nothing but for the tables. */
enum tandem_status kernel_variant_build(struct tandem_device *device,
                                        struct variant *variant, bool trial);
/* Releases all programs; no worker is left. */
void build_finish(struct programs *programs);
static inline uint32_t log2_floor(uint64_t value)
{
    return value == 0 ? 0 : 63u - (uint32_t)__builtin_clzll(value);
}

/* ---- build_threads.c's ---- */

/* Nobody builds it, and it may be tried; the mutex is held. */
bool kernel_variant_can_build(const struct variant *variant);
void kernel_variant_set_result(struct programs *programs,
                               struct variant *variant,
                               enum tandem_status status);
enum tandem_status build_result(const struct variant *variant);
void build_enqueue(struct tandem_device *device, struct variant *variant);
/* Waits for the variant's build, which is queued if need be; FAILED once it, or
 * all that the threads build, is overdue.  False where there is no
 * thread for it: then the caller builds.  The mutex is held. */
bool build_wait(struct tandem_device *device, struct variant *variant,
                enum tandem_status *out_status);
/* FAILED where the variant's build is overdue, else NOT_READY; the mutex is
 * held. */
enum tandem_status build_pending_status(struct tandem_device *device,
                                        const struct variant *variant);
/* The variant is being built, by a thread of ours since since_ns, or (0) by a
 * caller's; the mutex is held. */
void build_mark_running(struct variant *variant, uint64_t since_ns);
/* Begins no more builds, and waits for those under way but the overdue. */
void build_threads_stop(struct tandem_device *device);

#endif
