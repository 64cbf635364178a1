/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TANDEM_LAYER_GUARD_PAGES: buffers that end where a page ends that is followed
 * by one that nobody may touch, so that what a kernel reads or writes past a
 * buffer's end ends the process, with a line that says whose it was; before the
 * first byte there is such a page, too, as near as the size allows.  For
 * drivers that compute in the memory that they are given, as PoCL does.
 *
 * A buffer begins at a multiple of 32 bytes, as vectors need it: of one whose
 * size is no such multiple the last bytes of the page are not watched.
 */
#include "internal.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define ALIGNMENT 32u

/* A mapping: a page, the buffer's pages, a page. */
struct fence {
    unsigned char *mapping, *begin;
    size_t mapped, bytes;
    struct fence *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static cl_icd_dispatch driver;
static struct fence *fences;
static char running[64]; /* the kernel that was enqueued last */
static struct sigaction before[2]; /* who was told of crashes: SEGV, BUS */

static struct fence *fence_new(size_t bytes)
{
    size_t inner = (bytes + PAGE - 1) / PAGE * PAGE;
    size_t room = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct fence *fence = calloc(1, sizeof *fence);

    if (!fence)
        return NULL;
    fence->mapped = inner + 2 * PAGE;
    fence->bytes = bytes;
    fence->mapping = mmap(NULL, fence->mapped, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fence->mapping == MAP_FAILED) {
        free(fence);
        return NULL;
    }
    mprotect(fence->mapping + PAGE, inner, PROT_READ | PROT_WRITE);
    fence->begin = fence->mapping + PAGE + inner - room;
    pthread_mutex_lock(&mutex);
    fence->next = fences;
    fences = fence;
    pthread_mutex_unlock(&mutex);
    return fence;
}

static void CL_CALLBACK fence_gone(cl_mem memory, void *user)
{
    struct fence *fence = user;

    (void)memory;
    pthread_mutex_lock(&mutex);
    for (struct fence **at = &fences; *at; at = &(*at)->next)
        if (*at == fence) {
            *at = fence->next;
            break;
        }
    pthread_mutex_unlock(&mutex);
    munmap(fence->mapping, fence->mapped);
    free(fence);
}

/* Memory that the host gives, or wants pinned, stays as it is. */
static cl_mem CL_API_CALL fence_clCreateBuffer(cl_context context,
                                               cl_mem_flags flags, size_t size,
                                               void *host, cl_int *error)
{
    const cl_mem_flags hosts = CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR;
    struct fence *fence = NULL;
    cl_mem memory;

    if ((flags & hosts) == 0 && size > 0)
        fence = fence_new(size);
    if (!fence)
        return driver.clCreateBuffer(context, flags, size, host, error);
    if (flags & CL_MEM_COPY_HOST_PTR)
        memcpy(fence->begin, host, size);
    flags &= ~(cl_mem_flags)CL_MEM_COPY_HOST_PTR;
    memory = driver.clCreateBuffer(context, flags | CL_MEM_USE_HOST_PTR, size,
                                   fence->begin, error);
    if (!memory)
        fence_gone(NULL, fence);
    else
        driver.clSetMemObjectDestructorCallback(memory, fence_gone, fence);
    return memory;
}

static cl_int CL_API_CALL fence_clEnqueueNDRangeKernel(
    cl_command_queue queue, cl_kernel kernel, cl_uint axes,
    const size_t *offset, const size_t *global, const size_t *local,
    cl_uint wait_count, const cl_event *waits, cl_event *event)
{
    char name[64] = "";

    driver.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name,
                           NULL);
    pthread_mutex_lock(&mutex);
    memcpy(running, name, sizeof running);
    pthread_mutex_unlock(&mutex);
    return driver.clEnqueueNDRangeKernel(queue, kernel, axes, offset, global,
                                         local, wait_count, waits, event);
}

/* The process ends here, so what it holds locked does not matter: whoever was
 * told before is told of the same access, once it is made again. */
static void touched(int signal_number, siginfo_t *info, void *context)
{
    const unsigned char *at = info->si_addr;

    (void)context;
    for (const struct fence *fence = fences; fence; fence = fence->next)
        if (at >= fence->mapping && at < fence->mapping + fence->mapped) {
            fprintf(stderr,
                    "fence: byte %td of a buffer of %zu was touched; the last "
                    "kernel is %s\n",
                    at - fence->begin, fence->bytes, running);
            break;
        }
    sigaction(signal_number, &before[signal_number == SIGBUS], NULL);
}

void fence_environment(void)
{
    struct sigaction action = {.sa_sigaction = touched,
                               .sa_flags = SA_SIGINFO};

    if (!getenv("TANDEM_LAYER_GUARD_PAGES"))
        return;
    driver = target;
    target.clCreateBuffer = fence_clCreateBuffer;
    target.clEnqueueNDRangeKernel = fence_clEnqueueNDRangeKernel;
    sigaction(SIGSEGV, &action, &before[0]);
    sigaction(SIGBUS, &action, &before[1]);
}
