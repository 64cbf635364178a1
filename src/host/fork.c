/* SPDX-License-Identifier: Apache-2.0 */
/* Fork detection; see fork.h. */
#include <config.h>

#include "host/fork.h"

#include <pthread.h>
#include <stddef.h>

volatile uint32_t fork_generation = 1;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int watch_result;

static void child_started(void)
{
    fork_generation = fork_generation + 1;
}

static void watch_start(void)
{
    watch_result = pthread_atfork(NULL, NULL, child_started);
}

int fork_watch(void)
{
    pthread_once(&once, watch_start);
    return watch_result;
}
