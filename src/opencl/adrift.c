/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that work of lost devices may still use; see adrift.h. */
#include "opencl/adrift.h"

#include <stdlib.h>

/* What a queue at rest needs to say so. */
#define ASK_NS 20000000u

/* One of queue, mem or memory (of malloc), pinned. */
struct adrift {
    cl_command_queue queue;
    struct staging_chunk chunk;
    struct pinned *pinned;
    struct adrift *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct adrift *kept;

/* Without memory to note it, it stays where it is for good. */
static bool keep(const struct adrift *from)
{
    struct adrift *adrift = malloc(sizeof(*adrift));
    if (adrift == NULL)
        return false;
    *adrift = *from;
    pthread_mutex_lock(&mutex);
    adrift->next = kept;
    kept = adrift;
    pthread_mutex_unlock(&mutex);
    return true;
}

void adrift_begin(struct tandem_device *device, cl_command_queue queue)
{
    atomic_store(&device->adrift, true);
    if (clRetainCommandQueue(queue) == CL_SUCCESS &&
        !keep(&(struct adrift){.queue = queue}))
        clReleaseCommandQueue(queue);
}

void adrift_chunk(const struct staging_chunk *chunk)
{
    keep(&(struct adrift){.chunk = *chunk});
}

void adrift_pinned(struct pinned *list)
{
    if (list != NULL)
        keep(&(struct adrift){.pinned = list});
}

static void give_back(struct adrift *adrift)
{
    if (adrift->queue != NULL)
        clReleaseCommandQueue(adrift->queue);
    if (adrift->chunk.mem != NULL)
        clReleaseMemObject(adrift->chunk.mem);
    else
        free(adrift->chunk.memory);
    pinned_abandon(adrift->pinned);
    free(adrift);
}

/* Puts the list back, before what was kept meanwhile. */
static void restore(struct adrift *list)
{
    struct adrift *last = list;
    while (last->next != NULL)
        last = last->next;
    pthread_mutex_lock(&mutex);
    last->next = kept;
    kept = list;
    pthread_mutex_unlock(&mutex);
}

void adrift_settle(void)
{
    pthread_mutex_lock(&mutex);
    struct adrift *list = kept;
    kept = NULL;
    pthread_mutex_unlock(&mutex);
    for (const struct adrift *at = list; at != NULL; at = at->next)
        if (at->queue != NULL &&
            device_drained(at->queue, ASK_NS) != TANDEM_OK) {
            restore(list);
            return;
        }
    while (list != NULL) {
        struct adrift *next = list->next;
        give_back(list);
        list = next;
    }
}
