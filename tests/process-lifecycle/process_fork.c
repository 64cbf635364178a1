/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks: before the library was used, after, and while threads are in it.
 * The parent goes on; the child has no use of what it inherited, may make its
 * own, and ends in either way.
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

static struct guest guest;

/* Runs child in a child process that ends by exit or by _exit. */
static void in_child(void (*child)(const char *), const char *device,
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
        guest_fail("the child (%s) ended by signal %d",
                   by_exit ? "exit" : "_exit", WTERMSIG(status));
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void child_idle(const char *device)
{
    (void)device;
}

static void child_work(const char *device)
{
    struct guest own;

    guest_begin(&own, device);
    guest_work(&own);
    guest_end(&own);
}

/* The library was not used, but may be loaded. */
static int fork_before(const char *device)
{
    in_child(child_work, device, true);
    in_child(child_work, device, false);
    guest_begin(&guest, device);
    guest_work(&guest);
    guest_end(&guest);
    return 0;
}

/* A context was made, which touches no device. */
static int fork_before_devices(const char *device)
{
    struct tandem_context *context;

    OK(tandem_context_create(NULL, &context));
    in_child(child_work, device, true);
    in_child(child_work, device, false);
    tandem_context_destroy(context);
    return 0;
}

/* Every call with what was inherited says so, at once. */
static void child_of_used(const char *device)
{
    struct tandem_explanation e = {.struct_size = sizeof e};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_NEG};
    uint32_t number;

    (void)device;
    MUST(tandem_run(guest.context, &op, &guest.tx, 1, &guest.ty, 1) ==
         TANDEM_DEVICE_LOST);
    MUST(strstr(tandem_last_error(), "fork") != NULL);
    MUST(tandem_tensor_sync(guest.ty, TANDEM_TIMEOUT_INFINITE) ==
         TANDEM_DEVICE_LOST);
    MUST(tandem_tensor_write(guest.ty, guest.x, sizeof guest.x) ==
         TANDEM_DEVICE_LOST);
    MUST(tandem_context_synchronize(guest.context, TANDEM_TIMEOUT_INFINITE) ==
         TANDEM_DEVICE_LOST);
    MUST(tandem_device_count(guest.context, &number) == TANDEM_DEVICE_LOST);
    MUST(tandem_explain_last(guest.context, &e) == TANDEM_DEVICE_LOST);
    MUST(tandem_tensor_residency(guest.ty, &number) == TANDEM_DEVICE_LOST);
}

/* And one of its own serves, but not by OpenCL, which says so. */
static void child_of_used_works(const char *device)
{
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_NEG};
    struct guest own;

    child_of_used(device);
    guest_begin(&own, device);
    if (strcmp(device, "opencl") == 0) {
        MUST(tandem_run_on(own.context, own.device, &op, &own.tx, 1, &own.ty,
                           1) != TANDEM_OK);
        MUST(strstr(tandem_last_error(), "fork") != NULL);
        OK(tandem_device_find(own.context, "cpu", &own.device));
    }
    guest_work(&own);
    guest_end(&own);
}

static void child_closes(const char *device)
{
    child_of_used(device);
    guest_end(&guest);
}

static int fork_after(const char *device)
{
    guest_begin(&guest, device);
    guest_work(&guest);
    guest_start(&guest);
    for (int by_exit = 0; by_exit < 2; by_exit++) {
        in_child(child_idle, device, by_exit);
        in_child(child_of_used, device, by_exit);
        in_child(child_of_used_works, device, by_exit);
        in_child(child_closes, device, by_exit);
    }
    guest_read(&guest);
    guest_work(&guest);
    guest_end(&guest);
    return 0;
}

/* Devices were listed and none was opened. */
static int fork_after_listing(const char *device)
{
    guest_begin(&guest, device);
    in_child(child_of_used_works, device, true);
    in_child(child_of_used_works, device, false);
    guest_work(&guest);
    guest_end(&guest);
    return 0;
}

static int stop;
/* Each thread posts it after its first work: from then on the thread loads no
 * library.  A child must not create a context if a thread was loading a library
 * during the fork (tandem/host.h). */
static sem_t libraries_loaded;

static void *work_until(void *device)
{
    struct guest own;

    guest_begin(&own, device);
    guest_work(&own);
    MUST(sem_post(&libraries_loaded) == 0);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        guest_work(&own);
    guest_end(&own);
    return NULL;
}

static void share_once(struct guest *own)
{
    const int64_t n = GUEST_N;

    OK(tandem_tensor_wrap(own->context, own->x, TANDEM_F32, 1, &n, NULL, 0,
                          &own->tx));
    OK(tandem_tensor_wrap(own->context, own->y, TANDEM_F32, 1, &n, NULL, 0,
                          &own->ty));
    guest_work(own);
    tandem_tensor_destroy(own->tx);
    tandem_tensor_destroy(own->ty);
}

static void *share_until(void *unused)
{
    struct guest own = guest;

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

    guest_begin(&guest, device);
    guest_start(&guest);
    MUST(sem_init(&libraries_loaded, 0, 0) == 0);
    MUST(pthread_create(&threads[0], NULL, work_until,
                        (void *)(uintptr_t)device) == 0);
    MUST(pthread_create(&threads[1], NULL, share_until, NULL) == 0);
    for (int i = 0; i < 2; i++)
        MUST(sem_wait(&libraries_loaded) == 0);
    for (int i = 0; i < 20; i++)
        in_child(child_of_used_works, device,
                 i % 2 && strcmp(device, "opencl") != 0);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    guest_read(&guest);
    guest_end(&guest);
    return 0;
}

const struct guest_mode fork_modes[] = {
    {"fork-before", fork_before},
    {"fork-before-devices", fork_before_devices},
    {"fork-after", fork_after},
    {"fork-after-listing", fork_after_listing},
    {"fork-with-threads", fork_with_threads},
    {NULL, NULL},
};
