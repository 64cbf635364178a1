/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work on one device after another, each in a child process of its own with a
 * time limit, so that a driver that crashes or hangs costs that device only.
 */
#ifndef CL_PROBE_DEVICE_JOB_H
#define CL_PROBE_DEVICE_JOB_H

#include "../common/device_session.h"
#include "child_process.h"
#include "cl_probe.h"

struct device_job {
    const char *verb; /* "calibrate" */
    unsigned limit_s; /* a child's, unless the options say otherwise */
    bool self_test;   /* self_test_job_run comes first */
    bool saves; /* profiles: nothing is done where none can be written */
    /* The child's work; its argument is a struct device_job_request. */
    child_fn run;
    /* Parent process, after each device: what else belongs to it, and what is
     * to be printed at once.  false: it failed.  May be NULL. */
    bool (*on_result)(const struct probe_options *options, const json_t *device,
                      json_t *result);
    /* Parent process, at the end, unless in JSON; may be NULL. */
    void (*print)(const json_t *results);
};

struct device_job_request {
    const struct probe_options *options;
    const char *backend;
    uint32_t device; /* of the backend */
    const char *name;
    bool processor; /* the host's own, which compiles for itself */
};

/* [blocks] Parent process: the devices that the options name; the same hardware
 * seen through another driver only when it is asked for by name.  Prints
 * { "results", "load_errors" } in JSON, a result that failed being
 * { "device", "error" }.  Returns the exit status. */
int device_jobs_run(const struct probe_options *options,
                    const struct device_job *job);

/* [blocks] Parent process: has a child try what may crash or hang the device's
 * driver and note in its profile whether it is to be used (self_test_job.c). */
void self_test_job_run(struct device_job_request *request,
                       struct progress *progress);

/* Child process: the request's device, in a context of its own.  false, having
 * failed the child: nothing is left. */
bool device_job_open(const struct device_job_request *request,
                     struct child_link *link,
                     struct tandem_context **out_context,
                     struct device_session *out_session);

/* Child process: does the work on the request's device and with its profile,
 * which the work saves; where either cannot be had, fails the child. */
typedef void (*profile_edit_fn)(const struct device_job_request *request,
                                     struct child_link *link,
                                     struct device_session *session,
                                     struct tandem_profile *profile);
void device_job_edit_profile(const struct device_job_request *request,
                             struct child_link *link,
                             profile_edit_fn work);

#endif
