/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the record of broken OpenCL drivers (src/common/driver_blocklist.h):
 * what was found now, and what was on record before and could not be tested
 * again.  Parent process only.
 */
#ifndef CL_PROBE_DRIVER_RECORD_H
#define CL_PROBE_DRIVER_RECORD_H

#include "common/driver_blocklist.h"

#define DRIVER_PROBLEM_BYTES 5120u

struct driver_test_results {
    struct driver_records broken;
    struct icd_list tested; /* alone, whatever came of it */
    /* Tested together, or empty. */
    struct icd_list together;
    char when[32];
};

void driver_test_results_begin(struct driver_test_results *results);
void driver_test_results_add_working(struct driver_test_results *results,
                                     const struct icd *icd);
void driver_test_results_add_broken(struct driver_test_results *results,
                                    const struct icd *icd, const char *what);
/* what NULL: together they are well. */
void driver_test_results_add_group(struct driver_test_results *results,
                                   const struct icd_list *list,
                                   const char *what);

/* Puts the record in place, or removes it where nothing is on it.  false, with
 * what is wrong in out_problem, where that was not possible. */
bool driver_test_results_write(struct driver_test_results *results,
                               char *out_problem);
void driver_test_results_finish(struct driver_test_results *results);

#endif
