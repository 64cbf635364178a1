/* SPDX-License-Identifier: Apache-2.0 */
/* Running a call on one device.  The call's operands must be locked. */
#ifndef TANDEM_HOST_RUN_LAUNCH_H
#define TANDEM_HOST_RUN_LAUNCH_H

#include "host/chooser/chooser.h"
#include "host/run/call.h"

/* Returns TANDEM_OK if the device can run the call without compiling code
 * first.  If it supports the call but has to compile, it starts to compile in
 * the background, and the function returns TANDEM_NOT_READY.  Other errors say
 * why the device cannot run the call.  In a deterministic context, a device
 * that has to compile counts as ready.  Needs no locks. */
enum tandem_status call_make_ready(const struct call *call,
                                   struct device *device);

struct enqueued {
    bool done;
    bool recovered;  /* an error of earlier work was cleared */
    uint64_t launch; /* number of the launch, or 0 if it has computed */
};
/* Launches the call.  The operands must already be on the device.  If an error
 * of earlier work prevents that and out->recovered is false, clears the error
 * and returns TANDEM_OK although out->done is false. */
enum tandem_status call_enqueue(const struct call *call, struct device *device,
                                struct enqueued *out);
/* [may wait, up to HANG_DEADLINE]  Moves the operands to the device and
 * launches the call. */
enum tandem_status call_launch(struct call *call,
                               struct placement_decision *decision,
                               struct device *device, struct enqueued *out);
/* Updates the operands' storages after a launch. */
void launch_note(const struct placement_request *request, struct device *device,
                 uint64_t launch);

#endif
