/* SPDX-License-Identifier: Apache-2.0 */
/* Parses device names and finds devices by name; see device_name.h. */
#include <config.h>

#include "host/device/device_name.h"
#include "common/last_error.h"
#include "host/device/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool device_name_parse(const char *name, struct device_name *out)
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

const struct backend *device_backend_find(const struct tandem_context *context,
                                          const struct device_name *name)
{
    for (uint32_t i = 0; i < context->backend_count; i++) {
        const struct backend *backend = &context->backends[i];

        if (strncmp(backend->name, name->backend, name->length) == 0 &&
            backend->name[name->length] == '\0')
            return backend;
    }
    return NULL;
}

static void devices_list(const struct tandem_context *context,
                         const struct backend *backend, char *out, size_t bytes)
{
    const char *before = "the plugin has ";
    size_t used = 0;

    snprintf(out, bytes, "the plugin is loaded, but has no devices");
    for (uint32_t i = 0; i < context->device_count && used < bytes; i++) {
        if (context->devices[i]->backend != backend)
            continue;
        used += (size_t)snprintf(out + used, bytes - used, "%s%s", before,
                                 context->devices[i]->label);
        before = ", ";
    }
}

void device_not_found_message(const struct tandem_context *context,
                              const struct device_name *name, char *out,
                              size_t bytes)
{
    const struct backend *backend = device_backend_find(context, name);
    const int length = (int)name->length;
    char own[BACKEND_NAME_BYTES + 16] = "", file[BACKEND_NAME_BYTES + 16] = "";

    if (backend != NULL)
        devices_list(context, backend, out, bytes);
    else
        snprintf(out, bytes, "no plugin of that name is loaded");
    if (name->length >= BACKEND_NAME_BYTES)
        return;
    snprintf(own, sizeof(own), "%.*s: ", length, name->backend);
    snprintf(file, sizeof(file), "/tandem-%.*s.so: ", length, name->backend);
    for (uint32_t i = 0; i < context->load_error_count; i++) {
        const char *problem = context->load_errors[i];

        if (strncmp(problem, own, strlen(own)) == 0 ||
            strstr(problem, file) != NULL) {
            snprintf(out, bytes, "%s", problem);
            return;
        }
    }
}

enum tandem_status device_find(struct tandem_context *context, const char *name,
                               struct device **out_device)
{
    const struct backend *backend = NULL;
    enum tandem_status status = TANDEM_OK;
    struct device_name parts;
    const bool named = device_name_parse(name, &parts);
    char why[512];

    *out_device = NULL;
    if (named)
        backend = device_backend_find(context, &parts);
    if (backend != NULL)
        status = devices_enumerate(context,
                                   (uint32_t)(backend - context->backends) + 1);
    if (status != TANDEM_OK)
        return status;
    for (uint32_t i = 0; backend != NULL && i < context->device_count; i++) {
        struct device *device = context->devices[i];

        if (device->backend == backend && device->index == parts.index) {
            *out_device = device;
            return TANDEM_OK;
        }
    }
    if (named)
        device_not_found_message(context, &parts, why, sizeof(why));
    else
        snprintf(why, sizeof(why),
                 "expected the name of a plugin, or name:number");
    return last_error_set(TANDEM_NO_DEVICE, "there is no device \"%.64s\": %s",
                          name, why);
}
