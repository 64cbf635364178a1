/* SPDX-License-Identifier: Apache-2.0 */
/* Calls OpenCL without Tandem; see raw_opencl.h. */
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

cl_int raw_opencl_open(struct raw_opencl *raw_opencl, const char *platform,
                       const char *name, uint32_t equals)
{
    cl_int error = CL_SUCCESS;

    memset(raw_opencl, 0, sizeof *raw_opencl);
    raw_opencl->device = reference_find(platform, name, equals);
    if (raw_opencl->device == NULL)
        return CL_DEVICE_NOT_FOUND;
    raw_opencl->context =
        clCreateContext(NULL, 1, &raw_opencl->device, NULL, NULL, &error);
    if (error == CL_SUCCESS)
        raw_opencl->queue = clCreateCommandQueue(raw_opencl->context,
                                                 raw_opencl->device, 0, &error);
    return error;
}

cl_int raw_opencl_build(struct raw_opencl *raw_opencl)
{
    const char *text = source;
    cl_int error = CL_SUCCESS;

    raw_opencl->program =
        clCreateProgramWithSource(raw_opencl->context, 1, &text, NULL, &error);
    if (error == CL_SUCCESS)
        error = clBuildProgram(raw_opencl->program, 1, &raw_opencl->device, "",
                               NULL, NULL);
    if (error == CL_SUCCESS)
        raw_opencl->add = clCreateKernel(raw_opencl->program, "add", &error);
    return error;
}

cl_int raw_opencl_add(struct raw_opencl *raw_opencl, cl_mem x, cl_mem y,
                      cl_mem z, cl_uint n)
{
    size_t local = LOCAL_SIZE, global = (n + local - 1) / local * local;
    cl_kernel add = raw_opencl->add;
    cl_int error = CL_SUCCESS;

    if (x != NULL) {
        error |= clSetKernelArg(add, 0, sizeof x, &x);
        error |= clSetKernelArg(add, 1, sizeof y, &y);
        error |= clSetKernelArg(add, 2, sizeof z, &z);
        error |= clSetKernelArg(add, 3, sizeof n, &n);
    }
    return error | clEnqueueNDRangeKernel(raw_opencl->queue, add, 1, NULL,
                                          &global, &local, 0, NULL, NULL);
}

bool raw_opencl_wait(void *argument)
{
    return clFinish((*(struct raw_opencl **)argument)->queue) == CL_SUCCESS;
}

struct raw_opencl *raw_opencl_of(struct bench *bench)
{
    const struct tandem_device_info *info = &bench->session.info;
    cl_int error;

    if (bench->raw_opencl != NULL)
        return bench->raw_opencl;
    bench->raw_opencl = calloc(1, sizeof *bench->raw_opencl);
    if (bench->raw_opencl == NULL)
        return NULL;
    error =
        raw_opencl_open(bench->raw_opencl, info->platform, info->name,
                        reference_equals(bench->context, bench->session.index));
    if (error == CL_SUCCESS)
        error = raw_opencl_build(bench->raw_opencl);
    if (error == CL_SUCCESS)
        return bench->raw_opencl;
    bench_fail(bench, "OpenCL without Tandem fails on \"%s\" with %d",
               info->name, error);
    raw_opencl_release(bench);
    return NULL;
}

void raw_opencl_release(struct bench *bench)
{
    raw_opencl_close(bench->raw_opencl);
    free(bench->raw_opencl);
    bench->raw_opencl = NULL;
}

void raw_opencl_close(struct raw_opencl *raw_opencl)
{
    if (raw_opencl == NULL)
        return;
    if (raw_opencl->add != NULL)
        clReleaseKernel(raw_opencl->add);
    if (raw_opencl->program != NULL)
        clReleaseProgram(raw_opencl->program);
    if (raw_opencl->queue != NULL)
        clReleaseCommandQueue(raw_opencl->queue);
    if (raw_opencl->context != NULL)
        clReleaseContext(raw_opencl->context);
    memset(raw_opencl, 0, sizeof *raw_opencl);
}

cl_mem raw_opencl_buffer(struct raw_opencl *raw_opencl, uint64_t bytes)
{
    const uint64_t seed_bytes = SEED_COUNT * sizeof(float);
    uint64_t known = bytes < seed_bytes ? bytes : seed_bytes, part;
    cl_int error = CL_SUCCESS;
    cl_mem buffer = clCreateBuffer(raw_opencl->context, CL_MEM_READ_WRITE,
                                   bytes, NULL, &error);

    if (buffer == NULL)
        return NULL;
    error = clEnqueueWriteBuffer(raw_opencl->queue, buffer, CL_TRUE, 0, known,
                                 seed_floats(), 0, NULL, NULL);
    for (; error == CL_SUCCESS && known < bytes; known += part) {
        part = known < bytes - known ? known : bytes - known;
        error = clEnqueueCopyBuffer(raw_opencl->queue, buffer, buffer, 0, known,
                                    part, 0, NULL, NULL);
    }
    if (error == CL_SUCCESS && clFinish(raw_opencl->queue) == CL_SUCCESS)
        return buffer;
    clReleaseMemObject(buffer);
    return NULL;
}

void raw_opencl_free(cl_mem buffer)
{
    if (buffer != NULL)
        clReleaseMemObject(buffer);
}
