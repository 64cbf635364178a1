/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that use the library, forked before or after the parent has used it.
 * Each child runs twice: it ends by exit and by _exit.
 */
#include <config.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process_case.h"

#define CHILD_LIMIT_S 60

static void child_run(void (*child)(void), bool by_exit)
{
    int status = 0;
    pid_t id = fork();

    MUST(id != -1);
    if (id == 0) {
        alarm(CHILD_LIMIT_S);
        child();
        if (by_exit)
            exit(0);
        _exit(0);
    }
    MUST(waitpid(id, &status, 0) == id);
    if (WIFSIGNALED(status))
        process_fail("the child (%s) ended by signal %d",
                     by_exit ? "exit" : "_exit", WTERMSIG(status));
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void child_idle(void)
{
}

static void child_work(void)
{
    struct client own;

    client_open(&own);
    client_work(&own);
    client_close(&own);
}

/* Each call on an inherited object returns an error at once. */
static void child_inherits(void)
{
    struct tandem_explanation e = {.struct_size = sizeof e};
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_NEG};
    float read[sizeof client.x / sizeof *client.x];
    uint32_t number;

    MUST(tandem_run(client.context, &op, &client.tx, 1, &client.ty, 1, NULL) ==
         TANDEM_DEVICE_LOST);
    MUST(strstr(tandem_last_error(), "fork") != NULL);
    MUST(tandem_tensor_sync(client.ty, TANDEM_TIMEOUT_INFINITE) ==
         TANDEM_DEVICE_LOST);
    MUST(tandem_tensor_write(client.ty, client.x, sizeof client.x) ==
         TANDEM_DEVICE_LOST);
    MUST(tandem_tensor_read(client.ty, read, sizeof read,
                            TANDEM_TIMEOUT_INFINITE) == TANDEM_DEVICE_LOST);
    MUST(tandem_tensor_prefetch(client.tx, 0) == TANDEM_DEVICE_LOST);
    MUST(tandem_context_synchronize(client.context, TANDEM_TIMEOUT_INFINITE) ==
         TANDEM_DEVICE_LOST);
    MUST(tandem_device_count(client.context, &number) == TANDEM_DEVICE_LOST);
    MUST(tandem_explain_last(client.context, &e) == TANDEM_DEVICE_LOST);
    MUST(tandem_tensor_residency(client.ty, &number) == TANDEM_DEVICE_LOST);
}

/* A new context works in the child; with OpenCL, it returns an error. */
static void child_opens(void)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_NEG};
    struct client own;

    child_inherits();
    client_open(&own);
    if (strcmp(device_name, "opencl") == 0) {
        MUST(tandem_run(own.context, &op, &own.tx, 1, &own.ty, 1,
                        TANDEM_RUN_ON(own.device)) != TANDEM_OK);
        MUST(strstr(tandem_last_error(), "fork") != NULL);
        OK(tandem_device_find(own.context, "cpu", &own.device));
    }
    client_work(&own);
    client_close(&own);
}

static void child_closes(void)
{
    child_inherits();
    client_close(&client);
}

static void step_child(void)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } children[] = {{"idle", child_idle},
                    {"work", child_work},
                    {"inherits", child_inherits},
                    {"opens", child_opens},
                    {"closes", child_closes}};

    for (size_t i = 0; i < sizeof children / sizeof *children; i++)
        if (strcmp(children[i].name, step_argument) == 0) {
            child_run(children[i].run, true);
            child_run(children[i].run, false);
            return;
        }
    process_fail("no child \"%s\"", step_argument);
}

/* ---- forks while threads work ---- */

static int stop;
/* Each thread posts it after its first work: from then on the thread loads no
 * library.  A child must not create a context if a thread was loading a library
 * during the fork (tandem/host.h). */
static sem_t libraries_loaded;

static void work_until_stop(void (*work)(struct client *own),
                            struct client *own)
{
    work(own);
    MUST(sem_post(&libraries_loaded) == 0);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        work(own);
}

static void *own_context_use(void *unused)
{
    struct client own;

    (void)unused;
    client_open(&own);
    work_until_stop(client_work, &own);
    client_close(&own);
    return NULL;
}

/* Works with new tensors in the context of another thread. */
static void shared_work(struct client *own)
{
    const int64_t n = CLIENT_ELEMENTS;

    OK(tandem_tensor_wrap(own->context, own->x, TANDEM_F32, 1, &n, NULL, 0,
                          &own->tx));
    OK(tandem_tensor_wrap(own->context, own->y, TANDEM_F32, 1, &n, NULL, 0,
                          &own->ty));
    client_work(own);
    tandem_tensor_destroy(own->tx);
    tandem_tensor_destroy(own->ty);
}

static void *shared_context_use(void *unused)
{
    struct client own = client;

    (void)unused;
    work_until_stop(shared_work, &own);
    return NULL;
}

/* Forks while one thread works in its own context and another in the same
 * context.  The child must not find a lock of the library held.  The locks of
 * drivers may be held: there exit could wait forever in a driver's destructor,
 * so with OpenCL the child always ends by _exit. */
static void step_fork_with_threads(void)
{
    pthread_t threads[2];

    MUST(sem_init(&libraries_loaded, 0, 0) == 0);
    MUST(pthread_create(&threads[0], NULL, own_context_use, NULL) == 0);
    MUST(pthread_create(&threads[1], NULL, shared_context_use, NULL) == 0);
    for (int i = 0; i < 2; i++)
        MUST(sem_wait(&libraries_loaded) == 0);
    for (int i = 0; i < 20; i++)
        child_run(child_opens, i % 2 && strcmp(device_name, "opencl") != 0);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

const struct step fork_steps[] = {
    {"child", .run = step_child},
    {"fork-with-threads", .run = step_fork_with_threads},
    {NULL},
};
