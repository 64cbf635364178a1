/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of a process: with a context that was closed or not, work under way or
 * not, other threads at work or not, handlers that go on calling.
 */
#include <config.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "lifecycle_program.h"

static struct guest guest; /* outlives main */

static int closed(const char *device)
{
    guest_begin(&guest, device);
    guest_work(&guest);
    guest_end(&guest);
    return 0;
}

/* The first launch is still under way, and perhaps being compiled, when the
 * context is destroyed. */
static int closed_at_once(const char *device)
{
    guest_begin(&guest, device);
    guest_start(&guest);
    guest_end(&guest);
    return 0;
}

static int returned(const char *device)
{
    guest_begin(&guest, device);
    guest_work(&guest);
    guest_start(&guest);
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

/* Work is under way that nobody waits for: it may never end. */
static int started_returned(const char *device)
{
    guest_begin(&guest, device);
    guest_start(&guest);
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

/* Nothing was launched: devices were listed, not opened. */
static int listed(const char *device)
{
    guest_begin(&guest, device);
    return 0;
}

/* ---- handlers ---- */

static void handler_work(void)
{
    guest_work(&guest);
    guest_end(&guest);
}

static void handler_close(void)
{
    guest_end(&guest);
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

/* ---- threads ---- */

static int rounds; /* of the other threads, so far */

/* No products: BLAS ends itself while they would be in it. */
static void *work_for_ever(void *device)
{
    struct guest own;

    guest_begin(&own, device);
    for (;;) {
        guest_work_own(&own);
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

/* Two threads are in the library while main returns. */
static int threads_at_work(const char *device)
{
    thread_start(work_for_ever, device);
    thread_start(work_for_ever, device);
    guest_begin(&guest, device);
    while (__atomic_load_n(&rounds, __ATOMIC_ACQUIRE) < 20)
        guest_work_own(&guest);
    return 0;
}

/* exit is called by a thread that never called the library, while main and
 * another are in it. */
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
    guest_read(&guest);
    for (int i = 0; i < 20; i++)
        guest_work(&guest);
    guest_end(&guest);
    exit(0);
}

/* main's thread ends before the others, one of which ends the process: BLAS and
 * drivers have threads that do not end by themselves. */
static int main_ends_first(const char *device)
{
    guest_begin(&guest, device);
    guest_start(&guest);
    thread_start(work_and_end, device);
    pthread_exit(NULL);
}

/* What remains are threads of BLAS and drivers, if any: SIGTERM ends them. */
static int main_ends_closed(const char *device)
{
    closed(device);
    pthread_exit(NULL);
}

const struct guest_mode end_modes[] = {
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
