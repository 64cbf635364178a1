/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the profile of a calibrated device.  Parent process only. */
#ifndef CL_PROBE_CALIBRATION_SAVE_H
#define CL_PROBE_CALIBRATION_SAVE_H

#include "device_job.h"

/* [blocks] Writes the measurements in the result (calibration_timing.h) to the
 * device's profile.  The earlier profile's costs stay if the result has no such
 * costs, or if only the new ones were measured on a busy machine; with
 * options->replace, nothing of it stays.  Adds the members "profile" (the
 * path), "kept" (the names of the costs that stay) and "written" to the result,
 * or "error".  Without any measurement, does nothing. */
void calibration_save(const struct probe_options *options, const json_t *device,
                      json_t *result);

/* Writes how much the result's measurements vary, as a text for people. */
void calibration_spread_text(const json_t *result, char *out, size_t bytes);

#endif
