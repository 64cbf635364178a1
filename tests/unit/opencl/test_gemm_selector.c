/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selection of the kernel for a GEMM with given costs, and parsing of valid
 * and invalid values from a profile's tuning section. Needs no OpenCL.
 */
#include <config.h>

#include <string.h>

#include "support/test_list.h"
#include "selection_helpers.h"
#include "opencl/plan/operand_packing.h"

static void start(bool nvidia)
{
    static struct platform_device hardware;
    hardware.info.compute_units = 100;
    hardware.nvidia = nvidia;
    hardware.tensor_cores = nvidia;
    selector_reset(&hardware);
}

TEST(unmeasured_kernels_follow_the_default_rule)
{
    start(false);
    ck_assert(select_kernel_for(1024, 1024, 512).clblast);
    start(true);
    ck_assert(!select_kernel_for(1024, 1024, 512).clblast);
    /* CLBlast would have to split a long k. */
    start(false);
    ck_assert_int_eq(select_kernel_for(1024, 1024, 513).kernel,
                     GEMM_SIMT_64X64);
    ck_assert_int_eq(select_kernel_for(33, 35, 1024).kernel, GEMM_SIMT_32X64);
    ck_assert_int_eq(select_kernel_for(1, 1000, 4096).kernel, GEMV_1);
    ck_assert(!select_kernel_for(1024, 1024, 513).clblast);
    ck_assert(select_kernel_for(16, 16, 4096).clblast);
    /* Only CLBlast was measured, so the costs of our kernels are unknown. */
    cost_set("clblast", "1024 1024 1024 1000000000");
    ck_assert(select_kernel_for(1024, 1024, 512).clblast);
    ck_assert(select_kernel_for(1024, 1024, 513).clblast);
}

/* A measured kernel is selected although CLBlast, which was not measured, may
 * be faster. */
TEST(unmeasured_clblast_is_not_selected)
{
    for (int nvidia = 0; nvidia < 2; nvidia++) {
        start(nvidia != 0);
        cost_set("kernel.simt-32x64", "1000000 1000 1000");
        ck_assert_int_eq(select_kernel_for(1024, 1024, 512).kernel,
                         GEMM_SIMT_32X64);
        ck_assert(!select_kernel_for(1024, 1024, 512).clblast);
        ck_assert(!select_kernel_for(16, 16, 16).clblast);
        /* No kernel that can compute the GEMM is left. */
        struct tandem_gemm gemm = gemm_new(1024, 1024, 512, 1);
        gemm_selector_disable(&selector, &gemm, GEMM_SIMT_32X64);
        ck_assert(select_kernel(&gemm).clblast);
    }
}

/* Sets the costs that a quick calibration measures to 20 times the built-in
 * costs. */
static void slow_quick_costs_set(void)
{
    const double slowdown = 20;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        const struct gemm_kernel_cost cost = selector.cost_model.kernels[i];
        char key[64], value[96];
        if (gemm_configs[i].mma_format != MMA_NONE || i == GEMM_RECOMPUTE)
            continue;
        snprintf(key, sizeof(key), "kernel.%s", gemm_configs[i].name);
        snprintf(value, sizeof(value), "%.0f %.6f %.6f", cost.start_ns,
                 cost.latency_ns * slowdown, cost.step_ns * slowdown);
        cost_set(key, value);
    }
    cost_set("launch_ns", "60000");
    cost_set("copy_bytes_per_ns", "150");
}

/* A quick calibration of a slow GPU does not measure all formats. The kernels
 * of the others seem as slow as the measured ones. */
TEST(built_in_costs_are_scaled_by_measured_ones)
{
    for (int is_f16 = 0; is_f16 < 2; is_f16++) {
        struct tandem_gemm large = gemm_new(4096, 4096, 4096, 1);
        struct tandem_gemm row = gemm_new(1, 4096, 4096, 1);
        large.flags |= TANDEM_GEMM_ALLOW_TF32;
        row.flags |= TANDEM_GEMM_ALLOW_TF32;
        if (is_f16)
            large.dtype = large.c_dtype = row.dtype = row.c_dtype = TANDEM_F16;
        start(true);
        const enum gemm_kernel_id kernel = select_kernel(&large).kernel;
        const double ns = select_kernel(&large).ns;
        ck_assert_int_ne(gemm_configs[kernel].mma_format, MMA_NONE);
        ck_assert_int_eq(select_kernel(&row).kernel, GEMV_1);
        slow_quick_costs_set();
        ck_assert_int_eq(select_kernel(&large).kernel, kernel);
        ck_assert_double_gt(select_kernel(&large).ns, 15 * ns);
        ck_assert_int_eq(select_kernel(&row).kernel, GEMV_1);
    }
}

/* CLBlast does not support f16. */
TEST(an_unmeasured_kernel_does_not_beat_a_measured_one_for_f16)
{
    struct tandem_gemm gemm = gemm_new(1024, 1024, 1024, 1);
    gemm.dtype = gemm.c_dtype = TANDEM_F16;
    start(false);
    cost_set("kernel.simt-32x64", "1000000 1000 1000");
    ck_assert_int_eq(select_kernel(&gemm).kernel, GEMM_SIMT_32X64);
    gemm_selector_disable(&selector, &gemm, GEMM_SIMT_32X64);
    ck_assert(!select_kernel(&gemm).clblast);
    ck_assert_int_ne(select_kernel(&gemm).kernel, GEMM_SIMT_32X64);
}

TEST(the_faster_kernel_is_selected)
{
    for (int nvidia = 0; nvidia < 2; nvidia++) {
        start(nvidia != 0);
        ck_assert(!gemm_selector_predicts(&selector));
        /* 64 work-groups with k = 1024: 10 + 1024 * 10 ns. */
        cost_set("kernel.simt-128x128", "10 10 10");
        ck_assert(gemm_selector_predicts(&selector));
        cost_set("clblast", "1024 1024 1024 10000");
        ck_assert(select_kernel_for(1024, 1024, 1024).clblast);
        ck_assert_double_eq_tol(select_kernel_for(1024, 1024, 1024).ns, 1e4, 1);
        cost_set("clblast", "1024 1024 1024 11000");
        struct gemm_selection selection = select_kernel_for(1024, 1024, 1024);
        ck_assert(!selection.clblast);
        ck_assert_int_eq(selection.kernel, GEMM_SIMT_128X128);
        ck_assert_double_eq_tol(selection.ns, 10250, 1);
    }
}

/* Checks the predicted time of CLBlast. */
static void expect_clblast_ns(const struct tandem_gemm *gemm, double ns,
                              double tolerance)
{
    ck_assert_double_eq_tol(
        gemm_cost_model_clblast_ns(&selector.cost_model, gemm), ns, tolerance);
}

TEST(times_are_interpolated)
{
    start(false);
    cost_set("kernel.simt-128x128", "10 10 10");
    cost_set("clblast", "512 512 512 1000;2048 2048 2048 10000000");
    struct tandem_gemm small = gemm_new(512, 512, 512, 1);
    struct tandem_gemm middle = gemm_new(1024, 1024, 1024, 1);
    struct tandem_gemm large = gemm_new(2048, 2048, 2048, 1);
    struct tandem_gemm tiny = gemm_new(8, 8, 8, 1);
    expect_clblast_ns(&small, 1000, 10);
    expect_clblast_ns(&large, 1e7, 1e5);
    /* The same distance from both points: the geometric mean of the rates. */
    expect_clblast_ns(&middle, 1e5, 1e3);
    expect_clblast_ns(&tiny, 1000, 1);
    ck_assert(select_kernel(&small).clblast);
    ck_assert(!select_kernel(&large).clblast);
}

TEST(an_epilogue_costs_clblast_a_launch)
{
    start(false);
    cost_set("kernel.simt-128x128", "10 10 10");
    cost_set("clblast", "1024 1024 1024 10000");
    cost_set("launch_ns", "5000");
    struct tandem_gemm gemm = gemm_new(1024, 1024, 1024, 1);
    ck_assert(select_kernel(&gemm).clblast);
    gemm.activation = TANDEM_OP_RELU;
    ck_assert(!select_kernel(&gemm).clblast);
}

TEST(unmeasured_kernels_are_not_selected)
{
    start(true);
    cost_set("kernel.simt-32x64", "100 100 100");
    cost_set("clblast", "1024 1024 1024 1000000000");
    ck_assert_int_eq(select_kernel_for(1024, 1024, 1024).kernel,
                     GEMM_SIMT_32X64);
    /* Disabled kernels are not selected, measured or not. */
    struct gemm_selection selection = select_kernel_for(1024, 1024, 1024);
    struct tandem_gemm gemm = gemm_new(1024, 1024, 1024, 1);
    gemm_selector_disable(&selector, &gemm, selection.kernel);
    ck_assert(select_kernel_for(1024, 1024, 1024).clblast);
}

/* The only measured kernel supports no f32, so CLBlast is selected although it
 * is slow, and another kernel if CLBlast does not support the call either. */
TEST(clblast_is_selected_if_no_measured_kernel_fits)
{
    struct tandem_gemm gemm = gemm_new(1024, 1024, 1024, 1);
    struct tandem_gemm batched = gemm_new(1024, 1024, 1024, 2);
    start(true);
    cost_set("kernel.fp16x3-128x128", "1 1 1");
    cost_set("clblast", "1 1 1 1000000000000");
    ck_assert(select_kernel(&gemm).clblast);
    ck_assert(!select_kernel(&batched).clblast);
}

/* CLBlast uses int for indices, and a batch would take several calls, so our
 * kernel is selected at any cost. */
TEST(clblast_is_not_selected_past_2_31_or_for_batches)
{
    struct tandem_gemm small_gemm = gemm_new(46000, 46000, 64, 1);
    struct tandem_gemm large = gemm_new(70000, 40000, 64, 1);
    struct tandem_gemm offset = gemm_new(64, 64, 64, 1);
    struct tandem_gemm batched = gemm_new(64, 64, 64, 2);
    offset.b.byte_offset = UINT64_C(4) << 31;
    ck_assert(clblast_supports_gemm(&small_gemm));
    const struct tandem_gemm *const all[] = {&large, &offset, &batched};
    for (uint32_t i = 0; i < 6; i++) {
        const struct tandem_gemm *gemm = all[i / 2];
        start(i % 2 != 0);
        ck_assert(gemm_fits_32bit_index(gemm));
        ck_assert(!clblast_supports_gemm(gemm));
        ck_assert(!select_kernel(gemm).clblast);
        cost_set("kernel.simt-32x64", "100 100 100");
        cost_set("clblast", "1024 1024 1024 1");
        ck_assert(!select_kernel(gemm).clblast);
        ck_assert(select_kernel(&small_gemm).clblast);
        ck_assert(gemm_selector_force(&selector, "clblast"));
        ck_assert(!select_kernel(gemm).clblast);
    }
}

/* Plans that combine splits or pack use 64-bit indices if needed. */
TEST(large_offsets_need_64_bit_indices)
{
    for (int wide = 0; wide < 2; wide++) {
        struct launch_plan plan;
        struct tandem_gemm gemm = gemm_new(70000, wide ? 40000 : 20000, 64, 1);
        plan_gemm(&plan, &gemm, GEMM_SIMT_64X64,
                  (struct split_k){2, ALL_GEMM_TILES}, NULL, 8);
        const struct kernel_step *last = &plan.step[plan.step_count - 1];
        ck_assert_str_eq(last->key.kernel->function, "split_k_fixup");
        ck_assert_int_eq(last->key.index_64bit, wide);
        ck_assert_uint_eq(last->groups,
                          (UINT64_C(70000) * (uint64_t)gemm.n / 4 + 255) / 256);
        /* Rows of a and b with 1021 or 8189 elements, in vectors of four. */
        gemm = gemm_new(INT64_C(1) << 20, 16, wide ? 8189 : 1021, 1);
        plan_gemm(&plan, &gemm, GEMM_SIMT_128X128, NO_SPLIT, NULL, 8);
        ck_assert_str_eq(plan.step[0].key.kernel->function, "pad_operands");
        ck_assert_int_eq(plan.step[0].key.index_64bit, wide);
        ck_assert_uint_eq(plan.step[0].groups,
                          ((UINT64_C(1) << 20) + 16) *
                              (wide ? UINT64_C(2048) : UINT64_C(256)) / 256);
    }
}

/* In all kernels, a work-group adds up a limited number of steps of k. */
TEST(long_sums_are_split)
{
    const struct split_k splits[] = {NO_SPLIT, {2, 3}};
    for (int i = 0; i < GEMM_KERNEL_COUNT * 2; i++) {
        enum gemm_kernel_id kernel = (enum gemm_kernel_id)(i / 2);
        struct tandem_gemm gemm = gemm_new(300, 300, 200000, 1);
        struct launch_plan plan;
        if (gemm_configs[kernel].gemv_vectors != 0 ||
            kernel == GEMM_RECOMPUTE || !gemm_kernel_supports(&gemm, kernel))
            continue;
        plan_gemm(&plan, &gemm, kernel, splits[i % 2], NULL, 8);
        const struct kernel_step *last = &plan.step[plan.step_count - 1];
        const struct gemm_params *params = (const void *)last->params;
        ck_assert_str_eq(last->key.kernel->function, "split_k_fixup");
        ck_assert_uint_le(params->k_per_split, MAX_SPLIT_STEPS);
        ck_assert_uint_eq(params->unsplit_tiles, 0);
    }
}

/*
 * CLBlast does not support these dtypes, so any kernel is better. A kernel
 * that is disabled for them remains available for f32.
 */
TEST(clblast_is_not_selected_for_16_bit_dtypes)
{
    static const uint32_t dtypes[][2] = {{TANDEM_F16, TANDEM_F16},
                                         {TANDEM_BF16, TANDEM_F32},
                                         {TANDEM_F32, TANDEM_F16}};
    for (int i = 0; i < 6; i++) {
        struct tandem_gemm gemm = gemm_new(1024, 1024, 1024, 1);
        gemm.dtype = dtypes[i / 2][0];
        gemm.c_dtype = dtypes[i / 2][1];
        start(i % 2 != 0);
        cost_set("kernel.simt-32x64", "100 100 100");
        cost_set("clblast", "1024 1024 1024 1");
        for (int disabled = 0; disabled < GEMM_KERNEL_COUNT; disabled++) {
            struct gemm_selection selection = select_kernel(&gemm);
            if (selection.clblast)
                break;
            ck_assert(gemm.dtype == TANDEM_F32 ||
                      !gemm_configs[selection.kernel].is_3xtf32);
            gemm_selector_disable(&selector, &gemm, selection.kernel);
        }
        ck_assert(select_kernel(&gemm).clblast);
        cost_set("clblast", "1024 1024 1024 1000000000");
        ck_assert_int_eq(select_kernel_for(1024, 1024, 1024).kernel,
                         GEMM_SIMT_32X64);
        ck_assert(!select_kernel_for(1024, 1024, 1024).clblast);
        ck_assert(gemm_selector_force(&selector, "clblast"));
        ck_assert(select_kernel_for(1024, 1024, 1024).clblast);
    }
}

/* A vector of four 16-bit elements has 8 bytes. */
TEST(alignment_depends_on_the_dtype)
{
    struct tandem_gemm gemm = gemm_new(128, 128, 128, 1);
    gemm.a.byte_offset = 8;
    ck_assert_uint_eq(gemm_packed_operands(&gemm, GEMM_SIMT_128X128),
                      1u << OPERAND_A);
    gemm.dtype = TANDEM_BF16;
    ck_assert_uint_eq(gemm_packed_operands(&gemm, GEMM_SIMT_128X128), 0);
    gemm.a.byte_offset = 4;
    ck_assert_uint_eq(gemm_packed_operands(&gemm, GEMM_SIMT_128X128),
                      1u << OPERAND_A);
}

static bool selections_equal(const struct gemm_selection *one,
                             const struct gemm_selection *other)
{
    return one->clblast == other->clblast && one->kernel == other->kernel &&
           one->split.splits == other->split.splits &&
           one->split.split_tiles == other->split.split_tiles;
}

TEST(scalar_reads_take_longer)
{
    struct tandem_gemm gemm = gemm_new(640, 640, 32, 1);
    start(true);
    cost_set("kernel.simt-32x64", "0 120 12");
    cost_set("kernel.simt-128x128", "0 100 100");
    cost_set("launch_ns", "1");
    cost_set("copy_bytes_per_ns", "1000000");
    ck_assert_int_eq(select_kernel(&gemm).kernel, GEMM_SIMT_128X128);
    /* The large tile needs a packed copy. */
    gemm.a.ld++;
    ck_assert(!gemm_kernel_reads_scalars(&gemm, GEMM_SIMT_128X128));
    ck_assert(gemm_kernel_reads_scalars(&gemm, GEMM_SIMT_32X64));
    cost_set("kernel.simt-32x64", "0 90 9");
    ck_assert_int_eq(select_kernel(&gemm).kernel, GEMM_SIMT_128X128);
    cost_set("kernel.simt-32x64", "0 70 7");
    ck_assert_int_eq(select_kernel(&gemm).kernel, GEMM_SIMT_32X64);
}

TEST(partial_waves_are_split)
{
    start(true);
    /* 144 work-groups on 100 compute units with two slots each. */
    cost_set("kernel.3xtf32-128x128", "1000 70 60");
    cost_set("launch_ns", "1000");
    cost_set("copy_bytes_per_ns", "1000");
    struct gemm_selection selection = select_kernel_for(1536, 1536, 1536);
    ck_assert_int_eq(selection.kernel, GEMM_MMA_3XTF32_128X128);
    ck_assert_uint_eq(selection.split.split_tiles, 44);
    ck_assert_uint_gt(selection.split.splits, 1);
    /* 200 work-groups fill the slots; a single one is worth a split along k. */
    selection = select_kernel_for(1280, 2560, 1536);
    ck_assert_uint_eq(selection.split.split_tiles, 0);
    ck_assert_uint_eq(selection.split.splits, 1);
    selection = select_kernel_for(128, 128, 65536);
    ck_assert_uint_ge(selection.split.split_tiles, 1);
    ck_assert_uint_gt(selection.split.splits, 8);
    /* A launch costs more than the split saves, so no tile is split. */
    cost_set("launch_ns", "1000000");
    selection = select_kernel_for(1536, 1536, 1536);
    ck_assert_uint_eq(selection.split.splits, 1);
}

/* Returns the number of splits for this throughput in bytes per ns. */
static uint32_t split_count(const char *bytes, int64_t size, int64_t k)
{
    cost_set("copy_bytes_per_ns", bytes);
    return select_kernel_for(size, size, k).split.splits;
}

TEST(split_cost_includes_the_partial_sums)
{
    start(true);
    cost_set("kernel.3xtf32-128x128", "1000 70 60");
    cost_set("launch_ns", "1000");
    uint32_t free_splits = split_count("1000000", 128, 65536);
    uint32_t cheap_splits = split_count("10", 128, 65536);
    uint32_t expensive_splits = split_count("1", 128, 65536);
    ck_assert_uint_gt(free_splits, cheap_splits);
    ck_assert_uint_gt(cheap_splits, expensive_splits);
    ck_assert_uint_eq(split_count("0.001", 128, 65536), 1);
    /* At this throughput, only a split of the last tiles pays. */
    ck_assert_uint_gt(split_count("300", 1536, 1536), 1);
    ck_assert_uint_eq(split_count("1", 1536, 1536), 1);
}

/* Returns one of several GEMMs of the same size. */
static struct tandem_gemm gemm_variant(uint32_t which)
{
    struct tandem_gemm gemm = gemm_new(1024, 1024, 1024, 2);
    switch (which) {
    case 1:
        gemm.flags |= TANDEM_GEMM_TRANSPOSE_A;
        break;
    case 2:
        gemm.flags = 0;
        break;
    case 3:
        gemm.beta = 1;
        break;
    case 4:
        gemm.a.byte_offset = 4;
        break;
    case 5:
        gemm.b.ld++;
        break;
    case 6:
        gemm.a.ld = INT32_MAX;
        break;
    case 7:
        gemm.a.byte_offset = 4;
        gemm.a.batch_stride = 0;
        break;
    case 8:
        gemm.b.byte_offset = 4;
        gemm.b.batch_stride = 0;
        break;
    case 9:
        gemm.a.byte_offset = 4;
        gemm.b.ld++;
        break;
    default:
        break;
    }
    return gemm;
}

/*
 * The 3xTF32 kernel is slightly faster than the SIMT kernels, and packing an
 * operand is expensive, but packing an operand that all batches share is not.
 */
static void start_with_similar_costs(void)
{
    start(true);
    cost_set("kernel.simt-128x128", "0 5000 2500");
    cost_set("kernel.simt-64x64", "0 3200 800");
    cost_set("kernel.3xtf32-128x128", "0 1000 500");
    cost_set("launch_ns", "1500000");
    cost_set("copy_bytes_per_ns", "3");
    cost_set("mn_major_penalty", "3");
    cost_set("clblast", "1024 1024 1024 1000000000");
}

static void expect_different_selections(uint32_t one, uint32_t other)
{
    struct tandem_gemm gemms[2] = {gemm_variant(one), gemm_variant(other)};
    struct gemm_selection chosen[2] = {select_kernel(&gemms[0]),
                                       select_kernel(&gemms[1])};
    ck_assert_msg(!selections_equal(&chosen[0], &chosen[1]), "%u and %u", one,
                  other);
}

TEST(selections_depend_on_all_relevant_fields)
{
    start_with_similar_costs();
    for (uint32_t i = 1; i <= 6; i++)
        expect_different_selections(0, i);
    expect_different_selections(4, 7);
    expect_different_selections(5, 8);
    /* Now packing one operand pays, but packing both does not. */
    start_with_similar_costs();
    cost_set("launch_ns", "1100000");
    cost_set("copy_bytes_per_ns", "4");
    expect_different_selections(4, 9);
    expect_different_selections(5, 9);
}

/* GEMV kernels support shorter row pitches than other kernels. */
TEST(selections_depend_on_long_pitches)
{
    struct tandem_gemm gemm = gemm_new(1024, 1, 4096, 1);
    start(true);
    gemm.flags = 0;
    gemm.b.ld = 1;
    ck_assert_uint_ne(gemm_configs[select_kernel(&gemm).kernel].gemv_vectors,
                      0);
    gemm.b.ld = INT32_MAX / 200;
    struct gemm_selection selection = select_kernel(&gemm);
    ck_assert(selection.clblast ||
              gemm_kernel_supports(&gemm, selection.kernel));
}

TEST(selections_depend_on_epilogues_and_disabled_kernels)
{
    start(false);
    cost_set("kernel.simt-128x128", "10 10 10");
    cost_set("clblast", "1024 1024 1024 10000");
    cost_set("launch_ns", "5000");
    struct tandem_gemm gemm = gemm_new(1024, 1024, 1024, 1);
    ck_assert(select_kernel(&gemm).clblast);
    gemm.activation = TANDEM_OP_RELU;
    ck_assert(!select_kernel(&gemm).clblast);
    gemm.activation = TANDEM_OP_INVALID;
    gemm.bias_kind = TANDEM_BIAS_PER_ROW;
    struct gemm_selection selection = select_kernel(&gemm);
    ck_assert(!selection.clblast);
    gemm_selector_disable(&selector, &gemm, selection.kernel);
    ck_assert(select_kernel(&gemm).clblast);
}

TEST(tests_can_force_a_split)
{
    static const char *const wrong[] = {"",           "gemv-1:",
                                        "gemv-1:0",   "gemv-1:x",
                                        "gemv-1:257", "gemv-1:2:",
                                        "gemv-1:2:x", "gemv-1:2:-1",
                                        "huge",       "gemv-1:2:99999999999"};
    start(true);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(!gemm_selector_force(&selector, wrong[i]), "%s",
                      wrong[i]);
    ck_assert(gemm_selector_force(&selector, "simt-32x64:3:2"));
    struct gemm_selection selection = select_kernel_for(1024, 1024, 1024);
    ck_assert_int_eq(selection.kernel, GEMM_SIMT_32X64);
    ck_assert_uint_eq(selection.split.splits, 3);
    ck_assert_uint_eq(selection.split.split_tiles, 2);
    ck_assert(gemm_selector_force(&selector, "simt-64x64:4"));
    ck_assert_uint_eq(select_kernel_for(64, 64, 64).split.split_tiles,
                      ALL_GEMM_TILES);
    ck_assert(gemm_selector_force(&selector, "clblast"));
}

static enum mma_format selected_mma_format(uint32_t flags, int64_t k)
{
    struct tandem_gemm gemm = gemm_new(4096, 4096, k, 1);
    gemm.flags |= flags;
    struct gemm_selection selection = select_kernel(&gemm);
    return selection.clblast ? MMA_NONE
                             : gemm_configs[selection.kernel].mma_format;
}

TEST(less_accurate_kernels_need_permission)
{
    const uint32_t tf32 = TANDEM_GEMM_ALLOW_TF32;
    const uint32_t scaled = TANDEM_GEMM_ALLOW_NORMWISE_ERROR;
    start(true);
    ck_assert_int_eq(selected_mma_format(0, 4096), MMA_NONE);
    ck_assert_int_eq(selected_mma_format(tf32, 4096), MMA_TF32);
    ck_assert_int_eq(selected_mma_format(scaled, 4096), MMA_FP16X3);
    ck_assert_int_eq(selected_mma_format(tf32 | scaled, 4096), MMA_TF32);
    /* Short sums are more accurate in plain f32. */
    ck_assert_int_eq(selected_mma_format(scaled, 128), MMA_NONE);
    /* If a kernel is disabled, the next best is selected. */
    struct tandem_gemm gemm = gemm_new(1, 1, 1, 1);
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++)
        if (gemm_configs[i].mma_format == MMA_TF32)
            gemm_selector_disable(&selector, &gemm, (enum gemm_kernel_id)i);
    ck_assert_int_eq(selected_mma_format(tf32, 4096), MMA_NONE);
    ck_assert_int_eq(selected_mma_format(tf32 | scaled, 4096), MMA_FP16X3);
    start(false);
    ck_assert_int_eq(selected_mma_format(tf32 | scaled, 4096), MMA_NONE);
    /*
     * If other kernels were measured, estimates for this format are used; once
     * one kernel of this format was measured, only its measured time is used.
     */
    start(true);
    cost_set("kernel.3xtf32-128x128", "5300 77 63");
    ck_assert_int_eq(selected_mma_format(0, 4096), MMA_NONE);
    ck_assert_int_eq(selected_mma_format(tf32, 4096), MMA_TF32);
    ck_assert_int_eq(selected_mma_format(scaled, 4096), MMA_FP16X3);
    cost_set("kernel.fp16x3-64x64", "100 1000 1000");
    ck_assert_int_eq(selected_mma_format(scaled, 4096), MMA_NONE);
    ck_assert_int_eq(selected_mma_format(tf32 | scaled, 4096), MMA_TF32);
    /*
     * The measured costs include packing and the check for non-finite
     * elements.
     */
    start(true);
    cost_set("kernel.simt-128x128", "100 10 10");
    cost_set("kernel.fp16x3-128x128", "100 5 5");
    cost_set("launch_ns", "10");
    cost_set("copy_bytes_per_ns", "1000000");
    ck_assert_int_eq(selected_mma_format(scaled, 4096), MMA_FP16X3);
    cost_set("copy_bytes_per_ns", "0.1");
    ck_assert_int_eq(selected_mma_format(scaled, 4096), MMA_NONE);
}

static uint64_t packed_bytes(const struct tandem_gemm *gemm,
                             enum gemm_kernel_id tile, uint32_t *out_launches)
{
    return packing_bytes(gemm, tile, gemm_packed_operands(gemm, tile),
                         out_launches);
}

TEST(operands_are_packed_if_needed)
{
    struct tandem_gemm gemm = gemm_new(256, 256, 256, 1);
    uint32_t launches;
    gemm.flags |= TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_ALLOW_NORMWISE_ERROR;
    ck_assert_uint_eq(packed_bytes(&gemm, GEMM_MMA_TF32_128X256, &launches), 0);
    ck_assert_uint_eq(launches, 0);
    /* Two halves of 256 rows with 8 slices of 128 bytes. */
    ck_assert_uint_eq(packed_bytes(&gemm, GEMM_MMA_FP16X3_128X128, &launches),
                      2 * 2 * 256 * 8 * 128);
    ck_assert_uint_eq(launches, 1);
    /* Long rows are read twice. */
    gemm.k = gemm.a.ld = gemm.b.ld = 4128;
    ck_assert_uint_eq(packed_bytes(&gemm, GEMM_MMA_FP16X3_128X128, &launches),
                      2 * 3 * 256 * 129 * 128);
    ck_assert_uint_eq(launches, 2);
    gemm = gemm_new(256, 256, 256, 1);
    gemm.flags |= TANDEM_GEMM_ALLOW_TF32;
    gemm.a.ld = 257;
    ck_assert_uint_eq(packed_bytes(&gemm, GEMM_MMA_TF32_128X256, &launches),
                      2 * 256 * 8 * 128);
    ck_assert_uint_eq(launches, 1);
    /* For MN-major operands, the row pitch must be a multiple of four. */
    gemm = gemm_new(254, 256, 256, 1);
    gemm.flags = TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_TRANSPOSE_A |
                 TANDEM_GEMM_TRANSPOSE_B;
    gemm.a.ld = 256;
    ck_assert_uint_eq(packed_bytes(&gemm, GEMM_MMA_TF32_128X256, &launches),
                      2 * 256 * 8 * 128);
    gemm.m = 252;
    ck_assert_uint_eq(packed_bytes(&gemm, GEMM_MMA_TF32_128X256, &launches), 0);
}

TEST(invalid_values_change_nothing)
{
    static const char *const wrong[][2] = {
        {"kernel.simt-128x128", ""},
        {"kernel.simt-128x128", "1"},
        {"kernel.simt-128x128", "1 2"},
        {"kernel.simt-128x128", "1 2 3 4"},
        {"kernel.simt-128x128", "1 2 x"},
        {"kernel.simt-128x128", "1 2 nan"},
        {"kernel.simt-128x128", "1 2 inf"},
        {"kernel.simt-128x128", "-1 2 3"},
        {"kernel.simt-128x128", "1 0 3"},
        {"kernel.simt-128x128", "1 2 0"},
        {"kernel.simt-128x128", "1 2 1e99"},
        {"kernel.simt-128x128", "1 2 99999999999999999999999999999999"},
        {"kernel.simt-128x128", "1,5 2 3"},
        {"kernel.simt-128x128", "1 2 3;"},
        {"launch_ns", "0"},
        {"launch_ns", "nan"},
        {"launch_ns", "1 2"},
        {"copy_bytes_per_ns", "0"},
        {"copy_bytes_per_ns", "9999999999"},
        {"mn_major_penalty", "11"},
        {"mn_major_penalty", "-0.1"},
        {"clblast", ""},
        {"clblast", "1 1 1"},
        {"clblast", "1 1 1 0"},
        {"clblast", "0 1 1 5"},
        {"clblast", "1 1 1 5;"},
        {"clblast", "1 1 1 5; 1 1 1 x"},
        {"clblast", "1 1 1 5, 1 1 1 5"},
        {"clblast", "99999999999 1 1 5"},
    };
    start(true);
    const struct gemm_cost_model before = selector.cost_model;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_msg(!gemm_cost_model_parse(&selector.cost_model, wrong[i][0],
                                             wrong[i][1]),
                      "%s: \"%s\"", wrong[i][0], wrong[i][1]);
        ck_assert_mem_eq(&before, &selector.cost_model, sizeof(before));
    }
    /* More values than allowed. */
    char many[8192] = "1 1 1 5";
    for (uint32_t i = 1; i < MAX_CLBLAST_TIMES; i++)
        strcat(many, ";1 1 1 5");
    ck_assert(gemm_cost_model_parse(&selector.cost_model, "clblast", many));
    strcat(many, ";1 1 1 5");
    ck_assert(!gemm_cost_model_parse(&selector.cost_model, "clblast", many));
    ck_assert_uint_eq(selector.cost_model.clblast_time_count,
                      MAX_CLBLAST_TIMES);
    /* Keys of a later version are accepted. */
    ck_assert(gemm_cost_model_parse(&selector.cost_model, "kernel.huge", "x"));
    ck_assert(gemm_cost_model_parse(&selector.cost_model, "frobnication", "x"));
}

int main(void)
{
    TCase *tests = tcase_create("gemm-selector");
    /* The threads may share a loaded machine. */
    tcase_set_timeout(tests, 120);
    tests_add(tests);
    return runner_run_case("gemm-selector", tests);
}
