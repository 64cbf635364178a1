/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels compute products with few rows or columns, and how.  No
 * OpenCL. */
#include <config.h>

#include <check.h>

#include "../../support/check_runner.h"
#include "selection_helpers.h"

static void start(uint32_t units, uint32_t group_limit)
{
    static struct platform_device hardware;
    hardware.info.compute_units = units;
    hardware.group_limit = group_limit;
    hardware.nvidia = hardware.tensor_cores = true;
    routes_begin(&hardware);
}

START_TEST(few_rows_or_columns_go_to_skinny_tiles)
{
    static const struct {
        int64_t m, n;
        enum gemm_kernel_id tile;
    } cases[] = {{1, 4096, GEMV_1}, {4096, 1, GEMV_1},   {3, 4096, GEMV_4},
                 {4096, 8, GEMV_8}, {10, 4096, GEMV_16}, {4096, 16, GEMV_16}};
    start(100, 1024);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tandem_gemm gemm = product(cases[i].m, cases[i].n, 4096, 1);
        struct gemm_selection selection = choose(&gemm);
        ck_assert(!selection.clblast);
        ck_assert_int_eq(selection.kernel, cases[i].tile);
        /* Without it, another. */
        gemm_selector_disable(&selector, &gemm, selection.kernel);
        selection = choose(&gemm);
        ck_assert(selection.clblast || selection.kernel != cases[i].tile);
        start(100, 1024);
    }
    ck_assert_int_eq(gemm_configs[choice(512, 512, 512).kernel].gemv_vectors,
                     0);
    ck_assert_int_eq(gemm_configs[choice(64, 4096, 4096).kernel].gemv_vectors,
                     0);
    /* Of measured ones the faster. */
    take("kernel.gemv-4", "3000 0.1 0.4");
    take("kernel.gemv-8", "3000 0.1 0.2");
    ck_assert_int_eq(choice(4, 4096, 4096).kernel, GEMV_8);
    take("kernel.gemv-4", "3000 0.1 0.1");
    ck_assert_int_eq(choice(4, 4096, 4096).kernel, GEMV_4);
}
END_TEST

START_TEST(skinny_groups_fill_the_device)
{
    start(100, 1024);
    /* One row by four that lie along k: enough groups. */
    ck_assert_uint_eq(choice(1, 4096, 4096).split.splits, 1);
    /* A single block, as deep as can be. */
    ck_assert_uint_ge(choice(10, 10, 100000).split.splits, 48);
    /* 50 blocks; with two splits each unit has one group, which alone does not
     * get all of the memory's rate. */
    struct tandem_gemm gemm = product(16, 3200, 4096, 1);
    gemm.flags = 0;
    gemm.b.ld = 3200;
    ck_assert_uint_ge(choose(&gemm).split.splits, 4);
}
END_TEST

/* One row by what lies across k. */
static struct tandem_gemm across(int64_t n, int64_t k)
{
    struct tandem_gemm gemm = product(1, n, k, 1);
    gemm.flags = 0;
    gemm.b.ld = n;
    return gemm;
}

START_TEST(a_long_row_across_k_goes_to_broad_groups)
{
    struct tandem_gemm gemm = across(4096, 4096);
    struct tandem_gemm narrow = across(1000, 4096);
    start(132, 1024);
    ck_assert_int_eq(choose(&gemm).kernel, GEMV_1_MN_MAJOR);
    ck_assert_uint_eq(choose(&gemm).split.splits, 1);
    ck_assert_int_eq(choose(&narrow).kernel, GEMV_1);
    /* Of 16 bits, half the bytes: no tile of tensor cores is as fast. */
    const uint32_t dtypes[] = {TANDEM_F16, TANDEM_BF16, TANDEM_F32};
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        gemm.dtype = dtypes[i];
        ck_assert_int_eq(choose(&gemm).kernel, GEMV_1_MN_MAJOR);
    }
    /* What lies along k has no use for it. */
    ck_assert_int_eq(choice(1, 4096, 4096).kernel, GEMV_1);
    ck_assert(gemm_selector_force(&selector, "gemv-1-mn-major"));
    ck_assert_int_eq(choice(1, 4096, 4096).kernel, GEMM_SIMT_64X64);
    ck_assert_int_eq(choose(&gemm).kernel, GEMV_1_MN_MAJOR);
    /* Nor has a device whose groups are smaller. */
    start(132, 256);
    ck_assert_int_eq(choose(&gemm).kernel, GEMV_1);
}
END_TEST

START_TEST(skinny_costs_along_and_across_k_differ)
{
    struct tandem_gemm gemm = across(4096, 4096);
    start(100, 1024);
    /* Where across was not measured, it goes by what was along. */
    take("kernel.gemv-1", "3000 0.1 0.1");
    take("kernel.gemv-4", "3000 0.1 0.2");
    take("kernel.gemv-1-mn-major", "3000 0.1 0.3");
    ck_assert_int_eq(choose(&gemm).kernel, GEMV_1);
    take("kernel_mn_major.gemv-1", "3000 0.4 0.4");
    take("kernel.gemv-1", "3000 0.1 0.1");
    ck_assert_int_eq(choose(&gemm).kernel, GEMV_4);
    take("kernel_mn_major.gemv-4", "3000 0.4 0.4");
    ck_assert_int_eq(choose(&gemm).kernel, GEMV_1_MN_MAJOR);
    ck_assert_int_eq(choice(1, 4096, 4096).kernel, GEMV_1);
    ck_assert(!gemm_cost_model_parse(&selector.cost_model,
                                     "kernel_mn_major.gemv-1", "3000 0.1"));
    ck_assert(gemm_cost_model_parse(&selector.cost_model,
                                    "kernel_mn_major.later", "x"));
}
END_TEST

static uint32_t kernel_of(const struct launch_plan *plan, uint32_t step)
{
    return KEY_KERNEL(plan->step[step].key);
}

START_TEST(skinny_plans)
{
    struct launch_plan plan;
    struct tandem_gemm gemm = product(10, 10, 100000, 1);
    plan_gemm(&plan, &gemm, GEMV_16, (struct split_k){64, ALL_GEMM_TILES}, NULL,
              8);
    ck_assert_uint_eq(plan.step_count, 2);
    ck_assert_uint_eq(kernel_of(&plan, 0), KERNEL_GEMV);
    ck_assert_uint_eq(kernel_of(&plan, 1), KERNEL_SPLIT_K_FIXUP_LANES);
    ck_assert_uint_ge(plan.temp_bytes, 32 * 100 * sizeof(float));
    /* Many sums, or few parts, need no lanes. */
    gemm = product(16, 8192, 8192, 1);
    plan_gemm(&plan, &gemm, GEMV_16, (struct split_k){4, ALL_GEMM_TILES}, NULL,
              8);
    ck_assert_uint_eq(kernel_of(&plan, 1), KERNEL_SPLIT_K_FIXUP);
    gemm = product(1, 4096, 4096, 1);
    plan_gemm(&plan, &gemm, GEMV_1, NO_SPLIT, NULL, 8);
    ck_assert_uint_eq(plan.step_count, 1);
    ck_assert_uint_eq(plan.temp_bytes, 0);
    ck_assert_uint_eq(KEY_GEMV_VECTORS_LOG2(plan.step[0].key), 0);
    ck_assert_uint_eq(KEY_A_MN_MAJOR(plan.step[0].key), 0);
    ck_assert_uint_eq(KEY_VEC4(plan.step[0].key), 1);
    ck_assert_uint_eq(KEY_SECOND_VEC4(plan.step[0].key), 1);
    /* A column by itself is a row; b's rows are the wide operand's then. */
    gemm = product(4096, 1, 4096, 1);
    gemm.flags = TANDEM_GEMM_TRANSPOSE_A;
    gemm.a.ld = 4096;
    gemm.b.ld = 1;
    plan_gemm(&plan, &gemm, GEMV_1, NO_SPLIT, NULL, 8);
    ck_assert_uint_eq(KEY_A_MN_MAJOR(plan.step[0].key), 1);
    ck_assert_uint_eq(KEY_B_MN_MAJOR(plan.step[0].key), 0);
    ck_assert_uint_eq(KEY_SECOND_VEC4(plan.step[0].key), 1);
    /* Not with gaps. */
    gemm.b.ld = 3;
    plan_gemm(&plan, &gemm, GEMV_1, NO_SPLIT, NULL, 8);
    ck_assert_uint_eq(KEY_B_MN_MAJOR(plan.step[0].key), 1);
    ck_assert_uint_eq(KEY_SECOND_VEC4(plan.step[0].key), 0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("skinny");
    tcase_add_test(tests, few_rows_or_columns_go_to_skinny_tiles);
    tcase_add_test(tests, skinny_groups_fill_the_device);
    tcase_add_test(tests, a_long_row_across_k_goes_to_broad_groups);
    tcase_add_test(tests, skinny_costs_along_and_across_k_differ);
    tcase_add_test(tests, skinny_plans);
    return runner_run_case("skinny", tests);
}
