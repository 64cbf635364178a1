/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests each OpenCL driver of this machine in its own child process.  Drivers
 * that crash or hang are put on a blocklist, and the library does not load
 * them. Parent process only.
 */
#ifndef CL_PROBE_DRIVER_TEST_H
#define CL_PROBE_DRIVER_TEST_H

#include "cl_probe.h"

/* Tests the drivers that the ICD loader would load and writes the blocklist.
 * Sets in `found`, the object of device_list.h,
 *
 *   "drivers": [ { "file", "library", "state", "devices", "message",
 *                  "problem", "platforms" } ]
 *
 * where the state is "ok", "empty" (no device), "broken" (crashed or hung) or
 * "untested", and "platforms" are the names of its platforms if the state is
 * "ok".  "problem" is "" or a problem that the user can solve, "; " and what
 * to do: why the driver has no device, or why it cannot compile.  Adds to
 * "load_errors".  If a driver is broken, or all together are, prints a message
 * and returns false: OpenCL must not be used then. */
bool drivers_check(const struct probe_options *options, json_t *found);

#endif
