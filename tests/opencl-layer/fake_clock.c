/* SPDX-License-Identifier: Apache-2.0 */
/* The process's monotonic clock; see fake_clock.h. Protected by one mutex. */
#include "fake_clock.h"
#include "layer.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * A timeout of 0.3 s takes 30 s of real time. The 0.2 ms for which a thread
 * looks for work before it sleeps or ends take at most 20 ms.
 */
#define SLOWER 100u
#define NS_PER_S UINT64_C(1000000000)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t since_real_ns, since_ns; /* The time of the last change. */
static bool as_others_do;

static uint64_t time_ns(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_nsec;
}

static struct timespec time_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

static uint64_t real_ns(void)
{
    struct timespec now;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return time_ns(&now);
}

/* The mutex is held. */
static uint64_t now_ns(void)
{
    const uint64_t real = real_ns();

    if (since_real_ns == 0)
        since_real_ns = since_ns = real;
    return since_ns + (real - since_real_ns) / (as_others_do ? 1 : SLOWER);
}

void clock_set_real_speed(bool as_others)
{
    pthread_mutex_lock(&mutex);
    const uint64_t now = now_ns();

    since_real_ns = real_ns();
    since_ns = now;
    as_others_do = as_others;
    pthread_mutex_unlock(&mutex);
}

LAYER_EXPORT int clock_gettime(clockid_t clock, struct timespec *out_now)
{
    if (clock != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, clock, out_now);
    pthread_mutex_lock(&mutex);
    *out_now = time_of(now_ns());
    pthread_mutex_unlock(&mutex);
    return 0;
}

/* The plugin's deadlines use the monotonic clock. */
LAYER_EXPORT int pthread_cond_timedwait(pthread_cond_t *condition,
                                        pthread_mutex_t *held,
                                        const struct timespec *deadline)
{
    static int (*wait)(pthread_cond_t *, pthread_mutex_t *,
                       const struct timespec *);
    void *symbol = dlsym(RTLD_NEXT, "pthread_cond_timedwait");

    pthread_mutex_lock(&mutex);
    const uint64_t now = now_ns(), until = time_ns(deadline);
    const uint64_t left =
        until > now ? (until - now) * (as_others_do ? 1 : SLOWER) : 0;

    memcpy(&wait, &symbol, sizeof wait);
    pthread_mutex_unlock(&mutex);
    const struct timespec real = time_of(real_ns() + left);

    return wait(condition, held, &real);
}
