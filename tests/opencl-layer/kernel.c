/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records properties of kernels: their names, the build options of their
 * programs, and their buffer arguments. Corrupts results, to test the
 * self-tests. Tables under one mutex.
 */
#include "internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256u

struct program {
    cl_program handle;
    char options[512];
    struct program *next;
};

struct kernel {
    cl_kernel handle;
    cl_program program;
    char name[64];
    /* NULL if the argument is not a buffer. */
    cl_mem arguments[KERNEL_ARGUMENTS];
    struct kernel *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct program *programs[BUCKETS];
static struct kernel *kernels[BUCKETS];
static const char *corrupt_text;

static size_t bucket_of(const void *handle)
{
    return (uintptr_t)handle / 16 % BUCKETS;
}

static struct program *program_find(cl_program handle)
{
    struct program *at = programs[bucket_of(handle)];

    while (at && at->handle != handle)
        at = at->next;
    return at;
}

static struct kernel *kernel_find(cl_kernel handle)
{
    struct kernel *at = kernels[bucket_of(handle)];

    while (at && at->handle != handle)
        at = at->next;
    return at;
}

void program_built(cl_program handle, const char *options)
{
    struct program **bucket = &programs[bucket_of(handle)];
    struct program *program;

    pthread_mutex_lock(&mutex);
    program = program_find(handle);
    if (!program && (program = calloc(1, sizeof *program))) {
        program->handle = handle;
        program->next = *bucket;
        *bucket = program;
    }
    if (program)
        snprintf(program->options, sizeof program->options, "%s ",
                 options ? options : "");
    pthread_mutex_unlock(&mutex);
}

/* Called before a release. Removes the entry if this is the last reference. */
void program_gone(cl_program handle)
{
    cl_uint references = 0;

    if (target.clGetProgramInfo(handle, CL_PROGRAM_REFERENCE_COUNT,
                                sizeof references, &references,
                                NULL) != CL_SUCCESS ||
        references > 1)
        return;
    pthread_mutex_lock(&mutex);
    for (struct program **at = &programs[bucket_of(handle)]; *at;
         at = &(*at)->next)
        if ((*at)->handle == handle) {
            struct program *program = *at;

            *at = program->next;
            free(program);
            break;
        }
    pthread_mutex_unlock(&mutex);
}

void kernel_created(cl_kernel handle, cl_program program, const char *name)
{
    struct kernel **bucket = &kernels[bucket_of(handle)];
    struct kernel *kernel;

    pthread_mutex_lock(&mutex);
    kernel = kernel_find(handle);
    if (!kernel && (kernel = calloc(1, sizeof *kernel))) {
        kernel->handle = handle;
        kernel->next = *bucket;
        *bucket = kernel;
    }
    if (kernel) {
        kernel->program = program;
        memset(kernel->arguments, 0, sizeof kernel->arguments);
        snprintf(kernel->name, sizeof kernel->name, "%s", name);
    }
    pthread_mutex_unlock(&mutex);
}

void kernel_gone(cl_kernel handle)
{
    cl_uint references = 0;

    if (target.clGetKernelInfo(handle, CL_KERNEL_REFERENCE_COUNT,
                               sizeof references, &references,
                               NULL) != CL_SUCCESS ||
        references > 1)
        return;
    pthread_mutex_lock(&mutex);
    for (struct kernel **at = &kernels[bucket_of(handle)]; *at;
         at = &(*at)->next)
        if ((*at)->handle == handle) {
            struct kernel *kernel = *at;

            *at = kernel->next;
            free(kernel);
            break;
        }
    pthread_mutex_unlock(&mutex);
}

/*
 * An argument of the size of a handle may be a number; the driver tells if it
 * is a buffer.
 */
static bool is_buffer(cl_mem memory)
{
    cl_mem_object_type type = 0;

    return (uintptr_t)memory > 4096 && (uintptr_t)memory % 8 == 0 &&
           target.clGetMemObjectInfo(memory, CL_MEM_TYPE, sizeof type, &type,
                                     NULL) == CL_SUCCESS &&
           type == CL_MEM_OBJECT_BUFFER;
}

void kernel_argument(cl_kernel handle, cl_uint index, size_t bytes,
                     const void *value)
{
    struct kernel *kernel;
    cl_mem memory = NULL;

    if (index >= KERNEL_ARGUMENTS)
        return;
    if (value && bytes == sizeof memory)
        memcpy(&memory, value, sizeof memory);
    pthread_mutex_lock(&mutex);
    kernel = kernel_find(handle);
    if (kernel)
        kernel->arguments[index] = memory;
    pthread_mutex_unlock(&mutex);
}

cl_uint kernel_memories(cl_kernel handle, cl_mem *out_memories, char *out_name,
                        size_t name_room)
{
    const struct kernel *kernel;
    cl_uint found = 0;

    out_name[0] = '\0';
    pthread_mutex_lock(&mutex);
    kernel = kernel_find(handle);
    for (cl_uint i = 0; kernel && i < KERNEL_ARGUMENTS; i++)
        if (kernel->arguments[i])
            out_memories[found++] = kernel->arguments[i];
    if (kernel)
        snprintf(out_name, name_room, "%s", kernel->name);
    pthread_mutex_unlock(&mutex);
    return found;
}

/* ---- corrupted results ---- */

void corrupt_environment(void)
{
    corrupt_text = getenv("TANDEM_LAYER_CORRUPT");
}

/*
 * Returns the buffer that the kernel writes if its result must be corrupted.
 * always: the script requires it.
 */
static cl_mem corrupt_target(cl_kernel handle, bool always)
{
    const struct kernel *kernel;
    const struct program *program;
    cl_mem memory = NULL;

    pthread_mutex_lock(&mutex);
    kernel = kernel_find(handle);
    program = kernel ? program_find(kernel->program) : NULL;
    if (kernel && (always || strstr(kernel->name, corrupt_text) ||
                   (program && strstr(program->options, corrupt_text)))) {
        memory = kernel->arguments[0];
        for (cl_uint i = KERNEL_ARGUMENTS; i-- > 0 && !memory;)
            if (is_buffer(kernel->arguments[i]))
                memory = kernel->arguments[i];
    }
    pthread_mutex_unlock(&mutex);
    return memory;
}

void kernel_corrupt(cl_command_queue queue, cl_kernel kernel, bool always)
{
    const float wrong = 123.456f;
    cl_mem memory;
    size_t bytes = 0;

    if (!always && !corrupt_text)
        return;
    memory = corrupt_target(kernel, always);
    if (!memory || target.clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof bytes,
                                             &bytes, NULL) != CL_SUCCESS)
        return;
    bytes -= bytes % sizeof wrong;
    if (bytes > 0)
        target.clEnqueueFillBuffer(queue, memory, &wrong, sizeof wrong, 0,
                                   bytes, 0, NULL, NULL);
}
