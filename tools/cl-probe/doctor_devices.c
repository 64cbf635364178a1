/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the devices that the plugins offer; see doctor.h. */
#include <config.h>

#include "../common/text_table.h"
#include "calibration_state.h"
#include "device_list.h"
#include "doctor.h"
#include "driver_blocklist_writer.h"
#include "profile_directory.h"

#include "common/environment.h"

#include <limits.h>
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

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Returns true if other checks report this error: a plugin without devices, a
 * driver that crashes, or a cache directory that cannot be written. */
static bool is_reported_elsewhere(const char *error)
{
    char cache[PATH_MAX], why[DIRECTORY_WHY_BYTES];

    if (begins_with(error, DRIVER_BLOCKLIST_UNWRITTEN))
        return !environment_cache(cache, sizeof cache) ||
               !directory_is_writable(cache, why);
    return strstr(error, ": no devices: ") != NULL ||
           begins_with(error, "the OpenCL driver ");
}

static void report_load_error(const char *error, json_t *result)
{
    const char *advice =
        "do what the message says, install what it names, or install Tandem "
        "again";

    if (begins_with(error, DRIVER_BLOCKLIST_UNWRITTEN))
        advice = "remove the file " DRIVER_RECORD_NAME " there";
    else if (strstr(error, "TANDEM_BACKENDS \"") != NULL)
        advice = "unset TANDEM_BACKENDS, or correct its value";
    else if (strstr(error, "no plugins from ") != NULL &&
             strstr(error, ": the directory does not exist") != NULL)
        advice = "unset TANDEM_PLUGIN_PATH, or correct its value";
    if (!is_reported_elsewhere(error))
        result_problem(result, advice, "%.1000s", error);
}

/* Reports a TANDEM_DEVICE that names none of the devices. */
static void check_forced_device(const struct doctor_facts *facts,
                                json_t *result)
{
    const json_t *devices = json_object_get(facts->found, "devices");
    char advice[600] = "unset it, or set it to one of:";

    if (facts->forced == NULL || facts->forced[0] == '\0' ||
        json_array_size(devices) == 0)
        return;
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const size_t used = strlen(advice);

        if (device_is(device, facts->forced))
            return;
        snprintf(advice + used, sizeof advice - used, "%s %s",
                 i == 0 ? "" : ",", device_text(device, "name"));
    }
    result_problem(result, advice,
                   "TANDEM_DEVICE names no device: \"%.100s\"; programs that "
                   "use Tandem fail",
                   facts->forced);
}

void check_devices(const struct doctor_facts *facts, json_t *result)
{
    const json_t *devices = json_object_get(facts->found, "devices");
    const json_t *errors = json_object_get(facts->found, "load_errors");
    const char *backends = environment_get("TANDEM_BACKENDS");
    char names[1024] = "";

    for (size_t i = 0; i < json_array_size(errors); i++)
        report_load_error(json_string_value(json_array_get(errors, i)), result);
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
    if (json_array_size(devices) == 0 && !result_is_problem(result))
        result_problem(result,
                       "look at TANDEM_PLUGIN_PATH and TANDEM_BACKENDS, or "
                       "install Tandem again",
                       "no plugin offers a device");
    check_forced_device(facts, result);
    if (backends != NULL)
        result_ok(result,
                  "%s; no other plugin is loaded, because TANDEM_BACKENDS is "
                  "set to \"%.100s\"",
                  names, backends);
    else
        result_ok(result, "%s", names);
}

/* ---- profiles ---- */

/* Begins an advice to calibrate, which fails as long as no profile can be
 * written. */
static const char directory_first[] =
    "do what the line on the cache directory says, then ";

/* Adds a problem if the calibration of the device ended early, or if other
 * programs disturbed it. */
static void check_calibration_quality(const json_t *device, const char *first,
                                      json_t *result)
{
    const char *name = device_text(device, "name");
    const char *busy = calibration_busy_note(device);
    char state[CALIBRATION_STATE_BYTES], advice[400];

    if (calibration_state(device) == CALIBRATED && busy != NULL) {
        snprintf(advice, sizeof advice,
                 "%scalibrate again when the machine is idle: \"cl-probe "
                 "--calibrate --device=%.48s\"",
                 first, name);
        result_problem(result, advice, "%s: %s: %.300s", name,
                       calibration_state_text(device, state), busy);
    }
    if (calibration_state(device) != PARTLY_CALIBRATED)
        return;
    snprintf(advice, sizeof advice,
             "%srepeat the calibration: \"cl-probe --calibrate "
             "--device=%.48s\"; if its time limit expires, add "
             "--timeout=SECONDS with a longer limit",
             first, name);
    result_problem(result, advice, "%s: %s: the missing costs are guessed",
                   name, calibration_state_text(device, state));
}

/* Reports why the profiles of device `i` are ignored, together with the other
 * devices that have the same reason, such as an insecure directory.  Does
 * nothing if an earlier device has this reason. */
static void report_ignored_profiles(const json_t *devices, size_t i,
                                    const char *first, json_t *result)
{
    const char *reason =
        device_text(json_array_get(devices, i), "ignored_profiles");
    char names[512] = "", advice[300];
    bool any_profile = false;
    size_t count = 0;

    for (size_t k = 0; k < json_array_size(devices); k++) {
        const json_t *device = json_array_get(devices, k);
        const size_t used = strlen(names);

        if (is_duplicate(device) ||
            strcmp(device_text(device, "ignored_profiles"), reason) != 0)
            continue;
        if (k < i)
            return;
        any_profile |= calibration_state(device) != NOT_CALIBRATED;
        snprintf(names + used, sizeof names - used, "%s%s",
                 count++ == 0 ? "" : ", ", device_text(device, "name"));
    }
    if (count == 1)
        snprintf(
            advice, sizeof advice,
            "%srun \"cl-probe --calibrate --device=%.48s\", which writes a "
            "new profile",
            first, names);
    else
        snprintf(advice, sizeof advice,
                 "%srun \"cl-probe --calibrate\", which writes new profiles",
                 first);
    result_problem(result, advice, "%s: profile not used: %.900s%s", names,
                   reason, any_profile ? "" : "; costs are guessed");
}

void check_profiles(const struct doctor_facts *facts, json_t *result)
{
    const json_t *devices = json_object_get(facts->found, "devices");
    char missing[512] = "", why[1024];
    const char *first =
        profile_directory_check(why, sizeof why) ? "" : directory_first;
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const size_t used = strlen(missing);

        if (is_duplicate(device))
            continue;
        count++;
        if (device_text(device, "ignored_profiles")[0] != '\0')
            report_ignored_profiles(devices, i, first, result);
        else if (calibration_state(device) == NOT_CALIBRATED)
            snprintf(missing + used, sizeof missing - used, "%s%s",
                     used == 0 ? "" : ", ", device_text(device, "name"));
        check_calibration_quality(device, first, result);
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
    bool is_loaded = false;

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const json_t *warnings =
            json_object_get(opened_get(facts, device), "warnings");

        if (strcmp(device_text(device, "backend"), "cpu") != 0)
            continue;
        is_loaded = true;
        blas = strstr(device_text(device, "driver"), name);
        for (size_t k = 0; k < json_array_size(warnings); k++) {
            /* "PROBLEM; ADVICE" */
            const char *text = json_string_value(json_array_get(warnings, k));
            const char *end = strstr(text, "; ");

            if (strstr(text, "OpenBLAS") != NULL && end != NULL)
                result_problem(result, end + 2, "%.*s", (int)(end - text),
                               text);
        }
    }
    if (!is_loaded)
        result_not_applicable(result, "the CPU plugin is not loaded");
    else if (blas == NULL)
        result_not_applicable(result, "the CPU plugin does not use OpenBLAS");
    else
        result_ok(result, "OpenBLAS uses its kernels for %s",
                  blas + sizeof name - 1);
}
