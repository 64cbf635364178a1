/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates the list of operators, in a device's profile, that the device
 * computes wrong.  Programs do not run these operators on the device.
 */
#ifndef CL_PROBE_OP_BLOCKLIST_UPDATE_H
#define CL_PROBE_OP_BLOCKLIST_UPDATE_H

#include "cl_probe.h"

/* Updates the profile of a device, which has this index in its backend, with a
 * result of verify.h, and adds to the result
 *
 *   "blocked": [ NAME ], "unblocked": [ NAME ], "profile": PATH or null
 *
 * the operators that failed, and the operators that failed before and are
 * correct now; or "blocklist_error", the reason why the profile was not
 * written.  Child process only. */
void op_blocklist_update(const struct probe_options *options,
                         const char *backend, uint32_t device, json_t *result);

/* Prints the members that op_blocklist_update added.  Parent only. */
void op_blocklist_print(const json_t *result);

#endif
