/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a call on the device that is the fastest, or required: placement.h
 * chooses it, launch.h moves the inputs there and launches the operator. */
#ifndef TANDEM_HOST_RUN_RUN_H
#define TANDEM_HOST_RUN_RUN_H

#include "host/run/call.h"

/* Runs the call on the required or fastest device. */
enum tandem_status call_run(struct call *call);

#endif
