/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records properties of kernels: their names, the build options of their
 * programs, and their buffer arguments. Corrupts results, to test the
 * self-tests. Tables under one mutex.
 */
#include <config.h>

#include "internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS 256u

/* A program or a kernel. */
struct object {
    void *handle;
    /* The build options of a program, or the name of a kernel. */
    char text[512];
    cl_program program; /* The program of a kernel. */
    /* NULL if the argument of the kernel is not a buffer. */
    cl_mem arguments[KERNEL_ARGUMENTS];
    /*
     * The last argument of another size than a buffer's, which are the
     * parameters; only if launches are logged.
     */
    unsigned char *params;
    size_t param_bytes;
    struct object *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct object *programs[BUCKETS], *kernels[BUCKETS];
static const char *corrupt_text;
static FILE *launch_log;

/* Call the next three functions with the mutex held. */

/* Returns the link to the object, or the link at the end of its bucket. */
static struct object **object_link(struct object **table, const void *handle)
{
    struct object **at = &table[(uintptr_t)handle / 16 % BUCKETS];

    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    return at;
}

/* Returns the object, which is added if necessary, or NULL without memory. */
static struct object *object_get(struct object **table, void *handle)
{
    struct object **at = object_link(table, handle);

    if (!*at && (*at = calloc(1, sizeof **at)))
        (*at)->handle = handle;
    return *at;
}

static struct object *kernel_find(cl_kernel handle)
{
    return *object_link(kernels, handle);
}

static void object_remove(struct object **table, const void *handle)
{
    struct object **at, *object;

    pthread_mutex_lock(&mutex);
    at = object_link(table, handle);
    object = *at;
    if (object)
        *at = object->next;
    pthread_mutex_unlock(&mutex);
    if (object)
        free(object->params);
    free(object);
}

void program_built(cl_program handle, const char *options)
{
    struct object *program;

    pthread_mutex_lock(&mutex);
    program = object_get(programs, handle);
    if (program)
        snprintf(program->text, sizeof program->text, "%s ",
                 options ? options : "");
    pthread_mutex_unlock(&mutex);
}

/* Called before a release. Removes the entry if this is the last reference. */
void program_gone(cl_program handle)
{
    cl_uint references = 0;

    if (target.clGetProgramInfo(handle, CL_PROGRAM_REFERENCE_COUNT,
                                sizeof references, &references,
                                NULL) == CL_SUCCESS &&
        references <= 1)
        object_remove(programs, handle);
}

void kernel_created(cl_kernel handle, cl_program program, const char *name)
{
    struct object *kernel;

    pthread_mutex_lock(&mutex);
    kernel = object_get(kernels, handle);
    if (kernel) {
        kernel->program = program;
        memset(kernel->arguments, 0, sizeof kernel->arguments);
        snprintf(kernel->text, sizeof kernel->text, "%s", name);
    }
    pthread_mutex_unlock(&mutex);
}

void kernel_gone(cl_kernel handle)
{
    cl_uint references = 0;

    if (target.clGetKernelInfo(handle, CL_KERNEL_REFERENCE_COUNT,
                               sizeof references, &references,
                               NULL) == CL_SUCCESS &&
        references <= 1)
        object_remove(kernels, handle);
}

/* An argument of a handle's size may be a number, so the driver is asked. */
static bool is_buffer(cl_mem memory)
{
    cl_mem_object_type type = 0;

    return (uintptr_t)memory > 4096 && (uintptr_t)memory % 8 == 0 &&
           target.clGetMemObjectInfo(memory, CL_MEM_TYPE, sizeof type, &type,
                                     NULL) == CL_SUCCESS &&
           type == CL_MEM_OBJECT_BUFFER;
}

static void params_keep(struct object *kernel, const void *value, size_t bytes)
{
    unsigned char *params = realloc(kernel->params, bytes);

    if (!params)
        return;
    memcpy(params, value, bytes);
    kernel->params = params;
    kernel->param_bytes = bytes;
}

void kernel_argument(cl_kernel handle, cl_uint index, size_t bytes,
                     const void *value)
{
    struct object *kernel;
    cl_mem memory = NULL;

    if (index >= KERNEL_ARGUMENTS)
        return;
    if (value && bytes == sizeof memory)
        memcpy(&memory, value, sizeof memory);
    pthread_mutex_lock(&mutex);
    kernel = kernel_find(handle);
    if (kernel)
        kernel->arguments[index] = memory;
    if (kernel && launch_log && value && bytes != sizeof memory)
        params_keep(kernel, value, bytes);
    pthread_mutex_unlock(&mutex);
}

cl_uint kernel_memories(cl_kernel handle, cl_mem *out_memories, char *out_name,
                        size_t name_room)
{
    const struct object *kernel;
    cl_uint found = 0;

    out_name[0] = '\0';
    pthread_mutex_lock(&mutex);
    kernel = kernel_find(handle);
    for (cl_uint i = 0; kernel && i < KERNEL_ARGUMENTS; i++)
        if (kernel->arguments[i])
            out_memories[found++] = kernel->arguments[i];
    if (kernel)
        snprintf(out_name, name_room, "%s", kernel->text);
    pthread_mutex_unlock(&mutex);
    return found;
}

/* ---- the log of launches ---- */

void launch_log_environment(void)
{
    const char *path = getenv("TANDEM_LAYER_LAUNCHES");

    /* A line is one write, so that several processes can share the file. */
    if (path && (launch_log = fopen(path, "ae")))
        setvbuf(launch_log, NULL, _IOFBF, 1 << 16);
}

void launch_log_kernel(cl_kernel handle, size_t global, size_t local)
{
    const struct object *kernel;
    const struct object *program;

    if (!launch_log || gettid() != getpid())
        return;
    pthread_mutex_lock(&mutex);
    kernel = kernel_find(handle);
    program = kernel ? *object_link(programs, kernel->program) : NULL;
    if (program) {
        fprintf(launch_log, "%s %zu/%zu [%s] ", kernel->text, global, local,
                program->text);
        for (size_t i = 0; i < kernel->param_bytes; i++)
            fprintf(launch_log, "%02x", kernel->params[i]);
        fputc('\n', launch_log);
        fflush(launch_log);
    }
    pthread_mutex_unlock(&mutex);
}

void launch_log_copy(size_t from, size_t to, size_t bytes)
{
    if (launch_log && gettid() == getpid()) {
        fprintf(launch_log, "copy %zu to %zu, %zu bytes\n", from, to, bytes);
        fflush(launch_log);
    }
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
    const struct object *kernel;
    const struct object *program;
    cl_mem memory = NULL;

    pthread_mutex_lock(&mutex);
    kernel = kernel_find(handle);
    program = kernel ? *object_link(programs, kernel->program) : NULL;
    if (kernel && (always || strstr(kernel->text, corrupt_text) ||
                   (program && strstr(program->text, corrupt_text)))) {
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
