/* SPDX-License-Identifier: Apache-2.0 */
/* Builds programs, loads them from the disk cache, and tests their kernels.
 * Any thread may call these functions.  Builds do not hold programs.mutex. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/secure_file.h"
#include "opencl/program/kernel_variants.h"
#include "common/log2_floor.h"
#include "common/pocl_diagnosis.h"
#include "common/thread_state_guard.h"
#include "opencl/program/program_cache.h"
#include "opencl/device/device.h"
#include "opencl/device/event_poll.h"
#include "opencl/program/nvidia/ptx_rewrite.h"
#include "opencl/plan/plan.h"
#include "opencl/program/kernel_self_test.h"
#include "opencl/device/quirks.h"
#include "opencl/device/cl_status.h"
#include "opencl/program/trial_launch.h"

/* A build can fail temporarily while other processes use the compiler's files.
 * Each pause between attempts is four times as long as the previous pause. */
#define MAX_BUILD_ATTEMPTS 3u
#define FIRST_PAUSE_NS 30000000

/* A source file compiled with certain options.  All kernels with the same file
 * and options share the program. */
struct program {
    const char *file;
    char options[KERNEL_OPTION_BYTES];
    bool is_building;
    cl_program program; /* NULL if the program is not built */
    struct program *next;
};

/* ---- one build ---- */

/* Returns the text without leading white space. */
static const char *text_trim(const char *text)
{
    return text + strspn(text, " \t\r\n");
}

/* Logs the text that the compiler wrote about a program that it built, such as
 * warnings.  NVIDIA's compiler always writes a newline. */
static void build_log_report(struct tandem_device *device, cl_program program,
                             const struct kernel_source *text)
{
    size_t bytes = 0;
    if (device->log == NULL)
        return;
    clGetProgramBuildInfo(program, device->hardware->id, CL_PROGRAM_BUILD_LOG,
                          0, NULL, &bytes);
    /* OpenCL copies nothing to a buffer that is too small for the log. */
    char *log = bytes != 0 ? calloc(1, bytes + 1) : NULL;
    if (log == NULL)
        return;
    clGetProgramBuildInfo(program, device->hardware->id, CL_PROGRAM_BUILD_LOG,
                          bytes, log, NULL);
    const char *trimmed = text_trim(log);
    if (*trimmed != '\0')
        device_log(device, TANDEM_LOG_DEBUG, "the compiler says of %s: %.800s",
                   text->kernel->file, trimmed);
    free(log);
}

static enum tandem_status build_failed(struct tandem_device *device,
                                       cl_program program,
                                       const struct kernel_source *text,
                                       cl_int code, enum tandem_log_level level)
{
    char log[4096] = "", why[POCL_WHY_BYTES] = "";
    clGetProgramBuildInfo(program, device->hardware->id, CL_PROGRAM_BUILD_LOG,
                          sizeof(log) - 1, log, NULL);
    device_log(device, level, "%s (%s) failed to build: %.800s",
               text->kernel->file, text->options, log);
    /* If a build returns CL_OUT_OF_RESOURCES, the device is not lost. */
    if (code == CL_OUT_OF_RESOURCES)
        code = CL_BUILD_PROGRAM_FAILURE;
    enum tandem_status status = status_from_cl(device, code, "clBuildProgram");
    if ((device->hardware->quirks & QUIRK_CACHE_REQUIRED) != 0 &&
        !pocl_cache_is_writable(why, sizeof(why)))
        return last_error_set(status,
                              "clBuildProgram of %s failed (%d): PoCL "
                              "compiles nothing, because %s",
                              text->kernel->file, code, why);
    log[strcspn(log, "\n")] = '\0';
    return last_error_set(status, "clBuildProgram of %s failed (%d): %.150s",
                          text->kernel->file, code, log);
}

static enum tandem_status build_once(struct tandem_device *device,
                                     const struct kernel_source *text,
                                     enum tandem_log_level level,
                                     cl_program *out_program)
{
    cl_int code = CL_SUCCESS;
    const char *source = text->kernel->source;
    cl_program program =
        clCreateProgramWithSource(device->context, 1, &source, NULL, &code);
    if (code != CL_SUCCESS)
        return status_from_cl(device, code, "clCreateProgramWithSource");
    uint64_t start_ns = monotonic_ns();
    code = clBuildProgram(program, 1, &device->hardware->id, text->options,
                          NULL, NULL);
    if (code != CL_SUCCESS) {
        enum tandem_status status =
            build_failed(device, program, text, code, level);
        clReleaseProgram(program);
        return status;
    }
    device_log(device, TANDEM_LOG_DEBUG, "built %s in %.0f ms: %s",
               text->kernel->file, (double)(monotonic_ns() - start_ns) / 1e6,
               text->options);
    build_log_report(device, program, text);
    *out_program = program;
    return TANDEM_OK;
}

static enum tandem_status build_source(struct tandem_device *device,
                                       const struct kernel_source *text,
                                       cl_program *out_program)
{
    long pause_ns = FIRST_PAUSE_NS;
    for (uint32_t attempt = 1;; attempt++, pause_ns *= 4) {
        bool is_last = attempt == MAX_BUILD_ATTEMPTS;
        enum tandem_status status = build_once(
            device, text, is_last ? TANDEM_LOG_ERROR : TANDEM_LOG_INFO,
            out_program);
        if (status != TANDEM_FAILED || is_last)
            return status;
        nanosleep(&(struct timespec){0, pause_ns}, NULL);
    }
}

/* Builds a program from the rewritten PTX of *program (ptx_rewrite.h).
 * Replaces *program by the new program and releases the old one.  On failure,
 * *program is NULL.  Returns FAILED if the PTX cannot be rewritten or the
 * driver rejects it. */
static enum tandem_status sm90a_program_build(struct tandem_device *device,
                                              const struct kernel_source *text,
                                              cl_program *program)
{
    size_t bytes, ptx_bytes;
    const char *why = "there is no binary";
    char *ptx = NULL;
    unsigned char *binary = program_binary_get(*program, MAX_PTX_BYTES, &bytes);
    if (binary != NULL)
        ptx = ptx_rewrite_sm90a((const char *)binary, bytes, &ptx_bytes, &why);
    free(binary);
    clReleaseProgram(*program);
    *program = NULL;
    if (ptx == NULL)
        return last_error_set(
            TANDEM_FAILED, "the PTX of %s cannot be rewritten for sm_90a: %s",
            text->kernel->file, why);
    /* NVIDIA's PTX includes its final NUL. */
    cl_int code = program_from_binary(device, ptx, ptx_bytes + 1, "", program);
    free(ptx);
    if (code == CL_SUCCESS)
        return TANDEM_OK;
    return last_error_set(TANDEM_FAILED,
                          "the driver rejects the sm_90a program of %s (%d)",
                          text->kernel->file, code);
}

/* Lets a compile process build the program, and loads its binary.  Returns NULL
 * on any failure.  Sets *out_lost if the process cannot be used again. */
static cl_program process_build(struct tandem_device *device,
                                const struct kernel_source *text,
                                const struct compile_process *process,
                                bool *out_lost)
{
    const char *options = text->options, *why;
    size_t bytes, ptx_bytes;
    cl_program program = NULL;
    uint64_t start_ns = monotonic_ns();
    unsigned char *binary = compile_process_build(
        process, device, COMPILE_SOURCE, options, text->kernel->source,
        strlen(text->kernel->source), &bytes, out_lost);
    if (binary != NULL && (text->kernel->flags & KERNEL_PTX_REWRITE) != 0) {
        char *ptx =
            ptx_rewrite_sm90a((const char *)binary, bytes, &ptx_bytes, &why);
        free(binary);
        if (ptx == NULL)
            return NULL;
        binary = (unsigned char *)ptx;
        bytes = ptx_bytes + 1;
        options = "";
        /* The driver assembles the PTX there, too. */
        free(compile_process_build(process, device, COMPILE_BINARY, options,
                                   ptx, bytes, &ptx_bytes, out_lost));
    }
    uint64_t load_ns = monotonic_ns();
    if (binary != NULL && program_from_binary(device, binary, bytes, options,
                                              &program) == CL_SUCCESS)
        device_log(device, TANDEM_LOG_DEBUG,
                   "built %s in %.0f ms in process %d, loaded in %.0f ms: %s",
                   text->kernel->file, (double)(load_ns - start_ns) / 1e6,
                   (int)process->pid, (double)(monotonic_ns() - load_ns) / 1e6,
                   text->options);
    free(binary);
    return program;
}

/* Builds the program from source in this process. */
static enum tandem_status local_build(struct tandem_device *device,
                                      const struct kernel_source *text,
                                      cl_program *out_program)
{
    enum tandem_status status = build_source(device, text, out_program);
    if (status == TANDEM_OK && (text->kernel->flags & KERNEL_PTX_REWRITE) != 0)
        status = sm90a_program_build(device, text, out_program);
    return status;
}

/* Builds the program in a compile process, or here if there is none or if it
 * fails. */
static enum tandem_status build_anywhere(struct tandem_device *device,
                                         const struct kernel_source *text,
                                         cl_program *out_program)
{
    enum tandem_status status = TANDEM_OK;
    struct compile_pool_entry *entry = compile_pool_enter(device);
    bool is_lost = false;
    if (entry != NULL)
        *out_program = process_build(device, text, &entry->process, &is_lost);
    if (*out_program == NULL) {
        /* The host may return from main once the device is closed, and drivers
         * crash if they still compile then. */
        status = entry != NULL && compile_pool_is_stopping(device)
                     ? last_error_set(TANDEM_FAILED, "the device is closed")
                     : local_build(device, text, out_program);
    }
    compile_pool_leave(device, entry, is_lost);
    return status;
}

/* Loads the program from the disk cache or builds it from source. */
static enum tandem_status load_or_build(struct tandem_device *device,
                                        const struct kernel_source *text,
                                        cl_program *out_program)
{
    bool waited;
    enum tandem_status status = TANDEM_OK;
    *out_program = program_cache_load(device, text);
    if (*out_program != NULL)
        return TANDEM_OK;
    int lock = compile_lock_acquire(device, &waited);
    bool needs_lock = (device->hardware->quirks & QUIRK_BINARY_RACE) != 0;
    if (waited)
        *out_program = program_cache_load(device, text);
    if (*out_program == NULL) {
        status = build_anywhere(device, text, out_program);
        if (status == TANDEM_OK && (lock >= 0 || !needs_lock))
            program_cache_store(device, text, *out_program);
    }
    lock_release(lock);
    return status;
}

/* ---- the table of programs ---- */

/* Returns the program with the source file and options of `text` from the
 * program table.  Adds a missing program to the table.  Returns NULL if host
 * memory is exhausted.  The caller holds programs.mutex. */
static struct program *program_find(struct programs *programs,
                                    const struct kernel_source *text)
{
    struct program *at = programs->first_program;
    while (at != NULL && (at->file != text->kernel->file ||
                          strcmp(at->options, text->options) != 0))
        at = at->next;
    if (at != NULL)
        return at;
    at = calloc(1, sizeof(*at));
    if (at == NULL) {
        memory_error("out of host memory");
        return NULL;
    }
    at->file = text->kernel->file;
    snprintf(at->options, sizeof(at->options), "%s", text->options);
    at->next = programs->first_program;
    programs->first_program = at;
    return at;
}

static enum tandem_status program_get(struct tandem_device *device,
                                      const struct kernel_source *text,
                                      cl_program *out_program)
{
    struct programs *programs = &device->programs;
    pthread_mutex_lock(&programs->mutex);
    struct program *program = program_find(programs, text);
    if (program != NULL) {
        while (program->is_building)
            pthread_cond_wait(&programs->changed, &programs->mutex);
        *out_program = program->program;
        program->is_building = *out_program == NULL;
    }
    pthread_mutex_unlock(&programs->mutex);
    if (program == NULL)
        return TANDEM_OUT_OF_MEMORY;
    if (*out_program != NULL)
        return TANDEM_OK;
    enum tandem_status status = load_or_build(device, text, out_program);
    pthread_mutex_lock(&programs->mutex);
    program->program = *out_program;
    program->is_building = false;
    pthread_cond_broadcast(&programs->changed);
    pthread_mutex_unlock(&programs->mutex);
    return status;
}

void programs_release_built(struct programs *programs)
{
    for (struct program *at = programs->first_program, *next; at != NULL;
         at = next) {
        next = at->next;
        if (at->program != NULL)
            clReleaseProgram(at->program);
        free(at);
    }
    programs->first_program = NULL;
}

/* ---- kernels ---- */

static enum tandem_status
kernel_check_local_memory(struct tandem_device *device, cl_kernel kernel)
{
    cl_ulong bytes = 0, max_size = device->hardware->info.local_memory_bytes;
    cl_int code = clGetKernelWorkGroupInfo(kernel, device->hardware->id,
                                           CL_KERNEL_LOCAL_MEM_SIZE,
                                           sizeof(bytes), &bytes, NULL);
    if (code != CL_SUCCESS)
        return status_from_cl(device, code, "clGetKernelWorkGroupInfo");
    if (bytes <= max_size ||
        (device->hardware->quirks & QUIRK_LOCAL_MEMORY_UNDERREPORTED) != 0)
        return TANDEM_OK;
    return last_error_set(TANDEM_FAILED,
                          "a kernel needs %llu bytes of local memory; the "
                          "device has %llu",
                          (unsigned long long)bytes,
                          (unsigned long long)max_size);
}

/* Checks that the kernel allows work-groups with the size in `key`.  If the
 * kernel needs smaller work-groups, makes later plans use smaller work-groups
 * and returns NOT_READY. */
static enum tandem_status kernel_check_group_size(struct tandem_device *device,
                                                  cl_kernel kernel,
                                                  const struct kernel_key *key)
{
    size_t max_size = 0;
    cl_int code = clGetKernelWorkGroupInfo(kernel, device->hardware->id,
                                           CL_KERNEL_WORK_GROUP_SIZE,
                                           sizeof(max_size), &max_size, NULL);
    if (code != CL_SUCCESS)
        return status_from_cl(device, code, "clGetKernelWorkGroupInfo");
    bool allows_more =
        (device->hardware->quirks & QUIRK_GROUP_SIZE_UNDERREPORTED) != 0 &&
        key->group_log2 > device->programs.group_log2;
    if (max_size >= (size_t)1 << key->group_log2 || allows_more)
        return kernel_check_local_memory(device, kernel);
    if (key->group_log2 == 0 ||
        (key->kernel->flags & KERNEL_FIXED_GROUP_SIZE) != 0)
        return last_error_set(TANDEM_FAILED,
                              "a kernel allows work-groups of %zu items; %u "
                              "are needed",
                              max_size, 1u << key->group_log2);
    struct programs *programs = &device->programs;
    uint32_t log2 = max_size != 0 ? log2_floor(max_size) : key->group_log2 - 1u;
    pthread_mutex_lock(&programs->mutex);
    if (log2 < programs->group_log2)
        programs->group_log2 = log2;
    pthread_mutex_unlock(&programs->mutex);
    return last_error_set(TANDEM_NOT_READY,
                          "a kernel needs work-groups of %u items", 1u << log2);
}

static enum tandem_status build_guarded(struct tandem_device *device,
                                        struct kernel_variant *variant,
                                        const struct trial_launch *trial)
{
    const struct kernel_info *info = variant->key.kernel;
    struct kernel_source text;
    cl_int code = CL_SUCCESS;
    cl_program program;
    kernel_source_make(&text, &variant->key, device->hardware);
    enum tandem_status status = program_get(device, &text, &program);
    if (status != TANDEM_OK)
        return status;
    cl_kernel kernel = clCreateKernel(program, info->function, &code);
    if (code != CL_SUCCESS)
        return status_from_cl(device, code, "clCreateKernel");
    status = kernel_check_group_size(device, kernel, &variant->key);
    bool is_tested = (info->flags & KERNEL_SELF_TEST) != 0;
    if (status == TANDEM_OK && is_tested)
        status = kernel_self_test_run(device, kernel, &variant->key);
    if (status == TANDEM_OK && trial != NULL && !is_tested)
        status =
            status_from_cl(device,
                           trial_launch_run(trial, device->context,
                                            device->hardware->id, kernel, 1),
                           "the trial launch of a kernel");
    clReleaseKernel(kernel);
    if (status == TANDEM_OK)
        variant->program = program;
    return status;
}

enum tandem_status kernel_variant_build(struct tandem_device *device,
                                        struct kernel_variant *variant,
                                        const struct trial_launch *trial)
{
    struct thread_state host;
    thread_state_guard_enter(&host);
    enum tandem_status status = build_guarded(device, variant, trial);
    thread_state_guard_leave(&host);
    return status;
}
