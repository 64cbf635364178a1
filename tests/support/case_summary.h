/* SPDX-License-Identifier: Apache-2.0 */
/* The summary line of a test program, which tests/harness/test-driver reads. */
#ifndef TANDEM_TESTS_CASE_SUMMARY_H
#define TANDEM_TESTS_CASE_SUMMARY_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Prints the summary and returns main's result: a failure if a case failed or
 * none passed. */
static inline int case_summary(uint64_t passed, uint64_t failed)
{
    printf("%" PRIu64 " passed, %" PRIu64 " failed, 0 skipped\n", passed,
           failed);
    return passed > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
