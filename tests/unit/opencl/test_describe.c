/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capabilities and quirks of described devices: device_info.c and quirks.c
 * alone, over a driver that this file simulates.
 */
#include <config.h>

#include <string.h>

#include "support/test_list.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/device/quirks.h"

#define NVIDIA_QUIRKS                                                          \
    (QUIRK_LOCAL_MEMORY_UNDERREPORTED | QUIRK_GROUP_SIZE_UNDERREPORTED |       \
     QUIRK_FINISH_REPORTS_ERRORS | QUIRK_SERIAL_COMPILER)
#define POCL_QUIRKS                                                            \
    (QUIRK_BINARY_SLOW | QUIRK_BINARY_RACE | QUIRK_CACHE_REQUIRED)
#define NVIDIA_EXTENSIONS "cl_khr_fp64 cl_nv_device_attribute_query"

/* Reports of the simulated driver, and the expected description. */
static const struct device_case {
    const char *platform, *driver, *extensions;
    cl_uint major, minor; /* Compute capability. */
    uint32_t quirks;
    bool f16;
} cases[] = {
    /* NVIDIA GPUs support half arithmetic from compute capability 5.3 on. */
    {"NVIDIA CUDA", "580.159.04", NVIDIA_EXTENSIONS, 9, 0,
     NVIDIA_QUIRKS | QUIRK_F16_UNLISTED, true},
    {"NVIDIA CUDA", "580.159.04", NVIDIA_EXTENSIONS, 12, 0,
     NVIDIA_QUIRKS | QUIRK_F16_UNLISTED, true},
    {"NVIDIA CUDA", "520.0", NVIDIA_EXTENSIONS, 5, 3,
     NVIDIA_QUIRKS | QUIRK_F16_UNLISTED, true},
    {"NVIDIA CUDA", "580.159.04", NVIDIA_EXTENSIONS, 5, 2, NVIDIA_QUIRKS,
     false},
    /* Earlier drivers reject the type half. */
    {"NVIDIA CUDA", "515.105.01", NVIDIA_EXTENSIONS, 9, 0, NVIDIA_QUIRKS,
     false},
    /* The compute capability is unknown. */
    {"NVIDIA CUDA", "580.159.04", "cl_khr_fp64", 9, 0, NVIDIA_QUIRKS, false},
    /* A driver that lists the extension does not have this quirk. */
    {"NVIDIA CUDA", "700.1", NVIDIA_EXTENSIONS " cl_khr_fp16", 9, 0,
     NVIDIA_QUIRKS, true},
    {"Portable Computing Language", "3.1", "cl_khr_fp64", 0, 0, POCL_QUIRKS,
     false},
    {"rusticl", "22.3.6", "", 0, 0, QUIRK_BINARY_FATAL, false},
    {"Oclgrind", "21.10", "", 0, 0, QUIRK_COMPILER_RACE, false},
    {"Intel(R) OpenCL Graphics", "23.22", "cl_khr_fp16", 0, 0, 0, true},
    {"Other", "1.0", "cl_khr_fp16x", 0, 0, 0, false},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static const struct device_case *simulated;

/* ---- functions that device_info.c calls ---- */

static cl_int reply(const void *from, size_t bytes, size_t room, void *value,
                    size_t *size)
{
    if (size != NULL)
        *size = bytes;
    if (value == NULL)
        return CL_SUCCESS;
    if (room < bytes)
        return CL_INVALID_VALUE;
    memcpy(value, from, bytes);
    return CL_SUCCESS;
}

cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform,
                                     cl_platform_info name, size_t room,
                                     void *value, size_t *size)
{
    const char *text =
        name == CL_PLATFORM_NAME ? simulated->platform : "OpenCL 3.0";
    (void)platform;
    return reply(text, strlen(text) + 1, room, value, size);
}

static const char *device_text(cl_device_info name)
{
    switch (name) {
    case CL_DEVICE_VERSION:
        return "OpenCL 3.0";
    case CL_DEVICE_NAME:
        return "Device";
    case CL_DEVICE_VENDOR:
        return "Vendor";
    case CL_DRIVER_VERSION:
        return simulated->driver;
    case CL_DEVICE_EXTENSIONS:
        return simulated->extensions;
    default:
        return NULL;
    }
}

cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info name,
                                   size_t room, void *value, size_t *size)
{
    const size_t sizes[3] = {1024, 1024, 64};
    const char *text = device_text(name);
    cl_ulong number = 1;
    (void)device;
    if (text != NULL)
        return reply(text, strlen(text) + 1, room, value, size);
    if (name == CL_DEVICE_MAX_WORK_ITEM_SIZES)
        return reply(sizes, sizeof(sizes), room, value, size);
    if (name == CL_DEVICE_TYPE)
        number = CL_DEVICE_TYPE_GPU;
    else if (name == DEVICE_COMPUTE_CAPABILITY_MAJOR_NV)
        number = simulated->major;
    else if (name == DEVICE_COMPUTE_CAPABILITY_MINOR_NV)
        number = simulated->minor;
    return reply(&number, sizeof(number), room, value, size);
}

/* ---- tests ---- */

static void device_describe(struct platform_device *out, size_t index)
{
    cl_int code;
    simulated = &cases[index];
    ck_assert(device_info_query(out, NULL, NULL, &code));
    ck_assert_int_eq(code, CL_SUCCESS);
}

LOOP_TEST(test_quirks_and_half, CASES)
{
    struct platform_device device;
    device_describe(&device, (size_t)_i);
    ck_assert_uint_eq(device.quirks, simulated->quirks);
    ck_assert_int_eq((device.info.caps & TANDEM_CAP_F16_ARITHMETIC) != 0,
                     simulated->f16);
    bool told = strstr(device.info.quirks, "without listing cl_khr_fp16");
    ck_assert_int_eq(told, (simulated->quirks & QUIRK_F16_UNLISTED) != 0);
}

/* Returns the number of texts that "; " separates. */
static uint32_t texts_count(const char *text)
{
    uint32_t count = text[0] != '\0';
    for (; (text = strstr(text, "; ")) != NULL; text += 2)
        count++;
    return count;
}

LOOP_TEST(test_one_text_per_quirk, CASES)
{
    struct platform_device device;
    device_describe(&device, (size_t)_i);
    ck_assert_uint_eq(texts_count(device.info.quirks),
                      (uint32_t)__builtin_popcount(device.quirks));
    /* The text was not truncated. */
    ck_assert_uint_lt(strlen(device.info.quirks),
                      sizeof(device.info.quirks) - 1);
}

TEST(test_compute_capability)
{
    struct platform_device device;
    device_describe(&device, 0); /* 9.0 */
    ck_assert(device.has_device_scope_visibility && device.tensor_cores);
    ck_assert(device.tf32_to_even && device.wgmma);
    device_describe(&device, 1); /* 12.0 */
    ck_assert(device.has_device_scope_visibility && device.tensor_cores);
    ck_assert(device.tf32_to_even && !device.wgmma);
    device_describe(&device, 2); /* 5.3 */
    ck_assert(!device.has_device_scope_visibility && !device.tensor_cores);
    ck_assert(!device.tf32_to_even && !device.wgmma);
}

TEST_MAIN(tests_run("describe"))
