/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that build.  No compiler can be stopped, so one that does not
 * come to an end keeps its thread, and what it builds is given up: launches of
 * it fail, others go on in another thread, and a device that is closed
 * meanwhile is left to that thread, should it ever return.
 */
#include <errno.h>
#include <time.h>

#include "common/thread_state_guard.h"
#include "opencl/device/device.h"
#include "opencl/device_lifecycle.h"
#include "opencl/gemm/clblast.h"
#include "opencl/program/kernel_variants.h"

/* Compilers recurse deeply. */
#define STACK_BYTES ((size_t)8 << 20)

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool overdue(const struct tandem_device *device, uint64_t since_ns)
{
    return since_ns != 0 && device->blocking_timeout_ns != 0 &&
           now_ns() - since_ns >= device->blocking_timeout_ns;
}

/* ---- jobs; the mutex is held ---- */

/* The next job that nobody else has begun. */
static struct variant *job_pop(struct programs *programs)
{
    struct variant *job;
    while ((job = programs->first_job) != NULL) {
        programs->first_job = job->next_job;
        if (programs->first_job == NULL)
            programs->last_job = NULL;
        job->listed = false;
        if (job->state == BUILD_QUEUED)
            return job;
    }
    return NULL;
}

/* A launch waits for what is urgent. */
static void job_add(struct programs *programs, struct variant *variant,
                    bool urgent)
{
    variant->state = BUILD_QUEUED;
    variant->since_ns = 0;
    if (variant->listed)
        return;
    variant->listed = true;
    variant->next_job = urgent ? programs->first_job : NULL;
    if (urgent)
        programs->first_job = variant;
    else if (programs->last_job != NULL)
        programs->last_job->next_job = variant;
    else
        programs->first_job = variant;
    if (variant->next_job == NULL)
        programs->last_job = variant;
}

void build_mark_running(struct variant *variant, uint64_t since_ns)
{
    variant->state = BUILD_RUNNING;
    variant->since_ns = since_ns;
}

/* ---- workers ---- */

/* The next job; NULL when it is time to stop. */
static struct variant *job_take(struct programs *programs,
                                struct worker *worker)
{
    struct variant *job = NULL;
    pthread_mutex_lock(&programs->mutex);
    worker->since_ns = 0;
    while (!programs->stopping && (job = job_pop(programs)) == NULL)
        pthread_cond_wait(&programs->changed, &programs->mutex);
    if (job != NULL) {
        worker->since_ns = now_ns();
        build_mark_running(job, worker->since_ns);
    }
    pthread_mutex_unlock(&programs->mutex);
    return job;
}

static struct worker *build_thread_register(struct programs *programs)
{
    struct worker *worker = programs->workers;
    pthread_mutex_lock(&programs->mutex);
    while (worker->used)
        worker++;
    worker->used = true;
    pthread_mutex_unlock(&programs->mutex);
    return worker;
}

static void *compile(void *argument)
{
    struct tandem_device *device = argument;
    struct programs *programs = &device->programs;
    struct worker *worker = build_thread_register(programs);
    struct variant *job;
    while ((job = job_take(programs, worker)) != NULL) {
        bool gemm = job->key == CLBLAST_KEY || job->key == CLBLAST_BATCHED_KEY;
        enum tandem_status status =
            gemm ? clblast_warm(device, job->key == CLBLAST_BATCHED_KEY)
                 : kernel_variant_build(device, job, true);
        kernel_variant_set_result(programs, job, status);
    }
    pthread_mutex_lock(&programs->mutex);
    worker->used = false;
    bool last = --programs->worker_count == 0 && programs->orphaned;
    pthread_cond_broadcast(&programs->changed);
    pthread_mutex_unlock(&programs->mutex);
    if (last)
        device_finish(device);
    return NULL;
}

/* Whether a worker will come to what is queued; the mutex is held.  urgent: it
 * has nothing else to do. */
static bool build_thread_is_available(struct tandem_device *device, bool urgent)
{
    const struct programs *programs = &device->programs;
    uint32_t idle = programs->worker_count, late = 0;
    for (uint32_t i = 0; i < MAX_BUILD_THREADS; i++)
        if (programs->workers[i].used && programs->workers[i].since_ns != 0) {
            idle--;
            late += overdue(device, programs->workers[i].since_ns);
        }
    return urgent ? idle != 0 : programs->worker_count > late;
}

/* Sees to it that somebody builds; false where there is no thread to be had.
 * The mutex is held. */
static bool build_thread_ensure(struct tandem_device *device, bool urgent)
{
    struct programs *programs = &device->programs;
    pthread_t thread;
    if (build_thread_is_available(device, urgent))
        return true;
    if (programs->worker_count < MAX_BUILD_THREADS &&
        guarded_thread_start(&thread, "tandem-compile", STACK_BYTES, compile,
                       device)) {
        pthread_detach(thread);
        programs->worker_count++;
    }
    return build_thread_is_available(device, false);
}

/* ---- for prepare, launch and close ---- */

void build_enqueue(struct tandem_device *device, struct variant *variant)
{
    struct programs *programs = &device->programs;
    pthread_mutex_lock(&programs->mutex);
    /* Without a thread, launch compiles. */
    if (kernel_variant_can_build(variant) && !programs->stopping &&
        build_thread_ensure(device, false)) {
        job_add(programs, variant, false);
        pthread_cond_broadcast(&programs->changed);
    }
    pthread_mutex_unlock(&programs->mutex);
}

/* Until something changes, or since_ns is overdue; the mutex is held. */
static void wait_change(struct tandem_device *device, uint64_t since_ns)
{
    struct programs *programs = &device->programs;
    if (since_ns == 0 || device->blocking_timeout_ns == 0) {
        pthread_cond_wait(&programs->changed, &programs->mutex);
        return;
    }
    uint64_t until = since_ns + device->blocking_timeout_ns;
    struct timespec deadline = {(time_t)(until / 1000000000u),
                                (long)(until % 1000000000u)};
    pthread_cond_timedwait(&programs->changed, &programs->mutex, &deadline);
}

enum tandem_status build_pending_status(struct tandem_device *device,
                                        const struct variant *variant)
{
    if (variant->state == BUILD_RUNNING && overdue(device, variant->since_ns))
        return last_error_set(
            TANDEM_FAILED,
            "the driver's compiler is still at work on the operator after "
            "%llu ms and may never end: run it on another device, or open "
            "this one with a larger blocking_timeout_ms",
            (unsigned long long)(device->blocking_timeout_ns / 1000000u));
    /* What waits behind a build that does not end is for another thread. */
    if (variant->state == BUILD_QUEUED)
        build_thread_ensure(device, false);
    return last_error_set(TANDEM_NOT_READY, "the operator is not compiled yet");
}

bool build_wait(struct tandem_device *device, struct variant *variant,
                enum tandem_status *out_status)
{
    struct programs *programs = &device->programs;
    bool begun = variant->state == BUILD_RUNNING;
    if (!begun) {
        if (!kernel_variant_can_build(variant) &&
            variant->state != BUILD_QUEUED) {
            *out_status = build_result(variant);
            return true;
        }
        if (!build_thread_ensure(device, true)) {
            if (programs->worker_count == 0)
                return false;
            *out_status =
                last_error_set(TANDEM_FAILED,
                               "the driver's compiler does not come to an end "
                               "in any of %u threads",
                               programs->worker_count);
            return true;
        }
        job_add(programs, variant, true);
        pthread_cond_broadcast(&programs->changed);
    }
    while (
        (variant->state == BUILD_QUEUED || variant->state == BUILD_RUNNING) &&
        !overdue(device, variant->since_ns)) {
        wait_change(device, variant->state == BUILD_RUNNING ? variant->since_ns
                                                            : now_ns());
        /* The worker that was idle may have taken another's job. */
        if (variant->state == BUILD_QUEUED)
            build_thread_ensure(device, true);
    }
    *out_status = variant->state == BUILD_RUNNING
                      ? build_pending_status(device, variant)
                      : build_result(variant);
    return true;
}

void build_threads_stop(struct tandem_device *device)
{
    struct programs *programs = &device->programs;
    pthread_mutex_lock(&programs->mutex);
    programs->stopping = true;
    pthread_cond_broadcast(&programs->changed);
    for (;;) {
        uint64_t first = 0;
        uint32_t late = 0;
        for (uint32_t i = 0; i < MAX_BUILD_THREADS; i++) {
            uint64_t since = programs->workers[i].since_ns;
            if (!programs->workers[i].used || since == 0)
                continue;
            if (overdue(device, since))
                late++;
            else if (first == 0 || since < first)
                first = since;
        }
        if (programs->worker_count == late)
            break;
        wait_change(device, first);
    }
    pthread_mutex_unlock(&programs->mutex);
}
