/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements cl-probe --list, which prints the devices in the style of clinfo,
 * and the plugins and drivers that cannot be used; and the overview that
 * cl-probe prints without options.  Parent process only.
 */
#include <config.h>

#include "../common/text_table.h"
#include "../common/text_wrap.h"
#include "calibration_state.h"
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

static void line_calibrated(const json_t *device)
{
    const char *path = device_text(device, "profile");
    char missing[CALIBRATION_STATE_BYTES], text[5000];

    switch (calibration_state(device)) {
    case CALIBRATED:
        snprintf(text, sizeof text, "yes%s%.4096s%s", path[0] ? " (" : "", path,
                 path[0] ? ")" : "");
        break;
    case PARTLY_CALIBRATED:
        snprintf(text, sizeof text,
                 "partly (missing: %s): the missing costs are guessed; run "
                 "cl-probe --calibrate again (%.4096s)",
                 calibration_missing_text(device, missing), path);
        break;
    default:
        snprintf(text, sizeof text,
                 "no: costs are guessed; run cl-probe --calibrate");
        break;
    }
    line("Calibrated", text);
}

/* Prints each text on a line of its own, or all on one line. */
static void line_texts(const char *heading, const json_t *texts, bool together)
{
    char all[2048] = "";

    for (size_t i = 0; i < json_array_size(texts); i++) {
        const char *text = json_string_value(json_array_get(texts, i));

        if (together)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s",
                     i == 0 ? "" : ", ", text);
        else
            line(i == 0 ? heading : "", text);
    }
    line(heading, all);
}

static void line_number(const char *heading, double number, const char *unit)
{
    char text[TEXT_BYTES], both[80];

    if (strcmp(unit, "bytes") == 0)
        snprintf(both, sizeof both, "%.0f (%s)", number,
                 text_bytes(text, number));
    else
        snprintf(both, sizeof both, "%.0f%s", number, unit);
    if (number > 0)
        line(heading, both);
}

static void print_device(const json_t *device)
{
    static const struct {
        const char *heading, *key;
        const char *unit; /* of a number; "" without a unit */
    } lines[] = {
        {"Device Name", "description", NULL},
        {"Device Vendor", "vendor", NULL},
        {"Device Type", "kind", NULL},
        {"Platform Name", "platform", NULL},
        {"Driver Version", "driver", NULL},
        {"Device UUID", "uuid", NULL},
        {"PCI Address", "pci", NULL},
        {"Global Memory", "memory_bytes", "bytes"},
        {"Max Memory Allocation", "max_alloc_bytes", "bytes"},
        {"Local Memory", "local_memory_bytes", "bytes"},
        {"Max Compute Units", "compute_units", ""},
        {"Max Work Group Size", "max_work_group_size", ""},
        {"Max Clock Frequency", "clock_mhz", " MHz"},
        {"Capabilities", "capabilities", NULL},
        {"Extensions Used", "extensions", NULL},
        {"Driver Quirks", "quirks", NULL},
        {"Duplicate Of", "duplicate_of", NULL},
        {"Calibrated", "calibrated", NULL},
        {"Measured", "profile_notes", NULL},
        {"Ignored Profiles", "ignored_profiles", NULL},
        {"Blocked Operators", "blocked", NULL},
    };

    printf("Device %s\n", device_text(device, "name"));
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const json_t *value = json_object_get(device, lines[i].key);

        if (lines[i].unit != NULL)
            line_number(lines[i].heading, json_number_value(value),
                        lines[i].unit);
        else if (json_is_array(value))
            line_texts(lines[i].heading, value,
                       strcmp(lines[i].key, "quirks") != 0 &&
                           strcmp(lines[i].key, "profile_notes") != 0);
        else if (json_is_boolean(value))
            line_calibrated(device);
        else
            line(lines[i].heading, device_text(device, lines[i].key));
    }
    printf("\n");
}

/* Adds a row such as "LIBRARY: 1 device". */
static void driver_row(struct table *table, const json_t *driver)
{
    const char *state = device_text(driver, "state");
    const char *library = device_text(driver, "library");
    const char *between = library[0] != '\0' ? ": " : "";
    const double devices = device_number(driver, "devices");
    const char *problem = device_text(driver, "problem");

    table_row(table);
    table_cell(table, "%s", device_text(driver, "file"));
    /* The reason is printed with the list of what cannot be used. */
    if (strcmp(state, "untested") == 0)
        table_text(table, "%s%suntested", library, between);
    else if (strcmp(state, "ok") == 0)
        table_text(table, "%s%s%.0f device%s%s%s", library, between, devices,
                   devices == 1 ? "" : "s", problem[0] != '\0' ? "; " : "",
                   problem);
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
        const char *text = json_string_value(json_array_get(sentences, i));

        printf("  ");
        text_wrap(stdout, text, 2, 4, output_columns(stdout));
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

static void print_title(const json_t *found)
{
    const size_t count = json_array_size(json_object_get(found, "devices"));

    printf("Tandem %s, %zu device%s\n\n", device_text(found, "version"), count,
           count == 1 ? "" : "s");
}

int probe_list(const struct probe_options *options)
{
    int status;
    json_t *found = devices_find(options, options->device, &status);
    json_t *devices = json_object_get(found, "devices");

    if (found == NULL)
        return status;
    if (options->device == NULL) {
        devices_have(found, options->forced, "TANDEM_DEVICE");
        add_hints(found);
    }
    status = devices_status(found);
    if (options->json) {
        probe_print_json(found);
        return status;
    }
    print_title(found);
    for (size_t i = 0; i < json_array_size(devices); i++)
        print_device(json_array_get(devices, i));
    print_drivers(json_object_get(found, "drivers"));
    print_sentences("Not usable", json_object_get(found, "load_errors"));
    print_sentences("Why there may be no OpenCL device",
                    json_object_get(found, "diagnosis"));
    json_decref(found);
    return status;
}

/* ---- overview ---- */

/* Prints a command or a device, and a text about it. */
static void overview_line(const char *name, const char *text, size_t column)
{
    const size_t columns = output_columns(stdout);

    printf("  %-*s", (int)column - 2, name);
    text_wrap(stdout, text, column, column, columns);
}

static void overview_device(const json_t *device)
{
    const bool is_cpu = strcmp(device_text(device, "kind"), "cpu") == 0;
    const bool is_own = strcmp(device_text(device, "backend"), "cpu") == 0;
    const char *duplicate = device_text(device, "duplicate_of");
    char state[CALIBRATION_STATE_BYTES], text[1536];

    snprintf(text, sizeof text, "%s%s%s%s; %s%s%s%s",
             device_text(device, "description"), is_own ? "" : ", ",
             is_own ? "" : device_text(device, "platform"),
             is_cpu && !is_own ? ", on the CPU" : "",
             calibration_state_text(device, state),
             duplicate[0] != '\0' ? "; the same hardware as " : "", duplicate,
             json_array_size(json_object_get(device, "blocked")) > 0
                 ? "; some operators are blocked, because they are wrong"
                 : "");
    overview_line(device_text(device, "name"), text, 12);
}

static void overview_note(const char *note)
{
    if (note[0] == '\0')
        return;
    text_wrap(stdout, note, 0, 0, output_columns(stdout));
    printf("\n");
}

static bool any_needs_calibration(const json_t *devices)
{
    for (size_t i = 0; i < json_array_size(devices); i++)
        if (calibration_is_needed(json_array_get(devices, i)))
            return true;
    return false;
}

static bool any_was_busy(const json_t *devices)
{
    for (size_t i = 0; i < json_array_size(devices); i++)
        if (calibration_busy_note(json_array_get(devices, i)) != NULL)
            return true;
    return false;
}

static void overview_next_steps(const json_t *devices)
{
    bool has_opencl = false;

    for (size_t i = 0; i < json_array_size(devices); i++)
        has_opencl |= strcmp(device_text(json_array_get(devices, i), "backend"),
                             "opencl") == 0;
    printf("Next steps\n");
    if (!has_opencl)
        overview_line("cl-probe --doctor",
                      json_array_size(devices) > 0
                          ? "find out why there is no OpenCL device"
                          : "find out why there is no device",
                      24);
    if (any_needs_calibration(devices))
        overview_line("cl-probe --calibrate",
                      "measure the devices, so that no costs are guessed "
                      "(about a minute for each; with --quick, seconds)",
                      24);
    else if (any_was_busy(devices))
        overview_line("cl-probe --calibrate",
                      "repeat the calibration when the machine is idle: other "
                      "programs disturbed the measurement",
                      24);
    if (json_array_size(devices) > 0)
        overview_line("cl-probe --verify",
                      "check the results of every operator on every device",
                      24);
    overview_line("cl-probe --list", "print all details", 24);
}

int probe_overview(const struct probe_options *options)
{
    struct probe_options once = *options;
    int status;
    json_t *found, *devices;

    once.lists_problems = true;
    found = devices_find(&once, options->device, &status);
    devices = json_object_get(found, "devices");
    if (found == NULL)
        return status;
    if (options->device == NULL)
        devices_have(found, options->forced, "TANDEM_DEVICE");
    status = devices_status(found);
    print_title(found);
    for (size_t i = 0; i < json_array_size(devices); i++)
        overview_device(json_array_get(devices, i));
    if (json_array_size(devices) > 0)
        printf("\n");
    overview_note(devices_speed_note(devices));
    print_sentences("Not usable", json_object_get(found, "load_errors"));
    overview_next_steps(devices);
    json_decref(found);
    return status;
}
