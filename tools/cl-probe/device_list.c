/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the devices and describes them as JSON; see device_list.h. */
#include <config.h>

#include "device_list.h"

#include "../common/device_session.h"
#include "common/plugin_directory.h"
#include "calibration_state.h"
#include "child_process.h"
#include "driver_test.h"

#include <installed_directories.h>

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIND_LIMIT_S 60u
#define MAX_BACKENDS 32

bool device_is(const json_t *device, const char *name)
{
    const char *own = device_text(device, "name");
    size_t length = strlen(name);

    if (length > 2 && strcmp(name + length - 2, ":0") == 0)
        length -= 2;
    return strlen(own) == length && strncmp(own, name, length) == 0;
}

/* Implements devices_have.  The text `before` introduces the list of devices in
 * the message. */
static bool list_has(const json_t *found, const char *name, const char *source,
                     const char *before)
{
    const json_t *devices = json_object_get(found, "devices");
    char names[512] = "";

    if (name == NULL || name[0] == '\0')
        return true;
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const size_t used = strlen(names);

        if (device_is(device, name))
            return true;
        snprintf(names + used, sizeof names - used, "%s%s",
                 used == 0 ? before : ", ", device_text(device, "name"));
    }
    probe_complain("%s: there is no device \"%s\"%s", source, name,
                   names[0] != '\0' ? names
                                    : "; cl-probe --list names those that "
                                      "there are");
    return false;
}

bool devices_have(const json_t *found, const char *name, const char *source)
{
    return list_has(found, name, source, "; expected one of: ");
}

int devices_status(const json_t *found)
{
    if (json_is_true(json_object_get(found, "failed")))
        return PROBE_FAILED;
    return json_array_size(json_object_get(found, "devices")) > 0
               ? PROBE_OK
               : PROBE_NO_DEVICE;
}

const char *devices_speed_note(const json_t *devices)
{
    bool found = false;

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);

        if (strcmp(device_text(device, "backend"), "opencl") != 0)
            continue;
        if (strcmp(device_text(device, "kind"), "cpu") != 0)
            return "";
        found = true;
    }
    return found ? "The only OpenCL device is the CPU itself: this shows that "
                   "OpenCL works here, not how fast it is."
                 : "";
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
        {TANDEM_CAP_F16_ARITHMETIC, "f16"},
        {TANDEM_CAP_ZERO_COPY_IMPORT, "host memory"},
        {TANDEM_CAP_ASYNC, "asynchronous"},
        {TANDEM_CAP_JIT_COMPILATION, "compiles"},
        {TANDEM_CAP_PROFILING, "profiling"},
        {TANDEM_CAP_CORE_OPERATORS, "core operators"},
        {TANDEM_CAP_UNIFIED_MEMORY, "unified memory"},
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
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%s%02x",
            i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    return json_string(text);
}

/* Returns an array of the texts that "; " separates in `quirks`. */
static json_t *quirks_json(const char *quirks)
{
    json_t *out = json_array();

    while (*quirks != '\0') {
        const char *end = strstr(quirks, "; ");
        size_t length = end != NULL ? (size_t)(end - quirks) : strlen(quirks);

        json_array_append_new(out, json_stringn(quirks, length));
        quirks += end != NULL ? length + 2 : length;
    }
    return out;
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
        {"max_work_group_size", info->max_work_group_size},
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
    json_object_set_new(out, "description", child_text("%s", info->name));
    json_object_set_new(out, "vendor", child_text("%s", info->vendor));
    json_object_set_new(out, "platform", child_text("%s", info->platform));
    json_object_set_new(out, "driver", child_text("%s", info->driver_version));
    json_object_set_new(out, "uuid", uuid_json(info->uuid));
    json_object_set_new(out, "pci", child_text("%s", info->pci_address));
    json_object_set_new(out, "extensions", child_text("%s", info->extensions));
    json_object_set_new(out, "capabilities", caps_json(info->caps));
    json_object_set_new(out, "quirks", quirks_json(info->quirks));
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

/* Returns the names of the operators that the device computes wrong. */
static json_t *blocked_json(struct tandem_context *context, uint32_t device)
{
    json_t *out = json_array();

    for (uint32_t op = 0; op < TANDEM_OP_ID_END; op++) {
        const struct tandem_op_info *info = tandem_op_by_id(op);
        uint32_t rejects = 0;

        if (info != NULL &&
            tandem_device_is_op_blocked(context, device, op, &rejects) ==
                TANDEM_OK &&
            rejects)
            json_array_append_new(out, json_string(info->name));
    }
    return out;
}

/* Returns the notes of the profile, which tell how it was measured, each as
 * "KEY: TEXT".  The member "missing" of the device has the missing parts. */
static json_t *notes_json(const json_t *profile)
{
    json_t *notes = json_object_get(profile, "notes"), *out = json_array();
    json_t *text;
    const char *key;

    json_object_foreach (notes, key, text)
        if (strcmp(key, "missing") != 0)
            json_array_append_new(
                out, child_text("%s: %s", key, json_string_value(text)));
    return out;
}

/* Adds the path of the device's profile, or null, and what its content tells
 * about its measurement. */
static void set_profile(json_t *out, const char *path)
{
    json_t *profile = path != NULL ? json_load_file(path, 0, NULL) : NULL;

    json_object_set_new(out, "profile",
                        path != NULL ? child_text("%s", path) : json_null());
    json_object_set_new(out, "profile_notes", notes_json(profile));
    json_object_set_new(out, "missing", calibration_missing(profile));
    json_decref(profile);
}

static json_t *device_json(struct tandem_context *context, uint32_t device)
{
    struct tandem_device_info info = {.struct_size = sizeof info};
    char name[DEVICE_NAME_BYTES];
    const char *backend = "";
    const char *profile = NULL, *refused = NULL;
    uint32_t index, calibrated = 0;
    json_t *out;

    info.duplicate_of = -1;
    if (tandem_device_describe(context, device, &info) != TANDEM_OK ||
        tandem_device_name(context, device, &backend, &index) != TANDEM_OK ||
        device_name(context, device, name) != TANDEM_OK)
        return NULL;
    tandem_device_is_calibrated(context, device, &calibrated);
    tandem_device_profile_path(context, device, &profile);
    tandem_device_ignored_profiles(context, device, &refused);
    out = describe(&info);
    json_object_set_new(out, "name", json_string(name));
    json_object_set_new(out, "backend", json_string(backend));
    json_object_set_new(out, "index", json_integer(index));
    json_object_set_new(out, "duplicate_of",
                        duplicate_json(backend, info.duplicate_of));
    json_object_set_new(out, "calibrated", json_boolean(calibrated));
    json_object_set_new(out, "blocked", blocked_json(context, device));
    set_profile(out, profile);
    json_object_set_new(out, "ignored_profiles",
                        refused ? child_text("%s", refused) : json_null());
    return out;
}

static json_t *problems_json(struct tandem_context *context)
{
    json_t *out = json_array();
    const char *problem;

    for (uint32_t i = 0; (problem = tandem_context_load_error(context, i)); i++)
        json_array_append_new(out, child_text("%s", problem));
    return out;
}

struct find_request {
    const struct probe_options *options;
    const char *backend;
};

static void find_body(void *argument, struct child_link *link)
{
    const struct find_request *request = argument;
    struct tandem_context *context;
    json_t *devices = json_array(), *problems;
    uint32_t count = 0;
    bool found;

    child_progress(link, 0, "finding devices");
    if (probe_context(request->options, request->backend, &context) !=
        TANDEM_OK) {
        child_fail(link, "%s", tandem_last_error());
        return;
    }
    found = tandem_device_count(context, &count) == TANDEM_OK;
    problems = problems_json(context);
    if (!found && json_array_size(problems) == 0)
        json_array_append_new(problems, child_text("%s", tandem_last_error()));
    for (uint32_t device = 0; device < count; device++) {
        json_t *json = device_json(context, device);

        if (json != NULL)
            json_array_append_new(devices, json);
    }
    child_answer(link, json_pack("{s:o, s:o}", "devices", devices,
                                 "load_errors", problems));
    tandem_context_destroy(context);
}

/* ---- in the parent: which plugins there are ---- */

static int compare_names(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    bool x_cpu = strcmp(x, "cpu") == 0, y_cpu = strcmp(y, "cpu") == 0;

    return x_cpu != y_cpu ? y_cpu - x_cpu : strcmp(x, y);
}

/* Adds the names of the plugins in the folder, tandem-NAME.so, as keys. */
static void add_folder(json_t *names, const char *folder)
{
    char pattern[4200];
    glob_t files;

    snprintf(pattern, sizeof pattern, "%s/tandem-*.so", folder);
    if (folder[0] != '/')
        probe_complain("TANDEM_PLUGIN_PATH: \"%s\" ignored: expected an "
                       "absolute path",
                       folder);
    if (folder[0] != '/' || glob(pattern, 0, NULL, &files) != 0)
        return;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char *name = strrchr(files.gl_pathv[i], '/') + strlen("/tandem-");

        name[strlen(name) - strlen(".so")] = '\0';
        if (json_object_size(names) < MAX_BACKENDS)
            json_object_set_new(names, name, json_true());
    }
    globfree(&files);
}

/* Returns the names of the plugins that TANDEM_BACKENDS lists, or all if it is
 * not set.  Warns about names that no plugin has.  Frees `all`. */
static json_t *names_select(json_t *all)
{
    const char *list = secure_getenv("TANDEM_BACKENDS"), *name;
    char *copy, *rest, expected[512] = "";
    json_t *names, *value;

    if (list == NULL || list[0] == '\0' || json_object_size(all) == 0)
        return all;
    json_object_foreach (all, name, value) {
        const size_t used = strlen(expected);

        snprintf(expected + used, sizeof expected - used, "%s%s",
                 used == 0 ? "" : ", ", name);
    }
    names = json_object();
    copy = rest = strdup(list);
    while ((name = strsep(&rest, ",")) != NULL) {
        if (json_object_get(all, name) != NULL)
            json_object_set_new(names, name, json_true());
        else
            probe_complain("TANDEM_BACKENDS: there is no plugin \"%s\"; "
                           "expected names from: %s",
                           name, expected);
    }
    free(copy);
    json_decref(all);
    return names;
}

/* Finds the names of the plugins to load, as keys.  The library checks the
 * files when it loads them. */
static json_t *names_find(void)
{
    const char *variable = secure_getenv("TANDEM_PLUGIN_PATH");
    char *path =
        variable != NULL && variable[0] != '\0' ? strdup(variable) : NULL;
    char *rest = path, *folder;
    json_t *names = json_object();
    char installed[PLUGIN_DIRECTORY_BYTES];

    while ((folder = strsep(&rest, ":")) != NULL)
        add_folder(names, folder);
    /* In a program that is not position-independent, &tandem_context_create
     * can be an address in the program. */
    if (plugin_directory_find(dlsym(RTLD_DEFAULT, "tandem_context_create"),
                              installed))
        add_folder(names, installed);
    add_folder(names, PLUGINDIR);
    free(path);
    return names_select(names);
}

/* ---- in the parent: what they find ---- */

static void add_backend(json_t *found, const char *backend)
{
    const char *before = device_text(found, "backends");

    json_object_set_new(
        found, "backends",
        json_sprintf("%s%s%s", before, before[0] == '\0' ? "" : ",", backend));
}

/* Adds "NAME: MESSAGE" for the plugin `name`, or adds the name to the problem
 * of other plugins with the same message. */
static void problem_add(json_t *problems, const char *name, const char *message)
{
    for (size_t i = 0; i < json_array_size(problems); i++) {
        const char *text = json_string_value(json_array_get(problems, i));
        const char *end = strstr(text, ": ");

        if (end != NULL && strcmp(end + 2, message) == 0) {
            json_array_set_new(problems, i,
                               child_text("%.*s, %s: %s", (int)(end - text),
                                          text, name, message));
            return;
        }
    }
    json_array_append_new(problems, child_text("%s: %s", name, message));
}

/* Adds the texts that are not in the list yet. */
static void problems_extend(json_t *problems, const json_t *others)
{
    for (size_t i = 0; i < json_array_size(others); i++) {
        json_t *other = json_array_get(others, i);
        bool listed = false;

        for (size_t k = 0; k < json_array_size(problems); k++)
            listed |= json_equal(json_array_get(problems, k), other);
        if (!listed)
            json_array_append(problems, other);
    }
}

/* Returns the message without the words that no plugin could be loaded: if
 * `backend` is not NULL, the message is about this plugin. */
static const char *message_trim(const char *backend, const char *message)
{
    static const char none[] = "no backend plugin could be loaded: ";
    const size_t length = sizeof none - 1;

    return backend != NULL && strncmp(message, none, length) == 0
               ? message + length
               : message;
}

/* Queries the plugin `backend`, or if it is NULL all plugins of the library. */
static void find_backend(json_t *found, const struct probe_options *options,
                         const char *backend)
{
    struct find_request request = {options, backend};
    const char *name = backend == NULL ? "plugins" : backend;
    json_t *problems = json_object_get(found, "load_errors");
    struct child_outcome outcome;

    child_run(find_body, &request,
              options->timeout_s ? options->timeout_s : FIND_LIMIT_S, NULL,
              &outcome);
    if (outcome.result == NULL) {
        problem_add(problems, name, message_trim(backend, outcome.message));
        if (outcome.end != CHILD_FAILED) {
            if (!options->lists_problems)
                probe_complain("%s: %s", name, outcome.message);
            json_object_set_new(found, "failed", json_true());
        }
        return;
    }
    json_array_extend(json_object_get(found, "devices"),
                      json_object_get(outcome.result, "devices"));
    problems_extend(problems, json_object_get(outcome.result, "load_errors"));
    if (backend != NULL)
        add_backend(found, backend);
    child_outcome_destroy(&outcome);
}

/* Returns false if the backend is OpenCL and a driver is broken.  The library
 * would not load this driver either. */
static bool drivers_good(json_t *found, const struct probe_options *options,
                         const char *backend)
{
    if (strcmp(backend, "opencl") != 0 || drivers_check(options, found))
        return true;
    json_object_set_new(found, "failed", json_true());
    return false;
}

/* Returns true if the device `name` could belong to the plugin, or is NULL. */
static bool may_have(const char *backend, const char *name)
{
    size_t length = strlen(backend);

    return name == NULL || (strncmp(name, backend, length) == 0 &&
                            (name[length] == '\0' || name[length] == ':'));
}

json_t *devices_find(const struct probe_options *options, const char *name,
                     int *out_exit)
{
    json_t *found =
        json_pack("{s:s, s:[], s:[], s:s, s:b}", "version", tandem_version(),
                  "devices", "load_errors", "backends", "", "failed", 0);
    json_t *names = names_find(), *value, *devices;
    const char *sorted[MAX_BACKENDS], *key;
    char before[80];
    size_t count = 0;
    bool is_there;

    json_object_foreach (names, key, value)
        sorted[count++] = key;
    qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t i = 0; i < count; i++)
        if (may_have(sorted[i], name) &&
            drivers_good(found, options, sorted[i]))
            find_backend(found, options, sorted[i]);
    if (count == 0)
        find_backend(found, options, NULL);
    json_decref(names);
    if (name == NULL)
        return found;
    /* Only the devices of its plugin were listed. */
    snprintf(before, sizeof before,
             "; the devices of %.*s are: ", (int)strcspn(name, ":"), name);
    is_there = list_has(found, name, "--device", before);
    devices = json_object_get(found, "devices");
    for (size_t i = json_array_size(devices); i-- > 0;)
        if (!device_is(json_array_get(devices, i), name))
            json_array_remove(devices, i);
    if (is_there)
        return found;
    *out_exit = devices_status(found);
    json_decref(found);
    return NULL;
}
