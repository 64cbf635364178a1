/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the public functions for a context's devices and for creating
 * their profiles.  Any thread may call them. */
#include <config.h>

#include "common/last_error.h"
#include "common/struct_size.h"
#include "host/device/device.h"
#include "host/device/device_name.h"
#include "host/device/stream.h"
#include "host/profile/profile_writer.h"
#include "host/tensor/storage.h"

#include <stdlib.h>

/* Finds device number `id`.  Fails if has_out is false, which means that a
 * result pointer of the caller is NULL. */
static enum tandem_status device_lookup(struct tandem_context *context,
                                        uint32_t id, bool has_out,
                                        struct device **out_device)
{
    enum tandem_status status = context_check(context);

    if (status != TANDEM_OK)
        return status;
    if (!has_out)
        return argument_error("output argument: NULL");
    return device_get(context, id, out_device);
}

enum tandem_status tandem_device_count(struct tandem_context *context,
                                       uint32_t *out_count)
{
    enum tandem_status status = context_check(context);

    if (out_count != NULL)
        *out_count = 0;
    if (status != TANDEM_OK)
        return status;
    if (out_count == NULL)
        return argument_error("out_count: NULL");
    status = devices_enumerate(context, context->backend_count);
    if (status == TANDEM_OK)
        *out_count = context->device_count;
    return status;
}

enum tandem_status tandem_device_describe(struct tandem_context *context,
                                          uint32_t device,
                                          struct tandem_device_info *out_info)
{
    struct device *found;
    enum tandem_status status =
        device_lookup(context, device, out_info != NULL, &found);

    if (status == TANDEM_OK)
        status = struct_size_check("out_info", "tandem_device_info",
                                   out_info->struct_size, sizeof(size_t));
    if (status == TANDEM_OK)
        struct_size_fill(out_info, &found->info, sizeof(found->info));
    return status;
}

enum tandem_status tandem_device_name(struct tandem_context *context,
                                      uint32_t device, const char **out_backend,
                                      uint32_t *out_index)
{
    struct device *found;
    enum tandem_status status;

    if (out_backend != NULL)
        *out_backend = NULL;
    status = device_lookup(context, device,
                           out_backend != NULL && out_index != NULL, &found);
    if (status == TANDEM_OK) {
        *out_backend = found->vtable->name;
        *out_index = found->index;
    }
    return status;
}

enum tandem_status tandem_device_find(struct tandem_context *context,
                                      const char *name, uint32_t *out_device)
{
    struct device *found;
    enum tandem_status status = context_check(context);

    if (out_device != NULL)
        *out_device = TANDEM_ANY_DEVICE;
    if (status != TANDEM_OK)
        return status;
    if (name == NULL || out_device == NULL)
        return argument_error("%s: NULL", name == NULL ? "name" : "out_device");
    status = device_find(context, name, &found);
    if (status == TANDEM_OK)
        *out_device = found->id;
    return status;
}

enum tandem_status tandem_device_is_calibrated(struct tandem_context *context,
                                               uint32_t device,
                                               uint32_t *out_calibrated)
{
    struct device *found;
    const enum tandem_status status =
        device_lookup(context, device, out_calibrated != NULL, &found);

    if (status == TANDEM_OK)
        *out_calibrated = found->cost.calibrated;
    return status;
}

enum tandem_status tandem_device_profile_path(struct tandem_context *context,
                                              uint32_t device,
                                              const char **out_path)
{
    struct device *found;
    const enum tandem_status status =
        device_lookup(context, device, out_path != NULL, &found);

    if (status == TANDEM_OK)
        *out_path = found->profile_path;
    return status;
}

enum tandem_status
tandem_device_ignored_profiles(struct tandem_context *context, uint32_t device,
                               const char **out_why)
{
    struct device *found;
    enum tandem_status status;

    if (out_why != NULL)
        *out_why = NULL;
    status = device_lookup(context, device, out_why != NULL, &found);
    if (status == TANDEM_OK)
        *out_why = found->ignored_profiles;
    return status;
}

enum tandem_status tandem_device_is_op_blocked(struct tandem_context *context,
                                               uint32_t device, uint32_t op,
                                               uint32_t *out_blocked)
{
    struct device *found;
    enum tandem_status status;

    if (out_blocked != NULL)
        *out_blocked = 0;
    status = device_lookup(context, device, out_blocked != NULL, &found);
    if (status != TANDEM_OK)
        return status;
    if (op >= TANDEM_OP_ID_END)
        return argument_error("op: %u is not an operator id", op);
    *out_blocked = cost_is_op_blocked(&found->cost, op);
    return TANDEM_OK;
}

enum tandem_status
tandem_device_backend(struct tandem_context *context, uint32_t device,
                      const struct tandem_backend **out_backend,
                      struct tandem_device **out_device)
{
    struct device *found;
    enum tandem_status status;

    if (out_backend != NULL)
        *out_backend = NULL;
    if (out_device != NULL)
        *out_device = NULL;
    status = device_lookup(context, device,
                           out_backend != NULL && out_device != NULL, &found);
    if (status != TANDEM_OK)
        return status;
    status = device_open(found);
    if (status == TANDEM_OK) {
        *out_backend = found->vtable;
        *out_device = found->handle;
    }
    return status;
}

enum tandem_status tandem_device_predict_cost(struct tandem_context *context,
                                              uint32_t device,
                                              const char *curve, double x,
                                              double *out_ns)
{
    struct device *found;
    struct float_env host;
    uint32_t index;
    enum tandem_status status;

    if (out_ns != NULL)
        *out_ns = 0;
    status = device_lookup(context, device, out_ns != NULL, &found);
    if (status != TANDEM_OK)
        return status;
    host = float_env_enter();
    if (curve == NULL)
        status = argument_error("curve: NULL");
    else if (!(x >= 0 && x <= MAX_COST_X))
        status = argument_error("x: %g is out of range; expected 0 to %g", x,
                                MAX_COST_X);
    else if ((index = cost_curve_find(curve)) < COST_CURVE_COUNT)
        *out_ns = cost_curve_predict(&found->cost.curves[index], x);
    else if ((index = cost_scalar_find(curve)) < COST_SCALAR_COUNT)
        *out_ns = found->cost.scalars[index];
    else
        status = argument_error("curve: unknown name \"%.64s\"", curve);
    float_env_leave(host);
    return status;
}

static enum tandem_status profile_for(struct tandem_context *context,
                                      uint32_t device, bool edit,
                                      struct tandem_profile **out_profile)
{
    struct device *found;
    struct float_env host;
    enum tandem_status status = context_check(context);

    if (out_profile != NULL)
        *out_profile = NULL;
    if (status != TANDEM_OK)
        return status;
    if (out_profile == NULL)
        return argument_error("out_profile: NULL");
    host = float_env_enter();
    status = device_get(context, device, &found);
    if (status == TANDEM_OK)
        status = profile_new_for_device(found, edit, out_profile);
    float_env_leave(host);
    return status;
}

enum tandem_status tandem_profile_create(struct tandem_context *context,
                                         uint32_t device,
                                         struct tandem_profile **out_profile)
{
    return profile_for(context, device, false, out_profile);
}

enum tandem_status tandem_profile_edit(struct tandem_context *context,
                                       uint32_t device,
                                       struct tandem_profile **out_profile)
{
    return profile_for(context, device, true, out_profile);
}

enum tandem_status tandem_context_force_device(struct tandem_context *context,
                                               uint32_t device)
{
    struct device *found;
    enum tandem_status status = context_check(context);

    if (status != TANDEM_OK)
        return status;
    if (device != TANDEM_ANY_DEVICE)
        status = device_get(context, device, &found);
    if (status != TANDEM_OK)
        return status;
    pthread_mutex_lock(&context->mutex);
    context->forced = device;
    context->forced_is_named = false;
    pthread_mutex_unlock(&context->mutex);
    return TANDEM_OK;
}

enum tandem_status tandem_context_synchronize(struct tandem_context *context,
                                              uint64_t timeout_ns)
{
    const uint64_t deadline = clock_deadline(timeout_ns);
    enum tandem_status first = context_check(context);
    struct float_env host;

    if (first != TANDEM_OK)
        return first;
    host = float_env_enter();
    context_note_thread(context);
    for (uint32_t i = 0; i < context->device_count; i++) {
        struct device *device = context->devices[i];
        enum tandem_status status;

        if (device->state != DEVICE_OPEN)
            continue;
        status = wait_enqueued(device, deadline);
        if (status == TANDEM_OK)
            status = wait_idle(device, deadline);
        if (status == TANDEM_NOT_READY)
            first = status;
        else if (status != TANDEM_OK)
            device_store_async_error(device, status);
    }
    storages_free_pending(context);
    pthread_mutex_lock(&context->mutex);
    if (first == TANDEM_OK && context->async_error_status != TANDEM_OK) {
        first = last_error_set(context->async_error_status, "%s",
                               context->async_error_message);
        context->async_error_status = TANDEM_OK;
    }
    pthread_mutex_unlock(&context->mutex);
    float_env_leave(host);
    return first;
}
