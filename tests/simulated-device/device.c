/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated devices: describing, opening, closing, statistics, counters, and
 * the objects of a device. Any thread may call these functions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/struct_size.h"
#include "internal.h"

/* ---- counters ---- */

static struct sim_counters counters[SIM_MAX_DEVICES];

struct sim_counters *counters_of(uint32_t device)
{
    return &counters[device % SIM_MAX_DEVICES];
}

void tandem_sim_counters(uint32_t device, struct sim_counters *out_counters)
{
    const size_t fields = sizeof *out_counters / sizeof(uint64_t);
    uint64_t sum[sizeof *out_counters / sizeof(uint64_t)] = {0};

    for (uint32_t i = 0; i < SIM_MAX_DEVICES; i++) {
        const uint64_t *of = (const uint64_t *)&counters[i];

        if (device != i && device != UINT32_MAX)
            continue;
        for (size_t f = 0; f < fields; f++)
            sum[f] += __atomic_load_n(&of[f], __ATOMIC_RELAXED);
    }
    memcpy(out_counters, sum, sizeof sum);
}

/* ---- objects ---- */

union any_object {
    struct sim_device device;
    struct sim_buffer buffer;
    struct sim_stream stream;
    struct sim_event event;
    struct sim_prepared prepared;
};

static struct handle_pool pool = HANDLE_POOL(union any_object, 0x53494d4fu);

bool object_is_live(const void *handle, enum kind kind)
{
    return handle_live(&pool, handle) &&
           ((const struct object *)handle)->kind == kind;
}

enum tandem_status object_hold(const void *handle, enum kind kind,
                               void *out_object)
{
    static const char *const names[] = {"device", "buffer", "stream", "event",
                                        "prepared operator"};
    const struct object *object = handle;

    if (!object_is_live(handle, kind))
        return argument_error("the %s is NULL or was freed", names[kind]);
    pthread_mutex_lock(&object->device->mutex);
    memcpy(out_object, &handle, sizeof handle);
    return TANDEM_OK;
}

enum tandem_status object_lock(const void *handle, enum kind kind,
                               void *out_object)
{
    enum tandem_status status = object_hold(handle, kind, out_object);
    struct sim_device *device;

    if (status != TANDEM_OK)
        return status;
    device = ((const struct object *)handle)->device;
    if (device->lost)
        return device_unlock(device, last_error_set(TANDEM_DEVICE_LOST,
                                                    "device %u is gone",
                                                    device->index));
    return TANDEM_OK;
}

enum tandem_status device_unlock(struct sim_device *device,
                                 enum tandem_status status)
{
    pthread_mutex_unlock(&device->mutex);
    return status;
}

void *object_new(struct sim_device *device, enum kind kind)
{
    struct object *object = handle_new(&pool);

    if (!object) {
        memory_error("no memory for a handle");
        return NULL;
    }
    object->kind = kind;
    object->device = device;
    LIST_INSERT_HEAD(&device->objects, object, link);
    return object;
}

void object_free(struct object *object)
{
    struct sim_device *device = object->device;

    switch (object->kind) {
    case BUFFER:
        COUNT(device, frees, 1);
        memory_release(((struct sim_buffer *)object)->memory);
        break;
    case STREAM:
        stream_finish((struct sim_stream *)object);
        COUNT(device, streams_destroyed, 1);
        break;
    case EVENT:
        COUNT(device, events_destroyed, 1);
        break;
    case PREPARED:
    case DEVICE:
        break;
    }
    LIST_REMOVE(object, link);
    if (object->kind == PREPARED) {
        /* Commands may use the operator, so the slot is freed later. */
        handle_hide(object);
        prepared_put((struct sim_prepared *)object);
    } else {
        handle_free(&pool, object);
    }
}

void handle_release(const void *handle, enum kind kind)
{
    struct sim_device *device;
    struct object *object;

    if (!object_is_live(handle, kind))
        return;
    object_hold(handle, kind, &object);
    device = object->device;
    object_free(object);
    pthread_mutex_unlock(&device->mutex);
}

void prepared_put(struct sim_prepared *prepared)
{
    if (--prepared->references > 0)
        return;
    inner_backend()->prepared_release(prepared->inner);
    free(prepared->call);
    handle_free(&pool, prepared);
}

/* ---- devices ---- */

enum tandem_status device_count(uint32_t *out_count)
{
    static const char *const tables[] = {"null", "major",   "newer", "size",
                                         "good", "missing", "name",  "noname"};
    const uint64_t devices = setting_number("devices", 1);
    bool has_none = setting("count") || devices == 0;

    if (!out_count)
        return argument_error("device_count: out_count is NULL");
    *out_count = 0;
    misbehave("count");
    block_in("device_count", NULL);
    if (!inner_backend())
        return TANDEM_NO_DEVICE;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        has_none |= setting(tables[i]) != NULL;
    if (has_none)
        return last_error_set(setting("count") ? setting_status("count", 0)
                                               : TANDEM_NO_DEVICE,
                              "the script asks for no device");
    *out_count = setting("many") || setting("nodescribe") ? UINT32_MAX
                 : devices > SIM_MAX_DEVICES              ? SIM_MAX_DEVICES
                                                          : (uint32_t)devices;
    return TANDEM_OK;
}

static void info_script(uint32_t index, struct tandem_device_info *info)
{
    if (setting("decline") || setting("only"))
        info->caps &= ~(uint32_t)TANDEM_CAP_CORE_OPERATORS;
    if (setting("self-test"))
        info->kind = TANDEM_DEVICE_GPU;
    if (setting("unified"))
        info->caps |= TANDEM_CAP_UNIFIED_MEMORY;
    setting_copy("driver", info->driver_version, sizeof info->driver_version);
    info->duplicate_of = setting_duplicate(index);
    if (info->duplicate_of >= 0)
        info->uuid[15] = (uint8_t)(info->duplicate_of + 1);
    if (setting("garbage")) {
        memset(info, 0xff, sizeof *info);
        info->caps = TANDEM_CAP_ASYNC | TANDEM_CAP_CORE_OPERATORS;
        info->duplicate_of = 1000000;
    }
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
    if (setting("nodescribe") || setting("noerror"))
        return TANDEM_FAILED;
    if (index >= count)
        return last_error_set(TANDEM_NO_DEVICE,
                              "device_describe: index is %u of %u devices",
                              index, count);
    status = inner_describe(index, &info);
    if (status != TANDEM_OK)
        return status;
    info_script(index, &info);
    struct_size_fill(out_info, &info, sizeof info);
    return TANDEM_OK;
}

/* Returns NULL if the options do not contain the key. */
static const char *option_get(const struct tandem_open_options *options,
                              const char *key)
{
    const char *found = NULL;

    for (uint32_t i = 0; options && i < options->count; i++)
        if (strcmp(options->keys[i], key) == 0)
            found = options->values[i];
    return found;
}

/* Opens the inner plugin's device, which ignores keys that it does not know. */
static enum tandem_status inner_open(struct sim_device *device,
                                     const struct tandem_open_options *options)
{
    struct tandem_open_options inner = {.struct_size = sizeof inner};
    enum tandem_status status;

    if (options) {
        inner.keys = options->keys;
        inner.values = options->values;
        inner.count = options->count;
    }
    status = inner_backend()->open(0, &inner, &device->inner);
    if (status == TANDEM_OK)
        status = inner_backend()->stream_create(device->inner, 0,
                                                &device->inner_stream);
    return status == TANDEM_OK ? TANDEM_OK : inner_failed(status);
}

static void device_destroy(struct sim_device *device)
{
    gemm_calls_finish(&device->gemm_calls);
    pthread_mutex_lock(&device->mutex);
    while (!LIST_EMPTY(&device->objects))
        object_free(LIST_FIRST(&device->objects));
    pthread_mutex_unlock(&device->mutex);
    if (device->inner_stream)
        inner_backend()->stream_destroy(device->inner_stream);
    if (device->inner)
        inner_backend()->close(device->inner);
    pthread_mutex_destroy(&device->mutex);
    handle_free(&pool, device);
}

enum tandem_status device_open(uint32_t index,
                               const struct tandem_open_options *options,
                               struct tandem_device **out_device)
{
    const char *fault;
    struct sim_device *device;
    enum tandem_status status;
    uint32_t count;

    if (!out_device)
        return argument_error("open: out_device is NULL");
    *out_device = NULL;
    misbehave("open");
    if (index == 0)
        block_in("open", NULL);
    status = open_options_check(options);
    if (status == TANDEM_OK)
        status = device_count(&count);
    if (status != TANDEM_OK)
        return status;
    if (index >= count)
        return last_error_set(TANDEM_NO_DEVICE,
                              "open: index is %u of %u devices", index, count);
    status = setting_status("open", index);
    if (status != TANDEM_OK) {
        *out_device = (void *)(uintptr_t)0xdead0000;
        return last_error_set(status, "the device does not open, as scripted");
    }
    if (setting("opennull"))
        return TANDEM_OK;
    device = handle_new(&pool);
    if (!device)
        return memory_error("open: no memory");
    device->object.kind = DEVICE;
    device->object.device = device;
    pthread_mutex_init(&device->mutex, NULL);
    gemm_calls_init(&device->gemm_calls, &gemm_functions);
    device->index = index;
    device->next_base = 4096;
    device->is_for_self_test = option_get(options, "self_test_only") != NULL;
    fault = option_get(options, "test.fault");
    if (fault)
        status = fault_parse(device, fault);
    if (status == TANDEM_OK)
        status = inner_open(device, options);
    if (status != TANDEM_OK) {
        device_destroy(device);
        return status;
    }
    COUNT(device, opens, 1);
    *out_device = (struct tandem_device *)device;
    return TANDEM_OK;
}

void device_close(struct tandem_device *handle)
{
    struct sim_device *device = (struct sim_device *)handle;

    if (!object_is_live(handle, DEVICE))
        return;
    pthread_mutex_lock(&device->mutex);
    device_drain(device);
    COUNT(device, closes, 1);
    pthread_mutex_unlock(&device->mutex);
    device_destroy(device);
}

enum tandem_status device_memory_stats(struct tandem_device *handle,
                                       struct tandem_memory_stats *out_stats)
{
    struct sim_device *device = NULL;
    enum tandem_status status = object_hold(handle, DEVICE, &device);

    if (status == TANDEM_OK)
        status = device_unlock(
            device, inner_backend()->memory_stats(device->inner, out_stats));
    return status;
}
