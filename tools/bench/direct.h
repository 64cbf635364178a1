/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same device driven through OpenCL and CLBlast directly, with nothing of
 * ours between: what tandem-bench compares with.  Built only with OpenCL.
 * Single-threaded.
 */
#ifndef TANDEM_BENCH_DIRECT_H
#define TANDEM_BENCH_DIRECT_H

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

/* Finds bench->lane's device; false, having failed the run, where it cannot.
 * direct_close accepts half-built. */
bool direct_open(struct direct *direct, struct bench *bench);
void direct_close(struct direct *direct);

/* Of bytes bytes that look as lane_buffer's; NULL: failed. */
cl_mem direct_buffer(struct direct *direct, uint64_t bytes);
void direct_free(cl_mem buffer);

#endif
