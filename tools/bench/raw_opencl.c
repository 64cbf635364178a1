/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL without Tandem; see raw_opencl.h.
 */
#include <config.h>

#include "raw_opencl.h"
#include "opencl_device_match.h"

#include <stdlib.h>
#include <string.h>

#define LOCAL_SIZE 128

static const char source[] =
    "kernel void add(global const float *x, global const float *y,\n"
    "                global float *z, uint n)\n"
    "{\n"
    "    uint i = get_global_id(0);\n"
    "    if (i < n)\n"
    "        z[i] = x[i] + y[i];\n"
    "}\n";

cl_int raw_opencl_open(struct direct *direct, const char *platform,
                   const char *name, uint32_t equals)
{
    cl_int error = CL_SUCCESS;

    memset(direct, 0, sizeof *direct);
    direct->device = reference_find(platform, name, equals);
    if (direct->device == NULL)
        return CL_DEVICE_NOT_FOUND;
    direct->context =
        clCreateContext(NULL, 1, &direct->device, NULL, NULL, &error);
    if (error == CL_SUCCESS)
        direct->queue = clCreateCommandQueue(direct->context, direct->device,
                                             0, &error);
    return error;
}

cl_int direct_build(struct direct *direct)
{
    const char *text = source;
    cl_int error = CL_SUCCESS;

    direct->program = clCreateProgramWithSource(direct->context, 1, &text,
                                                NULL, &error);
    if (error == CL_SUCCESS)
        error = clBuildProgram(direct->program, 1, &direct->device, "", NULL,
                               NULL);
    if (error == CL_SUCCESS)
        direct->add = clCreateKernel(direct->program, "add", &error);
    return error;
}

cl_int direct_add(struct direct *direct, cl_mem x, cl_mem y, cl_mem z,
                  cl_uint n)
{
    size_t local = LOCAL_SIZE, global = (n + local - 1) / local * local;
    cl_kernel add = direct->add;
    cl_int error = CL_SUCCESS;

    if (x != NULL) {
        error |= clSetKernelArg(add, 0, sizeof x, &x);
        error |= clSetKernelArg(add, 1, sizeof y, &y);
        error |= clSetKernelArg(add, 2, sizeof z, &z);
        error |= clSetKernelArg(add, 3, sizeof n, &n);
    }
    return error | clEnqueueNDRangeKernel(direct->queue, add, 1, NULL, &global,
                                          &local, 0, NULL, NULL);
}

struct direct *direct_of(struct bench *bench)
{
    const struct tandem_device_info *info = &bench->lane.info;
    cl_int error;

    if (bench->direct != NULL)
        return bench->direct;
    bench->direct = calloc(1, sizeof *bench->direct);
    if (bench->direct == NULL)
        return NULL;
    error = raw_opencl_open(bench->direct, info->platform, info->name,
                        reference_equals(bench->context, bench->lane.index));
    if (error == CL_SUCCESS)
        error = direct_build(bench->direct);
    if (error == CL_SUCCESS)
        return bench->direct;
    bench_fail(bench, "OpenCL without Tandem fails on \"%s\" with %d",
               info->name, error);
    direct_release(bench);
    return NULL;
}

void direct_release(struct bench *bench)
{
    direct_close(bench->direct);
    free(bench->direct);
    bench->direct = NULL;
}

void direct_close(struct direct *direct)
{
    if (direct == NULL)
        return;
    if (direct->add != NULL)
        clReleaseKernel(direct->add);
    if (direct->program != NULL)
        clReleaseProgram(direct->program);
    if (direct->queue != NULL)
        clReleaseCommandQueue(direct->queue);
    if (direct->context != NULL)
        clReleaseContext(direct->context);
    memset(direct, 0, sizeof *direct);
}

cl_mem direct_buffer(struct direct *direct, uint64_t bytes)
{
    uint64_t known = bytes < 1u << 20 ? bytes : 1u << 20, part;
    float *seed = malloc(known + 4);
    cl_int error = CL_SUCCESS;
    cl_mem buffer;

    if (seed == NULL)
        return NULL;
    for (uint64_t i = 0; i < known / 4; i++)
        seed[i] = seed_value(i);
    buffer = clCreateBuffer(direct->context, CL_MEM_READ_WRITE, bytes, NULL,
                            &error);
    if (buffer != NULL)
        error = clEnqueueWriteBuffer(direct->queue, buffer, CL_TRUE, 0, known,
                                     seed, 0, NULL, NULL);
    for (; buffer != NULL && error == CL_SUCCESS && known < bytes;
         known += part) {
        part = known < bytes - known ? known : bytes - known;
        error = clEnqueueCopyBuffer(direct->queue, buffer, buffer, 0, known,
                                    part, 0, NULL, NULL);
    }
    if (buffer != NULL && (error != CL_SUCCESS ||
                           clFinish(direct->queue) != CL_SUCCESS)) {
        clReleaseMemObject(buffer);
        buffer = NULL;
    }
    free(seed);
    return buffer;
}

void direct_free(cl_mem buffer)
{
    if (buffer != NULL)
        clReleaseMemObject(buffer);
}
