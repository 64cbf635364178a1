/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TANDEM_LAYER_GUARD_PAGES: each buffer is followed by an inaccessible page,
 * so that a kernel that accesses memory past the end ends the process, with a
 * line that names the kernel. There is also such a page before the buffer, as
 * close as the size allows. For drivers that compute in the memory that they
 * receive, like PoCL.
 *
 * A buffer starts at a multiple of 32 bytes, as vectors require. If its size
 * is not such a multiple, the last bytes of its page are not protected.
 */
#include "internal.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u
#define ALIGNMENT 32u

/* A mapping: a guard page, the buffer's pages, a guard page. */
struct guarded_buffer {
    unsigned char *mapping, *begin;
    size_t mapped, bytes;
    struct guarded_buffer *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static cl_icd_dispatch driver;
static struct guarded_buffer *guarded_buffers;
static char running[64]; /* The kernel that was enqueued last. */
/* The previous handlers of SIGSEGV and SIGBUS. */
static struct sigaction before[2];

static struct guarded_buffer *guarded_buffer_new(size_t bytes)
{
    size_t inner = (bytes + PAGE - 1) / PAGE * PAGE;
    size_t room = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct guarded_buffer *guarded_buffer = calloc(1, sizeof *guarded_buffer);

    if (!guarded_buffer)
        return NULL;
    guarded_buffer->mapped = inner + 2 * PAGE;
    guarded_buffer->bytes = bytes;
    guarded_buffer->mapping = mmap(NULL, guarded_buffer->mapped, PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (guarded_buffer->mapping == MAP_FAILED) {
        free(guarded_buffer);
        return NULL;
    }
    mprotect(guarded_buffer->mapping + PAGE, inner, PROT_READ | PROT_WRITE);
    guarded_buffer->begin = guarded_buffer->mapping + PAGE + inner - room;
    pthread_mutex_lock(&mutex);
    guarded_buffer->next = guarded_buffers;
    guarded_buffers = guarded_buffer;
    pthread_mutex_unlock(&mutex);
    return guarded_buffer;
}

static void CL_CALLBACK guarded_buffer_gone(cl_mem memory, void *user)
{
    struct guarded_buffer *guarded_buffer = user;

    (void)memory;
    pthread_mutex_lock(&mutex);
    for (struct guarded_buffer **at = &guarded_buffers; *at; at = &(*at)->next)
        if (*at == guarded_buffer) {
            *at = guarded_buffer->next;
            break;
        }
    pthread_mutex_unlock(&mutex);
    munmap(guarded_buffer->mapping, guarded_buffer->mapped);
    free(guarded_buffer);
}

/* Memory that the host provides, or that must be pinned, is not replaced. */
static cl_mem CL_API_CALL guarded_clCreateBuffer(cl_context context,
                                                 cl_mem_flags flags,
                                                 size_t size, void *host,
                                                 cl_int *error)
{
    const cl_mem_flags hosts = CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR;
    struct guarded_buffer *guarded_buffer = NULL;
    cl_mem memory;

    if ((flags & hosts) == 0 && size > 0)
        guarded_buffer = guarded_buffer_new(size);
    if (!guarded_buffer)
        return driver.clCreateBuffer(context, flags, size, host, error);
    if (flags & CL_MEM_COPY_HOST_PTR)
        memcpy(guarded_buffer->begin, host, size);
    flags &= ~(cl_mem_flags)CL_MEM_COPY_HOST_PTR;
    memory = driver.clCreateBuffer(context, flags | CL_MEM_USE_HOST_PTR, size,
                                   guarded_buffer->begin, error);
    if (!memory)
        guarded_buffer_gone(NULL, guarded_buffer);
    else
        driver.clSetMemObjectDestructorCallback(memory, guarded_buffer_gone,
                                                guarded_buffer);
    return memory;
}

static cl_int CL_API_CALL guarded_clEnqueueNDRangeKernel(
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

/*
 * The process ends here, so held locks do not matter. When the access is
 * repeated, the previous handler receives the signal.
 */
static void crash_report(int signal_number, siginfo_t *info, void *context)
{
    const unsigned char *at = info->si_addr;

    (void)context;
    for (const struct guarded_buffer *guarded_buffer = guarded_buffers;
         guarded_buffer; guarded_buffer = guarded_buffer->next)
        if (at >= guarded_buffer->mapping &&
            at < guarded_buffer->mapping + guarded_buffer->mapped) {
            fprintf(stderr,
                    "fence: byte %td of a buffer of %zu was touched; the last "
                    "kernel is %s\n",
                    at - guarded_buffer->begin, guarded_buffer->bytes, running);
            break;
        }
    sigaction(signal_number, &before[signal_number == SIGBUS], NULL);
}

void guard_pages_environment(void)
{
    struct sigaction action = {.sa_sigaction = crash_report,
                               .sa_flags = SA_SIGINFO};

    if (!getenv("TANDEM_LAYER_GUARD_PAGES"))
        return;
    driver = target;
    target.clCreateBuffer = guarded_clCreateBuffer;
    target.clEnqueueNDRangeKernel = guarded_clEnqueueNDRangeKernel;
    sigaction(SIGSEGV, &action, &before[0]);
    sigaction(SIGBUS, &action, &before[1]);
}
