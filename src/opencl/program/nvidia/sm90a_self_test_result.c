/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the self-test result of sm_90a programs. */
#include "opencl/program/nvidia/sm90a_self_test_result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "opencl/program/program_cache_entry.h"
#include "opencl/program/nvidia/ptx_rewrite.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/tensor_core_packing.h"

#define STAMP_DIGITS 16u

/* The profile's word for each result, and why sm_90a programs are not used. */
static const struct {
    const char *word, *reason;
} results[SM90A_SELF_TEST_RESULT_COUNT] = {
    [SM90A_SELF_TEST_NOT_RUN] = {NULL,
                                 "no profile says that the self-test passed"},
    [SM90A_SELF_TEST_STALE] =
        {NULL, "cl-probe --calibrate has not run the self-test with this "
               "driver and version"},
    [SM90A_SELF_TEST_STARTED] = {"started",
                                 "the self-test of cl-probe crashed or hung"},
    [SM90A_SELF_TEST_FAILED] = {"failed", "the self-test of cl-probe failed"},
    [SM90A_SELF_TEST_PASSED] = {"passed", NULL}};

DECLARE_KERNEL_SOURCE(gemm_wgmma);
DECLARE_KERNEL_SOURCE(pack_operands);

uint64_t sm90a_self_test_stamp(const struct platform_device *hardware)
{
    const char *const parts[] = {kernel_source_gemm_wgmma,
                                 kernel_source_pack_operands,
                                 hardware->info.name,
                                 hardware->info.vendor,
                                 hardware->info.driver_version,
                                 hardware->info.platform,
                                 hardware->version};
    uint64_t hash = cache_hash(CACHE_HASH_SEED, PTX_REWRITE_REVISION
                               " " SM90A_SELF_TEST_REVISION);
    for (uint32_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        hash = cache_hash(hash, parts[i]);
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        const struct tandem_gemm gemm = {.dtype = TANDEM_F32,
                                         .m = gemm_configs[i].tile_m,
                                         .n = gemm_configs[i].tile_n,
                                         .k = gemm_configs[i].k_tile,
                                         .batch = 1};
        struct kernel_source text;
        if (!gemm_configs[i].uses_wgmma)
            continue;
        const struct kernel_key key =
            tensor_core_key(&gemm, (enum gemm_kernel_id)i);
        kernel_source_make(&text, &key, hardware);
        hash = cache_hash(hash, text.options);
    }
    return hash;
}

void sm90a_self_test_result_format(char out[SM90A_SELF_TEST_RESULT_BYTES],
                                   enum sm90a_self_test_result result,
                                   uint64_t stamp)
{
    snprintf(out, SM90A_SELF_TEST_RESULT_BYTES, "%s %016" PRIx64,
             results[result].word, stamp);
}

bool sm90a_self_test_result_parse(const char *value, uint64_t stamp,
                                  enum sm90a_self_test_result *out)
{
    char expected[SM90A_SELF_TEST_RESULT_BYTES];
    *out = SM90A_SELF_TEST_NOT_RUN;
    for (uint32_t i = SM90A_SELF_TEST_STARTED; i < SM90A_SELF_TEST_RESULT_COUNT;
         i++) {
        size_t length = strlen(results[i].word) + 1;
        sm90a_self_test_result_format(expected, (enum sm90a_self_test_result)i,
                                      stamp);
        if (strncmp(value, expected, length) != 0)
            continue;
        if (strlen(value) != length + STAMP_DIGITS ||
            strspn(value + length, "0123456789abcdef") != STAMP_DIGITS)
            return false;
        *out = strcmp(value, expected) == 0 ? (enum sm90a_self_test_result)i
                                            : SM90A_SELF_TEST_STALE;
        return true;
    }
    return false;
}

const char *sm90a_self_test_failure_reason(enum sm90a_self_test_result result)
{
    return results[result].reason;
}
