/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU plugin's backend table and entry point.  The functions describe, open
 * and close the plugin's only device.  Callable from any thread. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/decimal.h"
#include "common/last_error.h"
#include "common/prepared_call.h"
#include "common/cpu_info.h"
#include "common/struct_size.h"
#include "cpu/gemm/blas_guard.h"
#include "cpu/objects.h"

#define CPU_VERSION "0.1.0"

/* ---- description -------------------------------------------------------- */

static void info_fill(struct tandem_device_info *info)
{
    char clock[32];
    *info = (struct tandem_device_info){
        .kind = TANDEM_DEVICE_CPU,
        .caps = TANDEM_CAP_ZERO_COPY_IMPORT | TANDEM_CAP_PROFILING |
                TANDEM_CAP_CORE_OPERATORS | TANDEM_CAP_F16_BF16_STORAGE,
        .platform = "CPU",
        .memory_bytes = memory_of_machine(),
        .compute_units = pool_processors(),
        .max_work_group_size = 1,
        .duplicate_of = -1,
    };
    info->max_alloc_bytes = info->memory_bytes;
    processor_name(info->name, sizeof info->name);
    processor_value("vendor_id", info->vendor, sizeof info->vendor);
    snprintf(info->extensions, sizeof info->extensions, "%s", kernels_levels());
    /* Costs that were measured with other BLAS kernels are wrong. */
    size_t used =
        (size_t)snprintf(info->driver_version, sizeof info->driver_version,
                         "tandem-cpu " CPU_VERSION);
    blas_name(info->driver_version + used, sizeof info->driver_version - used);
    processor_value("cpu MHz", clock, sizeof clock);
    info->clock_mhz = (uint32_t)strtoul(clock, NULL, 10);
}

static enum tandem_status device_count(uint32_t *out_count)
{
    if (out_count == NULL)
        return argument_error("device_count: out_count is NULL");
    *out_count = 1;
    return TANDEM_OK;
}

static enum tandem_status device_describe(uint32_t index,
                                          struct tandem_device_info *out_info)
{
    struct tandem_device_info info;
    enum tandem_status status = out_struct_check(
        "device_describe: out_info", "tandem_device_info", out_info);
    if (status != TANDEM_OK)
        return status;
    if (index != 0)
        return argument_error(
            "device_describe: device %u does not exist; the only device is 0",
            (unsigned)index);
    info_fill(&info);
    struct_size_fill(out_info, &info, sizeof info);
    return TANDEM_OK;
}

/* ---- open and close ----------------------------------------------------- */

/* Options passed to device_open; 0 or NULL means that an option is absent. */
struct settings {
    uint64_t limit_bytes, threads;
    const char *max_isa;
};

static enum tandem_status
settings_read(const struct tandem_open_options *options, struct settings *out)
{
    *out = (struct settings){0};
    enum tandem_status status = open_options_check(options);
    if (options == NULL || status != TANDEM_OK)
        return status;
    for (uint32_t i = 0; i < options->count; i++) {
        const char *key = options->keys[i], *value = options->values[i];
        uint64_t *number = NULL;
        if (strcmp(key, "memory_limit_bytes") == 0)
            number = &out->limit_bytes;
        else if (strcmp(key, "num_threads") == 0)
            number = &out->threads;
        else if (strcmp(key, "max_isa") == 0)
            out->max_isa = value;
        if (number != NULL && !decimal_read(value, number))
            return argument_error(
                "open: %s is \"%s\"; expected a decimal number", key, value);
    }
    return TANDEM_OK;
}

static void device_log(const struct tandem_open_options *options,
                       const struct tandem_device *device)
{
    char line[256];
    if (options == NULL || options->log == NULL)
        return;
    snprintf(line, sizeof line, "cpu: instruction set %s, of %s",
             device->kernels->name, kernels_levels());
    options->log(options->log_user, TANDEM_LOG_DEBUG, line);
    if (blas_complain(device->kernels->name, line, sizeof line))
        options->log(options->log_user, TANDEM_LOG_WARNING, line);
}

static enum tandem_status device_open(uint32_t index,
                                      const struct tandem_open_options *options,
                                      struct tandem_device **out_device)
{
    struct settings settings;
    if (out_device == NULL)
        return argument_error("open: out_device is NULL");
    *out_device = NULL;
    if (index != 0)
        return last_error_set(
            TANDEM_NO_DEVICE,
            "open: device %u does not exist; the only device is 0",
            (unsigned)index);
    enum tandem_status status = settings_read(options, &settings);
    if (status != TANDEM_OK)
        return status;
    const struct kernels *kernels = kernels_choose(settings.max_isa);
    if (kernels == NULL)
        return argument_error("open: max_isa \"%s\" is unknown on this CPU "
                              "architecture; it has %s",
                              settings.max_isa, kernels_levels());
    struct tandem_device *device = handle_new(&device_pool);
    struct pool *pool = pool_create(
        settings.threads > UINT32_MAX ? 0 : (uint32_t)settings.threads);
    if (device == NULL || pool == NULL || !blas_fork_guard_install() ||
        !gemm_calls_init(&device->gemm_calls, &gemm_functions)) {
        handle_free(&device_pool, device);
        pool_destroy(pool);
        return memory_error("open: out of host memory");
    }
    pthread_mutex_init(&device->mutex, NULL);
    device->id = device_id_new();
    device->kernels = kernels;
    device->pool = pool;
    device->machine_bytes = memory_of_machine();
    device->memory.stats.limit_bytes = settings.limit_bytes;
    device_log(options, device);
    *out_device = device;
    return TANDEM_OK;
}

static void device_close(struct tandem_device *device)
{
    if (!handle_live(&device_pool, device))
        return;
    while (device->events != NULL)
        event_destroy((struct tandem_event *)device->events);
    while (device->streams != NULL)
        stream_destroy((struct tandem_stream *)device->streams);
    while (device->buffers != NULL)
        memory_free((struct tandem_buffer *)device->buffers);
    gemm_calls_finish(&device->gemm_calls);
    memory_trim(device, 0);
    pool_destroy(device->pool);
    pthread_mutex_destroy(&device->mutex);
    handle_free(&device_pool, device);
}

/* ---- backend table ------------------------------------------------------ */

static const struct tandem_backend backend = {
    .struct_size = sizeof backend,
    .abi_major = TANDEM_ABI_MAJOR,
    .abi_minor = TANDEM_ABI_MINOR,
    .name = "cpu",
    .version = CPU_VERSION,
    .last_error = last_error_get,
    .device_count = device_count,
    .device_describe = device_describe,
    .open = device_open,
    .close = device_close,
    .alloc = memory_alloc_options,
    .free = memory_free,
    .upload = transfer_upload,
    .download = transfer_download,
    .copy = transfer_copy,
    .fill = transfer_fill,
    .host_alloc = memory_host_alloc,
    .host_free = memory_host_free,
    .import_host = memory_import_host,
    .map = transfer_map,
    .unmap = transfer_unmap,
    .buffer_seal = buffer_seal,
    .memory_stats = memory_stats,
    .trim = memory_trim,
    .gemm = gemm_run,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_wait_event = stream_wait_event,
    .event_record = event_record,
    .event_destroy = event_destroy,
    .event_wait = event_wait,
    .event_callback = event_callback,
    .event_elapsed_ns = event_elapsed_ns,
    .prepare = prepared_create,
    .prepared_wait = prepared_wait,
    .prepared_release = prepared_release,
    .launch = prepared_launch,
};

const struct tandem_backend *tandem_backend_query(uint32_t host_abi_major)
{
    /* Installs the fork handlers now, because OpenBLAS is already loaded and a
     * fork can precede device_open.  If memory is exhausted, device_open
     * installs them or fails. */
    blas_fork_guard_install();
    return host_abi_major == TANDEM_ABI_MAJOR ? &backend : NULL;
}
