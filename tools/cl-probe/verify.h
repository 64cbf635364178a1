/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checking what a device computes: the conformance suite, run against it, and
 * the gate (op_blocklist_update.h) that follows.  Parent process only.
 */
#ifndef CL_PROBE_VERIFY_H
#define CL_PROBE_VERIFY_H

#include "cl_probe.h"

#include <limits.h>

#define VERIFY_PATH_BYTES (PATH_MAX + 32)

/* Looks for tandem-conformance beside this program; in a build tree, a folder
 * above it. */
bool verify_find_program(char out[VERIFY_PATH_BYTES]);

/* [blocks]  Runs the suite, of which only names an operator, a group, or
 * "operators" (NULL: all), against the device:
 *
 *   { "device", "passed", "failed", "skipped", "groups": { NAME: { "passed",
 *     "failed", "skipped" } }, "failures": [ "..." ] }
 *   { "device", "error" }
 *
 * with the gate's members where there are operators among the groups. */
json_t *verify_device(const struct probe_options *options,
                      const json_t *device, const char *program,
                      const char *only);

/* For people. */
void verify_print(const json_t *result);

/* Whether all is well in such a result. */
bool verify_good(const json_t *result);

#endif
