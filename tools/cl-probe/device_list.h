/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of this machine as JSON, found in one child process a plugin,
 * so that a driver that crashes or hangs costs its plugin only:
 *
 *   { "version", "devices": [ { "name", "backend", "index", ... } ],
 *     "load_errors": [ "..." ], "backends": "cpu,opencl", "failed": false,
 *     "drivers": [ ... ] }
 *
 * index counts within the backend; backends are those that answered; failed
 * says that one crashed or hung; drivers (driver_test.h) is there where the
 * OpenCL plugin was looked at.  Parent process only.
 */
#ifndef CL_PROBE_DEVICES_H
#define CL_PROBE_DEVICES_H

#include "cl_probe.h"

/* name leaves one device (NULL: all), and looks at its plugin alone.  NULL,
 * having complained, where there is none of that name; *out_exit is then the
 * exit status. */
json_t *devices_find(const struct probe_options *options, const char *name,
                     int *out_exit);

/* Whether name means the device: opencl:0 is opencl. */
bool device_is(const json_t *device, const char *name);

#endif
