/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the list of waiting threads; see pending_waits.h. */
#include "opencl/queue/pending_waits.h"

#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static struct pending_wait *first_wait;

void pending_wait_begin(struct pending_wait *wait, uint64_t stream,
                        uint64_t seqno)
{
    wait->stream = stream;
    wait->seqno = seqno;
    pthread_mutex_lock(&mutex);
    wait->next = first_wait;
    wait->link = &first_wait;
    if (first_wait != NULL)
        first_wait->link = &wait->next;
    first_wait = wait;
    pthread_mutex_unlock(&mutex);
}

void pending_wait_end(struct pending_wait *wait)
{
    pthread_mutex_lock(&mutex);
    *wait->link = wait->next;
    if (wait->next != NULL)
        wait->next->link = wait->link;
    pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&mutex);
}

static const struct pending_wait *find_earlier(uint64_t stream, uint64_t seqno)
{
    const struct pending_wait *wait = first_wait;

    while (wait != NULL && (wait->stream != stream || wait->seqno >= seqno))
        wait = wait->next;
    return wait;
}

void pending_waits_settle(uint64_t stream, uint64_t seqno)
{
    pthread_mutex_lock(&mutex);
    while (find_earlier(stream, seqno) != NULL)
        pthread_cond_wait(&ended, &mutex);
    pthread_mutex_unlock(&mutex);
}
