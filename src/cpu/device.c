/* SPDX-License-Identifier: Apache-2.0 */
/* Describes, opens and closes the only device of the CPU plugin.  Callable from
 * any thread. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/decimal.h"
#include "common/last_error.h"
#include "common/cpu_info.h"
#include "common/struct_size.h"
#include "cpu/gemm/blas_guard.h"
#include "cpu/objects.h"

/* ---- description -------------------------------------------------------- */

static void info_fill(struct tandem_device_info *info)
{
    char clock[32];
    memset(info, 0, sizeof *info);
    info->kind = TANDEM_DEVICE_CPU;
    info->caps = TANDEM_CAP_ZERO_COPY_IMPORT | TANDEM_CAP_PROFILING |
                 TANDEM_CAP_CORE_OPERATORS | TANDEM_CAP_F16_BF16_STORAGE;
    processor_name(info->name, sizeof info->name);
    processor_value("vendor_id", info->vendor, sizeof info->vendor);
    snprintf(info->platform, sizeof info->platform, "CPU");
    snprintf(info->driver_version, sizeof info->driver_version,
             "tandem-cpu " CPU_VERSION);
    size_t used = (size_t)snprintf(info->extensions, sizeof info->extensions,
                                   "%s", kernels_levels());
    blas_name(info->extensions + used, sizeof info->extensions - used);
    info->memory_bytes = memory_of_machine();
    info->max_alloc_bytes = info->memory_bytes;
    info->compute_units = pool_processors();
    info->max_work_group_size = 1;
    processor_value("cpu MHz", clock, sizeof clock);
    info->clock_mhz = (uint32_t)strtoul(clock, NULL, 10);
    info->duplicate_of = -1;
}

enum tandem_status device_count(uint32_t *out_count)
{
    if (out_count == NULL)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                              "device_count: out_count is NULL");
    *out_count = 1;
    return TANDEM_OK;
}

enum tandem_status device_describe(uint32_t index,
                                   struct tandem_device_info *out_info)
{
    struct tandem_device_info info;
    if (out_info == NULL)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                              "device_describe: out_info is NULL");
    enum tandem_status status =
        struct_size_check("device_describe: out_info", "tandem_device_info",
                          out_info->struct_size, sizeof(size_t));
    if (status != TANDEM_OK)
        return status;
    if (index != 0)
        return last_error_set(
            TANDEM_INVALID_ARGUMENT,
            "device_describe: device %u does not exist; the only "
            "device is 0",
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

/* Parses `value`, the decimal string of device_open's option `key`. */
static enum tandem_status number_parse(const char *key, const char *value,
                                       uint64_t *out)
{
    if (decimal_read(value, out))
        return TANDEM_OK;
    return last_error_set(TANDEM_INVALID_ARGUMENT,
                          "open: %s is \"%s\"; expected a decimal number", key,
                          value);
}

static enum tandem_status
settings_read(const struct tandem_open_options *options, struct settings *out)
{
    memset(out, 0, sizeof *out);
    if (options == NULL)
        return TANDEM_OK;
    enum tandem_status status = struct_size_check(
        "open: options", "tandem_open_options", options->struct_size,
        TANDEM_OPEN_OPTIONS_MIN_SIZE_1_0);
    if (status != TANDEM_OK)
        return status;
    if (options->count > 0 &&
        (options->keys == NULL || options->values == NULL))
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                              "open: keys or values is NULL, but count is %u",
                              (unsigned)options->count);
    for (uint32_t i = 0; i < options->count; i++) {
        const char *key = options->keys[i], *value = options->values[i];
        status = TANDEM_OK;
        if (key == NULL || value == NULL)
            return last_error_set(TANDEM_INVALID_ARGUMENT,
                                  "open: key or value %u is NULL", (unsigned)i);
        if (strcmp(key, "memory_limit_bytes") == 0)
            status = number_parse(key, value, &out->limit_bytes);
        else if (strcmp(key, "num_threads") == 0)
            status = number_parse(key, value, &out->threads);
        else if (strcmp(key, "max_isa") == 0)
            out->max_isa = value;
        if (status != TANDEM_OK)
            return status;
    }
    return TANDEM_OK;
}

static void device_log(const struct tandem_open_options *options,
                       const struct tandem_device *device)
{
    char line[128];
    if (options == NULL || options->log == NULL)
        return;
    snprintf(line, sizeof line, "cpu: instruction set %s, of %s",
             device->kernels->name, kernels_levels());
    options->log(options->log_user, TANDEM_LOG_DEBUG, line);
    char complaint[256];
    if (blas_complain(device->kernels->name, complaint, sizeof complaint))
        options->log(options->log_user, TANDEM_LOG_WARNING, complaint);
}

enum tandem_status device_open(uint32_t index,
                               const struct tandem_open_options *options,
                               struct tandem_device **out_device)
{
    struct settings settings;
    if (out_device == NULL)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                              "open: out_device is NULL");
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
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                              "open: max_isa \"%s\" is unknown on this CPU "
                              "architecture; it has %s",
                              settings.max_isa, kernels_levels());
    struct tandem_device *device = handle_new(&device_pool);
    struct pool *pool = pool_create(
        settings.threads > UINT32_MAX ? 0 : (uint32_t)settings.threads);
    if (device == NULL || pool == NULL || !blas_fork_guard_install()) {
        handle_free(&device_pool, device);
        pool_destroy(pool);
        return last_error_set(TANDEM_OUT_OF_MEMORY, "open: out of host memory");
    }
    pthread_mutex_init(&device->mutex, NULL);
    device->kernels = kernels;
    device->pool = pool;
    device->machine_bytes = memory_of_machine();
    device->memory.stats.limit_bytes = settings.limit_bytes;
    device_log(options, device);
    *out_device = device;
    return TANDEM_OK;
}

void device_close(struct tandem_device *device)
{
    if (!handle_live(&device_pool, device))
        return;
    while (device->events != NULL)
        event_destroy((struct tandem_event *)device->events);
    while (device->streams != NULL)
        stream_destroy((struct tandem_stream *)device->streams);
    while (device->buffers != NULL)
        memory_free((struct tandem_buffer *)device->buffers);
    memory_trim(device, 0);
    pool_destroy(device->pool);
    pthread_mutex_destroy(&device->mutex);
    handle_free(&device_pool, device);
}
