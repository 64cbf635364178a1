/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner plugin: the example plugin, which is part of this plugin, if
 * EXAMPLE_INNER is defined, otherwise the CPU plugin, which is loaded from this
 * plugin's directory. Any thread may call these functions.
 */
#include <config.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static pthread_once_t inner_once = PTHREAD_ONCE_INIT;
static const struct tandem_backend *inner;

#ifdef EXAMPLE_INNER

const char inner_name[] = "example";

/* The query function of the example plugin, which is compiled with this name.
 */
const struct tandem_backend *example_query(uint32_t host_abi_major);

static void inner_load(void)
{
    inner = example_query(TANDEM_ABI_MAJOR);
}

static void info_change(uint32_t index, struct tandem_device_info *info)
{
    snprintf(info->name, sizeof info->name, "Example %u", index);
}

#else

const char inner_name[] = "simulated";

static void inner_load(void)
{
    tandem_backend_query_fn query = NULL;
    char path[4096];
    Dl_info info;
    void *object, *symbol;

    if (!dladdr((void *)&inner_once, &info) || !strrchr(info.dli_fname, '/'))
        return;
    snprintf(path, sizeof path, "%.*s/tandem-cpu.so",
             (int)(strrchr(info.dli_fname, '/') - info.dli_fname),
             info.dli_fname);
    object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    symbol = object ? dlsym(object, TANDEM_BACKEND_QUERY_SYMBOL) : NULL;
    memcpy(&query, &symbol, sizeof query);
    inner = query ? query(TANDEM_ABI_MAJOR) : NULL;
}

static void info_change(uint32_t index, struct tandem_device_info *info)
{
    *info = (struct tandem_device_info){
        .struct_size = sizeof *info,
        .kind = TANDEM_DEVICE_GPU,
        .caps = TANDEM_CAP_ASYNC | TANDEM_CAP_JIT_COMPILATION |
                TANDEM_CAP_CORE_OPERATORS,
        .vendor = "Tandem",
        .platform = "Simulation",
        .driver_version = "1",
        .uuid = "tandem-sim",
        .memory_bytes = UINT64_C(1) << 40,
        .max_alloc_bytes = UINT64_C(1) << 40,
        .local_memory_bytes = 65536,
        .compute_units = 1,
        .max_work_group_size = 1,
        .clock_mhz = 1000,
        .duplicate_of = -1,
    };
    snprintf(info->name, sizeof info->name, "Simulated GPU %u", index);
    info->uuid[15] = (uint8_t)(index + 1);
}

#endif

const struct tandem_backend *inner_backend(void)
{
    pthread_once(&inner_once, inner_load);
    if (!inner)
        last_error_set(TANDEM_NO_DEVICE,
                       "%s: needs the CPU plugin in the same directory",
                       inner_name);
    return inner;
}

enum tandem_status inner_failed(enum tandem_status status)
{
    const char *message = inner->last_error();

    /* The example plugin shares this plugin's message. */
    return message == last_error_get()
               ? status
               : last_error_set(status, "%s: %s", inner_name, message);
}

enum tandem_status inner_describe(uint32_t index,
                                  struct tandem_device_info *out_info)
{
    enum tandem_status status;

    memset(out_info, 0, sizeof *out_info);
    out_info->struct_size = sizeof *out_info;
    status = inner_backend()->device_describe(0, out_info);
    if (status != TANDEM_OK)
        return inner_failed(status);
    info_change(index, out_info);
    return TANDEM_OK;
}
