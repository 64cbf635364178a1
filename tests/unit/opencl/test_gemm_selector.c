/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernel computes a matrix product, by costs that are given; what is
 * read of a profile's section, well-formed and not.  No OpenCL.
 */
#include <config.h>

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../support/check_runner.h"
#include "selection_helpers.h"
#include "opencl/plan/operand_packing.h"

static void start(bool nvidia)
{
    static struct platform_device hardware;
    hardware.info.compute_units = 100;
    hardware.nvidia = nvidia;
    hardware.tensor_cores = nvidia;
    routes_begin(&hardware);
}

START_TEST(without_measurements_the_rule_holds)
{
    start(false);
    ck_assert(choice(1024, 1024, 512).clblast);
    start(true);
    ck_assert(!choice(1024, 1024, 512).clblast);
    /* CLBlast would have to take a long k in slabs. */
    start(false);
    ck_assert_int_eq(choice(1024, 1024, 513).kernel, GEMM_SIMT_64X64);
    ck_assert_int_eq(choice(33, 35, 1024).kernel, GEMM_SIMT_32X64);
    ck_assert_int_eq(choice(1, 1000, 4096).kernel, GEMV_1);
    ck_assert(!choice(1024, 1024, 513).clblast);
    ck_assert(choice(16, 16, 4096).clblast);
    /* CLBlast alone measured: what ours cost here is not known. */
    take("clblast_times", "1024 1024 1024 1 1000000000");
    ck_assert(choice(1024, 1024, 512).clblast);
    /* Ours alone: likewise, of CLBlast. */
    start(false);
    take("kernel.simt-32x64", "1 1 1");
    ck_assert(choice(1024, 1024, 1024).clblast);
    start(true);
    take("kernel.simt-32x64", "1 1 1");
    ck_assert(!choice(1024, 1024, 1024).clblast);
}
END_TEST

START_TEST(the_faster_is_chosen)
{
    for (int nvidia = 0; nvidia < 2; nvidia++) {
        start(nvidia != 0);
        /* 64 groups of 1024 deep: 10 + 1024 * 10 ns. */
        take("kernel.simt-128x128", "10 10 10");
        take("clblast_times", "1024 1024 1024 1 10000");
        ck_assert(choice(1024, 1024, 1024).clblast);
        take("clblast_times", "1024 1024 1024 1 11000");
        struct gemm_selection selection = choice(1024, 1024, 1024);
        ck_assert(!selection.clblast);
        ck_assert_int_eq(selection.kernel, GEMM_SIMT_128X128);
    }
}
END_TEST

START_TEST(times_are_interpolated)
{
    start(false);
    take("kernel.simt-128x128", "10 10 10");
    take("clblast_times", "512 512 512 1 1000;2048 2048 2048 1 10000000");
    struct tandem_gemm small = product(512, 512, 512, 1);
    struct tandem_gemm middle = product(1024, 1024, 1024, 1);
    struct tandem_gemm large = product(2048, 2048, 2048, 1);
    struct tandem_gemm tiny = product(8, 8, 8, 1);
    ck_assert_double_eq_tol(
        gemm_cost_model_clblast_ns(&selector.cost_model, &small), 1000, 10);
    ck_assert_double_eq_tol(
        gemm_cost_model_clblast_ns(&selector.cost_model, &large), 1e7, 1e5);
    /* As far from both: the geometric mean of the rates. */
    ck_assert_double_eq_tol(
        gemm_cost_model_clblast_ns(&selector.cost_model, &middle), 1e5, 1e3);
    ck_assert_double_eq_tol(
        gemm_cost_model_clblast_ns(&selector.cost_model, &tiny), 1000, 1);
    ck_assert(choose(&small).clblast);
    ck_assert(!choose(&large).clblast);
    /* A batch is no square. */
    take("clblast_times", "64 64 64 1 1000; 64 64 64 64 2000");
    struct tandem_gemm batched = product(64, 64, 64, 64);
    ck_assert_double_eq_tol(
        gemm_cost_model_clblast_ns(&selector.cost_model, &batched), 2000, 20);
}
END_TEST

START_TEST(an_epilogue_costs_clblast_a_launch)
{
    start(false);
    take("kernel.simt-128x128", "10 10 10");
    take("clblast_times", "1024 1024 1024 1 10000");
    take("launch_ns", "5000");
    struct tandem_gemm gemm = product(1024, 1024, 1024, 1);
    ck_assert(choose(&gemm).clblast);
    gemm.activation = TANDEM_OP_RELU;
    ck_assert(!choose(&gemm).clblast);
}
END_TEST

START_TEST(unmeasured_tiles_are_left_out)
{
    start(true);
    take("kernel.simt-32x64", "100 100 100");
    take("clblast_times", "1024 1024 1024 1 1000000000");
    ck_assert_int_eq(choice(1024, 1024, 1024).kernel, GEMM_SIMT_32X64);
    /* And broken ones, measured or not. */
    struct gemm_selection selection = choice(1024, 1024, 1024);
    struct tandem_gemm gemm = product(1024, 1024, 1024, 1);
    gemm_selector_disable(&selector, &gemm, selection.kernel);
    ck_assert(choice(1024, 1024, 1024).clblast);
}
END_TEST

/* However long CLBlast takes, by what was measured. */
START_TEST(no_tile_is_chosen_where_none_fits)
{
    struct tandem_gemm gemm = product(40000, 40000, INT64_C(1) << 30, 1);
    gemm.flags = TANDEM_GEMM_TRANSPOSE_A;
    gemm.a.ld = gemm.b.ld = 40000;
    start(true);
    take("kernel.fp16x3-128x128", "1 1 1");
    take("clblast_times", "1 1 1 1 1000000000000");
    ck_assert(gemm_fits_32bit_index(&gemm));
    ck_assert(choose(&gemm).clblast);
}
END_TEST

/* CLBlast counts in int; whoever knows no costs takes a tile, too. */
START_TEST(products_past_2_31_are_ours)
{
    struct tandem_gemm short_one = product(46000, 46000, 64, 1);
    struct tandem_gemm large = product(70000, 40000, 64, 1);
    struct tandem_gemm offset = product(64, 64, 64, 1);
    struct tandem_gemm batched = product(64, 64, 64, INT64_C(1) << 20);
    offset.b.byte_offset = UINT64_C(4) << 31;
    ck_assert(clblast_supports_gemm(&short_one));
    const struct tandem_gemm *const all[] = {&large, &offset, &batched};
    for (uint32_t i = 0; i < 6; i++) {
        const struct tandem_gemm *gemm = all[i / 2];
        start(i % 2 != 0);
        ck_assert(gemm_fits_32bit_index(gemm));
        ck_assert(!clblast_supports_gemm(gemm));
        ck_assert(!choose(gemm).clblast);
        take("kernel.simt-32x64", "100 100 100");
        take("clblast_times", "1024 1024 1024 1 1");
        ck_assert(!choose(gemm).clblast);
        ck_assert(choose(&short_one).clblast);
        ck_assert(gemm_selector_force(&selector, "clblast"));
        ck_assert(!choose(gemm).clblast);
    }
}
END_TEST

/* What makes one of parts, or copies an operand, counts in 64 bits where 32
 * are too few. */
START_TEST(far_places_are_counted_in_64_bits)
{
    for (int wide = 0; wide < 2; wide++) {
        struct launch_plan plan;
        struct tandem_gemm gemm = product(70000, wide ? 40000 : 20000, 64, 1);
        plan_gemm(&plan, &gemm, GEMM_SIMT_64X64,
                  (struct split_k){2, ALL_GEMM_TILES}, NULL, 8);
        const struct kernel_step *last = &plan.step[plan.step_count - 1];
        ck_assert_uint_eq(KEY_KERNEL(last->key), KERNEL_SPLIT_K_FIXUP);
        ck_assert_int_eq(KEY_64BIT_INDEX(last->key) != 0, wide);
        ck_assert_uint_eq(last->groups,
                          (UINT64_C(70000) * (uint64_t)gemm.n / 4 + 255) / 256);
        /* a's and b's lines of 1021 or 8189 elements in fours. */
        gemm = product(INT64_C(1) << 20, 16, wide ? 8189 : 1021, 1);
        plan_gemm(&plan, &gemm, GEMM_SIMT_128X128, NO_SPLIT, NULL, 8);
        ck_assert_uint_eq(KEY_KERNEL(plan.step[0].key), KERNEL_PAD_OPERANDS);
        ck_assert_int_eq(KEY_64BIT_INDEX(plan.step[0].key) != 0, wide);
        ck_assert_uint_eq(plan.step[0].groups,
                          ((UINT64_C(1) << 20) + 16) *
                              (wide ? UINT64_C(2048) : UINT64_C(256)) / 256);
    }
}
END_TEST

/* CLBlast does not take them, so any tile is better; what is broken for them is
 * not so for f32. */
START_TEST(products_of_16_bits_are_ours)
{
    static const uint32_t dtypes[][2] = {{TANDEM_F16, TANDEM_F16},
                                         {TANDEM_BF16, TANDEM_F32},
                                         {TANDEM_F32, TANDEM_F16}};
    for (int i = 0; i < 6; i++) {
        struct tandem_gemm gemm = product(1024, 1024, 1024, 1);
        gemm.dtype = dtypes[i / 2][0];
        gemm.c_dtype = dtypes[i / 2][1];
        start(i % 2 != 0);
        take("kernel.simt-32x64", "100 100 100");
        take("clblast_times", "1024 1024 1024 1 1");
        for (int disabled = 0; disabled < GEMM_KERNEL_COUNT; disabled++) {
            struct gemm_selection selection = choose(&gemm);
            if (selection.clblast)
                break;
            ck_assert(gemm.dtype == TANDEM_F32 ||
                      !gemm_configs[selection.kernel].is_3xtf32);
            gemm_selector_disable(&selector, &gemm, selection.kernel);
        }
        ck_assert(choose(&gemm).clblast);
        take("clblast_times", "1024 1024 1024 1 1000000000");
        ck_assert_int_eq(choice(1024, 1024, 1024).kernel, GEMM_SIMT_32X64);
        ck_assert(!choice(1024, 1024, 1024).clblast);
        ck_assert(gemm_selector_force(&selector, "clblast"));
        ck_assert(choice(1024, 1024, 1024).clblast);
    }
}
END_TEST

/* Fours of 16 bits are 8 bytes. */
START_TEST(alignment_goes_by_the_dtype)
{
    struct tandem_gemm gemm = product(128, 128, 128, 1);
    gemm.a.byte_offset = 8;
    ck_assert_uint_eq(gemm_packed_operands(&gemm, GEMM_SIMT_128X128),
                      1u << OPERAND_A);
    gemm.dtype = TANDEM_BF16;
    ck_assert_uint_eq(gemm_packed_operands(&gemm, GEMM_SIMT_128X128), 0);
    gemm.a.byte_offset = 4;
    ck_assert_uint_eq(gemm_packed_operands(&gemm, GEMM_SIMT_128X128),
                      1u << OPERAND_A);
}
END_TEST

static bool same(const struct gemm_selection *one,
                 const struct gemm_selection *other)
{
    return one->clblast == other->clblast && one->kernel == other->kernel &&
           one->split.splits == other->split.splits &&
           one->split.split_tiles == other->split.split_tiles;
}

START_TEST(single_elements_take_longer)
{
    struct tandem_gemm gemm = product(640, 640, 32, 1);
    start(true);
    take("kernel.simt-32x64", "0 120 12");
    take("kernel.simt-128x128", "0 100 100");
    take("launch_ns", "1");
    take("copy_bytes_per_ns", "1000000");
    ck_assert_int_eq(choose(&gemm).kernel, GEMM_SIMT_128X128);
    /* A copy for the large one. */
    gemm.a.ld++;
    ck_assert(!gemm_kernel_reads_scalars(&gemm, GEMM_SIMT_128X128));
    ck_assert(gemm_kernel_reads_scalars(&gemm, GEMM_SIMT_32X64));
    take("kernel.simt-32x64", "0 90 9");
    ck_assert_int_eq(choose(&gemm).kernel, GEMM_SIMT_128X128);
    take("kernel.simt-32x64", "0 70 7");
    ck_assert_int_eq(choose(&gemm).kernel, GEMM_SIMT_32X64);
}
END_TEST

START_TEST(tiles_that_fill_no_wave_are_parted)
{
    start(true);
    /* 144 groups on 100 units, each with slots for two. */
    take("kernel.3xtf32-128x128", "1000 70 60");
    take("launch_ns", "1000");
    take("copy_bytes_per_ns", "1000");
    struct gemm_selection selection = choice(1536, 1536, 1536);
    ck_assert_int_eq(selection.kernel, GEMM_MMA_3XTF32_128X128);
    ck_assert_uint_eq(selection.split.split_tiles, 44);
    ck_assert_uint_gt(selection.split.splits, 1);
    /* 200 groups fill the slots; one alone is worth it in parts. */
    selection = choice(1280, 2560, 1536);
    ck_assert_uint_eq(selection.split.split_tiles, 0);
    ck_assert_uint_eq(selection.split.splits, 1);
    selection = choice(128, 128, 65536);
    ck_assert_uint_ge(selection.split.split_tiles, 1);
    ck_assert_uint_gt(selection.split.splits, 8);
    /* Where a launch costs more than it gains, nothing is. */
    take("launch_ns", "1000000");
    selection = choice(1536, 1536, 1536);
    ck_assert_uint_eq(selection.split.splits, 1);
}
END_TEST

/* In how many parts, by the bytes a ns that the device moves. */
static uint32_t splits_at(const char *bytes, int64_t size, int64_t k)
{
    take("copy_bytes_per_ns", bytes);
    return choice(size, size, k).split.splits;
}

START_TEST(parts_are_written_read_and_joined)
{
    start(true);
    take("kernel.3xtf32-128x128", "1000 70 60");
    take("launch_ns", "1000");
    uint32_t free_of_cost = splits_at("1000000", 128, 65536);
    uint32_t cheap = splits_at("10", 128, 65536);
    uint32_t dear = splits_at("1", 128, 65536);
    ck_assert_uint_gt(free_of_cost, cheap);
    ck_assert_uint_gt(cheap, dear);
    ck_assert_uint_eq(splits_at("0.001", 128, 65536), 1);
    /* Of the last tiles alone, only theirs: at a rate at which it would not be
     * worth the memory of all. */
    ck_assert_uint_gt(splits_at("300", 1536, 1536), 1);
    ck_assert_uint_eq(splits_at("1", 1536, 1536), 1);
}
END_TEST

/* Products of the same extents. */
static struct tandem_gemm relative(uint32_t which)
{
    struct tandem_gemm gemm = product(1024, 1024, 1024, 2);
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
#define RELATIVES 10u

/* A strict product is a little faster than a plain one, a copy of an operand
 * dear; that of half of one is not. */
static void start_close(void)
{
    start(true);
    take("kernel.simt-128x128", "0 5000 2500");
    take("kernel.simt-64x64", "0 3200 800");
    take("kernel.3xtf32-128x128", "0 1000 500");
    take("launch_ns", "1500000");
    take("copy_bytes_per_ns", "3");
    take("mn_major_penalty", "3");
    take("clblast_times", "1024 1024 1024 2 1000000000");
}

static void relatives_apart(uint32_t one, uint32_t other)
{
    struct tandem_gemm gemms[2] = {relative(one), relative(other)};
    struct gemm_selection chosen[2] = {choose(&gemms[0]), choose(&gemms[1])};
    ck_assert_msg(!same(&chosen[0], &chosen[1]), "%u and %u", one, other);
}

static void relatives_recalled(void)
{
    for (uint32_t turn = 0; turn < 4 * RELATIVES * RELATIVES; turn++) {
        uint32_t which =
            turn % 2 != 0 ? turn / 2 % RELATIVES : turn / 2 / RELATIVES;
        struct tandem_gemm gemm = relative(which % RELATIVES);
        struct gemm_selection selection, now = choose(&gemm);
        gemm_selector_choose(&selector, &gemm, &selection);
        ck_assert_msg(same(&selection, &now), "relative %u", which % RELATIVES);
    }
}

START_TEST(routes_are_remembered_by_all_that_counts)
{
    start_close();
    for (uint32_t i = 1; i <= 6; i++)
        relatives_apart(0, i);
    relatives_apart(4, 7);
    relatives_apart(5, 8);
    relatives_recalled();
    /* One copy is worth its time now, two are not. */
    start_close();
    take("launch_ns", "1100000");
    take("copy_bytes_per_ns", "4");
    relatives_apart(4, 9);
    relatives_apart(5, 9);
    relatives_recalled();
}
END_TEST

/* Skinny tiles count shorter lines than the others do. */
START_TEST(long_lines_are_remembered)
{
    struct tandem_gemm gemm = product(1024, 1, 4096, 1);
    struct gemm_selection selection;
    start(true);
    gemm.flags = 0;
    gemm.b.ld = 1;
    gemm_selector_choose(&selector, &gemm, &selection);
    ck_assert_uint_ne(gemm_configs[selection.kernel].gemv_vectors, 0);
    gemm.b.ld = INT32_MAX / 200;
    gemm_selector_choose(&selector, &gemm, &selection);
    ck_assert(selection.clblast ||
              gemm_kernel_supports(&gemm, selection.kernel));
}
END_TEST

START_TEST(an_epilogue_is_remembered_and_so_is_what_is_broken)
{
    struct gemm_selection selection;
    start(false);
    take("kernel.simt-128x128", "10 10 10");
    take("clblast_times", "1024 1024 1024 1 10000");
    take("launch_ns", "5000");
    struct tandem_gemm gemm = product(1024, 1024, 1024, 1);
    gemm_selector_choose(&selector, &gemm, &selection);
    ck_assert(selection.clblast);
    gemm.activation = TANDEM_OP_RELU;
    gemm_selector_choose(&selector, &gemm, &selection);
    ck_assert(!selection.clblast);
    gemm.activation = TANDEM_OP_INVALID;
    gemm.bias_kind = TANDEM_BIAS_PER_ROW;
    gemm_selector_choose(&selector, &gemm, &selection);
    ck_assert(!selection.clblast);
    gemm_selector_disable(&selector, &gemm, selection.kernel);
    gemm_selector_choose(&selector, &gemm, &selection);
    ck_assert(selection.clblast);
}
END_TEST

/* Two GEMMs that share a cache entry, and their selections, which differ. */
static struct tandem_gemm rivals[2];
static struct gemm_selection rival_selections[2];

static void *recall_often(void *unused)
{
    (void)unused;
    for (uint32_t i = 0; i < 100000; i++) {
        struct gemm_selection selection;
        gemm_selector_choose(&selector, &rivals[i % 2], &selection);
        if (!same(&selection, &rival_selections[i % 2]))
            return &selector;
    }
    return NULL;
}

static void rivals_find(void)
{
    const struct gemm_selector empty = selector;
    struct gemm_selection selection;
    rivals[0] = product(256, 256, 512, 1);
    gemm_selector_choose(&selector, &rivals[0], &rival_selections[0]);
    uint32_t entry = 0;
    while (atomic_load(&selector.cache[entry].sequence) == 0)
        entry++;
    for (int64_t n = 2048;; n += 64) {
        rivals[1] = product(2048, n, 512, 1);
        memcpy(&selector, &empty, sizeof(selector));
        gemm_selector_choose(&selector, &rivals[1], &selection);
        if (atomic_load(&selector.cache[entry].sequence) != 0 &&
            !same(&selection, &rival_selections[0]))
            break;
    }
    rival_selections[1] = selection;
}

START_TEST(threads_share_what_is_remembered)
{
    pthread_t threads[4];
    start(true);
    rivals_find();
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, recall_often, NULL), 0);
    for (uint32_t i = 0; i < 4; i++) {
        void *wrong;
        ck_assert_int_eq(pthread_join(threads[i], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
}
END_TEST

START_TEST(tests_may_force_a_division)
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
    struct gemm_selection selection = choice(1024, 1024, 1024);
    ck_assert_int_eq(selection.kernel, GEMM_SIMT_32X64);
    ck_assert_uint_eq(selection.split.splits, 3);
    ck_assert_uint_eq(selection.split.split_tiles, 2);
    ck_assert(gemm_selector_force(&selector, "simt-64x64:4"));
    ck_assert_uint_eq(choice(64, 64, 64).split.split_tiles, ALL_GEMM_TILES);
    ck_assert(gemm_selector_force(&selector, "clblast"));
}
END_TEST

static enum mma_format tensor_choice(uint32_t flags, int64_t k)
{
    struct tandem_gemm gemm = product(4096, 4096, k, 1);
    gemm.flags |= flags;
    struct gemm_selection selection = choose(&gemm);
    return selection.clblast ? MMA_NONE
                             : gemm_configs[selection.kernel].mma_format;
}

START_TEST(less_accurate_tiles_are_for_whoever_allows_them)
{
    const uint32_t tf32 = TANDEM_GEMM_ALLOW_TF32;
    const uint32_t scaled = TANDEM_GEMM_ALLOW_NORMWISE_ERROR;
    start(true);
    ck_assert_int_eq(tensor_choice(0, 4096), MMA_NONE);
    ck_assert_int_eq(tensor_choice(tf32, 4096), MMA_TF32);
    ck_assert_int_eq(tensor_choice(scaled, 4096), MMA_FP16X3);
    ck_assert_int_eq(tensor_choice(tf32 | scaled, 4096), MMA_TF32);
    /* Sums of few terms are more accurate in plain f32. */
    ck_assert_int_eq(tensor_choice(scaled, 128), MMA_NONE);
    /* What does not run is left for the next best. */
    struct tandem_gemm gemm = product(1, 1, 1, 1);
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++)
        if (gemm_configs[i].mma_format == MMA_TF32)
            gemm_selector_disable(&selector, &gemm, (enum gemm_kernel_id)i);
    ck_assert_int_eq(tensor_choice(tf32, 4096), MMA_NONE);
    ck_assert_int_eq(tensor_choice(tf32 | scaled, 4096), MMA_FP16X3);
    start(false);
    ck_assert_int_eq(tensor_choice(tf32 | scaled, 4096), MMA_NONE);
    /* Where others were measured, as if they had been; once one of their kind
     * was, it alone. */
    start(true);
    take("kernel.3xtf32-128x128", "5300 77 63");
    ck_assert_int_eq(tensor_choice(0, 4096), MMA_NONE);
    ck_assert_int_eq(tensor_choice(tf32, 4096), MMA_TF32);
    ck_assert_int_eq(tensor_choice(scaled, 4096), MMA_FP16X3);
    take("kernel.fp16x3-64x64", "100 1000 1000");
    ck_assert_int_eq(tensor_choice(scaled, 4096), MMA_NONE);
    ck_assert_int_eq(tensor_choice(tf32 | scaled, 4096), MMA_TF32);
    /* By what was measured: packing, and the look for what is not finite. */
    start(true);
    take("kernel.simt-128x128", "100 10 10");
    take("kernel.fp16x3-128x128", "100 5 5");
    take("launch_ns", "10");
    take("copy_bytes_per_ns", "1000000");
    ck_assert_int_eq(tensor_choice(scaled, 4096), MMA_FP16X3);
    take("copy_bytes_per_ns", "0.1");
    ck_assert_int_eq(tensor_choice(scaled, 4096), MMA_NONE);
}
END_TEST

static uint64_t moves(const struct tandem_gemm *gemm, enum gemm_kernel_id tile,
                      uint32_t *out_launches)
{
    return packing_bytes(gemm, tile, gemm_packed_operands(gemm, tile),
                         out_launches);
}

START_TEST(an_operand_is_packed_where_it_has_to_be)
{
    struct tandem_gemm gemm = product(256, 256, 256, 1);
    uint32_t launches;
    gemm.flags |= TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_ALLOW_NORMWISE_ERROR;
    ck_assert_uint_eq(moves(&gemm, GEMM_MMA_TF32_128X256, &launches), 0);
    ck_assert_uint_eq(launches, 0);
    /* Two halves of 256 rows by 8 slices of 128 bytes. */
    ck_assert_uint_eq(moves(&gemm, GEMM_MMA_FP16X3_128X128, &launches),
                      2 * 2 * 256 * 8 * 128);
    ck_assert_uint_eq(launches, 1);
    /* Long ones are read twice. */
    gemm.k = gemm.a.ld = gemm.b.ld = 4128;
    ck_assert_uint_eq(moves(&gemm, GEMM_MMA_FP16X3_128X128, &launches),
                      2 * 3 * 256 * 129 * 128);
    ck_assert_uint_eq(launches, 2);
    gemm = product(256, 256, 256, 1);
    gemm.flags |= TANDEM_GEMM_ALLOW_TF32;
    gemm.a.ld = 257;
    ck_assert_uint_eq(moves(&gemm, GEMM_MMA_TF32_128X256, &launches),
                      2 * 256 * 8 * 128);
    ck_assert_uint_eq(launches, 1);
    /* Across k, rows come in fours. */
    gemm = product(254, 256, 256, 1);
    gemm.flags = TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_TRANSPOSE_A |
                 TANDEM_GEMM_TRANSPOSE_B;
    gemm.a.ld = 256;
    ck_assert_uint_eq(moves(&gemm, GEMM_MMA_TF32_128X256, &launches),
                      2 * 256 * 8 * 128);
    gemm.m = 252;
    ck_assert_uint_eq(moves(&gemm, GEMM_MMA_TF32_128X256, &launches), 0);
}
END_TEST

START_TEST(wrong_values_change_nothing)
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
        {"clblast_times", ""},
        {"clblast_times", "1 1 1 1"},
        {"clblast_times", "1 1 1 1 0"},
        {"clblast_times", "0 1 1 1 5"},
        {"clblast_times", "1 1 1 1 5;"},
        {"clblast_times", "1 1 1 1 5; 1 1 1 1 x"},
        {"clblast_times", "1 1 1 1 5, 1 1 1 1 5"},
        {"clblast_times", "99999999999 1 1 1 5"},
    };
    start(true);
    const struct gemm_cost_model before = selector.cost_model;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_msg(!gemm_cost_model_parse(&selector.cost_model, wrong[i][0],
                                             wrong[i][1]),
                      "%s: \"%s\"", wrong[i][0], wrong[i][1]);
        ck_assert_mem_eq(&before, &selector.cost_model, sizeof(before));
    }
    /* Too many. */
    char many[8192] = "1 1 1 1 5";
    for (uint32_t i = 1; i < MAX_CLBLAST_TIMES; i++)
        strcat(many, ";1 1 1 1 5");
    ck_assert(
        gemm_cost_model_parse(&selector.cost_model, "clblast_times", many));
    strcat(many, ";1 1 1 1 5");
    ck_assert(
        !gemm_cost_model_parse(&selector.cost_model, "clblast_times", many));
    ck_assert_uint_eq(selector.cost_model.clblast_time_count,
                      MAX_CLBLAST_TIMES);
    /* What a later version may have. */
    ck_assert(gemm_cost_model_parse(&selector.cost_model, "kernel.huge", "x"));
    ck_assert(gemm_cost_model_parse(&selector.cost_model, "frobnication", "x"));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("gemm-selector");
    /* Threads that share a loaded machine. */
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, without_measurements_the_rule_holds);
    tcase_add_test(tests, the_faster_is_chosen);
    tcase_add_test(tests, times_are_interpolated);
    tcase_add_test(tests, an_epilogue_costs_clblast_a_launch);
    tcase_add_test(tests, unmeasured_tiles_are_left_out);
    tcase_add_test(tests, no_tile_is_chosen_where_none_fits);
    tcase_add_test(tests, products_past_2_31_are_ours);
    tcase_add_test(tests, far_places_are_counted_in_64_bits);
    tcase_add_test(tests, products_of_16_bits_are_ours);
    tcase_add_test(tests, alignment_goes_by_the_dtype);
    tcase_add_test(tests, single_elements_take_longer);
    tcase_add_test(tests, tiles_that_fill_no_wave_are_parted);
    tcase_add_test(tests, parts_are_written_read_and_joined);
    tcase_add_test(tests, routes_are_remembered_by_all_that_counts);
    tcase_add_test(tests, long_lines_are_remembered);
    tcase_add_test(tests, an_epilogue_is_remembered_and_so_is_what_is_broken);
    tcase_add_test(tests, threads_share_what_is_remembered);
    tcase_add_test(tests, tests_may_force_a_division);
    tcase_add_test(tests, less_accurate_tiles_are_for_whoever_allows_them);
    tcase_add_test(tests, an_operand_is_packed_where_it_has_to_be);
    tcase_add_test(tests, wrong_values_change_nothing);
    return runner_run_case("gemm-selector", tests);
}
