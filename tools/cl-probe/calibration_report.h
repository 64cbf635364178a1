/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a calibration found, for people.
 */
#ifndef CL_PROBE_SUMMARY_H
#define CL_PROBE_SUMMARY_H

#include <jansson.h>

/* results: the children's answers, those of failed devices with "error". */
void summary_print(const json_t *results);

#endif
