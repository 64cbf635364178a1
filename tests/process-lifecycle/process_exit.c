/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of a process, exit handlers that make calls, and threads that use the
 * library meanwhile.
 */
#include <config.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "process_case.h"

static void step_exit(void)
{
    exit(0);
}

static void step_exit_at_once(void)
{
    _exit(0);
}

static void step_exit_quickly(void)
{
    quick_exit(0);
}

/* The thread of main ends before the others, one of which must end the
 * process, because BLAS and drivers have threads that never end. */
static void step_main_ends(void)
{
    pthread_exit(NULL);
}

/* ---- handlers ---- */

static void handler_work(void)
{
    client_work(&client);
    client_close(&client);
}

static void handler_close(void)
{
    client_close(&client);
}

static void step_at_exit_work(void)
{
    MUST(atexit(handler_work) == 0);
}

static void step_at_exit_close(void)
{
    MUST(atexit(handler_close) == 0);
}

/* ---- threads ---- */

#define SOME_ROUNDS 20
static int rounds; /* Rounds of the busy threads so far. */

static bool some_rounds_are_done(void)
{
    return __atomic_load_n(&rounds, __ATOMIC_ACQUIRE) >= SOME_ROUNDS;
}

static void thread_start(void *(*body)(void *))
{
    pthread_t thread;

    MUST(pthread_create(&thread, NULL, body, NULL) == 0);
    MUST(pthread_detach(thread) == 0);
}

/* Without GEMM, because BLAS ends its threads while a GEMM would be running. */
static void *work_for_ever(void *unused)
{
    struct client own;

    (void)unused;
    client_open(&own);
    for (;;) {
        client_work_without_gemm(&own);
        __atomic_fetch_add(&rounds, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void step_busy_thread(void)
{
    thread_start(work_for_ever);
}

static void step_work_for_ever(void)
{
    work_for_ever(NULL);
}

/* Works until the busy threads are inside the library. */
static void step_some_rounds(void)
{
    while (!some_rounds_are_done())
        client_work_without_gemm(&client);
}

static void *wait_and_exit(void *unused)
{
    (void)unused;
    while (!some_rounds_are_done())
        usleep(1000);
    exit(0);
}

/* Starts a thread that never calls the library, and then ends the process. */
static void step_exiting_thread(void)
{
    thread_start(wait_and_exit);
}

static void *work_and_exit(void *unused)
{
    (void)unused;
    client_read(&client);
    for (int i = 0; i < SOME_ROUNDS; i++)
        client_work(&client);
    client_close(&client);
    exit(0);
}

/* Starts a thread that goes on with the client, and then ends the process. */
static void step_working_thread(void)
{
    thread_start(work_and_exit);
}

/* ---- contexts ---- */

static void *contexts_run(void *unused)
{
    struct client own;

    (void)unused;
    for (int i = 0; i < 25; i++) {
        client_open(&own);
        if (i % 3)
            client_work(&own);
        if (i % 2)
            client_start(&own);
        client_close(&own);
    }
    return NULL;
}

/* Four threads open and close contexts. */
static void step_contexts(void)
{
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        MUST(pthread_create(&threads[i], NULL, contexts_run, NULL) == 0);
    for (int i = 0; i < 4; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

const struct step end_steps[] = {
    {"exit", .run = step_exit},
    {"exit-at-once", .run = step_exit_at_once},
    {"exit-quickly", .run = step_exit_quickly},
    {"main-ends", .run = step_main_ends},
    {"at-exit-work", .run = step_at_exit_work},
    {"at-exit-close", .run = step_at_exit_close},
    {"busy-thread", .run = step_busy_thread},
    {"work-for-ever", .run = step_work_for_ever},
    {"some-rounds", .run = step_some_rounds},
    {"exiting-thread", .run = step_exiting_thread},
    {"working-thread", .run = step_working_thread},
    {"contexts", .run = step_contexts},
    {NULL},
};
