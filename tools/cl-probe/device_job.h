/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a job on one device after another.  Each device has its own child
 * process with a time limit, so a driver that crashes or hangs affects only its
 * device.
 */
#ifndef CL_PROBE_DEVICE_JOB_H
#define CL_PROBE_DEVICE_JOB_H

#include "../common/device_session.h"
#include "child_process.h"
#include "cl_probe.h"

struct device_job {
    const char *verb; /* "calibrate" */
    const char *work; /* "the calibration" */
    unsigned limit_s; /* time limit of a child, unless --timeout sets another */
    unsigned expected_s; /* see struct progress */
    bool self_test;      /* self_test_job_run comes first */
    bool saves; /* saves profiles; fails early if they cannot be written */
    /* Runs in the child.  The argument is a struct device_job_request. */
    child_fn run;
    /* Runs in the parent after each device.  May add to the result and print
     * it.  If the device failed, the result has the member "error", and else
     * contains what the child sent with child_partial.  Returns false if the
     * device failed.  May be NULL. */
    bool (*on_result)(const struct probe_options *options, const json_t *device,
                      json_t *result);
    /* Runs in the parent at the end, unless with --json.  May be NULL. */
    void (*print)(const json_t *results);
};

struct device_job_request {
    const struct probe_options *options;
    const char *backend;
    uint32_t device; /* index of the device in its backend */
    const char *name;
    bool processor; /* the device is the host CPU */
};

/* Returns the request for a device of the list (device_list.h), from which it
 * borrows. */
struct device_job_request
device_job_request_make(const struct probe_options *options,
                        const json_t *device);

/* [blocks] Runs the job on the devices that the options select.  A device that
 * is listed a second time, through another driver, is only used if the options
 * name it.  With --json prints { "results", "load_errors" }; a failed result is
 * { "device", "error" }.  Returns the exit status.  Parent process only. */
int device_jobs_run(const struct probe_options *options,
                    const struct device_job *job);

/* [blocks] Runs the plugin's self-tests, which may crash the driver, in a child
 * and saves their results in the profile (self_test_job.c).  Parent only. */
void self_test_job_run(struct device_job_request *request,
                       struct progress *progress);

/* Opens the request's device in a new context.  On failure reports the error
 * with child_fail, returns false and leaves nothing open.  Child process only.
 */
bool device_job_open(const struct device_job_request *request,
                     struct child_link *link,
                     struct tandem_context **out_context,
                     struct device_session *out_session);

/* device_job_edit_profile opens the request's device and profile and calls
 * `work`, which saves the profile.  Reports with child_fail if it cannot open
 * them.  Child process only. */
typedef void (*profile_edit_fn)(const struct device_job_request *request,
                                struct child_link *link,
                                struct device_session *session,
                                struct tandem_profile *profile);
void device_job_edit_profile(const struct device_job_request *request,
                             struct child_link *link, profile_edit_fn work);

#endif
