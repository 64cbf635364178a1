/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and finds the device that the user forced to run all operators. */
#include <config.h>

#include "host/device/forced_device.h"
#include "common/last_error.h"
#include "host/device/device.h"
#include "host/device/device_name.h"

#include <stdio.h>
#include <stdlib.h>

/* Returns the name of the setting that forced a device, for error messages. */
static const char *setting_name(const struct tandem_context *context)
{
    return context->forced_by_environment ? "TANDEM_DEVICE"
                                          : "the option device";
}

static void plugin_names_list(const struct tandem_context *context, char *out,
                              size_t bytes)
{
    size_t used = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < context->backend_count && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%s",
                                 i == 0 ? "" : ", ", context->backends[i].name);
}

enum tandem_status forced_device_check(const struct tandem_context *context)
{
    const char *name = context->forced_name;
    char loaded[256], why[512];
    struct device_name parts;

    if (name == NULL)
        return TANDEM_OK;
    plugin_names_list(context, loaded, sizeof(loaded));
    if (!device_name_parse(name, &parts))
        return last_error_set(
            TANDEM_NO_DEVICE,
            "%s: \"%.64s\" is not a device name; expected the name of a "
            "plugin, or name:number, such as opencl:1; loaded: %s",
            setting_name(context), name, loaded);
    if (device_backend_find(context, &parts) != NULL)
        return TANDEM_OK;
    device_not_found_message(context, &parts, why, sizeof(why));
    return last_error_set(TANDEM_NO_DEVICE,
                          "%s: there is no device \"%.64s\": %s; loaded: %s",
                          setting_name(context), name, why, loaded);
}

enum tandem_status forced_device_find(struct tandem_context *context)
{
    struct device *device;
    char why[768];
    enum tandem_status status;

    if (context->forced_name == NULL)
        return TANDEM_OK;
    status = device_find(context, context->forced_name, &device);
    if (status == TANDEM_NO_DEVICE) {
        snprintf(why, sizeof(why), "%s", last_error_get());
        return last_error_set(status, "%s: %s", setting_name(context), why);
    }
    if (status != TANDEM_OK)
        return status;
    context->forced = device->id;
    free(context->forced_name);
    context->forced_name = NULL;
    return TANDEM_OK;
}
