/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether threads can be started; see threads.h. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "common/threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Maximum number of checks for threads that still exist, and the interval
 * between two checks. All checks together take about 100 ms. */
#define MAX_LOOKS 1000
#define LOOK_NS 100000

struct probe {
    pthread_t thread;
    pthread_mutex_t *gate; /* mutex, held while the threads must stay alive */
    long id;
};

static void *probe_run(void *argument)
{
    struct probe *probe = argument;
    probe->id = syscall(SYS_gettid);
    pthread_mutex_lock(probe->gate);
    pthread_mutex_unlock(probe->gate);
    return NULL;
}

/* Waits until the kernel has removed the threads, which may take a moment after
 * pthread_join. Returns false if a thread still exists after the last check. */
static bool probes_forgotten(const struct probe *probes, uint32_t count)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    uint32_t gone = 0;
    for (int looks = 0; looks < MAX_LOOKS; looks++) {
        while (gone < count &&
               syscall(SYS_tgkill, getpid(), probes[gone].id, 0) != 0)
            gone++;
        if (gone == count)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

bool threads_can_start(uint32_t count)
{
    if (count == 0)
        return true;
    struct probe *probes = calloc(count, sizeof *probes);
    if (probes == NULL)
        return false;
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    uint32_t started = 0;
    pthread_mutex_lock(&gate);
    for (; started < count; started++) {
        probes[started].gate = &gate;
        if (pthread_create(&probes[started].thread, NULL, probe_run,
                           &probes[started]) != 0)
            break;
    }
    pthread_mutex_unlock(&gate);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(probes[i].thread, NULL);
    bool can = started == count && probes_forgotten(probes, count);
    pthread_mutex_destroy(&gate);
    free(probes);
    return can;
}
