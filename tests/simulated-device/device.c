/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated devices: describing, opening, closing, statistics. Any thread may
 * call these functions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/last_error.h"
#include "common/prepared_call.h"
#include "common/struct_size.h"
#include "internal.h"

struct handle_pool device_pool = HANDLE_POOL(struct sim_device, 0x53494d44u);

#define SIM_MEMORY_BYTES (UINT64_C(1) << 40)

enum tandem_status device_lock(struct tandem_device *handle,
                               struct sim_device **out_device)
{
    struct sim_device *device = (struct sim_device *)handle;

    if (!handle_live(&device_pool, device))
        return argument_error("simulated: device %p is NULL or was closed",
                              (void *)handle);
    pthread_mutex_lock(&device->mutex);
    if (device->lost) {
        pthread_mutex_unlock(&device->mutex);
        return last_error_set(TANDEM_DEVICE_LOST,
                              "simulated: device %u is lost", device->index);
    }
    *out_device = device;
    return TANDEM_OK;
}

enum tandem_status device_unlock(struct sim_device *device,
                                 enum tandem_status status)
{
    pthread_mutex_unlock(&device->mutex);
    return status;
}

enum tandem_status device_count(uint32_t *out_count)
{
    if (!out_count)
        return argument_error("device_count: out_count is NULL");
    *out_count = 0;
    if (!inner_backend())
        return TANDEM_NO_DEVICE;
    if (script_device_count() == 0)
        return last_error_set(
            TANDEM_NO_DEVICE,
            "simulated: TANDEM_SIM_DEVICES asks for no device");
    *out_count = script_device_count();
    return TANDEM_OK;
}

static void info_fill(uint32_t index, struct tandem_device_info *info)
{
    struct sim_script script;

    info->kind = TANDEM_DEVICE_GPU;
    info->caps = TANDEM_CAP_ASYNC | TANDEM_CAP_JIT_COMPILATION |
                 TANDEM_CAP_PROFILING | TANDEM_CAP_CORE_OPERATORS;
    if (script_read(&script, index, NULL) == TANDEM_OK)
        for (uint32_t id = 0; id < TANDEM_OP_ID_END; id++)
            if (script.decline[id])
                info->caps &= ~(uint32_t)TANDEM_CAP_CORE_OPERATORS;
    snprintf(info->name, sizeof info->name, "Simulated GPU %u", index);
    snprintf(info->vendor, sizeof info->vendor, "Tandem");
    snprintf(info->platform, sizeof info->platform, "Simulation");
    snprintf(info->driver_version, sizeof info->driver_version, "%s",
             script_driver());
    memcpy(info->uuid, "tandem-sim", 10);
    info->uuid[15] = (uint8_t)(index + 1);
    info->memory_bytes = SIM_MEMORY_BYTES;
    info->max_alloc_bytes = SIM_MEMORY_BYTES;
    info->local_memory_bytes = 65536;
    info->compute_units = 1;
    info->max_work_group_size = 1;
    info->clock_mhz = 1000;
    info->duplicate_of = script_duplicate(index);
    if (info->duplicate_of >= 0)
        info->uuid[15] = (uint8_t)(info->duplicate_of + 1);
}

enum tandem_status device_describe(uint32_t index,
                                   struct tandem_device_info *out_info)
{
    struct tandem_device_info info;
    uint32_t count;
    enum tandem_status status;

    status = out_struct_check("device_describe: out_info", "tandem_device_info",
                              out_info);
    if (status == TANDEM_OK)
        status = device_count(&count);
    if (status != TANDEM_OK)
        return status;
    if (index >= count)
        return last_error_set(TANDEM_NO_DEVICE,
                              "device_describe: index is %u of %u devices",
                              index, count);
    memset(&info, 0, sizeof info);
    info_fill(index, &info);
    struct_size_fill(out_info, &info, sizeof info);
    return TANDEM_OK;
}

/* Opens the CPU plugin's device with those options that it knows. */
static enum tandem_status inner_open(struct sim_device *device,
                                     const struct tandem_open_options *options)
{
    static const char *const passed[] = {"num_threads", "max_isa",
                                         "deterministic"};
    const char *keys[3], *values[3];
    struct tandem_open_options inner = {
        .struct_size = sizeof inner, .keys = keys, .values = values};
    enum tandem_status status;

    for (size_t i = 0; i < 3; i++) {
        const char *value = option_get(options, passed[i]);

        if (!value)
            continue;
        keys[inner.count] = passed[i];
        values[inner.count++] = value;
    }
    status = inner_backend()->open(0, &inner, &device->inner);
    if (status == TANDEM_OK)
        status = inner_backend()->stream_create(device->inner, 0,
                                                &device->inner_stream);
    return status == TANDEM_OK ? TANDEM_OK : inner_failed(status);
}

static void device_destroy(struct sim_device *device)
{
    if (!device)
        return;
    gemm_calls_finish(&device->gemm_calls);
    if (device->inner_stream)
        inner_backend()->stream_destroy(device->inner_stream);
    if (device->inner)
        inner_backend()->close(device->inner);
    pthread_mutex_destroy(&device->mutex);
    handle_free(&device_pool, device);
}

enum tandem_status device_open(uint32_t index,
                               const struct tandem_open_options *options,
                               struct tandem_device **out_device)
{
    struct sim_device *device;
    enum tandem_status status;
    const char *cap;
    uint32_t count;

    if (!out_device)
        return argument_error("open: out_device is NULL");
    *out_device = NULL;
    status = open_options_check(options);
    if (status == TANDEM_OK)
        status = device_count(&count);
    if (status != TANDEM_OK)
        return status;
    if (index >= count)
        return last_error_set(TANDEM_NO_DEVICE,
                              "open: index is %u of %u devices", index, count);
    status = script_open(index);
    if (status != TANDEM_OK)
        return last_error_set(status, "open: scripted to fail");
    device = handle_new(&device_pool);
    if (!device)
        return memory_error("open: no memory");
    pthread_mutex_init(&device->mutex, NULL);
    gemm_calls_init(&device->gemm_calls, &gemm_functions);
    device->id = device_id_new();
    device->index = index;
    device->next_base = 4096;
    status = script_read(&device->script, index, options);
    if (status == TANDEM_OK)
        status = inner_open(device, options);
    if (status != TANDEM_OK)
        goto fail;
    cap = option_get(options, "memory_limit_bytes");
    device->stats.limit_bytes = cap ? strtoull(cap, NULL, 10) : 0;
    COUNT(device, opens, 1);
    *out_device = (struct tandem_device *)device;
    return TANDEM_OK;
fail:
    device_destroy(device);
    return status;
}

void device_close(struct tandem_device *handle)
{
    struct sim_device *device = (struct sim_device *)handle;

    if (!handle_live(&device_pool, device))
        return;
    pthread_mutex_lock(&device->mutex);
    device_drain(device);
    while (!LIST_EMPTY(&device->events))
        event_release(LIST_FIRST(&device->events));
    while (!LIST_EMPTY(&device->streams))
        stream_release(LIST_FIRST(&device->streams));
    while (!LIST_EMPTY(&device->buffers))
        buffer_release(LIST_FIRST(&device->buffers));
    COUNT(device, closes, 1);
    pthread_mutex_unlock(&device->mutex);
    device_destroy(device);
}

enum tandem_status device_memory_stats(struct tandem_device *handle,
                                       struct tandem_memory_stats *out_stats)
{
    struct sim_device *device = (struct sim_device *)handle;
    struct tandem_memory_stats stats;

    if (!handle_live(&device_pool, device))
        return argument_error("memory_stats: device is NULL or was closed");
    if (out_struct_check("memory_stats: out_stats", "tandem_memory_stats",
                         out_stats) != TANDEM_OK)
        return TANDEM_INVALID_ARGUMENT;
    pthread_mutex_lock(&device->mutex);
    stats = device->stats;
    pthread_mutex_unlock(&device->mutex);
    struct_size_fill(out_stats, &stats, sizeof stats);
    return TANDEM_OK;
}
