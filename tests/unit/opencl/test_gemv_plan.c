/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selection of kernels and plans for GEMMs with few rows or columns. Needs no
 * OpenCL.
 */
#include <config.h>

#include "support/test_list.h"
#include "opencl/plan/gemm_params.h"
#include "selection_helpers.h"

static void start(uint32_t units, uint32_t group_limit)
{
    static struct platform_device hardware;
    hardware.info.compute_units = units;
    hardware.group_limit = group_limit;
    hardware.nvidia = hardware.tensor_cores = true;
    selector_reset(&hardware);
}

TEST(few_rows_or_columns_select_gemv_kernels)
{
    static const struct {
        int64_t m, n;
        enum gemm_kernel_id tile;
    } cases[] = {{1, 4096, GEMV_1}, {4096, 1, GEMV_1},   {3, 4096, GEMV_4},
                 {4096, 8, GEMV_8}, {10, 4096, GEMV_16}, {4096, 16, GEMV_16}};
    start(100, 1024);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tandem_gemm gemm = gemm_new(cases[i].m, cases[i].n, 4096, 1);
        struct gemm_selection selection = select_kernel(&gemm);
        ck_assert(!selection.clblast);
        ck_assert_int_eq(selection.kernel, cases[i].tile);
        /* If the kernel is disabled, another is selected. */
        gemm_selector_disable(&selector, &gemm, selection.kernel);
        selection = select_kernel(&gemm);
        ck_assert(selection.clblast || selection.kernel != cases[i].tile);
        start(100, 1024);
    }
    ck_assert_int_eq(
        gemm_configs[select_kernel_for(512, 512, 512).kernel].gemv_vectors, 0);
    ck_assert_int_eq(
        gemm_configs[select_kernel_for(64, 4096, 4096).kernel].gemv_vectors, 0);
    /* The faster of the measured kernels. */
    cost_set("kernel.gemv-4", "3000 0.1 0.4");
    cost_set("kernel.gemv-8", "3000 0.1 0.2");
    ck_assert_int_eq(select_kernel_for(4, 4096, 4096).kernel, GEMV_8);
    cost_set("kernel.gemv-4", "3000 0.1 0.1");
    ck_assert_int_eq(select_kernel_for(4, 4096, 4096).kernel, GEMV_4);
}

TEST(gemv_splits_fill_the_device)
{
    start(100, 1024);
    /*
     * One row of groups of four rows that are contiguous along k: enough
     * work-groups without a split.
     */
    ck_assert_uint_eq(select_kernel_for(1, 4096, 4096).split.splits, 1);
    /* A single block gets as many splits as possible. */
    ck_assert_uint_ge(select_kernel_for(10, 10, 100000).split.splits, 48);
    /*
     * 50 blocks. With two splits each compute unit has one work-group, which
     * cannot use the full memory throughput.
     */
    struct tandem_gemm gemm = gemm_new(16, 3200, 4096, 1);
    gemm.flags = 0;
    gemm.b.ld = 3200;
    ck_assert_uint_ge(select_kernel(&gemm).split.splits, 4);
}

/* Returns a GEMM of one row with an MN-major b. */
static struct tandem_gemm gemm_with_mn_major_b(int64_t n, int64_t k)
{
    struct tandem_gemm gemm = gemm_new(1, n, k, 1);
    gemm.flags = 0;
    gemm.b.ld = n;
    return gemm;
}

TEST(mn_major_rows_select_large_work_groups)
{
    struct tandem_gemm gemm = gemm_with_mn_major_b(4096, 4096);
    struct tandem_gemm narrow = gemm_with_mn_major_b(1000, 4096);
    start(132, 1024);
    ck_assert_int_eq(select_kernel(&gemm).kernel, GEMV_1_MN_MAJOR);
    ck_assert_uint_eq(select_kernel(&gemm).split.splits, 1);
    ck_assert_int_eq(select_kernel(&narrow).kernel, GEMV_1);
    /*
     * The kernel is also selected for 16-bit operands: they have half the
     * bytes, and no tensor-core kernel is as fast.
     */
    const uint32_t dtypes[] = {TANDEM_F16, TANDEM_BF16, TANDEM_F32};
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        gemm.dtype = dtypes[i];
        ck_assert_int_eq(select_kernel(&gemm).kernel, GEMV_1_MN_MAJOR);
    }
    /* The kernel is not used for K-major operands. */
    ck_assert_int_eq(select_kernel_for(1, 4096, 4096).kernel, GEMV_1);
    ck_assert(gemm_selector_force(&selector, "gemv-1-mn-major"));
    ck_assert_int_eq(select_kernel_for(1, 4096, 4096).kernel, GEMM_SIMT_64X64);
    ck_assert_int_eq(select_kernel(&gemm).kernel, GEMV_1_MN_MAJOR);
    /* The kernel is not used on devices with smaller work-groups. */
    start(132, 256);
    ck_assert_int_eq(select_kernel(&gemm).kernel, GEMV_1);
}

TEST(gemv_costs_of_k_major_and_mn_major_differ)
{
    struct tandem_gemm gemm = gemm_with_mn_major_b(4096, 4096);
    start(100, 1024);
    /* If the MN-major time was not measured, the K-major time is used. */
    cost_set("kernel.gemv-1", "3000 0.1 0.1");
    cost_set("kernel.gemv-4", "3000 0.1 0.2");
    cost_set("kernel.gemv-1-mn-major", "3000 0.1 0.3");
    ck_assert_int_eq(select_kernel(&gemm).kernel, GEMV_1);
    cost_set("kernel_mn_major.gemv-1", "3000 0.4 0.4");
    cost_set("kernel.gemv-1", "3000 0.1 0.1");
    ck_assert_int_eq(select_kernel(&gemm).kernel, GEMV_4);
    cost_set("kernel_mn_major.gemv-4", "3000 0.4 0.4");
    ck_assert_int_eq(select_kernel(&gemm).kernel, GEMV_1_MN_MAJOR);
    ck_assert_int_eq(select_kernel_for(1, 4096, 4096).kernel, GEMV_1);
    ck_assert(!gemm_cost_model_parse(&selector.cost_model,
                                     "kernel_mn_major.gemv-1", "3000 0.1"));
    ck_assert(gemm_cost_model_parse(&selector.cost_model,
                                    "kernel_mn_major.later", "x"));
}

static const char *kernel_of(const struct launch_plan *plan, uint32_t step)
{
    return plan->step[step].key.kernel->function;
}

/* Returns log2 of the work-items that add up the partial sums of an element. */
static uint32_t lanes_log2_of(const struct launch_plan *plan, uint32_t step)
{
    const struct gemm_params *params =
        (const struct gemm_params *)plan->step[step].params;
    ck_assert_str_eq(kernel_of(plan, step), "split_k_fixup");
    return params->lanes_log2;
}

TEST(gemv_plans)
{
    struct launch_plan plan;
    struct tandem_gemm gemm = gemm_new(10, 10, 100000, 1);
    plan_gemm(&plan, &gemm, GEMV_16, (struct split_k){64, ALL_GEMM_TILES}, NULL,
              8);
    ck_assert_uint_eq(plan.step_count, 2);
    ck_assert_str_eq(kernel_of(&plan, 0), "gemv");
    ck_assert_uint_gt(lanes_log2_of(&plan, 1), 0);
    const struct kernel_info *fixup = plan.step[1].key.kernel;
    ck_assert_uint_ge(plan.temp_bytes, 32 * 100 * sizeof(float));
    /* Many results, or few splits, do not need the lane-parallel fixup. */
    gemm = gemm_new(16, 8192, 8192, 1);
    plan_gemm(&plan, &gemm, GEMV_16, (struct split_k){4, ALL_GEMM_TILES}, NULL,
              8);
    ck_assert_uint_eq(lanes_log2_of(&plan, 1), 0);
    ck_assert_ptr_eq(plan.step[1].key.kernel, fixup);
    /* Tiles that are split along k share the kernel, too. */
    gemm = gemm_new(512, 512, 4096, 1);
    plan_gemm(&plan, &gemm, GEMM_SIMT_64X64, (struct split_k){4, 7}, NULL, 8);
    ck_assert_ptr_eq(plan.step[1].key.kernel, fixup);
    gemm = gemm_new(1, 4096, 4096, 1);
    plan_gemm(&plan, &gemm, GEMV_1, NO_SPLIT, NULL, 8);
    ck_assert_uint_eq(plan.step_count, 1);
    ck_assert_uint_eq(plan.temp_bytes, 0);
    ck_assert_uint_eq(plan.step[0].key.gemm_kernel, GEMV_1);
    ck_assert_uint_eq(plan.step[0].key.a_layout, 0);
    ck_assert_uint_eq(plan.step[0].key.vec4, 1);
    ck_assert_uint_eq(plan.step[0].key.b_vec4, 1);
    /*
     * A contiguous column is treated like a row; then a is the large operand.
     */
    gemm = gemm_new(4096, 1, 4096, 1);
    gemm.flags = TANDEM_GEMM_TRANSPOSE_A;
    gemm.a.ld = 4096;
    gemm.b.ld = 1;
    plan_gemm(&plan, &gemm, GEMV_1, NO_SPLIT, NULL, 8);
    ck_assert_uint_eq(plan.step[0].key.a_layout, 1);
    ck_assert_uint_eq(plan.step[0].key.b_layout, 0);
    ck_assert_uint_eq(plan.step[0].key.b_vec4, 1);
    /* A column with gaps is not. */
    gemm.b.ld = 3;
    plan_gemm(&plan, &gemm, GEMV_1, NO_SPLIT, NULL, 8);
    ck_assert_uint_eq(plan.step[0].key.b_layout, 1);
    ck_assert_uint_eq(plan.step[0].key.b_vec4, 0);
}

TEST_MAIN(tests_run("gemv-plan"))
