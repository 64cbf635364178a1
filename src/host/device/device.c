/* SPDX-License-Identifier: Apache-2.0 */
/* Enumerates, opens and closes devices and handles their failures; see
 * device.h.  The public functions for devices are in device_api.c. */
#include <config.h>

#include "host/device/device.h"
#include "common/last_error.h"
#include "host/profile/profile_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN_OPEN_OPTIONS 5u
/* Some drivers report permanent failures as lack of memory.  A device counts as
 * failed after this many attempts to open it ran out of memory. */
#define MAX_OOM_OPEN_FAILURES 8u

/* ---- duplicates ---- */

/* Returns the original of a duplicate device (the other device that is the same
 * hardware), or NULL if the plugin reports none or cannot open it. */
static const struct device *device_original(const struct device *device)
{
    const struct tandem_context *context = device->context;

    for (uint32_t i = 0; i < context->device_count; i++) {
        const struct device *other = context->devices[i];

        if (other->vtable == device->vtable &&
            (int64_t)other->index == device->info.duplicate_of &&
            other->state != DEVICE_FAILED)
            return other;
    }
    return NULL;
}

/* Makes one duplicate device usable if its original could not be opened.  The
 * duplicate's driver may be able to open the same hardware. */
static void duplicate_promote(struct tandem_context *context)
{
    for (uint32_t i = 0; i < context->device_count; i++) {
        struct device *device = context->devices[i];

        if (!device->duplicate || device_original(device) != NULL)
            continue;
        device->duplicate = false;
        context->usable |= 1u << device->id;
        log_message(&context->log, TANDEM_LOG_INFO,
                    "%s is used, because its duplicate cannot be opened",
                    device->label);
        return;
    }
}

/* ---- finding ---- */

/* Sets the device's flags and costs from the plugin's description of it. */
static void device_configure(struct device *device)
{
    const uint32_t caps = device->info.caps;

    device->is_zero_copy = caps & TANDEM_CAP_ZERO_COPY_IMPORT;
    device->bit = device->is_zero_copy ? HOST_BIT : 1u << device->id;
    device->jit_compiles = caps & TANDEM_CAP_JIT_COMPILATION;
    device->async = caps & TANDEM_CAP_ASYNC || !device->is_zero_copy;
    device->stream_count = device->async ? 1 : MAX_DEVICE_STREAMS;
    device->duplicate = device_original(device) != NULL;
    cost_model_set_defaults(&device->cost, &device->info);
    profile_load(device);
}

/* Adds a configured device to its context, which takes ownership. */
static void device_register(struct device *device)
{
    struct tandem_context *context = device->context;
    const uint32_t bit = 1u << device->id;

    for (uint32_t op = 0; op < TANDEM_OP_ID_END; op++) {
        if (cost_is_op_blocked(&device->cost, op))
            context->op_blocked[op] |= bit;
    }
    for (uint32_t i = 0; i < TANDEM_COST_CLASS_COUNT; i++) {
        if (device->cost.calibrated_classes >> i & 1)
            context->calibrated[i] |= bit;
    }
    /* The CPU plugin's default costs are never too low; see cost_curves.c. */
    if (strcmp(device->vtable->name, "cpu") == 0)
        context->default_costs_are_upper_bound |= bit;
    if (device->info.kind == TANDEM_DEVICE_GPU)
        context->gpus |= bit;
    context->devices[context->device_count] = device;
    context->device_count++;
    if (!device->duplicate)
        context->usable |= bit;
    if (device->is_zero_copy)
        context->zero_copy_devices |= bit;
    else if (device->info.caps & TANDEM_CAP_UNIFIED_MEMORY)
        context->import_devices |= bit;
    log_message(&context->log, TANDEM_LOG_INFO, "device %u: %s, %s%s%s",
                device->id, device->label, device->info.name,
                device->cost.calibrated ? "" : ", not calibrated",
                device->duplicate ? ", a duplicate" : "");
}

static struct device *device_new(void)
{
    struct device *device = aligned_alloc(64, sizeof(*device));
    pthread_condattr_t clock;

    if (device == NULL)
        return NULL;
    memset(device, 0, sizeof(*device));
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&device->open_mutex, NULL);
    pthread_mutex_init(&device->mutex, NULL);
    pthread_cond_init(&device->changed, &clock);
    pthread_condattr_destroy(&clock);
    return device;
}

/* Adds a plugin's device to the context.  Skips a device that the plugin cannot
 * describe.  Returns TANDEM_OUT_OF_MEMORY on failure. */
static enum tandem_status device_add(struct tandem_context *context,
                                     const struct tandem_backend *vtable,
                                     uint32_t index)
{
    struct device *device;

    if (context->device_count == TANDEM_MAX_DEVICES) {
        log_message(&context->log, TANDEM_LOG_WARNING,
                    "%s:%u: not used: a context has at most %u devices",
                    vtable->name, index, TANDEM_MAX_DEVICES);
        return TANDEM_OK;
    }
    device = device_new();
    if (device == NULL)
        return memory_error("no memory for %s:%u", vtable->name, index);
    device->context = context;
    device->vtable = vtable;
    device->index = index;
    device->id = context->device_count;
    snprintf(device->label, sizeof(device->label), "%s:%u", vtable->name,
             index);
    device->info.struct_size = sizeof(device->info);
    device->info.duplicate_of = -1;
    if (vtable->device_describe(index, &device->info) != TANDEM_OK) {
        log_message(&context->log, TANDEM_LOG_WARNING,
                    "%s: not used: the plugin cannot describe it: %s",
                    device->label, plugin_reply_error(vtable));
        device_destroy(device);
        return TANDEM_OK;
    }
    plugin_reply_sanitize_info(&device->info, index);
    device_configure(device);
    device_register(device);
    return TANDEM_OK;
}

/* Returns what default costs mean for the choice of the device.  `calibrated`
 * is a mask of devices. */
static const char *default_costs_consequence(const struct device *device,
                                             uint32_t calibrated)
{
    const struct tandem_context *context = device->context;
    const uint32_t bit = 1u << device->id;

    if (context->default_costs_are_upper_bound & bit)
        return "default costs are used";
    if (calibrated & (context->gpus & bit ? context->gpus : UINT32_MAX))
        return "not chosen if a calibrated device supports the operator";
    return context->gpus & bit
               ? "conservative default costs are used, so only large operators "
                 "run on it"
               : "default costs are used, which are higher than those of the "
                 "CPU plugin";
}

/* Warns once about each device without a profile if costs choose between the
 * device and others, or if its profiles are not used.  The CPU plugin's devices
 * need no profile.  Called after all devices were enumerated. */
static void uncalibrated_warn(const struct tandem_context *context)
{
    const bool costs_choose = !context->forced_is_named &&
                              context->forced == TANDEM_ANY_DEVICE &&
                              __builtin_popcount(context->usable) > 1;
    uint32_t calibrated = 0, needs_profile = 0;

    if (costs_choose)
        needs_profile =
            context->usable & ~context->default_costs_are_upper_bound;
    for (uint32_t i = 0; i < context->device_count; i++)
        calibrated |= (uint32_t)context->devices[i]->cost.calibrated << i;
    for (uint32_t i = 0; i < context->device_count; i++) {
        const struct device *device = context->devices[i];
        const char *ignored = device->ignored_profiles;

        if (calibrated >> i & 1 ||
            (ignored == NULL && !(needs_profile >> i & 1)))
            continue;
        log_message(&context->log, TANDEM_LOG_WARNING,
                    "%s: not calibrated: %s%.640s%s%s; run cl-probe "
                    "--calibrate",
                    device->label, ignored != NULL ? "profile ignored: " : "",
                    ignored != NULL ? ignored : "", ignored != NULL ? ": " : "",
                    default_costs_consequence(device, calibrated));
    }
}

/* The context's enumeration_mutex must be held. */
static enum tandem_status devices_find(struct tandem_context *context,
                                       uint32_t backend_count)
{
    const bool more = context->backends_enumerated < backend_count;

    while (context->backends_enumerated < backend_count) {
        const struct tandem_backend *vtable =
            &context->backends[context->backends_enumerated];
        uint32_t count = 0;
        const enum tandem_status status = vtable->device_count(&count);

        if (status != TANDEM_OK) {
            const enum tandem_log_level level = status == TANDEM_NO_DEVICE
                                                    ? TANDEM_LOG_INFO
                                                    : TANDEM_LOG_WARNING;

            context_add_load_error(context, level, "%s: no devices: %s",
                                   vtable->name, plugin_reply_error(vtable));
            count = 0;
        }
        if (count > TANDEM_MAX_DEVICES) {
            log_message(&context->log, TANDEM_LOG_WARNING,
                        "%s: has %u devices; only the first %u are used",
                        vtable->name, count, TANDEM_MAX_DEVICES);
            count = TANDEM_MAX_DEVICES;
        }
        for (; context->indices_enumerated < count;
             context->indices_enumerated++) {
            if (device_add(context, vtable, context->indices_enumerated) !=
                TANDEM_OK)
                return TANDEM_OUT_OF_MEMORY;
        }
        context->indices_enumerated = 0;
        context->backends_enumerated++;
    }
    if (more && context->backends_enumerated == context->backend_count)
        uncalibrated_warn(context);
    return TANDEM_OK;
}

enum tandem_status devices_enumerate(struct tandem_context *context,
                                     uint32_t backend_count)
{
    struct float_env host;
    enum tandem_status status;

    if (context->backends_enumerated >= backend_count)
        return TANDEM_OK;
    host = float_env_enter();
    pthread_mutex_lock(&context->enumeration_mutex);
    status = devices_find(context, backend_count);
    pthread_mutex_unlock(&context->enumeration_mutex);
    float_env_leave(host);
    return status;
}

enum tandem_status device_get(struct tandem_context *context, uint32_t id,
                              struct device **out_device)
{
    enum tandem_status status = TANDEM_OK;

    *out_device = NULL;
    /* Skip the enumeration, which starts all drivers, if `id` is known. */
    if (id >= context->device_count)
        status = devices_enumerate(context, context->backend_count);
    if (status != TANDEM_OK)
        return status;
    if (id >= context->device_count)
        return argument_error(
            "device %u does not exist: the context has %u devices", id,
            context->device_count);
    *out_device = context->devices[id];
    return TANDEM_OK;
}

/* ---- opening ---- */

static enum tandem_status handle_open(struct device *device)
{
    struct tandem_context *context = device->context;
    const struct open_pair own[OWN_OPEN_OPTIONS] = {
        {"cache_dir", context->cache_usable ? context->cache_path : NULL},
        {"num_threads", context->num_threads},
        {"compile_processes", context->compile_processes},
        {"deterministic", context->deterministic ? "1" : NULL},
        {"tuning", device->tuning},
    };
    const char *keys[OWN_OPEN_OPTIONS + MAX_OPEN_OPTIONS];
    const char *values[OWN_OPEN_OPTIONS + MAX_OPEN_OPTIONS];
    struct tandem_open_options options = {
        .struct_size = sizeof(options),
        .keys = keys,
        .values = values,
        .log = log_from_plugin,
        .log_user = &context->log,
    };
    enum tandem_status status;

    for (uint32_t i = 0; i < OWN_OPEN_OPTIONS + context->open_count; i++) {
        const struct open_pair *pair =
            i < OWN_OPEN_OPTIONS ? &own[i]
                                 : &context->open_pairs[i - OWN_OPEN_OPTIONS];

        if (pair->value == NULL)
            continue;
        keys[options.count] = pair->key;
        values[options.count++] = pair->value;
    }
    status = plugin_reply_sanitize_status(
        device->vtable->open(device->index, &options, &device->handle));
    if (status == TANDEM_OK && device->handle == NULL)
        status = TANDEM_FAILED;
    if (status == TANDEM_OK)
        return TANDEM_OK;
    /* The plugin can set the handle even if it returns an error. */
    device->handle = NULL;
    return last_error_set(status, "%s: could not be opened: %s", device->label,
                          plugin_reply_error(device->vtable));
}

enum tandem_status device_stream_create(struct device *device,
                                        struct tandem_stream **out_stream)
{
    enum tandem_status status = plugin_reply_sanitize_status(
        device->vtable->stream_create(device->handle, 0, out_stream));

    if (status == TANDEM_OK && *out_stream == NULL)
        status = TANDEM_FAILED;
    if (status == TANDEM_OK)
        return TANDEM_OK;
    *out_stream = NULL;
    return last_error_set(status, "%s: no stream could be created: %s",
                          device->label, plugin_reply_error(device->vtable));
}

bool device_rejects_options(const struct device *device)
{
    return device->state == DEVICE_FAILED &&
           device->open_status == TANDEM_INVALID_ARGUMENT;
}

/* Stores the error, whose message is set, and excludes the device unless the
 * program's options are the cause. */
static void device_open_failed(struct device *device, enum tandem_status status)
{
    struct tandem_context *context = device->context;

    device->open_status = status;
    snprintf(device->open_error, sizeof(device->open_error), "%s",
             last_error_get());
    device->state = DEVICE_FAILED;
    if (device_rejects_options(device))
        return;
    context->usable &= ~(1u << device->id);
    log_message(&context->log, TANDEM_LOG_WARNING, "not used: %s",
                device->open_error);
    duplicate_promote(context);
}

enum tandem_status device_lost_error(const struct device *device)
{
    return last_error_set(TANDEM_DEVICE_LOST, "%s is lost", device->label);
}

/* Opens the device, whose open_mutex must be held, and its first stream. */
static enum tandem_status device_open_now(struct device *device)
{
    struct tandem_stream **stream = &device->streams[0].handle;
    enum tandem_status status = handle_open(device);

    if (status == TANDEM_OK) {
        status = device_stream_create(device, stream);
        if (status != TANDEM_OK) {
            device->vtable->close(device->handle);
            device->handle = NULL;
        }
    }
    if (status == TANDEM_OK) {
        device->state = DEVICE_OPEN;
        return TANDEM_OK;
    }
    if (status != TANDEM_OUT_OF_MEMORY ||
        ++device->oom_open_failures >= MAX_OOM_OPEN_FAILURES)
        device_open_failed(device, status);
    return status;
}

enum tandem_status device_open(struct device *device)
{
    enum tandem_status status = TANDEM_OK;
    struct float_env host;

    if (device->state == DEVICE_OPEN)
        return TANDEM_OK;
    if (device->state == DEVICE_LOST)
        return device_lost_error(device);
    host = float_env_enter();
    pthread_mutex_lock(&device->open_mutex);
    if (device->state == DEVICE_NEW)
        status = device_open_now(device);
    else if (device->state == DEVICE_FAILED)
        status = last_error_set(device->open_status, "%s", device->open_error);
    else if (device->state == DEVICE_LOST)
        status = device_lost_error(device);
    pthread_mutex_unlock(&device->open_mutex);
    float_env_leave(host);
    return status;
}

void device_destroy(struct device *device)
{
    if (device == NULL)
        return;
    /* Leak the streams and handle of a hung device: freeing them would block.
     */
    for (uint32_t i = 0; i < MAX_DEVICE_STREAMS && !device->hung; i++) {
        if (device->streams[i].handle != NULL)
            device->vtable->stream_destroy(device->streams[i].handle);
    }
    if (device->handle != NULL && !device->hung)
        device->vtable->close(device->handle);
    gemm_cost_grid_free(&device->cost.gemm);
    free(device->profile_path);
    free(device->ignored_profiles);
    free(device->tuning);
    pthread_cond_destroy(&device->changed);
    pthread_mutex_destroy(&device->mutex);
    pthread_mutex_destroy(&device->open_mutex);
    free(device);
}

/* ---- failures ---- */

/* Marks the device as lost, if it is not yet lost, and wakes the threads that
 * wait for its stream. */
static void device_exclude(struct device *device, const char *why)
{
    struct tandem_context *context = device->context;

    pthread_mutex_lock(&device->mutex);
    if (device->state == DEVICE_LOST) {
        pthread_mutex_unlock(&device->mutex);
        return;
    }
    if (device->busy)
        device->lost_with_pending_work = true;
    device->state = DEVICE_LOST;
    context->usable &= ~(1u << device->id);
    device->busy = false;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->mutex);
    log_message(&context->log, TANDEM_LOG_ERROR,
                "%s is lost and no longer used: %s", device->label, why);
}

void device_mark_lost(struct device *device)
{
    device_exclude(device, plugin_reply_error(device->vtable));
}

/* Marks the device as hung.  The caller must have set the error message. */
static enum tandem_status device_hang_fail(struct device *device)
{
    device->hung = true;
    device_exclude(device, last_error_get());
    return TANDEM_DEVICE_LOST;
}

enum tandem_status device_mark_hung(struct device *device)
{
    const double seconds = (double)device->context->hang_timeout_ns * 1e-9;

    if (device->state == DEVICE_LOST)
        return device_lost_error(device);
    last_error_set(TANDEM_DEVICE_LOST,
                   "%s: its work did not complete within %g s "
                   "(TANDEM_HANG_TIMEOUT_SECONDS): the device counts as lost",
                   device->label, seconds);
    return device_hang_fail(device);
}

enum tandem_status device_call_failed(struct device *device,
                                      enum tandem_status status,
                                      const char *what)
{
    status = plugin_reply_sanitize_status(status);
    /* The plugin call has no timeout, so TANDEM_NOT_READY means that the plugin
     * gave up waiting for hung work. */
    if (status == TANDEM_NOT_READY) {
        last_error_set(TANDEM_DEVICE_LOST,
                       "%s: %s waited for work that does not complete (%s): "
                       "the device counts as lost",
                       device->label, what, plugin_reply_error(device->vtable));
        return device_hang_fail(device);
    }
    last_error_set(status, "%s: %s failed: %s: %s", device->label, what,
                   status_name(status), plugin_reply_error(device->vtable));
    if (status == TANDEM_DEVICE_LOST)
        device_mark_lost(device);
    return status;
}

void device_mark_launches_unconfirmed(struct device *device)
{
    if (device->unconfirmed_until == 0)
        device->unconfirmed_after = device->confirmed;
    device->unconfirmed_until = device->last_launch;
}

void device_store_async_error(struct device *device, enum tandem_status status)
{
    struct tandem_context *context = device->context;
    const char *why =
        device->hung ? last_error_get() : plugin_reply_error(device->vtable);

    device_mark_launches_unconfirmed(device);
    log_message(&context->log, TANDEM_LOG_WARNING,
                "%s: earlier work failed: %s", device->label, why);
    pthread_mutex_lock(&context->mutex);
    if (context->async_error_status == TANDEM_OK) {
        context->async_error_status = status;
        snprintf(context->async_error_message,
                 sizeof(context->async_error_message),
                 "%s: earlier work failed: %s: %s", device->label,
                 status_name(status), why);
    }
    pthread_mutex_unlock(&context->mutex);
}

void device_mark_idle(struct device *device)
{
    device->busy = false;
    device->confirmed = device->last_launch;
    virtual_clock_raise(device->context, device->predicted_busy_until_ns);
}
