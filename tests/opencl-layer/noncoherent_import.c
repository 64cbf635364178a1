/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates a driver that works on a copy of imported host memory, as
 * TANDEM_LAYER_NONCOHERENT_IMPORT says (layer.c): it copies from the host
 * before a command, to the host after a command, or neither. Protected by one
 * mutex.
 */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS 16

struct imported_copy {
    cl_mem buffer;
    void *host;
    size_t size;
    bool read; /* A kernel has used the buffer. */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct imported_copy imported_copies[BUFFERS];

static const char *import_mode(void)
{
    return getenv("TANDEM_LAYER_NONCOHERENT_IMPORT");
}

cl_mem_flags import_flags(cl_mem_flags flags)
{
    if (!(flags & CL_MEM_USE_HOST_PTR) || !import_mode())
        return flags;
    return (flags & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR) | CL_MEM_COPY_HOST_PTR;
}

/* The mutex is held. NULL finds a free entry. */
static struct imported_copy *find(cl_mem buffer)
{
    for (int i = 0; i < BUFFERS; i++)
        if (imported_copies[i].buffer == buffer)
            return &imported_copies[i];
    return NULL;
}

static void replace(cl_mem from, const struct imported_copy *by)
{
    struct imported_copy *place;

    pthread_mutex_lock(&mutex);
    place = find(from);
    if (place)
        *place = *by;
    pthread_mutex_unlock(&mutex);
}

void import_created(cl_mem buffer, cl_mem_flags flags, void *host, size_t size)
{
    if (host && import_flags(flags) != flags)
        replace(NULL, &(struct imported_copy){buffer, host, size, false});
}

void import_gone(cl_mem buffer)
{
    if (import_mode())
        replace(buffer, &(struct imported_copy){NULL, NULL, 0, false});
}

/* Returns true if host memory must be copied to the buffer now. */
static bool copies_in(struct imported_copy *imported_copy, const char *mode,
                      bool kernel)
{
    const bool again = imported_copy->read;

    imported_copy->read |= kernel;
    if (strcmp(mode, "out-kernels") == 0)
        return !kernel;
    if (strcmp(mode, "once-kernels") == 0)
        return !kernel || !again;
    return strcmp(mode, "in") == 0 || strcmp(mode, "in-kernels") == 0;
}

static bool copies_out(const char *mode, bool kernel)
{
    if (strcmp(mode, "in-kernels") == 0)
        return !kernel;
    return strcmp(mode, "out") == 0 || strcmp(mode, "out-kernels") == 0 ||
           strcmp(mode, "once-kernels") == 0;
}

static void move(cl_command_queue queue, const cl_mem *memories,
                 cl_uint memory_count, bool kernel, bool before)
{
    const char *mode = import_mode();

    if (!mode)
        return;
    pthread_mutex_lock(&mutex);
    for (cl_uint i = 0; i < memory_count; i++) {
        struct imported_copy *at = memories[i] ? find(memories[i]) : NULL;

        if (at && before && copies_in(at, mode, kernel))
            target.clEnqueueWriteBuffer(queue, at->buffer, CL_TRUE, 0, at->size,
                                        at->host, 0, NULL, NULL);
        if (at && !before && copies_out(mode, kernel))
            target.clEnqueueReadBuffer(queue, at->buffer, CL_TRUE, 0, at->size,
                                       at->host, 0, NULL, NULL);
    }
    pthread_mutex_unlock(&mutex);
}

void import_before_command(cl_command_queue queue, const cl_mem *memories,
                           cl_uint memory_count, bool kernel)
{
    move(queue, memories, memory_count, kernel, true);
}

void import_after_command(cl_command_queue queue, const cl_mem *memories,
                          cl_uint memory_count, bool kernel)
{
    move(queue, memories, memory_count, kernel, false);
}
