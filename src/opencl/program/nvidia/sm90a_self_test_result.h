/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether programs of patched PTX are right with this driver, as cl-probe found
 * it: the key "sm90a_self_test" of the profile's section,
 *
 *   started STAMP   the self-test began and did not finish
 *   failed STAMP    something failed
 *   passed STAMP    all results were correct
 *
 * the stamp being a hash of the device, its driver, our kernels, and how they
 * are tried.  Any thread.
 */
#ifndef TANDEM_OPENCL_PROGRAM_NVIDIA_SM90A_SELF_TEST_RESULT_H
#define TANDEM_OPENCL_PROGRAM_NVIDIA_SM90A_SELF_TEST_RESULT_H

#include <stdbool.h>
#include <stdint.h>

struct platform_device;

enum sm90a_self_test_result {
    SM90A_SELF_TEST_NOT_RUN,
    SM90A_SELF_TEST_STALE, /* of another driver, or of other kernels */
    SM90A_SELF_TEST_STARTED,
    SM90A_SELF_TEST_FAILED,
    SM90A_SELF_TEST_PASSED,
    SM90A_SELF_TEST_RESULT_COUNT
};

#define SM90A_SELF_TEST_RESULT_BYTES 32u
/* Of how they are tried (sm90a_self_test.c): what another one called right has
 * to be tried anew. */
#define SM90A_SELF_TEST_REVISION "2"

uint64_t sm90a_self_test_stamp(const struct platform_device *hardware);
/* verdict: one of the last three. */
void sm90a_self_test_result_format(char out[SM90A_SELF_TEST_RESULT_BYTES],
                                   enum sm90a_self_test_result verdict,
                                   uint64_t stamp);
/* false where value is not what it should be; then *out is
 * SM90A_SELF_TEST_NOT_RUN. */
bool sm90a_self_test_result_parse(const char *value, uint64_t stamp,
                                  enum sm90a_self_test_result *out);
/* Why patched programs are not used, for people; NULL where they are. */
const char *sm90a_self_test_failure_reason(enum sm90a_self_test_result verdict);

#endif
