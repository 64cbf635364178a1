/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the devices that the plugins offer; see doctor.h. */
#include <config.h>

#include "../common/text_table.h"
#include "calibration_state.h"
#include "doctor.h"

#include <stdio.h>
#include <string.h>

static const json_t *opened_get(const struct doctor_facts *facts,
                                const json_t *device)
{
    return json_object_get(facts->opened, device_text(device, "name"));
}

static bool is_duplicate(const json_t *device)
{
    return json_is_string(json_object_get(device, "duplicate_of"));
}

/* ---- devices and plugins ---- */

/* Returns true if other checks report this error: a plugin without devices, or
 * a driver that crashes. */
static bool is_reported_elsewhere(const char *error)
{
    static const char driver[] = "the OpenCL driver ";

    return strstr(error, ": no devices: ") != NULL ||
           strncmp(error, driver, sizeof driver - 1) == 0;
}

void check_devices(const struct doctor_facts *facts, json_t *result)
{
    const json_t *devices = json_object_get(facts->found, "devices");
    const json_t *errors = json_object_get(facts->found, "load_errors");
    char names[1024] = "";

    for (size_t i = 0; i < json_array_size(errors); i++) {
        const char *error = json_string_value(json_array_get(errors, i));

        if (!is_reported_elsewhere(error))
            result_problem(result,
                           "install what the message names, or install Tandem "
                           "again",
                           "%.1000s", error);
    }
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const char *error = device_text(opened_get(facts, device), "error");
        const size_t used = strlen(names);

        if (error[0] != '\0')
            result_problem(result,
                           "update the driver; until then, select another "
                           "device with TANDEM_DEVICE",
                           "%s cannot be used: %.500s",
                           device_text(device, "name"), error);
        snprintf(names + used, sizeof names - used, "%s%s (%.100s)",
                 i == 0 ? "" : ", ", device_text(device, "name"),
                 device_text(device, "description"));
    }
    if (json_array_size(devices) == 0)
        result_problem(result,
                       "look at TANDEM_PLUGIN_PATH and TANDEM_BACKENDS, or "
                       "install Tandem again",
                       "no plugin offers a device");
    result_ok(result, "%s", names);
}

/* ---- profiles ---- */

/* Adds a problem if the calibration of the device ended early. */
static void check_calibration_end(const json_t *device, json_t *result)
{
    const char *name = device_text(device, "name");
    char state[CALIBRATION_STATE_BYTES], advice[400];

    if (calibration_state(device) != PARTLY_CALIBRATED)
        return;
    snprintf(advice, sizeof advice,
             "repeat the calibration: \"cl-probe --calibrate --device=%.48s\"; "
             "if its time limit expires, add --timeout=SECONDS with a longer "
             "limit",
             name);
    result_problem(result, advice, "%s: %s: the missing costs are guessed",
                   name, calibration_state_text(device, state));
}

void check_profiles(const struct doctor_facts *facts, json_t *result)
{
    const json_t *devices = json_object_get(facts->found, "devices");
    char missing[512] = "", advice[200];
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const char *name = device_text(device, "name");
        const char *ignored = device_text(device, "ignored_profiles");
        const bool has_profile = calibration_state(device) != NOT_CALIBRATED;
        const size_t used = strlen(missing);

        if (is_duplicate(device))
            continue;
        count++;
        snprintf(advice, sizeof advice,
                 "run \"cl-probe --calibrate --device=%.48s\", which writes a "
                 "new profile",
                 name);
        if (ignored[0] != '\0')
            result_problem(result, advice, "%s: profile not used: %.900s%s",
                           name, ignored,
                           has_profile ? "" : "; costs are guessed");
        else if (!has_profile)
            snprintf(missing + used, sizeof missing - used, "%s%s",
                     used == 0 ? "" : ", ", name);
        check_calibration_end(device, result);
    }
    if (missing[0] != '\0')
        result_ok(result, "no profile yet of %s: costs are guessed", missing);
    else if (count == 0)
        result_not_applicable(result, "there is no device");
    else
        result_ok(result, "each device has a profile of its present driver");
}

/* ---- busy GPUs ---- */

/* A GPU counts as busy if a small operator takes this many times as long as
 * when the profile was measured, because it waits for the work of other
 * programs.  On PoCL, on two busy cores on 2026-11-29, the time was 0.3 to 2.2
 * times that of the profile.  No busy GPU was measured. */
#define BUSY_FACTOR 5.0
/* The Linux driver amdgpu, but not those of Intel and NVIDIA, reports the
 * percentage of the time in which the GPU works.  From this one on, the GPU
 * counts as busy. */
#define BUSY_PERCENT 50

static const char busy_advice[] =
    "end the other programs that use the GPU (nvidia-smi, radeontop or "
    "intel_gpu_top name them), then calibrate and measure";

/* Returns the expected time of a small operator with the wait for it, or 0 if
 * the device has no profile. */
static double profile_latency(const json_t *device)
{
    const char *path = device_text(device, "profile");
    json_t *profile = path[0] != '\0' ? json_load_file(path, 0, NULL) : NULL;
    const json_t *scalars = json_object_get(profile, "scalars");
    const double ns =
        device_number(scalars, "launch") + device_number(scalars, "sync");

    json_decref(profile);
    return ns;
}

/* Returns the number of GPUs whose load the kernel measures. */
static size_t check_kernel_load(const struct doctor_facts *facts,
                                json_t *result)
{
    json_t *loads = json_object_get(facts->kernel, "busy_percent"), *load;
    const char *path;

    json_object_foreach (loads, path, load)
        if (json_number_value(load) >= BUSY_PERCENT)
            result_problem(result, busy_advice,
                           "%s: the GPU is busy for %.0f%% of the time", path,
                           json_number_value(load));
    return json_object_size(loads);
}

void check_gpu_load(const struct doctor_facts *facts, json_t *result)
{
    const json_t *devices = json_object_get(facts->found, "devices");
    size_t count = check_kernel_load(facts, result), gpus = 0;

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const double measured =
            device_number(opened_get(facts, device), "latency_ns");
        double expected;
        char now[TEXT_BYTES], before[TEXT_BYTES];

        if (strcmp(device_text(device, "kind"), "cpu") == 0 ||
            is_duplicate(device))
            continue;
        gpus++;
        expected = profile_latency(device);
        if (measured <= 0 || expected <= 0)
            continue;
        count++;
        if (measured > BUSY_FACTOR * expected)
            result_problem(result, busy_advice,
                           "%s is busy: a small operator takes %s, but took %s "
                           "when the profile was measured",
                           device_text(device, "name"), text_ns(now, measured),
                           text_ns(before, expected));
    }
    if (gpus == 0)
        result_not_applicable(result, "there is no GPU");
    else if (count == 0)
        result_not_applicable(result,
                              "no GPU has a profile, with which its present "
                              "latency could be compared");
    else
        result_ok(result, "small operators take no longer than usual");
}

/* ---- OpenBLAS ---- */

void check_blas(const struct doctor_facts *facts, json_t *result)
{
    static const char name[] = "openblas:";
    const json_t *devices = json_object_get(facts->found, "devices");
    const char *blas = NULL;

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const json_t *warnings =
            json_object_get(opened_get(facts, device), "warnings");

        if (strcmp(device_text(device, "backend"), "cpu") != 0)
            continue;
        blas = strstr(device_text(device, "extensions"), name);
        for (size_t k = 0; k < json_array_size(warnings); k++) {
            /* "PROBLEM; ADVICE" */
            const char *text = json_string_value(json_array_get(warnings, k));
            const char *end = strstr(text, "; ");

            if (strstr(text, "OpenBLAS") != NULL && end != NULL)
                result_problem(result, end + 2, "%.*s", (int)(end - text),
                               text);
        }
    }
    if (blas == NULL)
        result_not_applicable(result, "the CPU plugin does not use OpenBLAS");
    else
        result_ok(result, "OpenBLAS uses its kernels for %s",
                  blas + sizeof name - 1);
}
