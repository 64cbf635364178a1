/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of cl-probe's self-test of sm_90a programs with this driver.  It
 * is the value of the key "sm90a_self_test" of the tuning section:
 *
 *   started STAMP   the self-test began and did not finish
 *   failed STAMP    a part of the self-test failed
 *   passed STAMP    all results were correct
 *
 * STAMP is a hash of the device, its driver, the plugin's kernels and the
 * revision of the self-test.  Any thread may call these functions.
 */
#ifndef TANDEM_OPENCL_PROGRAM_NVIDIA_SM90A_SELF_TEST_RESULT_H
#define TANDEM_OPENCL_PROGRAM_NVIDIA_SM90A_SELF_TEST_RESULT_H

#include <stdbool.h>
#include <stdint.h>

struct platform_device;

enum sm90a_self_test_result {
    SM90A_SELF_TEST_NOT_RUN,
    SM90A_SELF_TEST_STALE, /* result for another driver, kernel or revision */
    SM90A_SELF_TEST_STARTED,
    SM90A_SELF_TEST_FAILED,
    SM90A_SELF_TEST_PASSED,
    SM90A_SELF_TEST_RESULT_COUNT
};

#define SM90A_SELF_TEST_RESULT_BYTES 32u
/* Revision of the self-test.  Increase the number if sm90a_self_test.c tests
 * something else, so that the test runs again. */
#define SM90A_SELF_TEST_REVISION "2"

uint64_t sm90a_self_test_stamp(const struct platform_device *hardware);
/* Writes the profile's text for `result`, which is STARTED, FAILED or
 * PASSED. */
void sm90a_self_test_result_format(char out[SM90A_SELF_TEST_RESULT_BYTES],
                                   enum sm90a_self_test_result result,
                                   uint64_t stamp);
/* Parses a value of the key "sm90a_self_test".  Returns false and sets *out to
 * NOT_RUN if the value is malformed. */
bool sm90a_self_test_result_parse(const char *value, uint64_t stamp,
                                  enum sm90a_self_test_result *out);
/* Returns why sm_90a programs are not used, or NULL if the self-test passed. */
const char *sm90a_self_test_failure_reason(enum sm90a_self_test_result result);

#endif
