/* SPDX-License-Identifier: Apache-2.0 */
/* Registers fork handlers once. If a registration fails for lack of memory, the
 * next call tries to register them. May be called from any thread. */
#ifndef TANDEM_COMMON_ATFORK_H
#define TANDEM_COMMON_ATFORK_H

#include <pthread.h>
#include <stdbool.h>

/* State of one registration, in static storage. ATFORK initializes it. */
struct atfork {
    pthread_mutex_t mutex;
    bool registered;
};
#define ATFORK                                                                 \
    {                                                                          \
        .mutex = PTHREAD_MUTEX_INITIALIZER,                                    \
    }

/* Registers the handlers with pthread_atfork, unless an earlier call with the
 * same `once` succeeded. Returns false if memory is out. */
bool atfork_once(struct atfork *once, void (*prepare)(void),
                 void (*parent)(void), void (*child)(void));

#endif
