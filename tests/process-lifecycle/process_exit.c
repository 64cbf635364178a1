/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of a process: with an open or a closed context, with or without running
 * work, with or without other running threads, and with exit handlers that
 * make calls.
 */
#include <config.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "lifecycle_program.h"

static struct lifecycle_test test; /* Exists after main returns. */

static int closed(const char *device)
{
    lifecycle_test_begin(&test, device);
    lifecycle_test_work(&test);
    lifecycle_test_end(&test);
    return 0;
}

/* The context ends while the first launch is running or being compiled. */
static int closed_at_once(const char *device)
{
    lifecycle_test_begin(&test, device);
    lifecycle_test_start(&test);
    lifecycle_test_end(&test);
    return 0;
}

static int returned(const char *device)
{
    lifecycle_test_begin(&test, device);
    lifecycle_test_work(&test);
    lifecycle_test_start(&test);
    return 0;
}

static int exited(const char *device)
{
    exit(returned(device));
}

static int exited_at_once(const char *device)
{
    _exit(returned(device));
}

static int exited_quickly(const char *device)
{
    quick_exit(returned(device));
}

/* No thread waits for the running work, which may never complete. */
static int started_returned(const char *device)
{
    lifecycle_test_begin(&test, device);
    lifecycle_test_start(&test);
    return 0;
}

static int started_exited(const char *device)
{
    exit(started_returned(device));
}

static int started_exited_at_once(const char *device)
{
    _exit(started_returned(device));
}

/* Devices were listed, but not opened, and nothing was launched. */
static int listed(const char *device)
{
    lifecycle_test_begin(&test, device);
    return 0;
}

/* ---- handlers ---- */

static void handler_work(void)
{
    lifecycle_test_work(&test);
    lifecycle_test_end(&test);
}

static void handler_close(void)
{
    lifecycle_test_end(&test);
}

static int handled_early(const char *device)
{
    MUST(atexit(handler_work) == 0);
    return returned(device);
}

static int handled_late(const char *device)
{
    returned(device);
    MUST(atexit(handler_work) == 0);
    return 0;
}

static int closed_early(const char *device)
{
    MUST(atexit(handler_close) == 0);
    return returned(device);
}

static int closed_late(const char *device)
{
    returned(device);
    MUST(atexit(handler_close) == 0);
    return 0;
}

static int rounds; /* Rounds of the other threads so far. */

/* Without GEMM, because BLAS ends its threads while a GEMM would be running. */
static void *work_for_ever(void *device)
{
    struct lifecycle_test own;

    lifecycle_test_begin(&own, device);
    for (;;) {
        lifecycle_test_work_own(&own);
        __atomic_fetch_add(&rounds, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void *work_and_exit(void *device)
{
    (void)device;
    while (__atomic_load_n(&rounds, __ATOMIC_ACQUIRE) < 20)
        usleep(1000);
    exit(0);
}

static void thread_start(void *(*body)(void *), const char *device)
{
    pthread_t thread;

    MUST(pthread_create(&thread, NULL, body, (void *)(uintptr_t)device) == 0);
    MUST(pthread_detach(thread) == 0);
}

/* Two threads are inside the library while main returns. */
static int threads_at_work(const char *device)
{
    thread_start(work_for_ever, device);
    thread_start(work_for_ever, device);
    lifecycle_test_begin(&test, device);
    while (__atomic_load_n(&rounds, __ATOMIC_ACQUIRE) < 20)
        lifecycle_test_work_own(&test);
    return 0;
}

/*
 * A thread that never called the library calls exit while main and another
 * thread are inside the library.
 */
static int exit_by_a_thread(const char *device)
{
    thread_start(work_for_ever, device);
    thread_start(work_and_exit, device);
    work_for_ever((void *)(uintptr_t)device);
    return 3;
}

static void *work_and_end(void *unused)
{
    (void)unused;
    lifecycle_test_read(&test);
    for (int i = 0; i < 20; i++)
        lifecycle_test_work(&test);
    lifecycle_test_end(&test);
    exit(0);
}

/*
 * The thread of main ends before the others, one of which ends the process,
 * because BLAS and drivers have threads that never end.
 */
static int main_ends_first(const char *device)
{
    lifecycle_test_begin(&test, device);
    lifecycle_test_start(&test);
    thread_start(work_and_end, device);
    pthread_exit(NULL);
}

/* Only threads of BLAS and drivers remain, if any. SIGTERM ends them. */
static int main_ends_closed(const char *device)
{
    closed(device);
    pthread_exit(NULL);
}

const struct lifecycle_mode end_modes[] = {
    {"closed", closed},
    {"closed-at-once", closed_at_once},
    {"returned", returned},
    {"exited", exited},
    {"exited-at-once", exited_at_once},
    {"exited-quickly", exited_quickly},
    {"started-returned", started_returned},
    {"started-exited", started_exited},
    {"started-exited-at-once", started_exited_at_once},
    {"listed", listed},
    {"handled-early", handled_early},
    {"handled-late", handled_late},
    {"closed-early", closed_early},
    {"closed-late", closed_late},
    {"threads-at-work", threads_at_work},
    {"exit-by-a-thread", exit_by_a_thread},
    {"main-ends-first", main_ends_first},
    {"main-ends-closed", main_ends_closed},
    {NULL, NULL},
};
