/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the plugin's self-tests, which may crash or hang the driver, in a child
 * process before the calibration.  The plugin reports the start of each test
 * and then its result, and the child saves each report in the profile at once.
 * So the profile is right even if the child is killed.
 */
#include <config.h>

#include "device_job.h"
#include "calibration_timing.h"

#include "../common/clock.h"

#include <tandem/extensions.h>

/* The tests compile about twelve kernels. */
#define SELF_TEST_LIMIT_S 120u
#define SELF_TEST_NS (60 * NS_PER_S)

/* ---- the child's side ---- */

/* Runs the tests on a device handle that is opened only for them. */
static enum tandem_status
self_test_run(const struct device_job_request *request,
              struct device_session own, struct tandem_profile *profile,
              json_t *out_found)
{
    static const char *const keys[] = {"self_test_only"}, *const values[] = {
                                                              "1"};
    const struct tandem_open_options options = {
        .struct_size = sizeof options,
        .count = 1,
        .keys = keys,
        .values = values,
    };
    enum tandem_status status =
        own.backend->open(request->device, &options, &own.device);

    if (status != TANDEM_OK)
        return status;
    status = tune_and_save(&own, profile, SELF_TEST_NS, out_found);
    own.backend->close(own.device);
    return status;
}

static void self_test_session(const struct device_job_request *request,
                              struct child_link *link,
                              struct device_session *session,
                              struct tandem_profile *profile)
{
    json_t *found = json_object();
    enum tandem_status status = TANDEM_OK;

    child_progress(link, 0, "trying");
    if (session->backend->extension(TANDEM_EXTENSION_TUNE) != NULL)
        status = self_test_run(request, *session, profile, found);
    if (status == TANDEM_OK)
        child_answer(link, json_incref(found));
    else
        child_fail(link, "%s (%s)", session->backend->last_error(),
                   tandem_status_name(status));
    json_decref(found);
}

static void self_test_body(void *argument, struct child_link *link)
{
    device_job_edit_profile(argument, link, self_test_session);
}

/* ---- the parent's side ---- */

void self_test_job_run(struct device_job_request *request,
                       struct progress *progress)
{
    struct child_outcome outcome;

    /* There are no such tests for CPUs. */
    if (request->processor)
        return;
    child_run(self_test_body, request,
              request->options->timeout_s > 0 ? request->options->timeout_s
                                              : SELF_TEST_LIMIT_S,
              progress, &outcome);
    if (outcome.end == CHILD_CRASHED || outcome.end == CHILD_TIMED_OUT)
        probe_complain("%s: the self-test did not finish: %s", request->name,
                       outcome.message);
    child_outcome_destroy(&outcome);
}
