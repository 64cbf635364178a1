/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accuracy gate: what a device was found to compute wrong is noted in its
 * profile, so that programs do not run it there, until it is found right.
 * Parent process only.
 */
#ifndef CL_PROBE_GATE_H
#define CL_PROBE_GATE_H

#include "cl_probe.h"

/* Brings the device's profile into line with a result of verify.h, and adds to
 * it
 *
 *   "blocked": [ NAME ], "unblocked": [ NAME ], "profile": PATH or null
 *
 * the operators that failed now and those that had failed before and are used
 * again; or "blocklist_error", why the profile could not be written. */
void op_blocklist_update(const struct probe_options *options,
                         const json_t *device, json_t *result);

/* Prints these members. */
void op_blocklist_print(const json_t *result);

#endif
