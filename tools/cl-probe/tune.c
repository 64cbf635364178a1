/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements cl-probe --tune, which measures the costs of GEMM kernels, one
 * device after another.  The child process of a device saves the profile after
 * each result, so a crash loses nothing.
 */
#include <config.h>

#include "calibration_timing.h"
#include "calibration_state.h"

#include "../common/clock.h"

#include <stdio.h>

#define BUDGET_S 60u
/* Extra time for a compilation that runs when the budget ends.  It takes many
 * seconds on a CPU device. */
#define AFTER_S 120u

static unsigned budget_of(const struct probe_options *options)
{
    return options->budget_s > 0 ? options->budget_s : BUDGET_S;
}

/* ---- the child's side ---- */

static void tune_lane(const struct device_job_request *request,
                      struct child_link *link, struct device_session *session,
                      struct tandem_profile *profile)
{
    uint64_t budget_ns = budget_of(request->options) * NS_PER_S;
    json_t *found = json_object();
    char path[4096] = "";
    enum tandem_status status;

    child_progress(link, 0, "tuning");
    status = tune_and_save(session, profile, budget_ns, found);
    if (status == TANDEM_OK && json_object_size(found) > 0)
        status = tandem_profile_save(profile, NULL, path, sizeof path);
    if (status == TANDEM_OK && path[0] != '\0')
        status = calibration_missing_remove(profile, path, PART_TUNING);
    if (status != TANDEM_OK)
        child_fail(link, "%s; %s (%s)", session->backend->last_error(),
                   tandem_last_error(), tandem_status_name(status));
    else
        child_answer(link, json_pack("{s:s, s:O, s:o}", "device", request->name,
                                     "tuning", found, "profile",
                                     child_text("%s", path)));
    json_decref(found);
}

static void tune_body(void *argument, struct child_link *link)
{
    device_job_edit_profile(argument, link, tune_lane);
}

/* ---- the parent's side ---- */

static bool tune_print(const struct probe_options *options,
                       const json_t *device, json_t *result)
{
    json_t *found = json_object_get(result, "tuning"), *value;
    const char *name = device_text(device, "name"), *key;

    if (options->json)
        return true;
    if (json_object_get(result, "error") != NULL) {
        printf("%s: FAILED: %s\n", name, device_text(result, "error"));
        return false;
    }
    if (json_object_size(found) == 0) {
        printf("%s: there is nothing to tune\n", name);
        return true;
    }
    printf("%s: written to %s\n", name, device_text(result, "profile"));
    json_object_foreach (found, key, value)
        printf("  %s: %s\n", key, json_string_value(value));
    return true;
}

int probe_tune(const struct probe_options *options)
{
    const struct device_job job = {
        .verb = "tune",
        .work = "the measurement of GEMM kernels",
        .limit_s = budget_of(options) + AFTER_S,
        .expected_s = budget_of(options),
        .saves = true,
        .self_test = true,
        .run = tune_body,
        .on_result = tune_print,
    };

    return device_jobs_run(options, &job);
}
