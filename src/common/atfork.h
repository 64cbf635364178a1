/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fork handlers that are registered once, and again where memory was out the
 * first time.  Any thread.
 */
#ifndef TANDEM_COMMON_ATFORK_H
#define TANDEM_COMMON_ATFORK_H

#include <pthread.h>
#include <stdbool.h>

/* Static storage, initialised by ATFORK. */
struct atfork {
    pthread_mutex_t mutex;
    bool registered;
};
#define ATFORK                               \
    {                                        \
        .mutex = PTHREAD_MUTEX_INITIALIZER,  \
    }

/* As pthread_atfork, but does nothing where once did so already.  false: no
 * memory. */
bool atfork_once(struct atfork *once, void (*prepare)(void),
                 void (*parent)(void), void (*child)(void));

#endif
