/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewriting of PTX for sm_90 into PTX for sm_90a, with valid and invalid text;
 * the self-test result in a profile; and its effect on the kernel selection.
 * Needs no OpenCL.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/program/nvidia/ptx_rewrite.h"
#include "opencl/program/nvidia/sm90a_self_test_result.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/gemm_selector.h"
#include "support/test_list.h"
#include "../../support/seed.h"

#define HEAD                                                                   \
    "// made by a compiler\n.version 9.0\n"                                    \
    ".target sm_90, texmode_independent\n.address_size 64\n.entry wgmma(\n"    \
    ")\n"
#define GROUP ".reqntid 512, 1, 1\n"
#define FENCE "\t//@ wgmma.fence.sync.aligned;\n"
#define PTX                                                                    \
    HEAD GROUP "{\n\t// begin inline asm\n" FENCE                              \
               "\t//@ setmaxnreg.inc.sync.aligned.u32 216;\n"                  \
               "//@ wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 "      \
               "{%f1,%f2}, %rd1, %rd2, 1, 1, 1;\n\tret;\n}\n"

/* Returns the rewritten text, or NULL with the error message. */
static char *rewrite(const char *text, size_t bytes, const char **out_why)
{
    size_t length;
    /* Allocates exactly, so that sanitizers detect reads past the text. */
    char *exact = malloc(bytes > 0 ? bytes : 1);
    memcpy(exact, text, bytes);
    char *out = ptx_rewrite_sm90a(exact, bytes, &length, out_why);
    free(exact);
    ck_assert((out == NULL) == (*out_why != NULL));
    ck_assert_uint_eq(length, out != NULL ? strlen(out) : 0);
    return out;
}

static void expect_rejected(const char *text, const char *because)
{
    const char *why;
    char *out = rewrite(text, strlen(text), &why);
    ck_assert_msg(out == NULL, "%s", text);
    ck_assert_str_eq(why, because);
}

TEST(marked_instructions_are_rewritten)
{
    const char *why;
    /* The text may include the terminating NUL, which some drivers count. */
    char *out = rewrite(PTX "\0", sizeof(PTX) + 1, &why);
    ck_assert_str_eq(
        out, "// made by a compiler\n.version 9.0\n"
             ".target sm_90a, texmode_independent\n.address_size 64\n"
             ".entry wgmma(\n)\n.reqntid 512, 1, 1\n.minnctapersm 1\n{\n"
             "\t// begin inline asm\nwgmma.fence.sync.aligned;\n"
             "setmaxnreg.inc.sync.aligned.u32 216;\n"
             "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 "
             "{%f1,%f2}, %rd1, %rd2, 1, 1, 1;\n\tret;\n}\n");
    free(out);
    static const char least[] = ".target sm_90\n" GROUP FENCE;
    out = rewrite(least, strlen(least), &why);
    ck_assert_str_eq(out, ".target sm_90a\n.reqntid 512, 1, 1\n"
                          ".minnctapersm 1\nwgmma.fence.sync.aligned;\n");
    free(out);
}

TEST(other_texts_are_rejected)
{
    const char *why;
    expect_rejected("", "it is not text");
    expect_rejected("\x7f"
                    "ELF\x02",
                    "there is not exactly one target");
    expect_rejected(GROUP FENCE, "there is not exactly one target");
    expect_rejected(".target sm_90\n" PTX, "there is not exactly one target");
    expect_rejected(".target sm_90a\n" GROUP FENCE, "the target is not sm_90");
    expect_rejected(".target sm_900\n" GROUP FENCE, "the target is not sm_90");
    expect_rejected(".target sm_100\n" GROUP FENCE, "the target is not sm_90");
    expect_rejected(".target\n" GROUP FENCE, "the target is not sm_90");
    expect_rejected(HEAD FENCE, "there is not exactly one kernel with a fixed "
                                "work-group size");
    expect_rejected(PTX GROUP, "there is not exactly one kernel with a fixed "
                               "work-group size");
    expect_rejected(HEAD GROUP, "no instruction is marked");
    char *out = rewrite(PTX "\0.target", sizeof(PTX) + 7, &why);
    ck_assert_ptr_null(out);
    ck_assert_str_eq(why, "it is not text");
}

TEST(other_instructions_are_rejected)
{
    static const char *const lines[] = {
        "//@ trap;",
        "//@ ",
        "//@ wgmma.fence.sync.aligned",
        "//@ setmaxnreg.inc.sync.aligned.u32 216",
        "//@ wgmma.fence.sync.aligned; trap;",
        "//@ setmaxnreg.inc.sync.aligned.u32 216; st.global.u32 [%r1], %r2;",
        "//@ wgmma.wait_group.sync.aligned [%r1];",
        "//@ wgmma.wait_group.sync.aligned 1; // x",
        "//@ setmaxnreg.\x80;",
    };
    char text[512];
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        snprintf(text, sizeof(text), "%s%s%s%s\n", HEAD, GROUP, FENCE,
                 lines[i]);
        expect_rejected(text, "a marked instruction is not allowed");
    }
    expect_rejected(HEAD GROUP FENCE "ret; //@ wgmma.fence.sync.aligned;\n",
                    "a mark is not at the start of a line");
    expect_rejected(HEAD GROUP FENCE "//@wgmma.fence.sync.aligned;\n",
                    "a mark is not at the start of a line");
}

static uint32_t seed;

/*
 * The text is truncated anywhere, has any byte changed, or consists of random
 * lines. Sanitizers detect accesses past its end.
 */
TEST(malformed_texts_are_handled)
{
    static const char *const lines[] = {
        ".target sm_90", ".target sm_90, x", ".reqntid 1", "//@ ", "\t//@",
        "//@ wgmma.fence.sync.aligned;", "", "\r", "//@ setmaxnreg.;",
        ".target", ".reqntid ", "//"};
    const char *why;
    char text[sizeof(PTX)];
    for (size_t cut = 0; cut < sizeof(PTX); cut++)
        free(rewrite(PTX, cut, &why));
    for (size_t i = 0; i + 1 < sizeof(PTX); i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            memcpy(text, PTX, sizeof(text));
            text[i] = (char)((unsigned char)text[i] ^ 1u << bit);
            free(rewrite(text, sizeof(text), &why));
        }
    for (int i = 0; i < 2000; i++) {
        char many[256] = "";
        for (int j = 0; j < 8; j++) {
            seed = seed * 1664525u + 1013904223u;
            strcat(many, lines[(seed >> 16) % 12]);
            strcat(many, (seed >> 28) != 0 ? "\n" : "");
        }
        free(rewrite(many, strlen(many), &why));
    }
}

static struct platform_device hardware = {.info = {.name = "a GPU",
                                                   .vendor = "V",
                                                   .driver_version = "1.0",
                                                   .platform = "P"},
                                          .version = "OpenCL 3.0"};

TEST(results_are_formatted_and_parsed)
{
    const uint64_t stamp = sm90a_self_test_stamp(&hardware);
    enum sm90a_self_test_result result;
    for (uint32_t i = SM90A_SELF_TEST_STARTED; i < SM90A_SELF_TEST_RESULT_COUNT;
         i++) {
        char text[SM90A_SELF_TEST_RESULT_BYTES];
        sm90a_self_test_result_format(text, (enum sm90a_self_test_result)i,
                                      stamp);
        ck_assert(sm90a_self_test_result_parse(text, stamp, &result));
        ck_assert_uint_eq(result, i);
        ck_assert((sm90a_self_test_failure_reason(result) == NULL) ==
                  (i == SM90A_SELF_TEST_PASSED));
        ck_assert(sm90a_self_test_result_parse(text, stamp + 1, &result));
        ck_assert_uint_eq(result, SM90A_SELF_TEST_STALE);
        ck_assert_ptr_nonnull(sm90a_self_test_failure_reason(result));
    }
    ck_assert_ptr_nonnull(
        sm90a_self_test_failure_reason(SM90A_SELF_TEST_NOT_RUN));
}

TEST(a_result_applies_to_one_driver_and_device)
{
    const uint64_t stamp = sm90a_self_test_stamp(&hardware);
    struct platform_device other = hardware;
    ck_assert_uint_eq(sm90a_self_test_stamp(&other), stamp);
    strcpy(other.info.driver_version, "1.1");
    ck_assert_uint_ne(sm90a_self_test_stamp(&other), stamp);
    other = hardware;
    strcpy(other.info.name, "a GPV");
    ck_assert_uint_ne(sm90a_self_test_stamp(&other), stamp);
    other = hardware;
    strcpy(other.version, "OpenCL 3.1");
    ck_assert_uint_ne(sm90a_self_test_stamp(&other), stamp);
}

TEST(invalid_results_are_rejected)
{
    static const char *const values[] = {"",
                                         "passed",
                                         "passed ",
                                         "passed 1",
                                         "passed 000000000000000g",
                                         "passed 00000000000000000",
                                         "PASSED 0000000000000000",
                                         " passed 0000000000000000",
                                         "passed  000000000000000",
                                         "passed 0000000000000000 ",
                                         "failed 0000000000000000x",
                                         "none"};
    enum sm90a_self_test_result result;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        ck_assert_msg(!sm90a_self_test_result_parse(values[i], 0, &result),
                      "%s", values[i]);
        ck_assert_uint_eq(result, SM90A_SELF_TEST_NOT_RUN);
    }
    ck_assert(
        sm90a_self_test_result_parse("passed 0000000000000000", 0, &result));
    ck_assert_uint_eq(result, SM90A_SELF_TEST_PASSED);
}

static struct gemm_selector selector;

/* Uses a device with 100 compute units, and with wgmma if that is set. */
static void start(bool wgmma)
{
    static struct platform_device gpu;
    gpu = hardware;
    gpu.info.compute_units = 100;
    gpu.nvidia = gpu.tensor_cores = true;
    gpu.wgmma = wgmma;
    memset(&selector, 0, sizeof(selector));
    gemm_selector_init(&selector, &gpu);
}

static void cost_set(const char *key, const char *value)
{
    ck_assert_msg(gemm_cost_model_parse(&selector.cost_model, key, value),
                  "%s: %s", key, value);
}

static bool wgmma_is_selected(uint32_t flags)
{
    const struct tandem_gemm gemm = {
        .struct_size = sizeof(gemm),
        .dtype = TANDEM_F32,
        .flags = TANDEM_GEMM_TRANSPOSE_B | flags,
        .m = 4096,
        .n = 4096,
        .k = 4096,
        .batch = 1,
        .alpha = 1,
        .a = {NULL, 0, 4096, 0},
        .b = {NULL, 0, 4096, 0},
        .c = {NULL, 0, 4096, 0}};
    struct gemm_selection selection;
    gemm_selector_compute(&selector, &gemm, &selection);
    return !selection.clblast && gemm_configs[selection.kernel].uses_wgmma;
}

TEST(sm90a_programs_are_used_only_after_the_self_test)
{
    const uint32_t scaled = TANDEM_GEMM_ALLOW_NORMWISE_ERROR;
    /* Never on another compute capability. */
    start(false);
    gemm_selector_enable_sm90a(&selector);
    ck_assert(!wgmma_is_selected(scaled));
    ck_assert(gemm_selector_force(&selector, "wgmma-fp16x3-128x128"));
    ck_assert(!wgmma_is_selected(scaled));
    /* On compute capability 9.0 only after the self-test has passed. */
    start(true);
    ck_assert(!wgmma_is_selected(0));
    ck_assert(!wgmma_is_selected(scaled));
    gemm_selector_enable_sm90a(&selector);
    ck_assert(wgmma_is_selected(scaled));
    ck_assert(wgmma_is_selected(0)); /* The kernels with split f32. */
    /* If a kernel is disabled, one without wgmma is selected. */
    const struct tandem_gemm gemm = {.struct_size = sizeof(gemm),
                                     .dtype = TANDEM_F32};
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++)
        if (gemm_configs[i].uses_wgmma)
            gemm_selector_disable(&selector, &gemm, (enum gemm_kernel_id)i);
    ck_assert(!wgmma_is_selected(scaled) && !wgmma_is_selected(0));
    /* A kernel that was measured slower is not selected. */
    start(true);
    gemm_selector_enable_sm90a(&selector);
    cost_set("kernel.3xtf32-128x128", "5000 77 63");
    cost_set("kernel.wgmma-3xtf32-128x128", "5000 700 700");
    cost_set("kernel.fp16x3-128x128", "5000 40 35");
    cost_set("kernel.wgmma-fp16x3-128x128", "5000 700 700");
    ck_assert(!wgmma_is_selected(scaled) && !wgmma_is_selected(0));
    cost_set("kernel.wgmma-fp16x3-128x128", "5000 17 17");
    ck_assert(wgmma_is_selected(scaled));
    cost_set("kernel.wgmma-3xtf32-128x128", "5000 35 35");
    ck_assert(wgmma_is_selected(0));
    start(true); /* Tests may force the kernel. */
    ck_assert(gemm_selector_force(&selector, "wgmma-3xtf32-128x64"));
    ck_assert(wgmma_is_selected(0));
}

int main(void)
{
    seed = (uint32_t)test_seed();
    return tests_run("patched");
}
