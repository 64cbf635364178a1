/* SPDX-License-Identifier: Apache-2.0 */
/* cl/fp16.cl on known numbers; see fp16.h. */
#include "opencl/fp16.h"

#include <string.h>

#include "common/float16.h"
#include "common/shelter.h"
#include "opencl/device.h"
#include "opencl/kernels.h"
#include "opencl/status.h"

#define RESULTS 5u

/* Sums that are rounded, ties, overflow, subnormals, zeros' signs, NaN. */
static const uint16_t pairs[][2] = {
    {0x6800, 0x3c00}, {0x6800, 0x4200}, {0x3c00, 0x1000}, {0x7bff, 0x5000},
    {0x7bff, 0x7bff}, {0x0400, 0x8001}, {0x0001, 0x0001}, {0x8000, 0x0000},
    {0x2e66, 0x3266}, {0x4200, 0x4700}, {0x7c00, 0xfc00}, {0x3c01, 0x3c01},
    {0x63d0, 0x3555}, {0x00fa, 0x2800}, {0xc580, 0x4080}, {0x7e00, 0x3c00},
};
#define PAIRS (sizeof(pairs) / sizeof(pairs[0]))

static uint16_t expected(uint32_t pair, uint32_t result)
{
    float x = f16_value(pairs[pair][0]), y = f16_value(pairs[pair][1]);
    const float values[RESULTS] = {x + y, x - y, x * y, x < y ? x : y,
                                   x + 1.0f};
    return f16_round(values[result]);
}

static bool results_right(const uint16_t (*results)[RESULTS])
{
    for (uint32_t i = 0; i < PAIRS; i++)
        for (uint32_t j = 0; j < RESULTS; j++) {
            float want = f16_value(expected(i, j));
            float got = f16_value(results[i][j]);
            if (want == want ? got != want : got == got)
                return false;
        }
    return true;
}

struct probe {
    cl_program program;
    cl_kernel kernel;
    cl_command_queue queue;
    cl_mem out, a, b;
};

static void probe_end(struct probe *probe)
{
    const cl_mem memory[] = {probe->out, probe->a, probe->b};
    for (uint32_t i = 0; i < 3; i++)
        if (memory[i] != NULL)
            clReleaseMemObject(memory[i]);
    if (probe->queue != NULL)
        clReleaseCommandQueue(probe->queue);
    if (probe->kernel != NULL)
        clReleaseKernel(probe->kernel);
    if (probe->program != NULL)
        clReleaseProgram(probe->program);
}

/* Whether there is a kernel. */
static bool probe_build(struct probe *probe, struct tandem_device *device)
{
    const char *source = kernel_fp16;
    cl_int code = CL_SUCCESS;
    probe->program =
        clCreateProgramWithSource(device->context, 1, &source, NULL, &code);
    if (probe->program == NULL ||
        clBuildProgram(probe->program, 1, &device->hardware->id,
                       "-cl-std=CL1.2", NULL, NULL) != CL_SUCCESS)
        return false;
    probe->kernel = clCreateKernel(probe->program, "fp16", &code);
    return probe->kernel != NULL;
}

static cl_mem numbers_of(struct tandem_device *device, uint32_t side,
                         cl_int *out_code)
{
    uint16_t numbers[PAIRS];
    for (uint32_t i = 0; i < PAIRS; i++)
        numbers[i] = pairs[i][side];
    return clCreateBuffer(device->context,
                          CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                          sizeof(numbers), numbers, out_code);
}

static cl_int probe_run(struct probe *probe, struct tandem_device *device,
                        uint16_t (*out_results)[RESULTS])
{
    const size_t global = PAIRS, bytes = PAIRS * sizeof(*out_results);
    cl_int code = CL_SUCCESS;
    probe->queue =
        clCreateCommandQueue(device->context, device->hardware->id, 0, &code);
    if (code == CL_SUCCESS)
        probe->out = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes,
                                    NULL, &code);
    if (code == CL_SUCCESS)
        probe->a = numbers_of(device, 0, &code);
    if (code == CL_SUCCESS)
        probe->b = numbers_of(device, 1, &code);
    const cl_mem memory[] = {probe->out, probe->a, probe->b};
    for (uint32_t i = 0; i < 3 && code == CL_SUCCESS; i++)
        code = clSetKernelArg(probe->kernel, i, sizeof(cl_mem), &memory[i]);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(probe->queue, probe->kernel, 1, NULL,
                                      &global, NULL, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueReadBuffer(probe->queue, probe->out, CL_TRUE, 0, bytes,
                                   out_results, 0, NULL, NULL);
    return code;
}

enum tandem_status fp16_tune(struct tandem_device *device,
                             const struct findings *findings)
{
    const struct tandem_device_info *info = &device->hardware->info;
    struct probe probe = {0};
    struct shelter host;
    uint16_t results[PAIRS][RESULTS];
    enum tandem_status status = TANDEM_OK;
    bool right = false;
    memset(results, 0, sizeof(results));
    /* A processor's compiler knows its own list, and complains aloud. */
    if (info->kind != TANDEM_DEVICE_CPU || (info->caps & TANDEM_CAP_F16) != 0) {
        shelter_enter(&host);
        if (probe_build(&probe, device)) {
            status = status_from_cl(device, probe_run(&probe, device, results),
                                    "half arithmetic");
            right = status == TANDEM_OK && results_right(results);
        }
        probe_end(&probe);
        shelter_leave(&host);
    }
    if (status == TANDEM_OK)
        findings->sink(findings->user, "fp16", right ? "1" : "0");
    return status;
}
