/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver that keeps a copy of the memory that the host gives a buffer, where
 * TANDEM_LAYER_NONCOHERENT_IMPORT wants it (layer.c): it looks at the host's
 * memory before a command, or writes to it after one, or neither.  Under one
 * mutex.
 */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS 16

struct shadow {
    cl_mem buffer;
    void *host;
    size_t size;
    bool read; /* by a kernel */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct shadow shadows[BUFFERS];

static const char *how(void)
{
    return getenv("TANDEM_LAYER_NONCOHERENT_IMPORT");
}

cl_mem_flags shadow_flags(cl_mem_flags flags)
{
    if (!(flags & CL_MEM_USE_HOST_PTR) || !how())
        return flags;
    return (flags & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR) | CL_MEM_COPY_HOST_PTR;
}

/* The mutex is held; of no buffer, a free place. */
static struct shadow *find(cl_mem buffer)
{
    for (int i = 0; i < BUFFERS; i++)
        if (shadows[i].buffer == buffer)
            return &shadows[i];
    return NULL;
}

static void replace(cl_mem from, const struct shadow *by)
{
    struct shadow *place;

    pthread_mutex_lock(&mutex);
    place = find(from);
    if (place)
        *place = *by;
    pthread_mutex_unlock(&mutex);
}

void shadow_created(cl_mem buffer, cl_mem_flags flags, void *host, size_t size)
{
    if (host && shadow_flags(flags) != flags)
        replace(NULL, &(struct shadow){buffer, host, size, false});
}

void shadow_gone(cl_mem buffer)
{
    if (how())
        replace(buffer, &(struct shadow){NULL, NULL, 0, false});
}

/* Whether the host's memory is looked at now. */
static bool looks(struct shadow *shadow, const char *way, bool kernel)
{
    const bool again = shadow->read;

    shadow->read |= kernel;
    if (strcmp(way, "out-kernels") == 0)
        return !kernel;
    if (strcmp(way, "once-kernels") == 0)
        return !kernel || !again;
    return strcmp(way, "in") == 0 || strcmp(way, "in-kernels") == 0;
}

static bool writes(const char *way, bool kernel)
{
    if (strcmp(way, "in-kernels") == 0)
        return !kernel;
    return strcmp(way, "out") == 0 || strcmp(way, "out-kernels") == 0 ||
           strcmp(way, "once-kernels") == 0;
}

static void move(cl_command_queue queue, const cl_mem *memories,
                 cl_uint memory_count, bool kernel, bool before)
{
    const char *way = how();

    if (!way)
        return;
    pthread_mutex_lock(&mutex);
    for (cl_uint i = 0; i < memory_count; i++) {
        struct shadow *at = memories[i] ? find(memories[i]) : NULL;

        if (at && before && looks(at, way, kernel))
            target.clEnqueueWriteBuffer(queue, at->buffer, CL_TRUE, 0, at->size,
                                        at->host, 0, NULL, NULL);
        if (at && !before && writes(way, kernel))
            target.clEnqueueReadBuffer(queue, at->buffer, CL_TRUE, 0, at->size,
                                       at->host, 0, NULL, NULL);
    }
    pthread_mutex_unlock(&mutex);
}

void shadow_before(cl_command_queue queue, const cl_mem *memories,
                   cl_uint memory_count, bool kernel)
{
    move(queue, memories, memory_count, kernel, true);
}

void shadow_after(cl_command_queue queue, const cl_mem *memories,
                  cl_uint memory_count, bool kernel)
{
    move(queue, memories, memory_count, kernel, false);
}
