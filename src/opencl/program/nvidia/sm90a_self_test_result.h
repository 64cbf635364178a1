/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether programs of patched PTX are right with this driver, as cl-probe found
 * it: the key "wgmma" of the profile's section,
 *
 *   tried STAMP   it began to try them, and got no further
 *   wrong STAMP   something failed
 *   right STAMP   all was as it should be
 *
 * the stamp being a hash of the device, its driver, our kernels, and how they
 * are tried.  Any thread.
 */
#ifndef TANDEM_OPENCL_PROGRAM_NVIDIA_SM90A_SELF_TEST_RESULT_H
#define TANDEM_OPENCL_PROGRAM_NVIDIA_SM90A_SELF_TEST_RESULT_H

#include <stdbool.h>
#include <stdint.h>

struct platform_device;

enum verdict {
    VERDICT_NONE,
    VERDICT_STALE, /* of another driver, or of other kernels */
    VERDICT_TRIED,
    VERDICT_WRONG,
    SM90A_SELF_TEST_PASSED,
    VERDICTS
};

#define VERDICT_BYTES 32u
/* Of how they are tried (sm90a_self_test.c): what another one called right has
 * to be tried anew. */
#define TRIAL_REVISION "2"

uint64_t verdict_stamp(const struct platform_device *hardware);
/* verdict: one of the last three. */
void verdict_write(char out[VERDICT_BYTES], enum verdict verdict,
                   uint64_t stamp);
/* false where value is not what it should be; then *out is VERDICT_NONE. */
bool verdict_read(const char *value, uint64_t stamp, enum verdict *out);
/* Why patched programs are not used, for people; NULL where they are. */
const char *verdict_tell(enum verdict verdict);

#endif
