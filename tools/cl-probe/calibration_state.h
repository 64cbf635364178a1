/* SPDX-License-Identifier: Apache-2.0 */
/* Tells if a device is calibrated.  Parent process, except for
 * calibration_missing and calibration_missing_remove. */
#ifndef CL_PROBE_CALIBRATION_STATE_H
#define CL_PROBE_CALIBRATION_STATE_H

#include "cl_probe.h"

enum calibration_state {
    NOT_CALIBRATED,    /* all costs are guessed */
    PARTLY_CALIBRATED, /* the last calibration ended early */
    CALIBRATED
};

#define CALIBRATION_STATE_BYTES 512

/* Returns an array of the parts that the calibration of a profile did not
 * finish, such as "gemm" and "tuning".  `profile` is the content of the
 * profile, or NULL.  The caller releases the array. */
json_t *calibration_missing(const json_t *profile);

/* Removes the part from the missing parts of the profile, which was saved at
 * `path`, and saves it again if it was one of them. */
enum tandem_status calibration_missing_remove(struct tandem_profile *profile,
                                              const char *path,
                                              const char *part);

/* Returns the state of a device of device_list.h. */
enum calibration_state calibration_state(const json_t *device);

/* Writes the state as a text for people, such as "partly calibrated (missing:
 * gemm, tuning)".  Returns `out`. */
const char *calibration_state_text(const json_t *device,
                                   char out[CALIBRATION_STATE_BYTES]);

/* Writes the missing parts, separated by ", ".  Returns `out`. */
const char *calibration_missing_text(const json_t *device,
                                     char out[CALIBRATION_STATE_BYTES]);

/* Returns how much other programs disturbed the measurement of the device's
 * profile, or NULL if the machine was quiet or there is no profile. */
const char *calibration_busy_note(const json_t *device);

/* Returns true if "cl-probe --calibrate" measures the device and would replace
 * guessed costs.  It leaves duplicates of other devices out. */
bool calibration_is_needed(const json_t *device);

#endif
