/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the results of a calibration as tables. */
#ifndef CL_PROBE_CALIBRATION_REPORT_H
#define CL_PROBE_CALIBRATION_REPORT_H

#include <jansson.h>

/* `results` has one object for each device, as --json prints it.  The object of
 * a device that failed has the member "error". */
void summary_print(const json_t *results);

#endif
