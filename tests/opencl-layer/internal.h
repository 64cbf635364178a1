/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations that the parts of the layer share: the intercepted functions,
 * the driver's functions, and the checks before each call.
 */
#ifndef TANDEM_TESTS_LAYER_INTERNAL_H
#define TANDEM_TESTS_LAYER_INTERNAL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#include <CL/cl_layer.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layer.h"

/*
 * The functions that the plugin and CLBlast call: X(function). check-faults-gpu
 * finds missing ones. Calls of others go to the driver and are not counted.
 */
#define LAYER_FUNCTIONS(X)                                                   \
    X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs)               \
    X(clGetDeviceInfo) X(clCreateContext) X(clRetainContext)                 \
    X(clReleaseContext) X(clGetContextInfo) X(clCreateCommandQueue)          \
    X(clRetainCommandQueue) X(clReleaseCommandQueue)                         \
    X(clGetCommandQueueInfo) X(clCreateBuffer) X(clRetainMemObject)          \
    X(clReleaseMemObject) X(clGetMemObjectInfo) X(clCreateProgramWithSource) \
    X(clCreateProgramWithBinary) X(clReleaseProgram) X(clBuildProgram)       \
    X(clGetProgramInfo) X(clGetProgramBuildInfo) X(clCreateKernel)           \
    X(clRetainKernel) X(clReleaseKernel) X(clSetKernelArg)                   \
    X(clGetKernelWorkGroupInfo) X(clRetainEvent) X(clReleaseEvent)           \
    X(clGetEventInfo) X(clGetEventProfilingInfo) X(clWaitForEvents)          \
    X(clSetEventCallback) X(clFlush) X(clFinish) X(clEnqueueNDRangeKernel)   \
    X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) X(clEnqueueCopyBuffer)    \
    X(clEnqueueFillBuffer) X(clEnqueueMapBuffer) X(clEnqueueUnmapMemObject)  \
    X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList)

#define LAYER_ENUM(name) F_##name,
enum function { LAYER_FUNCTIONS(LAYER_ENUM) FUNCTIONS };
#undef LAYER_ENUM

/* layer_clX has the type of clX. */
#define LAYER_DECLARE(name) __typeof__(*(cl_api_##name)0) layer_##name;
LAYER_FUNCTIONS(LAYER_DECLARE)
#undef LAYER_DECLARE

extern cl_icd_dispatch target; /* The next layer or the driver. */
extern struct layer_counts counts;
extern const char *const function_names[FUNCTIONS];

static inline void count(uint64_t *counter, uint64_t n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* ---- fault.c ---- */

/*
 * Returns true if this call must return out_code at once. Blocks if the script
 * says that the call hangs. text: the build options or the kernel's name, or
 * NULL.
 */
bool fault_call(enum function function, const char *text, cl_int *out_code);
/* Returns the fault of a command that is accepted. */
enum layer_fault fault_command(enum function function, const char *text,
                               cl_int *out_code);
/* Returns true if the result of the command must be corrupted. */
bool fault_result(enum function function, const char *text);
/* Returns true if a new buffer must have no memory at its first use. */
bool fault_buffer(cl_int *out_code, uint64_t *out_times, bool *out_later);
/* Returns the log of the last build that the script failed, or NULL. */
const char *fault_build_log(void);
/* Blocks until the next layer_release. */
void fault_hang(void);
/* Returns the number of releases, so that a wait does not miss one. */
uint64_t fault_releases(void);
void fault_environment(void);

/* ---- error_codes.c ---- */

cl_int code_pick(const char *function, uint32_t pick);

/* ---- command_faults.c: commands that fail later, or never complete ---- */

/*
 * Returns false if the command must be enqueued normally. Otherwise *out_error
 * is the result of the call, and if an event is requested, it is that of a
 * marker.
 */
bool command_is_replaced(enum function function, const char *text,
                         cl_command_queue queue, const cl_mem *memories,
                         cl_uint memory_count, cl_bool blocking,
                         cl_event *event, cl_int *out_error);
/* Call it before that: a command that waits for a failed event fails. */
void command_waits(cl_command_queue queue, cl_uint wait_count,
                   const cl_event *waits);
void buffer_created(cl_mem buffer);
void buffer_gone(cl_mem buffer);
void event_gone(cl_event event);
/* Returns the queue of the event's command, or NULL for a user event. */
cl_command_queue queue_of(cl_event event);
void queue_gone(cl_command_queue queue);

/* ---- deferred_submission.c: commands that start later ---- */

#define HOLD_WAITS 8u
struct hold_waits {
    cl_event events[HOLD_WAITS];
};
/* Called around the driver's call, whose wait list `out` may replace. */
void hold_begin(cl_command_queue queue, cl_bool blocking, cl_uint *wait_count,
                const cl_event **waits, struct hold_waits *out);
void hold_done(cl_command_queue queue, cl_bool blocking, const cl_event *event);
void hold_flush(cl_command_queue queue);
void hold_wait(cl_command_queue queue);
/*
 * flushes: the wait flushes the queue; otherwise the caller must have done so.
 */
void hold_wait_event(cl_event event, bool flushes);
void hold_question(cl_event event);
void hold_event_gone(cl_event event);
void hold_queue_gone(cl_command_queue queue);

/* ---- noncoherent_import.c: copies of host memory ---- */

cl_mem_flags import_flags(cl_mem_flags flags);
void import_created(cl_mem buffer, cl_mem_flags flags, void *host, size_t size);
void import_gone(cl_mem buffer);
/* Called before and after a command. kernel: the command is a kernel. */
void import_before_command(cl_command_queue queue, const cl_mem *memories,
                           cl_uint memory_count, bool kernel);
void import_after_command(cl_command_queue queue, const cl_mem *memories,
                          cl_uint memory_count, bool kernel);

/* ---- kernel.c: kernel arguments, and corrupted results ---- */

void program_built(cl_program program, const char *options);
void program_gone(cl_program program);
void kernel_created(cl_kernel kernel, cl_program program, const char *name);
void kernel_argument(cl_kernel kernel, cl_uint index, size_t bytes,
                     const void *value);
void kernel_gone(cl_kernel kernel);
/*
 * Returns the kernel's name and its buffers in the order of its arguments, or
 * "" and 0 if the kernel is unknown.
 */
#define KERNEL_ARGUMENTS 24u
cl_uint kernel_memories(cl_kernel kernel, cl_mem *out_memories,
                        char *out_name, size_t name_room);
/* Corrupts the output of a kernel if the environment says so, or always. */
void kernel_corrupt(cl_command_queue queue, cl_kernel kernel, bool always);
void corrupt_environment(void);

/*
 * Append a command of the main thread to the file TANDEM_LAYER_LAUNCHES. Other
 * threads only try out kernels that they have built.
 */
void launch_log_environment(void);
void launch_log_kernel(cl_kernel kernel, size_t global, size_t local);
void launch_log_copy(size_t from, size_t to, size_t bytes);

/* ---- guard_pages.c ---- */

void guard_pages_environment(void);

/* ---- object_cache.c ---- */

void object_cache_environment(void);

#endif
