/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that build kernel variants.  A compiler cannot be interrupted.
 * If a build hangs, launches of its variant therefore fail after the blocking
 * timeout, and another thread builds the other variants.  If the host closes
 * the device while a build hangs, the build thread frees the device when the
 * build ends.  Any thread may call these functions. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/thread_state_guard.h"
#include "opencl/device/device.h"
#include "opencl/device/event_poll.h"
#include "opencl/device/quirks.h"
#include "opencl/program/kernel_variants.h"
#include "opencl/program/trial_launch.h"

/* Stack size of a build thread, large because compilers recurse deeply. */
#define STACK_BYTES ((size_t)8 << 20)
/* Time between attempts to end idle compile processes. */
#define TRIM_INTERVAL_NS UINT64_C(1000000000)
/* Maximum number of failed builds of a variant.  Builds that failed because
 * memory was exhausted do not count. */
#define MAX_BUILD_FAILURES 3u

static bool build_timed_out(const struct tandem_device *device,
                            uint64_t start_ns)
{
    return start_ns != 0 && device->blocking_timeout_ns != 0 &&
           monotonic_ns() - start_ns >= device->blocking_timeout_ns;
}

struct kernel_key clblast_key(void)
{
    static const struct kernel_info kernels = {.file = "CLBlast"};
    return (struct kernel_key){.kernel = &kernels};
}

/* ---- build states ---- */

/* Returns true if a build of the variant can start: no build is done, queued or
 * running, and fewer than MAX_BUILD_FAILURES builds have failed. */
static bool can_build(const struct kernel_variant *variant)
{
    return variant->state == BUILD_NONE ||
           (variant->state == BUILD_FAILED &&
            variant->failure_count < MAX_BUILD_FAILURES);
}

/* Records the result of a build.  The caller must not hold programs.mutex. */
static void build_set_result(struct programs *programs,
                             struct kernel_variant *variant,
                             enum tandem_status status)
{
    pthread_mutex_lock(&programs->mutex);
    /* NOT_READY is no failure: the caller plans smaller work-groups instead.
     * OUT_OF_MEMORY can be temporary, so failure_count does not count it. */
    variant->status = status;
    variant->state = status == TANDEM_OK          ? BUILD_DONE
                     : status == TANDEM_NOT_READY ? BUILD_NONE
                                                  : BUILD_FAILED;
    variant->failure_count += status == TANDEM_FAILED;
    if (status == TANDEM_OK)
        programs->built_count++;
    else
        snprintf(variant->message, sizeof(variant->message), "%s",
                 last_error_get());
    pthread_cond_broadcast(&programs->changed);
    pthread_mutex_unlock(&programs->mutex);
}

/* ---- job list; the caller holds programs.mutex ---- */

/* Removes variants from the job list until one of them is still queued, and
 * returns this variant.  Returns NULL if the list has no queued variant. */
static struct kernel_variant *job_pop(struct programs *programs)
{
    struct kernel_variant *job;
    while ((job = programs->first_job) != NULL) {
        programs->first_job = job->next_job;
        if (programs->first_job == NULL)
            programs->last_job = NULL;
        job->in_job_list = false;
        programs->job_count--;
        if (job->state == BUILD_QUEUED)
            return job;
    }
    return NULL;
}

static void job_add(struct programs *programs, struct kernel_variant *variant,
                    bool at_front)
{
    variant->state = BUILD_QUEUED;
    variant->start_ns = 0;
    pthread_cond_broadcast(&programs->changed);
    if (variant->in_job_list)
        return;
    variant->in_job_list = true;
    programs->job_count++;
    if (at_front || programs->first_job == NULL) {
        variant->next_job = programs->first_job;
        programs->first_job = variant;
    } else {
        variant->next_job = NULL;
        programs->last_job->next_job = variant;
    }
    if (variant->next_job == NULL)
        programs->last_job = variant;
}

/* ---- threads ---- */

/* Waits until the job list changes.  At *trim_ns, kills idle compile processes
 * and sets *trim_ns to the time of the next attempt, or to 0 if no process is
 * left.  The caller holds programs.mutex. */
static void wait_for_job(struct tandem_device *device, uint64_t *trim_ns)
{
    struct programs *programs = &device->programs;
    if (*trim_ns == 0) {
        pthread_cond_wait(&programs->changed, &programs->mutex);
        return;
    }
    struct timespec deadline = {(time_t)(*trim_ns / 1000000000u),
                                (long)(*trim_ns % 1000000000u)};
    if (pthread_cond_timedwait(&programs->changed, &programs->mutex,
                               &deadline) == 0 &&
        monotonic_ns() < *trim_ns)
        return;
    pthread_mutex_unlock(&programs->mutex);
    *trim_ns =
        compile_pool_trim(device) ? monotonic_ns() + TRIM_INTERVAL_NS : 0;
    pthread_mutex_lock(&programs->mutex);
}

/* Waits for a queued variant and marks its build as running.  Returns NULL if
 * the thread must stop.  The caller frees the trial. */
static struct kernel_variant *job_wait(struct build_thread *thread,
                                       struct trial_launch **out_trial)
{
    struct tandem_device *device = thread->device;
    struct programs *programs = &device->programs;
    struct kernel_variant *job = NULL;
    uint64_t trim_ns =
        device->compile_pool.limit != 0 ? monotonic_ns() + TRIM_INTERVAL_NS : 0;
    pthread_mutex_lock(&programs->mutex);
    thread->start_ns = 0;
    while (!programs->is_stopping && (job = job_pop(programs)) == NULL)
        wait_for_job(device, &trim_ns);
    if (job != NULL) {
        thread->start_ns = job->start_ns = monotonic_ns();
        job->state = BUILD_RUNNING;
        *out_trial = job->trial;
        job->trial = NULL;
    }
    pthread_mutex_unlock(&programs->mutex);
    return job;
}

static void *build_thread_main(void *argument)
{
    struct build_thread *thread = argument;
    struct tandem_device *device = thread->device;
    struct programs *programs = &device->programs;
    struct kernel_variant *job;
    struct trial_launch *trial = NULL;
    while ((job = job_wait(thread, &trial)) != NULL) {
        enum tandem_status status =
            job->key.kernel->source == NULL
                ? programs->callbacks->clblast_compile(device)
                : kernel_variant_build(device, job, trial);
        free(trial);
        trial = NULL;
        build_set_result(programs, job, status);
    }
    pthread_mutex_lock(&programs->mutex);
    thread->is_running = false;
    bool frees_device =
        --programs->thread_count == 0 && programs->last_thread_frees_device;
    pthread_cond_broadcast(&programs->changed);
    pthread_mutex_unlock(&programs->mutex);
    if (frees_device)
        programs->callbacks->device_free(device);
    return NULL;
}

/* Returns true if some thread is idle or has a build that has not timed out.
 * If must_be_idle is set, returns true only if a thread is idle.  The caller
 * holds programs.mutex. */
static bool build_thread_is_available(struct tandem_device *device,
                                      bool must_be_idle)
{
    const struct programs *programs = &device->programs;
    uint32_t idle = programs->thread_count, timed_out = 0;
    for (uint32_t i = 0; i < MAX_BUILD_THREADS; i++) {
        idle -= programs->threads[i].start_ns != 0;
        timed_out += build_timed_out(device, programs->threads[i].start_ns);
    }
    return must_be_idle ? idle != 0 : programs->thread_count > timed_out;
}

/* Starts a build thread, unless the maximum number of them exists.  The caller
 * holds programs.mutex. */
static void build_thread_start(struct tandem_device *device)
{
    const bool is_single =
        (device->hardware->quirks & QUIRK_COMPILER_RACE) != 0;
    struct programs *programs = &device->programs;
    struct build_thread *thread = programs->threads;
    pthread_t id;
    if (programs->thread_count == (is_single ? 1 : MAX_BUILD_THREADS))
        return;
    while (thread->is_running)
        thread++;
    thread->device = device;
    thread->is_running = guarded_thread_start(
        &id, "tandem-compile", STACK_BYTES, build_thread_main, thread);
    if (thread->is_running) {
        pthread_detach(id);
        programs->thread_count++;
    }
}

/* Starts a build thread if none is available.  Returns false if no thread
 * exists, or if every thread's build has timed out.  The caller holds
 * programs.mutex. */
static bool build_thread_ensure(struct tandem_device *device, bool must_be_idle)
{
    /* More threads than compile processes would not compile faster. */
    uint32_t processes = device->compile_pool.limit;
    if (processes != 0 && device->programs.thread_count >= processes)
        must_be_idle = false;
    if (build_thread_is_available(device, must_be_idle))
        return true;
    build_thread_start(device);
    return build_thread_is_available(device, false);
}

/* ---- the functions of kernel_variants.h ---- */

/* Gives the trial to the variant, unless it has one.  The caller holds
 * programs.mutex. */
static void trial_set(struct kernel_variant *variant,
                      struct trial_launch *trial)
{
    if (variant->trial == NULL)
        variant->trial = trial;
    else
        free(trial);
}

void build_enqueue(struct tandem_device *device, struct kernel_variant *variant,
                   struct trial_launch *trial)
{
    struct programs *programs = &device->programs;
    pthread_mutex_lock(&programs->mutex);
    /* If no thread can be started, the launch builds the variant itself. */
    if (can_build(variant) && !programs->is_stopping &&
        build_thread_ensure(device, false)) {
        trial_set(variant, trial);
        trial = NULL;
        job_add(programs, variant, false);
        /* A process takes about as long to start as two builds. */
        if (programs->thread_count < device->compile_pool.limit &&
            programs->job_count > 2u * programs->thread_count)
            build_thread_start(device);
    }
    pthread_mutex_unlock(&programs->mutex);
    free(trial);
}

/* Waits until a build state or the job list changes, or until the build that
 * began at start_ns times out.  The caller holds programs.mutex. */
static void wait_for_change(struct tandem_device *device, uint64_t start_ns)
{
    struct programs *programs = &device->programs;
    if (start_ns == 0 || device->blocking_timeout_ns == 0) {
        pthread_cond_wait(&programs->changed, &programs->mutex);
        return;
    }
    uint64_t until = start_ns + device->blocking_timeout_ns;
    struct timespec deadline = {(time_t)(until / 1000000000u),
                                (long)(until % 1000000000u)};
    pthread_cond_timedwait(&programs->changed, &programs->mutex, &deadline);
}

enum tandem_status build_status(struct tandem_device *device,
                                const struct kernel_variant *variant)
{
    if (variant->state == BUILD_DONE)
        return TANDEM_OK;
    if (variant->state == BUILD_FAILED)
        return last_error_set(variant->status, "%s", variant->message);
    if (variant->state == BUILD_RUNNING &&
        build_timed_out(device, variant->start_ns))
        return last_error_set(
            TANDEM_FAILED,
            "the driver has not compiled the operator after %llu ms and may "
            "never do so: run it on another device, or open this one with a "
            "larger blocking_timeout_ms",
            (unsigned long long)(device->blocking_timeout_ns / 1000000u));
    /* If the builds of all threads hang, another thread must be started. */
    if (variant->state == BUILD_QUEUED)
        build_thread_ensure(device, false);
    return last_error_set(TANDEM_NOT_READY, "the operator is not compiled yet");
}

/* Puts the variant at the start of the job list.  If no build thread can be
 * started and none exists, marks the variant as running instead, and the caller
 * must build it.  Returns FAILED if the builds of all threads have timed out.
 * The caller holds programs.mutex. */
static enum tandem_status build_start(struct tandem_device *device,
                                      struct kernel_variant *variant)
{
    struct programs *programs = &device->programs;
    if (build_thread_ensure(device, true)) {
        job_add(programs, variant, true);
        return TANDEM_OK;
    }
    if (programs->thread_count == 0) {
        variant->state = BUILD_RUNNING;
        variant->start_ns = 0;
        return TANDEM_OK;
    }
    return last_error_set(
        TANDEM_FAILED,
        "the driver's compiler exceeds the blocking timeout in each of %u "
        "threads",
        programs->thread_count);
}

enum tandem_status build_wait(struct tandem_device *device,
                              const struct kernel_variant *variant)
{
    while (
        (variant->state == BUILD_QUEUED || variant->state == BUILD_RUNNING) &&
        !build_timed_out(device, variant->start_ns)) {
        wait_for_change(device, variant->state == BUILD_RUNNING
                                    ? variant->start_ns
                                    : monotonic_ns());
        /* The thread that was idle can have started another build. */
        if (variant->state == BUILD_QUEUED)
            build_thread_ensure(device, true);
    }
    return build_status(device, variant);
}

enum tandem_status build_ensure(struct tandem_device *device,
                                struct kernel_variant *variant,
                                struct trial_launch *trial)
{
    struct programs *programs = &device->programs;
    enum tandem_status status = TANDEM_OK;
    bool builds_here = false;
    pthread_mutex_lock(&programs->mutex);
    if (can_build(variant) || variant->state == BUILD_QUEUED) {
        status = build_start(device, variant);
        builds_here = variant->state == BUILD_RUNNING;
        if (status == TANDEM_OK && !builds_here) {
            trial_set(variant, trial);
            trial = NULL;
        }
    }
    if (status == TANDEM_OK && !builds_here)
        status = build_wait(device, variant);
    pthread_mutex_unlock(&programs->mutex);
    free(trial);
    if (builds_here) {
        status = kernel_variant_build(device, variant, NULL);
        build_set_result(programs, variant, status);
    }
    return status;
}

void build_threads_stop(struct tandem_device *device)
{
    struct programs *programs = &device->programs;
    compile_pool_stop(device);
    pthread_mutex_lock(&programs->mutex);
    programs->is_stopping = true;
    pthread_cond_broadcast(&programs->changed);
    for (;;) {
        uint64_t first_ns = 0;
        uint32_t timed_out = 0;
        for (uint32_t i = 0; i < MAX_BUILD_THREADS; i++) {
            uint64_t start_ns = programs->threads[i].start_ns;
            if (build_timed_out(device, start_ns))
                timed_out++;
            else if (start_ns != 0 && (first_ns == 0 || start_ns < first_ns))
                first_ns = start_ns;
        }
        if (programs->thread_count == timed_out)
            break;
        wait_for_change(device, first_ns);
    }
    pthread_mutex_unlock(&programs->mutex);
}
