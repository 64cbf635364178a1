/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk cache returns a program only for the same source, options, device,
 * vendor, driver, platform and version. Tests program_cache.c alone, over a
 * driver that this file simulates.
 */
#include <config.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/test_list.h"
#include "common/secure_file.h"
#include "opencl/program/program_cache.h"
#include "opencl/device/device.h"

static struct platform_device hardware;
static struct tandem_device device;
static struct kernel_info kernel;
static struct kernel_source text = {.kernel = &kernel};
static char source[16];
static uint64_t binary; /* The content of the program that is stored next. */

/* ---- functions that program_cache.c calls ---- */

void device_log(struct tandem_device *on, enum tandem_log_level level,
                const char *format, ...)
{
    (void)on, (void)level, (void)format;
}

cl_int CL_API_CALL clGetProgramInfo(cl_program program, cl_program_info name,
                                    size_t room, void *value, size_t *size)
{
    const size_t bytes = sizeof(binary);
    (void)program, (void)room, (void)size;
    if (name == CL_PROGRAM_BINARY_SIZES)
        memcpy(value, &bytes, sizeof(bytes));
    else
        memcpy(*(unsigned char **)value, &binary, sizeof(binary));
    return CL_SUCCESS;
}

/* The binary of a program contains only its number. */
cl_program CL_API_CALL clCreateProgramWithBinary(cl_context context,
                                                 cl_uint count,
                                                 const cl_device_id *devices,
                                                 const size_t *lengths,
                                                 const unsigned char **binaries,
                                                 cl_int *of_each, cl_int *error)
{
    uint64_t number;
    (void)context, (void)count, (void)devices;
    ck_assert_uint_eq(lengths[0], sizeof(number));
    memcpy(&number, binaries[0], sizeof(number));
    *of_each = *error = CL_SUCCESS;
    return (cl_program)(uintptr_t)number;
}

cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint count,
                                  const cl_device_id *devices,
                                  const char *options,
                                  void(CL_CALLBACK *notify)(cl_program, void *),
                                  void *user)
{
    (void)program, (void)count, (void)devices, (void)notify, (void)user;
    ck_assert_str_eq(options, text.options);
    return CL_SUCCESS;
}

cl_int CL_API_CALL clReleaseProgram(cl_program program)
{
    (void)program;
    return CL_SUCCESS;
}

/* ---- parts of the key ---- */

static void base(void)
{
    struct tandem_device_info *info = &hardware.info;
    strcpy(source, "source");
    kernel.file = "file.cl";
    kernel.source = source;
    kernel.function = "function";
    kernel.flags = 0;
    strcpy(text.options, "-DA=1 -DB=2");
    strcpy(info->name, "device");
    strcpy(info->vendor, "vendor");
    strcpy(info->driver_version, "driver 1.2");
    strcpy(info->platform, "platform");
    strcpy(hardware.version, "OpenCL 3.0");
}

#define CHANGE(name, change)                                                   \
    static void name(void)                                                     \
    {                                                                          \
        change;                                                                \
    }
CHANGE(own_source, source[0] = 'S')
CHANGE(longer_source, strcat(source, " "))
CHANGE(file, kernel.file = "filf.cl")
CHANGE(needs_ptx_rewrite, kernel.flags = KERNEL_PTX_REWRITE)
CHANGE(options, strcpy(text.options, "-DA=1 -DB=3"))
CHANGE(fewer_options, strcpy(text.options, "-DA=1"))
CHANGE(name, strcpy(hardware.info.name, "devicf"))
CHANGE(vendor, strcpy(hardware.info.vendor, "vendos"))
CHANGE(driver, strcpy(hardware.info.driver_version, "driver 1.3"))
CHANGE(platform, strcpy(hardware.info.platform, "platforn"))
CHANGE(version, strcpy(hardware.version, "OpenCL 3.1"))
CHANGE(moved_name, strcpy(hardware.info.name, "devicev");
       strcpy(hardware.info.vendor, "endor"))

static void (*const changes[])(void) = {
    own_source, longer_source, file,    needs_ptx_rewrite,
    options,    fewer_options, name,    vendor,
    driver,     platform,      version, moved_name};
#define CHANGES (int)(sizeof(changes) / sizeof(changes[0]))

/* Returns 0 if the cache does not have the program. */
static uint64_t loaded_binary(void)
{
    return (uint64_t)(uintptr_t)program_cache_load(&device, &text);
}

static void stored(uint64_t number)
{
    binary = number;
    program_cache_store(&device, &text, NULL);
}

#define DIRECTORY "test-cache-of-keys"

static void directory_empty(void)
{
    DIR *directory = opendir(DIRECTORY);
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory != NULL)
        closedir(directory);
    rmdir(DIRECTORY);
}

static void cache_setup(void)
{
    char *here = getcwd(NULL, 0), path[4096];
    snprintf(path, sizeof(path), "%s/" DIRECTORY, here);
    free(here);
    directory_empty();
    device.hardware = &hardware;
    program_cache_init(&device.cache);
    free(device.cache.system_path);
    device.cache.system_path = NULL;
    device.cache.path = strdup(path);
    device.cache.is_forced = true;
    program_cache_open(&device);
    ck_assert_int_ge(device.cache.directory, 0);
    base();
}

static void cache_teardown(void)
{
    program_cache_close(&device);
    directory_empty();
}

TEST(stored_programs_are_found)
{
    ck_assert_uint_eq(loaded_binary(), 0);
    stored(7);
    ck_assert_uint_eq(loaded_binary(), 7);
    stored(8);
    ck_assert_uint_eq(loaded_binary(), 8);
}

/* A change of any part of the key selects another program. */
LOOP_TEST(the_key_contains_all_dependencies, CHANGES)
{
    stored(7);
    changes[_i]();
    ck_assert_uint_eq(loaded_binary(), 0);
    stored(8);
    ck_assert_uint_eq(loaded_binary(), 8);
    base();
    ck_assert_uint_eq(loaded_binary(), 7);
}

/* Finds the only file other than `except`, which may be NULL. */
static void file_find(char out[64], const char *except)
{
    DIR *directory = opendir(DIRECTORY);
    const struct dirent *entry;
    ck_assert_ptr_nonnull(directory);
    out[0] = '\0';
    while ((entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.' &&
            (except == NULL || strcmp(entry->d_name, except) != 0))
            snprintf(out, 64, "%.63s", entry->d_name);
    closedir(directory);
    ck_assert_str_ne(out, "");
}

/* A file is not used if its content has another key than its name. */
LOOP_TEST(the_key_in_the_file_is_compared, CHANGES)
{
    char first[64], second[64];
    stored(7);
    file_find(first, NULL);
    changes[_i]();
    stored(8);
    file_find(second, first);
    ck_assert_int_eq(
        renameat(device.cache.directory, first, device.cache.directory, second),
        0);
    ck_assert_uint_eq(loaded_binary(), 0);
}

TEST_MAIN(tests_run_with("cache-key", cache_setup, cache_teardown))
