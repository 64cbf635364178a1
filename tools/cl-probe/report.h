/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the file of cl-probe --verify --report, which a user can send to the
 * developers.  It describes the devices and what Tandem computes and chooses on
 * them, and contains no private data (private_text.h).  Parent process only.
 */
#ifndef CL_PROBE_REPORT_H
#define CL_PROBE_REPORT_H

#include "cl_probe.h"

/* [blocks] Writes the report to options->report, and prints what it contains.
 * `found` is the list of devices_find, `results` the array of results of
 * verify_device.  Replaces a file of that name only if the report is complete.
 * On failure prints a message and returns false. */
bool report_write(const struct probe_options *options, const json_t *found,
                  const json_t *results);

#endif
