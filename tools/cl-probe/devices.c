/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and describes devices; see devices.h.
 */
#include <config.h>

#include "devices.h"

#include "../common/lane.h"
#include "child.h"

#include <stdio.h>
#include <string.h>

#define FIND_LIMIT_S 60u

const char *device_text(const json_t *device, const char *key)
{
    const char *text = json_string_value(json_object_get(device, key));

    return text == NULL ? "" : text;
}

double device_number(const json_t *device, const char *key)
{
    return json_number_value(json_object_get(device, key));
}

/* ---- in the child ---- */

static const char *kind_name(uint32_t kind)
{
    return kind == TANDEM_DEVICE_CPU           ? "cpu"
           : kind == TANDEM_DEVICE_GPU         ? "gpu"
           : kind == TANDEM_DEVICE_ACCELERATOR ? "accelerator"
                                               : "unknown";
}

static json_t *caps_json(uint32_t caps)
{
    static const struct {
        uint32_t cap;
        const char *name;
    } names[] = {
        {TANDEM_CAP_F64, "f64"},
        {TANDEM_CAP_F16, "f16"},
        {TANDEM_CAP_HOST_MEMORY, "host memory"},
        {TANDEM_CAP_ASYNC, "asynchronous"},
        {TANDEM_CAP_COMPILES, "compiles"},
        {TANDEM_CAP_PROFILING, "profiling"},
        {TANDEM_CAP_CAPTURE, "capture"},
        {TANDEM_CAP_CORE_OPERATORS, "core operators"},
    };
    json_t *out = json_array();

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (caps & names[i].cap)
            json_array_append_new(out, json_string(names[i].name));
    return out;
}

static json_t *uuid_json(const uint8_t uuid[16])
{
    static const uint8_t unknown[16];
    char text[40];
    size_t used = 0;

    if (memcmp(uuid, unknown, 16) == 0)
        return json_null();
    for (size_t i = 0; i < 16; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%02x",
                                 i == 4 || i == 6 || i == 8 || i == 10 ? "-"
                                                                       : "",
                                 uuid[i]);
    return json_string(text);
}

/* Text from a driver need not be UTF-8. */
static json_t *text_json(const char *text)
{
    json_t *json = json_string(text);

    return json != NULL ? json : json_string("(not valid text)");
}

static void set_limits(json_t *out, const struct tandem_device_info *info)
{
    const struct {
        const char *key;
        uint64_t value;
    } limits[] = {
        {"memory_bytes", info->memory_bytes},
        {"max_alloc_bytes", info->max_alloc_bytes},
        {"local_memory_bytes", info->local_memory_bytes},
        {"compute_units", info->compute_units},
        {"max_work_group", info->max_work_group},
        {"clock_mhz", info->clock_mhz},
    };

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        json_object_set_new(out, limits[i].key,
                            json_integer((json_int_t)limits[i].value));
}

static json_t *describe(const struct tandem_device_info *info)
{
    json_t *out = json_object();

    json_object_set_new(out, "kind", json_string(kind_name(info->kind)));
    json_object_set_new(out, "description", text_json(info->name));
    json_object_set_new(out, "vendor", text_json(info->vendor));
    json_object_set_new(out, "platform", text_json(info->platform));
    json_object_set_new(out, "driver", text_json(info->driver));
    json_object_set_new(out, "uuid", uuid_json(info->uuid));
    json_object_set_new(out, "pci", text_json(info->pci));
    json_object_set_new(out, "extensions", text_json(info->extensions));
    json_object_set_new(out, "capabilities", caps_json(info->caps));
    set_limits(out, info);
    return out;
}

static json_t *duplicate_json(const char *backend, int32_t duplicate_of)
{
    char name[DEVICE_NAME_BYTES];

    if (duplicate_of < 0)
        return json_null();
    snprintf(name, sizeof name, duplicate_of == 0 ? "%.32s" : "%.32s:%d",
             backend, duplicate_of);
    return json_string(name);
}

static json_t *device_json(struct tandem_context *context, uint32_t device)
{
    struct tandem_device_info info = {.struct_size = sizeof info};
    char name[DEVICE_NAME_BYTES];
    const char *backend = "";
    uint32_t index, calibrated = 0;
    json_t *out;

    info.duplicate_of = -1;
    if (tandem_device_describe(context, device, &info) != TANDEM_OK ||
        tandem_device_name(context, device, &backend, &index) != TANDEM_OK ||
        device_name(context, device, name) != TANDEM_OK)
        return NULL;
    tandem_device_calibrated(context, device, &calibrated);
    out = describe(&info);
    json_object_set_new(out, "name", json_string(name));
    json_object_set_new(out, "backend", json_string(backend));
    json_object_set_new(out, "index", json_integer(device));
    json_object_set_new(out, "backend_index", json_integer(index));
    json_object_set_new(out, "duplicate_of",
                        duplicate_json(backend, info.duplicate_of));
    json_object_set_new(out, "calibrated", json_boolean(calibrated));
    return out;
}

static json_t *problems_json(struct tandem_context *context)
{
    json_t *out = json_array();
    const char *problem;

    for (uint32_t i = 0; (problem = tandem_context_problem(context, i)); i++)
        json_array_append_new(out, text_json(problem));
    return out;
}

static void find_body(void *argument, struct child_link *link)
{
    const struct probe_options *options = argument;
    struct tandem_context *context;
    json_t *devices = json_array();
    uint32_t count = 0;

    child_progress(link, 0, "finding devices");
    if (probe_context(options, &context) != TANDEM_OK) {
        child_fail(link, "%s", tandem_last_error());
        return;
    }
    tandem_device_count(context, &count);
    for (uint32_t device = 0; device < count; device++) {
        json_t *json = device_json(context, device);

        if (json != NULL)
            json_array_append_new(devices, json);
    }
    child_answer(link, json_pack("{s:s, s:o, s:o}", "version",
                                 tandem_version(), "devices", devices,
                                 "problems", problems_json(context)));
    tandem_context_destroy(context);
}

/* ---- in the parent ---- */

/* opencl:0 is opencl. */
static bool same_device(const char *a, const char *b)
{
    size_t length = strlen(b);

    if (length > 2 && strcmp(b + length - 2, ":0") == 0)
        length -= 2;
    return strlen(a) == length && strncmp(a, b, length) == 0;
}

static bool keep_device(json_t *devices, const char *name)
{
    for (size_t i = json_array_size(devices); i-- > 0;)
        if (!same_device(device_text(json_array_get(devices, i), "name"),
                         name))
            json_array_remove(devices, i);
    return json_array_size(devices) > 0;
}

json_t *devices_find(const struct probe_options *options, int *out_exit)
{
    struct child_outcome outcome;
    json_t *found;

    child_run(find_body, (void *)options,
              options->time_limit_s ? options->time_limit_s : FIND_LIMIT_S,
              NULL, &outcome);
    *out_exit = outcome.end == CHILD_FAILED ? PROBE_NO_DEVICE : PROBE_FAILED;
    if (outcome.result == NULL) {
        probe_complain("finding the devices failed: %s", outcome.message);
        return NULL;
    }
    found = json_incref(outcome.result);
    child_outcome_destroy(&outcome);
    if (options->device != NULL &&
        !keep_device(json_object_get(found, "devices"), options->device)) {
        *out_exit = PROBE_NO_DEVICE;
        probe_complain("there is no device \"%s\"; cl-probe --list names them",
                       options->device);
        json_decref(found);
        return NULL;
    }
    return found;
}
