/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl-probe --calibrate: measures one device after another, each in a child
 * process of its own.  Parent process only.
 */
#include <config.h>

#include "devices.h"
#include "measure.h"
#include "summary.h"
#include "verify.h"

#include <stdio.h>
#include <string.h>

#define QUICK_LIMIT_S 120u
#define FULL_LIMIT_S 900u

static unsigned limit_of(const struct probe_options *options)
{
    if (options->time_limit_s > 0)
        return options->time_limit_s;
    return options->quick ? QUICK_LIMIT_S : FULL_LIMIT_S;
}

/* The device's result, or what went wrong. */
static json_t *calibrate_device(const struct probe_options *options,
                                const json_t *device)
{
    struct measure_request request = {
        .options = options,
        .backend = device_text(device, "backend"),
        .device = (uint32_t)device_number(device, "index"),
        .name = device_text(device, "name"),
    };
    struct child_outcome outcome;
    struct progress progress;
    json_t *result;

    progress_begin(&progress, request.name, options->verbose);
    child_run(measure_body, &request, limit_of(options), &progress, &outcome);
    progress_end(&progress);
    result = json_incref(outcome.result);
    if (result == NULL) {
        result = json_pack("{s:s, s:s}", "device", request.name, "error",
                           outcome.message);
        probe_complain("%s: %s", request.name, outcome.message);
    } else if (outcome.message[0] != '\0') {
        json_object_set_new(result, "warning", json_string(outcome.message));
    }
    child_outcome_destroy(&outcome);
    return result;
}

static bool has_operators(const json_t *device)
{
    const json_t *caps = json_object_get(device, "capabilities");

    for (size_t i = 0; i < json_array_size(caps); i++)
        if (strcmp(json_string_value(json_array_get(caps, i)),
                   "core operators") == 0)
            return true;
    return false;
}

bool device_wanted(const struct probe_options *options, const json_t *device)
{
    bool serves = has_operators(device);

    if (serves && (options->device != NULL ||
                   json_is_null(json_object_get(device, "duplicate_of"))))
        return true;
    if (!serves && !options->json)
        printf("%s does not serve the operators: left out\n",
               device_text(device, "name"));
    else if (!options->json)
        printf("%s is %s seen through another driver: left out\n",
               device_text(device, "name"),
               device_text(device, "duplicate_of"));
    return false;
}

/* Checks what the device computes, too; a quick calibration keeps what an
 * earlier check found. */
static bool check_operators(const struct probe_options *options,
                            const json_t *device, json_t *result)
{
    char program[VERIFY_PATH_BYTES];
    json_t *check;

    if (options->quick)
        return true;
    if (!verify_find_program(program)) {
        probe_complain("%s: not checked: the program tandem-conformance is "
                       "not beside cl-probe",
                       device_text(device, "name"));
        return false;
    }
    check = verify_device(options, device, program, "operators");
    json_object_set_new(result, "verification", check);
    if (!options->json)
        verify_print(check);
    return verify_good(check);
}

static json_t *calibrate_all(const struct probe_options *options,
                             const json_t *devices, int *out_status)
{
    json_t *results = json_array();

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        json_t *result;

        if (!device_wanted(options, device))
            continue;
        result = calibrate_device(options, device);
        if (json_object_get(result, "error") != NULL ||
            !check_operators(options, device, result))
            *out_status = PROBE_FAILED;
        json_array_append_new(results, result);
    }
    if (json_array_size(results) == 0 && *out_status == PROBE_OK)
        *out_status = PROBE_NO_DEVICE;
    return results;
}

int probe_calibrate(const struct probe_options *options)
{
    int status;
    json_t *found = devices_find(options, options->device, &status);
    json_t *results;

    if (found == NULL)
        return status;
    status = json_is_true(json_object_get(found, "failed")) ? PROBE_FAILED
                                                            : PROBE_OK;
    results = calibrate_all(options, json_object_get(found, "devices"),
                            &status);
    if (json_array_size(results) == 0)
        probe_complain("there is no device to calibrate; cl-probe --list says "
                       "what is missing");
    else if (!options->json)
        summary_print(results);
    if (options->json)
        probe_print_json(json_pack("{s:O, s:O}", "results", results,
                                   "problems",
                                   json_object_get(found, "problems")));
    json_decref(results);
    json_decref(found);
    return status;
}
