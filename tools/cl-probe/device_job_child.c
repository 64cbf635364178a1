/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a job's device and profile in the child process; see device_job.h. */
#include <config.h>

#include "device_job.h"

#include <string.h>

bool device_job_open(const struct device_job_request *request,
                     struct child_link *link,
                     struct tandem_context **out_context,
                     struct device_session *out_session)
{
    memset(out_session, 0, sizeof *out_session);
    if (probe_context(request->options, request->backend, out_context) !=
        TANDEM_OK) {
        child_fail(link, "%s", tandem_last_error());
        return false;
    }
    child_progress(link, 0, "opening");
    if (device_session_open(out_session, *out_context, request->device) ==
        TANDEM_OK)
        return true;
    child_fail(link, "%s", tandem_last_error());
    device_session_close(out_session);
    tandem_context_destroy(*out_context);
    return false;
}

void device_job_edit_profile(const struct device_job_request *request,
                             struct child_link *link, profile_edit_fn work)
{
    struct tandem_context *context;
    struct tandem_profile *profile = NULL;
    struct device_session session;

    if (!device_job_open(request, link, &context, &session))
        return;
    if (tandem_profile_edit(context, request->device, &profile) == TANDEM_OK)
        work(request, link, &session, profile);
    else
        child_fail(link, "%s", tandem_last_error());
    tandem_profile_destroy(profile);
    device_session_close(&session);
    tandem_context_destroy(context);
}
