/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL drivers of this machine, each asked for its devices in a child
 * process of its own, and the record of those that crash or hang there, which
 * keeps other programs from meeting them.  Parent process only.
 */
#ifndef CL_PROBE_DRIVERS_H
#define CL_PROBE_DRIVERS_H

#include "cl_probe.h"

/* Tests the drivers that the ICD loader would load and writes the record anew.
 * Sets in found, as device_list.h has it,
 *
 *   "drivers": [ { "file", "library", "state", "devices", "message" } ]
 *
 * with the state ok, empty (no device), broken (crashed or hung) or untested,
 * and adds to "load_errors".  false, having complained, where one is broken or
 * all together are: then OpenCL is not to be touched. */
bool drivers_check(const struct probe_options *options, json_t *found);

#endif
