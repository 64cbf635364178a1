/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the suite of a test program. Call it from one thread. */
#ifndef TANDEM_TESTS_CHECK_RUNNER_H
#define TANDEM_TESTS_CHECK_RUNNER_H

#include <check.h>

#include "support/case_summary.h"

/* Runs the suite, frees it, prints the summary and returns main's result: a
 * failure if a test failed or none ran, as when CK_RUN_CASE names no case.
 * `forks` is CK_NOFORK for tests that use OpenCL, which does not survive a
 * fork, and otherwise CK_FORK_GETENV. */
static inline int runner_run(Suite *suite, enum fork_status forks)
{
    SRunner *runner = srunner_create(suite);
    int failed, ran;

    srunner_set_fork_status(runner, forks);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    ran = srunner_ntests_run(runner);
    srunner_free(runner);
    return case_summary((uint64_t)(ran - failed), (uint64_t)failed);
}

/* Like runner_run, for a single test case. */
static inline int runner_run_case(const char *name, TCase *tests)
{
    Suite *suite = suite_create(name);

    suite_add_tcase(suite, tests);
    return runner_run(suite, CK_FORK_GETENV);
}

#endif
