/* SPDX-License-Identifier: Apache-2.0 */
/* Parses device names and finds devices by name; see device_name.h. */
#include <config.h>

#include "host/device/device_name.h"
#include "common/last_error.h"
#include "host/device/device.h"
#include "host/loader/loader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct device_name {
    const char *backend; /* plugin name within a text; not NUL-terminated */
    size_t length;       /* bytes of backend */
    unsigned long index; /* device number in the plugin, 0 by default */
};

/* Parses a device name such as "opencl:1".  Returns false for other texts. */
static bool device_name_parse(const char *name, struct device_name *out)
{
    const char *colon = strchr(name, ':');
    const char *digits = colon != NULL ? colon + 1 : "0";
    char *end;

    out->backend = name;
    out->length = colon != NULL ? (size_t)(colon - name) : strlen(name);
    errno = 0;
    out->index = strtoul(digits, &end, 10);
    return out->length > 0 && digits[0] >= '0' && digits[0] <= '9' &&
           *end == '\0' && errno == 0;
}

/* Appends `before` and `item` to the text in `out`, which has `bytes` bytes. */
static void text_append(char *out, size_t bytes, const char *before,
                        const char *item)
{
    const size_t used = strlen(out);

    snprintf(out + used, bytes - used, "%s%s", before, item);
}

static void devices_list(const struct tandem_context *context,
                         const struct tandem_backend *backend, char *out,
                         size_t bytes)
{
    out[0] = '\0';
    for (uint32_t i = 0; i < context->device_count; i++) {
        if (context->devices[i]->vtable == backend)
            text_append(out, bytes, out[0] == '\0' ? "the plugin has " : ", ",
                        context->devices[i]->label);
    }
    if (out[0] == '\0')
        snprintf(out, bytes, "the plugin is loaded, but has no devices");
}

/* Writes to `out` why there is no device with this name.  `backend` is the
 * plugin that the name refers to, or NULL if that plugin is not loaded. */
static void device_not_found_message(struct tandem_context *context,
                                     const struct tandem_backend *backend,
                                     const struct device_name *name, char *out,
                                     size_t bytes)
{
    const int length = (int)name->length;
    char own[BACKEND_NAME_BYTES + 16], file[BACKEND_NAME_BYTES + 16];

    if (backend != NULL)
        devices_list(context, backend, out, bytes);
    else if (context->backends_option != NULL)
        snprintf(out, bytes,
                 "no plugin of that name is loaded: %s allows only %.128s",
                 context->backends_setting, context->backends_option);
    else
        snprintf(out, bytes, "no plugin of that name is loaded");
    if (name->length >= BACKEND_NAME_BYTES)
        return;
    snprintf(own, sizeof(own), "%.*s: ", length, name->backend);
    snprintf(file, sizeof(file), "/tandem-%.*s.so: ", length, name->backend);
    pthread_mutex_lock(&context->mutex);
    for (uint32_t i = 0; i < context->load_error_count; i++) {
        const char *problem = context->load_errors[i];

        if (strncmp(problem, own, strlen(own)) == 0 ||
            strstr(problem, file) != NULL) {
            snprintf(out, bytes, "%s", problem);
            break;
        }
    }
    pthread_mutex_unlock(&context->mutex);
}

enum tandem_status device_find(struct tandem_context *context, const char *name,
                               struct device **out_device)
{
    const struct tandem_backend *backend;
    enum tandem_status status = TANDEM_OK;
    struct device_name parts;
    char why[512];

    if (!device_name_parse(name, &parts))
        return last_error_set(TANDEM_NO_DEVICE,
                              "there is no device \"%.64s\": expected the name "
                              "of a plugin, or name:number",
                              name);
    backend = backend_find(context, parts.backend, parts.length);
    if (backend != NULL)
        status = devices_enumerate(context,
                                   (uint32_t)(backend - context->backends) + 1);
    if (status != TANDEM_OK)
        return status;
    for (uint32_t i = 0; i < context->device_count; i++) {
        *out_device = context->devices[i];
        if ((*out_device)->vtable == backend &&
            (*out_device)->index == parts.index)
            return TANDEM_OK;
    }
    device_not_found_message(context, backend, &parts, why, sizeof(why));
    return last_error_set(TANDEM_NO_DEVICE, "there is no device \"%.64s\": %s",
                          name, why);
}

/* ---- the forced device ---- */

/* Returns the name of the setting that forced a device, for error messages. */
static const char *setting_name(const struct tandem_context *context)
{
    return context->forced_by_environment ? "TANDEM_DEVICE"
                                          : "the option device";
}

static const char *setting_advice(const struct tandem_context *context)
{
    return context->forced_by_environment
               ? "; unset TANDEM_DEVICE to let Tandem choose"
               : "";
}

enum tandem_status forced_device_check(struct tandem_context *context)
{
    const char *name = context->forced_name;
    char loaded[256] = "", why[512];
    struct device_name parts;

    if (name == NULL)
        return TANDEM_OK;
    for (uint32_t i = 0; i < context->backend_count; i++)
        text_append(loaded, sizeof(loaded), i == 0 ? "" : ", ",
                    context->backends[i].name);
    if (!device_name_parse(name, &parts))
        return last_error_set(
            TANDEM_NO_DEVICE,
            "%s: \"%.64s\" is not a device name; expected the name of a "
            "plugin, or name:number, such as opencl:1; loaded: %s%s",
            setting_name(context), name, loaded, setting_advice(context));
    if (backend_find(context, parts.backend, parts.length) != NULL)
        return TANDEM_OK;
    device_not_found_message(context, NULL, &parts, why, sizeof(why));
    return last_error_set(
        TANDEM_NO_DEVICE, "%s: there is no device \"%.64s\": %s; loaded: %s%s",
        setting_name(context), name, why, loaded, setting_advice(context));
}

enum tandem_status forced_device_find(struct tandem_context *context)
{
    struct device *device;
    char why[768];
    enum tandem_status status;

    if (!context->forced_is_named)
        return TANDEM_OK;
    status = device_find(context, context->forced_name, &device);
    if (status == TANDEM_NO_DEVICE) {
        snprintf(why, sizeof(why), "%s", last_error_get());
        return last_error_set(status, "%s: %s", setting_name(context), why);
    }
    if (status != TANDEM_OK)
        return status;
    pthread_mutex_lock(&context->mutex);
    if (context->forced_is_named)
        context->forced = device->id;
    context->forced_is_named = false;
    pthread_mutex_unlock(&context->mutex);
    return TANDEM_OK;
}
