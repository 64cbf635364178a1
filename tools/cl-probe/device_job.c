/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a job on one device after another; see device_job.h. */
#include <config.h>

#include "device_job.h"
#include "device_list.h"
#include "profile_directory.h"

#include "../common/clock.h"

#include <stdio.h>
#include <string.h>

/* Returns true if the job runs on the device; otherwise prints why it is
 * skipped.
 */
static bool device_wanted(const struct probe_options *options,
                          const json_t *device)
{
    if (options->device != NULL ||
        json_is_null(json_object_get(device, "duplicate_of")))
        return true;
    if (!options->json)
        printf("%s is %s seen through another driver: left out\n",
               device_text(device, "name"),
               device_text(device, "duplicate_of"));
    return false;
}

struct device_job_request
device_job_request_make(const struct probe_options *options,
                        const json_t *device)
{
    return (struct device_job_request){
        .options = options,
        .backend = device_text(device, "backend"),
        .device = (uint32_t)device_number(device, "index"),
        .name = device_text(device, "name"),
        .processor = strcmp(device_text(device, "kind"), "cpu") == 0,
    };
}

/* Returns the reason why the device has no result, with a remedy if its time
 * limit expired. */
static json_t *error_text(const struct child_outcome *outcome, unsigned limit_s)
{
    if (outcome->end != CHILD_TIMED_OUT)
        return json_string(outcome->message);
    return child_text("%s; repeat it with --timeout=SECONDS, more than %u",
                      outcome->message, limit_s);
}

/* Returns the device's result.  If the device failed, this is its partial
 * result, or an empty one, with the member "error". */
static json_t *device_run(const struct probe_options *options,
                          const struct device_job *job, const json_t *device)
{
    struct device_job_request request =
        device_job_request_make(options, device);
    const unsigned limit_s =
        options->timeout_s > 0 ? options->timeout_s : job->limit_s;
    struct child_outcome outcome;
    struct progress progress;
    json_t *result, *error;

    progress_begin(&progress, request.name, options->verbose);
    if (!progress.terminal && !options->json)
        printf("%s: %s takes at most %u s\n", request.name, job->work, limit_s);
    fflush(stdout);
    if (job->self_test)
        self_test_job_run(&request, &progress);
    progress.expected_ns = job->expected_s * NS_PER_S;
    child_run(job->run, &request, limit_s, &progress, &outcome);
    progress_end(&progress);
    result = json_incref(outcome.result);
    if (result == NULL) {
        result = outcome.partial != NULL
                     ? json_incref(outcome.partial)
                     : json_pack("{s:s}", "device", request.name);
        error = error_text(&outcome, limit_s);
        probe_complain("%s: %s", request.name, json_string_value(error));
        json_object_set_new(result, "error", error);
    } else if (outcome.message[0] != '\0') {
        json_object_set_new(result, "warning", json_string(outcome.message));
    }
    child_outcome_destroy(&outcome);
    return result;
}

static json_t *devices_run(const struct probe_options *options,
                           const struct device_job *job, const json_t *devices,
                           int *out_status)
{
    json_t *results = json_array();

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        json_t *result;

        if (!device_wanted(options, device))
            continue;
        result = device_run(options, job, device);
        if (json_object_get(result, "error") != NULL)
            *out_status = PROBE_FAILED;
        if (job->on_result != NULL && !job->on_result(options, device, result))
            *out_status = PROBE_FAILED;
        fflush(stdout);
        json_array_append_new(results, result);
    }
    return results;
}

int device_jobs_run(const struct probe_options *options,
                    const struct device_job *job)
{
    char why[1024];
    int status;
    json_t *found, *results;

    if (job->saves && !profile_directory_check(why, sizeof why)) {
        probe_complain("%s", why);
        return PROBE_FAILED;
    }
    found = devices_find(options, options->device, &status);
    if (found == NULL)
        return status;
    status = json_is_true(json_object_get(found, "failed")) ? PROBE_FAILED
                                                            : PROBE_OK;
    results =
        devices_run(options, job, json_object_get(found, "devices"), &status);
    if (json_array_size(results) == 0) {
        probe_complain("there is no device to %s; cl-probe --list says what "
                       "is missing",
                       job->verb);
        if (status == PROBE_OK)
            status = PROBE_NO_DEVICE;
    } else if (!options->json && job->print != NULL) {
        job->print(results);
    }
    if (options->json)
        probe_print_json(json_pack("{s:O, s:O}", "results", results,
                                   "load_errors",
                                   json_object_get(found, "load_errors")));
    json_decref(results);
    json_decref(found);
    return status;
}
