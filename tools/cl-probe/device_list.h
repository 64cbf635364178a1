/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the devices of this machine as JSON.  Each plugin is queried in its own
 * child process, so a driver that crashes or hangs affects only its plugin:
 *
 *   { "version", "devices": [ { "name", "backend", "index", ... } ],
 *     "load_errors": [ "..." ], "backends": "cpu,opencl", "failed": false,
 *     "drivers": [ ... ] }
 *
 * "index" is the device's index in its backend.  "missing" has the parts of its
 * profile that the calibration did not finish.  "backends" names the plugins
 * that answered.  "failed" is true if a plugin crashed or hung.  "drivers"
 * (driver_test.h) is present if the OpenCL plugin was queried.  Parent only.
 */
#ifndef CL_PROBE_DEVICE_LIST_H
#define CL_PROBE_DEVICE_LIST_H

#include "cl_probe.h"

/* Returns the list of all devices, or of the device `name` if it is not NULL;
 * then only its plugin is queried.  If there is no such device, prints a
 * message, sets *out_exit to the exit status and returns NULL. */
json_t *devices_find(const struct probe_options *options, const char *name,
                     int *out_exit);

/* Returns PROBE_FAILED if a plugin failed, else PROBE_OK if there is a device,
 * else PROBE_NO_DEVICE. */
int devices_status(const json_t *found);

/* Returns true if the list has the device, or if `name` is NULL or empty.
 * Otherwise prints a message.  `source` is "TANDEM_DEVICE" or the option that
 * names the device. */
bool devices_have(const json_t *found, const char *name, const char *source);

/* Returns true if `name` selects the device.  "opencl" and "opencl:0" select
 * the same device. */
bool device_is(const json_t *device, const char *name);

/* Returns a note about the speed if the CPU is the only OpenCL device, else "".
 * `devices` is the array of devices. */
const char *devices_speed_note(const json_t *devices);

#endif
