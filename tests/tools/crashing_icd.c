/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL driver without devices, for tests with broken drivers. The file's
 * name selects what it does and when, so that copies of it behave differently:
 *
 *     icd-FAULT-PLACE.so  FAULT: crash, abort, exit, hang or stop (SIGSTOP)
 *                         PLACE: load, platforms or devices
 *     icd-pair-*.so       aborts if another of these was loaded before
 *     icd-alone.so        acts as the driver in the library ICD_DRIVER, but
 *                         has no platform unless OCL_ICD_FILENAMES is set, as
 *                         cl-probe sets it to test one driver
 *     any other name      works
 *
 * Before it hangs, it creates the file that ICD_REACHED names.
 */
#define _GNU_SOURCE
#include <CL/cl_icd.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct _cl_platform_id {
    cl_icd_dispatch *dispatch;
};

/* Returns the part of the file's name after "icd-". */
static const char *own_name(void)
{
    Dl_info file;
    const char *slash;

    if (dladdr((const void *)own_name, &file) == 0)
        return "";
    slash = strrchr(file.dli_fname, '/');
    slash = slash != NULL ? slash + 1 : file.dli_fname;
    return strncmp(slash, "icd-", 4) == 0 ? slash + 4 : "";
}

static void fault_inject(const char *fault)
{
    if (strncmp(fault, "crash", 5) == 0) {
        signal(SIGSEGV, SIG_DFL); /* A sanitizer's handler would exit. */
        raise(SIGSEGV);
    }
    if (strncmp(fault, "abort", 5) == 0) {
        signal(SIGABRT, SIG_DFL);
        abort();
    }
    if (strncmp(fault, "exit", 4) == 0)
        exit(0);
    if (strncmp(fault, "stop", 4) == 0)
        raise(SIGSTOP);
    if (getenv("ICD_REACHED") != NULL)
        close(open(getenv("ICD_REACHED"), O_WRONLY | O_CREAT, 0600));
    for (;;)
        pause();
}

static void misbehave(const char *place)
{
    const char *name = own_name();
    const char *dash = strchr(name, '-');

    if (dash != NULL && strncmp(name, "pair-", 5) != 0 &&
        strncmp(dash + 1, place, strlen(place)) == 0)
        fault_inject(name);
}

__attribute__((constructor)) static void loaded(void)
{
    misbehave("load");
    if (strncmp(own_name(), "pair-", 5) != 0)
        return;
    if (getenv("ICD_PAIR") != NULL)
        fault_inject("abort");
    setenv("ICD_PAIR", "1", 1);
}

static cl_int platform_info(cl_platform_id platform, cl_platform_info name,
                            size_t bytes, void *value, size_t *out_bytes)
{
    const char *text = name == CL_PLATFORM_EXTENSIONS       ? "cl_khr_icd"
                       : name == CL_PLATFORM_ICD_SUFFIX_KHR ? "TEST"
                       : name == CL_PLATFORM_PROFILE        ? "FULL_PROFILE"
                       : name == CL_PLATFORM_VERSION        ? "OpenCL 1.2 test"
                                                            : "Test";
    const size_t length = strlen(text) + 1;

    (void)platform;
    if (value != NULL && bytes < length)
        return CL_INVALID_VALUE;
    if (value != NULL)
        memcpy(value, text, length);
    if (out_bytes != NULL)
        *out_bytes = length;
    return CL_SUCCESS;
}

static cl_int device_ids(cl_platform_id platform, cl_device_type type,
                         cl_uint room, cl_device_id *devices,
                         cl_uint *out_count)
{
    (void)platform;
    (void)type;
    (void)room;
    (void)devices;
    misbehave("devices");
    if (out_count != NULL)
        *out_count = 0;
    return CL_DEVICE_NOT_FOUND;
}

static cl_icd_dispatch dispatch = {.clGetPlatformInfo = platform_info,
                                   .clGetDeviceIDs = device_ids};
static struct _cl_platform_id the_platform = {&dispatch};

static cl_int platform_ids(cl_uint room, cl_platform_id *platforms,
                           cl_uint *out_count)
{
    misbehave("platforms");
    if (platforms != NULL && room > 0)
        platforms[0] = &the_platform;
    if (out_count != NULL)
        *out_count = 1;
    return CL_SUCCESS;
}

static cl_int no_platform_ids(cl_uint room, cl_platform_id *platforms,
                              cl_uint *out_count)
{
    (void)room;
    (void)platforms;
    if (out_count != NULL)
        *out_count = 0;
    return CL_PLATFORM_NOT_FOUND_KHR;
}

/* Returns a function of the driver that ICD_DRIVER names. */
static void *driver_function(const char *name)
{
    const char *library = getenv("ICD_DRIVER");
    void *driver = dlopen(library != NULL ? library : "", RTLD_NOW);
    void *(*address)(const char *name) = NULL;

    if (driver != NULL)
        *(void **)&address = dlsym(driver, "clGetExtensionFunctionAddress");
    return address != NULL ? address(name) : NULL;
}

__attribute__((visibility("default"))) void *
clGetExtensionFunctionAddress(const char *name)
{
    if (strncmp(own_name(), "alone", 5) == 0)
        return strcmp(name, "clIcdGetPlatformIDsKHR") == 0 &&
                       getenv("OCL_ICD_FILENAMES") == NULL
                   ? (void *)no_platform_ids
                   : driver_function(name);
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0)
        return (void *)platform_ids;
    if (strcmp(name, "clGetPlatformInfo") == 0)
        return (void *)platform_info;
    return NULL;
}
