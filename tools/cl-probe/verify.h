/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks what a device computes with the conformance suite, and updates the
 * list of wrong operators in its profile (op_blocklist_update.h).  Parent only.
 */
#ifndef CL_PROBE_VERIFY_H
#define CL_PROBE_VERIFY_H

#include "cl_probe.h"

#include <limits.h>

#define VERIFY_PATH_BYTES (PATH_MAX + 32)

/* Finds the program tandem-conformance in the directory of this program or, in
 * a build tree, in its parent directory.  Returns false if it is missing. */
bool verify_find_program(char out[VERIFY_PATH_BYTES]);

/* [blocks] Runs the conformance suite on the device.  `only` is the name of an
 * operator or a group, or "operators"; NULL runs all.  Returns
 *
 *   { "device", "passed", "failed", "skipped", "groups": { NAME: { "passed",
 *     "failed", "skipped" } }, "failures": [ "..." ] }
 *   { "device", "error" }, and the results before the error, if there are any
 *
 * with the members of op_blocklist_update if operators were tested. */
json_t *verify_device(const struct probe_options *options, const json_t *device,
                      const char *program, const char *only);

/* Prints the result as text. */
void verify_print(const json_t *result);

/* Returns true if the result has no failure and no error. */
bool verify_good(const json_t *result);

#endif
