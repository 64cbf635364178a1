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

struct driver_verdicts {
    struct driver_records broken;
    struct icd_list tested; /* alone, whatever came of it */
    /* Tested together, or empty. */
    struct icd_list together;
    char when[32];
};

void verdicts_begin(struct driver_verdicts *verdicts);
void verdicts_good(struct driver_verdicts *verdicts, const struct icd *icd);
void verdicts_broken(struct driver_verdicts *verdicts, const struct icd *icd,
                     const char *what);
/* what NULL: together they are well. */
void verdicts_together(struct driver_verdicts *verdicts,
                       const struct icd_list *list, const char *what);

/* Puts the record in place, or removes it where nothing is on it.  false, with
 * what is wrong in out_problem, where that was not possible. */
bool verdicts_write(struct driver_verdicts *verdicts, char *out_problem);
void verdicts_finish(struct driver_verdicts *verdicts);

#endif
