/* SPDX-License-Identifier: Apache-2.0 */
/* Registers fork handlers once; see atfork.h. */
#include "common/atfork.h"

bool atfork_once(struct atfork *once, void (*prepare)(void),
                 void (*parent)(void), void (*child)(void))
{
    bool registered = __atomic_load_n(&once->registered, __ATOMIC_ACQUIRE);

    if (registered)
        return true;
    pthread_mutex_lock(&once->mutex);
    registered =
        once->registered || pthread_atfork(prepare, parent, child) == 0;
    __atomic_store_n(&once->registered, registered, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&once->mutex);
    return registered;
}
