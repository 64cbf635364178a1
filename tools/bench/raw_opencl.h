/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same device driven through OpenCL and CLBlast directly, with nothing of
 * ours between: what tandem-bench compares with.  Built only with OpenCL.
 * Single-threaded.
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
    cl_kernel add; /* z[i] = x[i] + y[i], one element a work-item */
};

/* Finds the device (reference.h), makes a context and a queue; the OpenCL
 * error.  raw_opencl_close accepts half-built and NULL. */
cl_int raw_opencl_open(struct raw_opencl *raw_opencl, const char *platform,
                       const char *name, uint32_t equals);
void raw_opencl_close(struct raw_opencl *raw_opencl);
/* Builds add. */
cl_int raw_opencl_build(struct raw_opencl *raw_opencl);
/* Enqueues add of n elements; sets its arguments where x is not NULL. */
cl_int raw_opencl_add(struct raw_opencl *raw_opencl, cl_mem x, cl_mem y,
                      cl_mem z, cl_uint n);

/* That of the bench's device, opened at first use with add built; NULL, the
 * row having failed, where it cannot be had. */
struct raw_opencl *raw_opencl_of(struct bench *bench);
void raw_opencl_release(struct bench *bench);

/* Of bytes bytes that look as device_session_buffer's; NULL: failed. */
cl_mem raw_opencl_buffer(struct raw_opencl *raw_opencl, uint64_t bytes);
void raw_opencl_free(cl_mem buffer);

#endif
