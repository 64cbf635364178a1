/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that compiles in the background, one a device, started at the
 * first prepare.
 */
#include "common/shelter.h"
#include "opencl/device.h"
#include "opencl/gemm.h"
#include "opencl/program.h"

/* Compilers recurse deeply. */
#define STACK_BYTES ((size_t)8 << 20)

/* The next job that nobody else has begun; NULL when it is time to stop. */
static struct variant *job_take(struct programs *programs)
{
    struct variant *job = NULL;
    pthread_mutex_lock(&programs->mutex);
    while (!programs->stopping && job == NULL) {
        job = programs->first_job;
        if (job == NULL) {
            pthread_cond_wait(&programs->changed, &programs->mutex);
            continue;
        }
        programs->first_job = job->next_job;
        if (programs->first_job == NULL)
            programs->last_job = NULL;
        job->listed = false;
        if (job->state != BUILD_QUEUED)
            job = NULL; /* a launch was quicker */
        else
            job->state = BUILD_RUNNING;
    }
    if (programs->stopping)
        job = NULL;
    pthread_mutex_unlock(&programs->mutex);
    return job;
}

static void *compile(void *argument)
{
    struct tandem_device *device = argument;
    struct programs *programs = &device->programs;
    struct variant *job;
    while ((job = job_take(programs)) != NULL) {
        bool gemm = job->key == GEMM_KEY || job->key == GEMM_BATCHED_KEY;
        enum tandem_status status =
            gemm ? gemm_warm(device, job->key == GEMM_BATCHED_KEY)
                 : variant_build(device, job, true);
        variant_settle(programs, job, status);
    }
    return NULL;
}

/* Called with the mutex held. */
static void thread_start(struct tandem_device *device)
{
    struct programs *programs = &device->programs;
    programs->thread_started =
        shelter_thread(&programs->thread, "tandem-compile", STACK_BYTES,
                       compile, device);
}

/* Called with the mutex held. */
static void job_add(struct programs *programs, struct variant *variant)
{
    variant->listed = true;
    variant->next_job = NULL;
    if (programs->last_job != NULL)
        programs->last_job->next_job = variant;
    else
        programs->first_job = variant;
    programs->last_job = variant;
}

void compile_queue(struct tandem_device *device, struct variant *variant)
{
    struct programs *programs = &device->programs;
    pthread_mutex_lock(&programs->mutex);
    if (variant_open(variant) && !programs->stopping) {
        if (!programs->thread_started)
            thread_start(device);
        /* Without a thread, launch compiles. */
        if (programs->thread_started) {
            variant->state = BUILD_QUEUED;
            if (!variant->listed)
                job_add(programs, variant);
            pthread_cond_broadcast(&programs->changed);
        }
    }
    pthread_mutex_unlock(&programs->mutex);
}

void compile_stop(struct programs *programs)
{
    pthread_mutex_lock(&programs->mutex);
    programs->stopping = true;
    pthread_cond_broadcast(&programs->changed);
    bool started = programs->thread_started;
    pthread_mutex_unlock(&programs->mutex);
    if (started)
        pthread_join(programs->thread, NULL);
}
