/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fork detection; see fork.h.  The pools' mutexes are held across the fork so
 * that no other thread of the parent holds one that the child needs.
 */
#include <config.h>

#include "host/fork.h"
#include "host/context.h"
#include "host/profile.h"
#include "host/tensor.h"

#include <pthread.h>

volatile uint32_t fork_generation = 1;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int watch_result;

static void pools_lock(void)
{
    pthread_mutex_lock(&context_pool.mutex);
    pthread_mutex_lock(&tensor_pool.mutex);
    pthread_mutex_lock(&profile_pool.mutex);
}

static void pools_unlock(void)
{
    pthread_mutex_unlock(&profile_pool.mutex);
    pthread_mutex_unlock(&tensor_pool.mutex);
    pthread_mutex_unlock(&context_pool.mutex);
}

static void child_started(void)
{
    pools_unlock();
    fork_generation = fork_generation + 1;
}

static void watch_start(void)
{
    watch_result = pthread_atfork(pools_lock, pools_unlock, child_started);
}

int fork_watch(void)
{
    pthread_once(&once, watch_start);
    return watch_result;
}
