/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks before the library was used, after it was used, and while threads are
 * inside it. The parent continues. The child cannot use inherited objects, can
 * create new ones, and ends by exit or _exit.
 */
#include <config.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lifecycle_program.h"

#define CHILD_LIMIT_S 60

static struct lifecycle_test test;

/* Runs the function in a child process that ends by exit or by _exit. */
static void run_in_child(void (*child)(const char *), const char *device,
                         bool by_exit)
{
    int status = 0;
    pid_t id = fork();

    MUST(id != -1);
    if (id == 0) {
        alarm(CHILD_LIMIT_S);
        child(device);
        if (by_exit)
            exit(0);
        _exit(0);
    }
    MUST(waitpid(id, &status, 0) == id);
    if (WIFSIGNALED(status))
        lifecycle_test_fail("the child (%s) ended by signal %d",
                            by_exit ? "exit" : "_exit", WTERMSIG(status));
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void child_idle(const char *device)
{
    (void)device;
}

static void child_work(const char *device)
{
    struct lifecycle_test own;

    lifecycle_test_begin(&own, device);
    lifecycle_test_work(&own);
    lifecycle_test_end(&own);
}

/* The library was not used, but may be loaded. */
static int fork_before(const char *device)
{
    run_in_child(child_work, device, true);
    run_in_child(child_work, device, false);
    lifecycle_test_begin(&test, device);
    lifecycle_test_work(&test);
    lifecycle_test_end(&test);
    return 0;
}

/* A context was created, which touches no device. */
static int fork_before_devices(const char *device)
{
    struct tandem_context *context;

    OK(tandem_context_create(NULL, &context));
    run_in_child(child_work, device, true);
    run_in_child(child_work, device, false);
    tandem_context_destroy(context);
    return 0;
}

/* Each call on an inherited object returns an error at once. */
static void child_with_used_library(const char *device)
{
    struct tandem_explanation e = {.struct_size = sizeof e};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_NEG};
    uint32_t number;

    (void)device;
    MUST(tandem_run(test.context, &op, &test.tx, 1, &test.ty, 1) ==
         TANDEM_DEVICE_LOST);
    MUST(strstr(tandem_last_error(), "fork") != NULL);
    MUST(tandem_tensor_sync(test.ty, TANDEM_TIMEOUT_INFINITE) ==
         TANDEM_DEVICE_LOST);
    MUST(tandem_tensor_write(test.ty, test.x, sizeof test.x) ==
         TANDEM_DEVICE_LOST);
    MUST(tandem_context_synchronize(test.context, TANDEM_TIMEOUT_INFINITE) ==
         TANDEM_DEVICE_LOST);
    MUST(tandem_device_count(test.context, &number) == TANDEM_DEVICE_LOST);
    MUST(tandem_explain_last(test.context, &e) == TANDEM_DEVICE_LOST);
    MUST(tandem_tensor_residency(test.ty, &number) == TANDEM_DEVICE_LOST);
}

/* A new context works in the child; with OpenCL, it returns an error. */
static void child_can_use_library(const char *device)
{
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_NEG};
    struct lifecycle_test own;

    child_with_used_library(device);
    lifecycle_test_begin(&own, device);
    if (strcmp(device, "opencl") == 0) {
        MUST(tandem_run_on(own.context, own.device, &op, &own.tx, 1, &own.ty,
                           1) != TANDEM_OK);
        MUST(strstr(tandem_last_error(), "fork") != NULL);
        OK(tandem_device_find(own.context, "cpu", &own.device));
    }
    lifecycle_test_work(&own);
    lifecycle_test_end(&own);
}

static void child_closes(const char *device)
{
    child_with_used_library(device);
    lifecycle_test_end(&test);
}

static int fork_after(const char *device)
{
    lifecycle_test_begin(&test, device);
    lifecycle_test_work(&test);
    lifecycle_test_start(&test);
    for (int by_exit = 0; by_exit < 2; by_exit++) {
        run_in_child(child_idle, device, by_exit);
        run_in_child(child_with_used_library, device, by_exit);
        run_in_child(child_can_use_library, device, by_exit);
        run_in_child(child_closes, device, by_exit);
    }
    lifecycle_test_read(&test);
    lifecycle_test_work(&test);
    lifecycle_test_end(&test);
    return 0;
}

/* Devices were listed, but not opened. */
static int fork_after_listing(const char *device)
{
    lifecycle_test_begin(&test, device);
    run_in_child(child_can_use_library, device, true);
    run_in_child(child_can_use_library, device, false);
    lifecycle_test_work(&test);
    lifecycle_test_end(&test);
    return 0;
}

static int stop;
/* Each thread posts it after its first work: from then on the thread loads no
 * library.  A child must not create a context if a thread was loading a library
 * during the fork (tandem/host.h). */
static sem_t libraries_loaded;

static void *work_until(void *device)
{
    struct lifecycle_test own;

    lifecycle_test_begin(&own, device);
    lifecycle_test_work(&own);
    MUST(sem_post(&libraries_loaded) == 0);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        lifecycle_test_work(&own);
    lifecycle_test_end(&own);
    return NULL;
}

static void share_once(struct lifecycle_test *own)
{
    const int64_t n = LIFECYCLE_N;

    OK(tandem_tensor_wrap(own->context, own->x, TANDEM_F32, 1, &n, NULL, 0,
                          &own->tx));
    OK(tandem_tensor_wrap(own->context, own->y, TANDEM_F32, 1, &n, NULL, 0,
                          &own->ty));
    lifecycle_test_work(own);
    tandem_tensor_destroy(own->tx);
    tandem_tensor_destroy(own->ty);
}

static void *share_until(void *unused)
{
    struct lifecycle_test own = test;

    (void)unused;
    share_once(&own);
    MUST(sem_post(&libraries_loaded) == 0);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        share_once(&own);
    return NULL;
}

/* Forks while one thread works in its own context and another in the same
 * context.  The child must not find a lock of the library held.  The locks of
 * drivers may be held: there exit could wait forever in a driver's destructor,
 * so with OpenCL the child always ends by _exit. */
static int fork_with_threads(const char *device)
{
    pthread_t threads[2];

    lifecycle_test_begin(&test, device);
    lifecycle_test_start(&test);
    MUST(sem_init(&libraries_loaded, 0, 0) == 0);
    MUST(pthread_create(&threads[0], NULL, work_until,
                        (void *)(uintptr_t)device) == 0);
    MUST(pthread_create(&threads[1], NULL, share_until, NULL) == 0);
    for (int i = 0; i < 2; i++)
        MUST(sem_wait(&libraries_loaded) == 0);
    for (int i = 0; i < 20; i++)
        run_in_child(child_can_use_library, device,
                     i % 2 && strcmp(device, "opencl") != 0);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    lifecycle_test_read(&test);
    lifecycle_test_end(&test);
    return 0;
}

const struct lifecycle_mode fork_modes[] = {
    {"fork-before", fork_before},
    {"fork-before-devices", fork_before_devices},
    {"fork-after", fork_after},
    {"fork-after-listing", fork_after_listing},
    {"fork-with-threads", fork_with_threads},
    {NULL, NULL},
};
