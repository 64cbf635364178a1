/* SPDX-License-Identifier: Apache-2.0 */
/* Uses an OpenCL driver without the library; see process_case.h. */
#include <config.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include "process_case.h"

static void *loader;

/* A function of the loader, which the program loads only when it is needed. */
#define CL(function) ((__typeof__(&function))dlsym(loader, #function))

void driver_use(void)
{
    static const char *source =
        "kernel void one(global float *x) { x[get_global_id(0)] += 1.0f; }";
    const size_t items = 64;
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem memory;
    cl_int code;

    loader = dlopen("libOpenCL.so.1", RTLD_NOW);
    MUST(loader != NULL);
    MUST(CL(clGetPlatformIDs)(1, &platform, NULL) == CL_SUCCESS);
    MUST(CL(clGetDeviceIDs)(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) ==
         CL_SUCCESS);
    context = CL(clCreateContext)(NULL, 1, &device, NULL, NULL, &code);
    MUST(code == CL_SUCCESS);
    queue = CL(clCreateCommandQueue)(context, device, 0, &code);
    MUST(code == CL_SUCCESS);
    program = CL(clCreateProgramWithSource)(context, 1, &source, NULL, &code);
    MUST(code == CL_SUCCESS);
    MUST(CL(clBuildProgram)(program, 1, &device, "", NULL, NULL) == CL_SUCCESS);
    kernel = CL(clCreateKernel)(program, "one", &code);
    MUST(code == CL_SUCCESS);
    memory =
        CL(clCreateBuffer)(context, CL_MEM_READ_WRITE, 4 * items, NULL, &code);
    MUST(code == CL_SUCCESS);
    CL(clSetKernelArg)(kernel, 0, sizeof memory, &memory);
    MUST(CL(clEnqueueNDRangeKernel)(queue, kernel, 1, NULL, &items, NULL, 0,
                                    NULL, NULL) == CL_SUCCESS);
    MUST(CL(clFinish)(queue) == CL_SUCCESS);
    CL(clReleaseMemObject)(memory);
    CL(clReleaseKernel)(kernel);
    CL(clReleaseProgram)(program);
    CL(clReleaseCommandQueue)(queue);
    CL(clReleaseContext)(context);
}
