/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promises of Tandem's own plugins beyond tandem/backend.h: they keep the
 * memory limit, and the CPU plugin knows its free memory and aligns buffers.
 * check-messages tests the promises about invalid calls.
 */
#include <config.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tandem/backend.h>

#include "../../tools/common/tensor_call.h"
#include "support/test_list.h"

#define SKIPPED 77
#define MIB (UINT64_C(1) << 20)
/* A timeout of 5 minutes. */
#define TIMEOUT_NS (300ull * 1000u * 1000u * 1000u)

static const char *const names[] = {"cpu", "example", "opencl"};

/* The plugins that were built and have a device. */
static const struct tandem_backend *plugins[CASES_IN(names)];
static uint32_t plugin_count;

/* Ends the process if the file is not a plugin. */
static const struct tandem_backend *plugin_load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol =
        library != NULL ? dlsym(library, TANDEM_BACKEND_QUERY_SYMBOL) : NULL;
    tandem_backend_query_fn query;

    if (symbol == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    /* ISO C has no cast from void * to a function pointer. */
    memcpy(&query, &symbol, sizeof(query));
    return query(TANDEM_ABI_MAJOR);
}

/* Returns false, with the reason on stderr, if a plugin was skipped. */
static bool plugins_load(void)
{
    for (int i = 0; i < CASES_IN(names); i++) {
        const struct tandem_backend *plugin;
        char path[64];
        uint32_t devices;

        snprintf(path, sizeof(path), ".libs/tandem-%s.so", names[i]);
        if (access(path, R_OK) != 0) {
            fprintf(stderr, "%s was not built\n", path);
            continue;
        }
        plugin = plugin_load(path);
        if (plugin->device_count(&devices) == TANDEM_OK)
            plugins[plugin_count++] = plugin;
        else
            fprintf(stderr, "%s: %s\n", path, plugin->last_error());
    }
    return plugin_count == CASES_IN(names);
}

LOOP_TEST(the_memory_limit_is_kept, plugin_count)
{
    const struct tandem_backend *api = plugins[_i];
    const char *key = "memory_limit_bytes", *value = "16777216";
    const struct tandem_open_options options = {.struct_size = sizeof(options),
                                                .count = 1,
                                                .keys = &key,
                                                .values = &value};
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};
    struct tandem_device *device;
    struct tandem_buffer *buffer;

    ck_assert_int_eq(api->open(0, &options, &device), TANDEM_OK);
    ck_assert_int_eq(api->memory_stats(device, &stats), TANDEM_OK);
    ck_assert_uint_eq(stats.limit_bytes, 16 * MIB);
    ck_assert_int_eq(api->alloc(device, TANDEM_BYTES(17 * MIB), &buffer),
                     TANDEM_OUT_OF_MEMORY);
    api->close(device);
}

/* The plugin knows the free memory: less than the machine has, and more than a
 * few pages. It offers alignments up to a page, and maps its own memory. */
TEST(the_cpu_has_free_memory_and_aligned_buffers)
{
    const struct tandem_backend *api = plugins[0];
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};
    struct tandem_device_info info = {.struct_size = sizeof(info)};
    struct tandem_device *device;
    struct tandem_stream *stream;

    if (plugin_count == 0 || strcmp(api->name, "cpu") != 0)
        return;
    ck_assert_int_eq(api->device_describe(0, &info), TANDEM_OK);
    ck_assert_int_eq(api->open(0, NULL, &device), TANDEM_OK);
    ck_assert_int_eq(api->stream_create(device, 0, &stream), TANDEM_OK);
    ck_assert_int_eq(api->memory_stats(device, &stats), TANDEM_OK);
    ck_assert_uint_gt(stats.free_bytes, MIB);
    ck_assert_uint_lt(stats.free_bytes, info.memory_bytes);
    for (uint32_t alignment = 1; alignment <= 4096; alignment *= 2)
        for (uint64_t bytes = 1; bytes < 20000; bytes = 3 * bytes + 1) {
            const struct tandem_alloc_options options = {
                .struct_size = sizeof(options),
                .bytes = bytes,
                .alignment = alignment};
            struct tandem_buffer *buffer;
            void *memory;

            ck_assert_int_eq(api->alloc(device, &options, &buffer), TANDEM_OK);
            ck_assert_int_eq(api->map(stream, buffer, 0, bytes, TANDEM_MAP_READ,
                                      TIMEOUT_NS, &memory),
                             TANDEM_OK);
            ck_assert_uint_eq((uintptr_t)memory % alignment, 0);
            ck_assert_int_eq(api->unmap(stream, buffer, memory), TANDEM_OK);
            api->free(buffer);
        }
    api->close(device);
}

int main(void)
{
    const bool complete = plugins_load();
    const int result = tests_run_without_fork("plugin", NULL, NULL);

    return result == EXIT_SUCCESS && !complete ? SKIPPED : result;
}
