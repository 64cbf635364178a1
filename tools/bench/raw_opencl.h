/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses a device through OpenCL directly, without Tandem, as a reference for
 * tandem-bench.  Built only with OpenCL.  Single-threaded.
 */
#ifndef TANDEM_BENCH_RAW_OPENCL_H
#define TANDEM_BENCH_RAW_OPENCL_H

#include "bench.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

struct raw_opencl {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel add; /* z[i] = x[i] + y[i], one element per work-item */
};

/* Finds the device (opencl_device_match.h) and creates a context and a queue.
 * Returns an OpenCL error code.  raw_opencl_close accepts NULL and objects that
 * raw_opencl_open left incomplete. */
cl_int raw_opencl_open(struct raw_opencl *raw_opencl, const char *platform,
                       const char *name, uint32_t equals);
void raw_opencl_close(struct raw_opencl *raw_opencl);
/* Compiles the kernel `add`. */
cl_int raw_opencl_build(struct raw_opencl *raw_opencl);
/* Enqueues `add` of n elements.  Sets its arguments unless x is NULL. */
cl_int raw_opencl_add(struct raw_opencl *raw_opencl, cl_mem x, cl_mem y,
                      cl_mem z, cl_uint n);
/* Waits for all commands.  The argument is a struct that begins with a pointer
 * to a struct raw_opencl.  Returns false on failure. */
bool raw_opencl_wait(void *argument);

/* Returns the bench's device, which the first call opens and compiles `add`
 * for. On failure fails the row and returns NULL. */
struct raw_opencl *raw_opencl_of(struct bench *bench);
void raw_opencl_release(struct bench *bench);

/* Returns a buffer with the contents of device_session_buffer, or NULL on
 * failure. */
cl_mem raw_opencl_buffer(struct raw_opencl *raw_opencl, uint64_t bytes);
void raw_opencl_free(cl_mem buffer);

#endif
