/* SPDX-License-Identifier: Apache-2.0 */
/* What cl-probe found of patched programs; see sm90a_self_test_result.h. */
#include "opencl/program/nvidia/sm90a_self_test_result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "opencl/program/program_cache_file.h"
#include "opencl/program/kernel_sources.h"
#include "opencl/program/nvidia/ptx_rewrite.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/gemm_plan.h"
#include "opencl/program/variant_options.h"

#define STAMP_DIGITS 16u

static const char *const words[VERDICTS] = {[VERDICT_TRIED] = "tried",
                                            [VERDICT_WRONG] = "wrong",
                                            [SM90A_SELF_TEST_PASSED] = "right"};

uint64_t verdict_stamp(const struct platform_device *hardware)
{
    const char *const parts[] = {
        kernel_gemm_wgmma,       kernel_pack_operands,
        hardware->info.name,     hardware->info.vendor,
        hardware->info.driver_version, hardware->info.platform,
        hardware->version};
    uint64_t hash =
        cache_hash(CACHE_HASH_SEED, PATCH_REVISION " " TRIAL_REVISION);
    for (uint32_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        hash = cache_hash(hash, parts[i]);
    for (uint32_t i = 0; i < TILES; i++) {
        struct variant_text text;
        if (!tiles[i].patched)
            continue;
        variant_describe(&text,
                         kernel_key(KERNEL_WGMMA, 0, false,
                                    tiles[i].group_log2) |
                             key_product(i, 0, 0, true),
                         hardware);
        hash = cache_hash(hash, text.options);
    }
    return hash;
}

void verdict_write(char out[VERDICT_BYTES], enum verdict verdict,
                   uint64_t stamp)
{
    snprintf(out, VERDICT_BYTES, "%s %016" PRIx64, words[verdict], stamp);
}

bool verdict_read(const char *value, uint64_t stamp, enum verdict *out)
{
    char expected[VERDICT_BYTES];
    *out = VERDICT_NONE;
    for (uint32_t i = VERDICT_TRIED; i < VERDICTS; i++) {
        size_t length = strlen(words[i]) + 1;
        verdict_write(expected, (enum verdict)i, stamp);
        if (strncmp(value, expected, length) != 0)
            continue;
        if (strlen(value) != length + STAMP_DIGITS ||
            strspn(value + length, "0123456789abcdef") != STAMP_DIGITS)
            return false;
        *out = strcmp(value, expected) == 0 ? (enum verdict)i : VERDICT_STALE;
        return true;
    }
    return false;
}

const char *verdict_tell(enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_STALE:
        return "cl-probe --calibrate has not tried them with this driver and "
               "this version";
    case VERDICT_TRIED:
        return "cl-probe crashed or hung when it tried them";
    case VERDICT_WRONG:
        return "cl-probe found them wrong";
    case SM90A_SELF_TEST_PASSED:
        return NULL;
    default:
        return "no profile says that cl-probe found them right";
    }
}
