/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the blocklist of broken OpenCL drivers
 * (src/common/driver_blocklist.h). Combines the results of this run with
 * earlier entries of drivers that this run did not test.  Parent process only.
 */
#ifndef CL_PROBE_DRIVER_BLOCKLIST_WRITER_H
#define CL_PROBE_DRIVER_BLOCKLIST_WRITER_H

#include "common/driver_blocklist.h"

#define DRIVER_PROBLEM_BYTES 5120u
/* The beginning of the reason that driver_test_results_write reports. */
#define DRIVER_BLOCKLIST_UNWRITTEN "the driver blocklist could not be written"

/* Results of the tests of this run. */
struct driver_test_results {
    struct driver_records broken;
    struct icd_list tested; /* tested alone, working or broken */
    /* Tested together; may be empty. */
    struct icd_list together;
};

/* Adds a record with the current time.  `what` says how the drivers failed. */
void driver_test_results_add(struct driver_test_results *results,
                             const struct icd_list *drivers, const char *what);

/* Replaces the blocklist, or removes it if it would be empty.  On failure
 * returns false and writes the reason to out_problem (DRIVER_PROBLEM_BYTES).
 * Frees the results. */
bool driver_test_results_write(struct driver_test_results *results,
                               char *out_problem);

#endif
