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

struct direct {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel add; /* z[i] = x[i] + y[i], one element a work-item */
};

/* Finds the device (reference.h), makes a context and a queue; the OpenCL
 * error.  direct_close accepts half-built and NULL. */
cl_int raw_opencl_open(struct direct *direct, const char *platform,
                   const char *name, uint32_t equals);
void direct_close(struct direct *direct);
/* Builds add. */
cl_int direct_build(struct direct *direct);
/* Enqueues add of n elements; sets its arguments where x is not NULL. */
cl_int direct_add(struct direct *direct, cl_mem x, cl_mem y, cl_mem z,
                  cl_uint n);

/* That of the bench's device, opened at first use with add built; NULL, the
 * row having failed, where it cannot be had. */
struct direct *direct_of(struct bench *bench);
void direct_release(struct bench *bench);

/* Of bytes bytes that look as lane_buffer's; NULL: failed. */
cl_mem direct_buffer(struct direct *direct, uint64_t bytes);
void direct_free(cl_mem buffer);

#endif
