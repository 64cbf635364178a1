/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for an event without the driver's wait functions.  Sets no error
 * message.  May be called from any thread. */
#ifndef TANDEM_OPENCL_DEVICE_EVENT_POLL_H
#define TANDEM_OPENCL_DEVICE_EVENT_POLL_H

#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

/* Returns the time of CLOCK_MONOTONIC.  All deadlines refer to this clock. */
uint64_t monotonic_ns(void);
/* Returns the time left until deadline_ns, or limit_ns if limit_ns is shorter.
 * deadline_ns may be TANDEM_TIMEOUT_INFINITE. */
uint64_t remaining_ns(uint64_t deadline_ns, uint64_t limit_ns);
/* Gets the execution status of the event.  Returns an OpenCL error code. */
cl_int event_get_state(cl_event event, cl_int *out_state);
/* Polls until the event completes or limit_ns have passed. *out_state is the
 * execution status of the event, above CL_COMPLETE if limit_ns passed first.
 * Returns the error code of the status query. */
cl_int poll_event(cl_event event, uint64_t limit_ns, cl_int *out_state);
/* Waits like poll_event, but sleeps until the driver calls back, if it can. */
cl_int sleep_until_event(cl_event event, uint64_t limit_ns, cl_int *out_state);

#endif
