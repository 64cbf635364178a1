/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of this machine as JSON, found in a child process:
 *
 *   { "version", "devices": [ { "name", "index", "backend", "kind", ... } ],
 *     "problems": [ "..." ] }
 *
 * Parent process only.
 */
#ifndef CL_PROBE_DEVICES_H
#define CL_PROBE_DEVICES_H

#include "probe.h"

/* NULL, having complained, where the child did not answer; *out_exit is then
 * the exit status.  options->device leaves one device; where there is none of
 * that name: NULL. */
json_t *devices_find(const struct probe_options *options, int *out_exit);

/* Members of a device; "" and 0 where absent. */
const char *device_text(const json_t *device, const char *key);
double device_number(const json_t *device, const char *key);

#endif
