/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the contents of a report; see report.h. */
#include <config.h>

#include "report.h"

#include "child_process.h"
#include "common/cpu_info.h"
#include "explain.h"
#include "opencl_inventory.h"
#include "private_text.h"
#include "report_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Raised when a member changes its meaning. */
#define REPORT_FORMAT 1

/* Operators of common networks in small and large sizes. */
static const struct {
    const char *op, *shape;
} typical_operators[] = {
    {"add", "1000"},
    {"add", "4194304"},
    {"gelu", "4096x3072"},
    {"reduce_sum", "4096x1000"},
    {"softmax", "4096x1000"},
    {"layer_norm", "4096x768"},
    {"transpose", "2048x2048"},
    {"gather", "30000x384"},
    {"gemm", "64x64x64"},
    {"gemm", "512x512x512"},
    {"gemm", "2048x2048x2048"},
    {"gemm", "1x4096x4096"},
    {"gemm", "12x128x128x64"},
    {"conv", "8x64x56x56"},
    {"attention", "1x12x512x64"},
};
#define TYPICAL_COUNT (sizeof typical_operators / sizeof typical_operators[0])

static json_t *tandem_json(void)
{
    return json_pack("{s:s, s:s, s:o}", "version", tandem_version(), "compiler",
#ifdef __clang__
                     __VERSION__,
#else
                     "gcc " __VERSION__,
#endif
                     "plugin_abi",
                     json_sprintf("%u.%u", TANDEM_ABI_MAJOR, TANDEM_ABI_MINOR));
}

static json_t *machine_json(void)
{
    char processor[256];
    struct utsname names;

    processor_name(processor, sizeof processor);
    if (uname(&names) != 0)
        memset(&names, 0, sizeof names);
    return json_pack("{s:s, s:o, s:s, s:o, s:I}", "system", names.sysname,
                     "kernel", child_text("%s", names.release), "architecture",
                     names.machine, "processor", child_text("%s", processor),
                     "processors_online",
                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN));
}

/* Returns a copy of the array whose objects lack the paths of profiles. */
static json_t *without_paths(const json_t *array)
{
    json_t *out = json_deep_copy(array), *object;
    size_t i;

    json_array_foreach (out, i, object)
        json_object_del(object, "profile");
    return out;
}

/* Returns the measurements of each device: the contents of its profile, or
 * "none" if the device is not calibrated. */
static json_t *calibration_json(const json_t *devices)
{
    json_t *out = json_object(), *device;
    size_t i;

    json_array_foreach ((json_t *)devices, i, device) {
        json_t *profile =
            json_is_true(json_object_get(device, "calibrated"))
                ? json_load_file(device_text(device, "profile"), 0, NULL)
                : NULL;

        json_object_set_new(out, device_text(device, "name"),
                            profile != NULL ? profile : json_string("none"));
    }
    return out;
}

static json_t *choices_json(const struct probe_options *options,
                            const char *backends)
{
    json_t *out = json_array();

    for (size_t i = 0; i < TYPICAL_COUNT; i++) {
        struct probe_options question = {.op = typical_operators[i].op,
                                         .shape = typical_operators[i].shape,
                                         .timeout_s = options->timeout_s};
        json_t *choice = explain_choice(&question, backends);
        const bool failed = json_object_get(choice, "error") != NULL;

        json_array_append_new(out, choice);
        if (failed) /* the next question would fail, too, maybe minutes later */
            break;
    }
    return out;
}

/* Returns true if the comma-separated list contains the name. */
static bool list_has(const char *list, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ',') &&
            (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

static json_t *report_json(const struct probe_options *options,
                           const json_t *found, const json_t *results)
{
    const json_t *devices = json_object_get(found, "devices");
    const char *backends = device_text(found, "backends");
    json_t *drivers = json_object_get(found, "drivers");
    struct private_names names;
    json_t *all, *out;

    all = json_pack(
        "{s:i, s:o, s:o, s:o, s:o*, s:O*, s:O, s:o, s:o, s:o}", "format",
        REPORT_FORMAT, "tandem", tandem_json(), "machine", machine_json(),
        "devices", without_paths(devices), "opencl_devices",
        list_has(backends, "opencl") ? opencl_inventory(options) : NULL,
        "opencl_drivers", drivers, "load_errors",
        json_object_get(found, "load_errors"), "verification",
        without_paths(results), "calibration", calibration_json(devices),
        "choices", choices_json(options, backends));
    private_names_find(&names);
    out = private_json_remove(&names, all);
    private_names_destroy(&names);
    json_decref(all);
    return out;
}

static void print_contents(FILE *out, const char *path)
{
    fprintf(out,
            "\nThe report %s is written.\n"
            "  It contains  the version of Tandem, the names of the kernel and "
            "the processor,\n"
            "               the devices with their drivers, extensions and "
            "limits, the\n"
            "               result of each check, the measured costs of "
            "calibrated devices,\n"
            "               and the device that is chosen for each of %zu "
            "typical operators.\n"
            "  It has no    host name, user name, path in a home directory, "
            "environment\n"
            "               variable, serial number, UUID or PCI address.\n"
            "It is a text file. Read it, and keep it until the project has a "
            "public address\n"
            "(its README says when).\n",
            path, TYPICAL_COUNT);
}

bool report_write(const struct probe_options *options, const json_t *found,
                  const json_t *results)
{
    json_t *report = report_json(options, found, results);
    const bool written = report_file_write(options->report, report);

    json_decref(report);
    if (written)
        print_contents(options->json ? stderr : stdout, options->report);
    return written;
}
