/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements cl-probe --list, which prints the devices in the style of clinfo,
 * and the plugins and drivers that cannot be used.  Parent process only.
 */
#include <config.h>

#include "../common/text_table.h"
#include "../common/text_wrap.h"
#include "device_list.h"
#include "missing_device_diagnosis.h"

#include <stdio.h>
#include <string.h>

/* Column of the values. */
#define COLUMN 30

static void line(const char *heading, const char *text)
{
    if (text[0] == '\0')
        return;
    printf("  %-*s", COLUMN - 2, heading);
    text_wrap(stdout, text, COLUMN, COLUMN, output_columns(stdout));
}

static void line_bytes(const json_t *device, const char *heading,
                       const char *key)
{
    double bytes = device_number(device, key);
    char text[TEXT_BYTES], both[80];

    if (bytes <= 0)
        return;
    snprintf(both, sizeof both, "%.0f (%s)", bytes, text_bytes(text, bytes));
    line(heading, both);
}

static void line_count(const json_t *device, const char *heading,
                       const char *key, const char *unit)
{
    char text[64];

    if (device_number(device, key) <= 0)
        return;
    snprintf(text, sizeof text, "%.0f%s", device_number(device, key), unit);
    line(heading, text);
}

static void line_names(const json_t *device, const char *heading,
                       const char *key)
{
    json_t *names = json_object_get(device, key);
    char text[2048] = "";

    for (size_t i = 0; i < json_array_size(names); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s",
                 i == 0 ? "" : ", ",
                 json_string_value(json_array_get(names, i)));
    line(heading, text);
}

static void line_calibrated(const json_t *device)
{
    const char *path = device_text(device, "profile");
    char text[4200];

    if (json_is_true(json_object_get(device, "calibrated")))
        snprintf(text, sizeof text, "yes%s%s%s", path[0] ? " (" : "", path,
                 path[0] ? ")" : "");
    else
        snprintf(text, sizeof text,
                 "no: costs are guessed; run cl-probe --calibrate");
    line("Calibrated", text);
}

/* Prints each quirk on a line of its own. */
static void lines_quirks(const json_t *device)
{
    const json_t *quirks = json_object_get(device, "quirks");

    for (size_t i = 0; i < json_array_size(quirks); i++)
        line(i == 0 ? "Driver Quirks" : "",
             json_string_value(json_array_get(quirks, i)));
}

static void print_device(const json_t *device)
{
    printf("Device %s\n", device_text(device, "name"));
    line("Device Name", device_text(device, "description"));
    line("Device Vendor", device_text(device, "vendor"));
    line("Device Type", device_text(device, "kind"));
    line("Platform Name", device_text(device, "platform"));
    line("Driver Version", device_text(device, "driver"));
    line("Device UUID", device_text(device, "uuid"));
    line("PCI Address", device_text(device, "pci"));
    line_bytes(device, "Global Memory", "memory_bytes");
    line_bytes(device, "Max Memory Allocation", "max_alloc_bytes");
    line_bytes(device, "Local Memory", "local_memory_bytes");
    line_count(device, "Max Compute Units", "compute_units", "");
    line_count(device, "Max Work Group Size", "max_work_group_size", "");
    line_count(device, "Max Clock Frequency", "clock_mhz", " MHz");
    line_names(device, "Capabilities", "capabilities");
    line("Extensions Used", device_text(device, "extensions"));
    lines_quirks(device);
    line("Duplicate Of", device_text(device, "duplicate_of"));
    line_calibrated(device);
    line("Ignored Profiles", device_text(device, "ignored_profiles"));
    line_names(device, "Blocked Operators", "blocked");
    printf("\n");
}

/* Adds a row such as "LIBRARY: 1 device". */
static void driver_row(struct table *table, const json_t *driver)
{
    const char *state = device_text(driver, "state");
    const char *library = device_text(driver, "library");
    const char *between = library[0] != '\0' ? ": " : "";
    const double devices = device_number(driver, "devices");

    table_row(table);
    table_cell(table, "%s", device_text(driver, "file"));
    /* The reason is printed with the list of what cannot be used. */
    if (strcmp(state, "untested") == 0)
        table_text(table, "%s%suntested", library, between);
    else if (strcmp(state, "ok") == 0)
        table_text(table, "%s%s%.0f device%s", library, between, devices,
                   devices == 1 ? "" : "s");
    else
        table_text(table, "%s%s%s: %s", library, between, state,
                   device_text(driver, "message"));
}

static void print_drivers(const json_t *drivers)
{
    struct table table = {0};

    if (json_array_size(drivers) == 0)
        return;
    printf("OpenCL drivers\n");
    for (size_t i = 0; i < json_array_size(drivers); i++)
        driver_row(&table, json_array_get(drivers, i));
    table_print(&table, stdout);
    table_destroy(&table);
    printf("\n");
}

static void print_sentences(const char *heading, const json_t *sentences)
{
    if (json_array_size(sentences) == 0)
        return;
    printf("%s\n", heading);
    for (size_t i = 0; i < json_array_size(sentences); i++) {
        printf("  ");
        text_wrap(stdout, json_string_value(json_array_get(sentences, i)), 2, 4,
                  output_columns(stdout));
    }
    printf("\n");
}

static void add_hints(json_t *found)
{
    json_t *devices = json_object_get(found, "devices");
    json_t *hints = json_array();

    json_object_set_new(found, "diagnosis", hints);
    for (size_t i = 0; i < json_array_size(devices); i++)
        if (strcmp(device_text(json_array_get(devices, i), "backend"),
                   "opencl") == 0)
            return;
    missing_opencl_diagnose(hints);
}

int probe_list(const struct probe_options *options)
{
    int status;
    json_t *found = devices_find(options, options->device, &status);
    json_t *devices = json_object_get(found, "devices");

    if (found == NULL)
        return status;
    if (options->device == NULL)
        add_hints(found);
    status = json_is_true(json_object_get(found, "failed")) ? PROBE_FAILED
             : json_array_size(devices) > 0                 ? PROBE_OK
                                                            : PROBE_NO_DEVICE;
    if (options->json) {
        probe_print_json(found);
        return status;
    }
    printf("Tandem %s, %zu device%s\n\n", device_text(found, "version"),
           json_array_size(devices), json_array_size(devices) == 1 ? "" : "s");
    for (size_t i = 0; i < json_array_size(devices); i++)
        print_device(json_array_get(devices, i));
    print_drivers(json_object_get(found, "drivers"));
    print_sentences("Not usable", json_object_get(found, "load_errors"));
    print_sentences("Why there may be no OpenCL device",
                    json_object_get(found, "diagnosis"));
    json_decref(found);
    return status;
}
