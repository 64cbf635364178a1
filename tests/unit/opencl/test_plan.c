/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plans count in 32 bits, and what they must not: places that kernels work
 * out past the last element and before the first are places, too.  No OpenCL.
 */
#include <config.h>

#include <check.h>

#include "../../support/check_runner.h"
#include "gemm_helpers.h"
#include "opencl/plan/plan.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/gemm_plan.h"

START_TEST(no_more_is_packed_than_is_counted)
{
    /* Of 2^17 rows, 2^15 and one fours each. */
    struct tandem_gemm gemm = product(1 << 17, 64, (1 << 17) + 1, 1);
    ck_assert(!gemm_kernel_supports(&gemm, GEMM_SIMT_128X128));
    ck_assert(gemm_kernel_supports(&gemm, GEMM_SIMT_64X64));
    gemm.m = 1 << 15;
    ck_assert(gemm_kernel_supports(&gemm, GEMM_SIMT_128X128));
    /* Aligned, it is not packed. */
    gemm = product(1 << 17, 64, 1 << 17, 1);
    ck_assert(gemm_kernel_supports(&gemm, GEMM_SIMT_128X128));
}
END_TEST

/* Whether a transpose of lines, so far apart, counts in 64 bits. */
static bool transpose_wide(int64_t lines, int64_t rows, int64_t pitch,
                           uint64_t lead, uint32_t dtype)
{
    const int64_t turned[] = {1, 0};
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_TRANSPOSE,
                                 .ints = turned,
                                 .int_count = 2};
    const struct tandem_tensor_desc input = {.dtype = dtype,
                                             .rank = 2,
                                             .shape = {lines, rows},
                                             .strides = {pitch, 1}};
    const struct tandem_tensor_desc output = {
        .byte_offset = lead * TANDEM_DTYPE_BYTES(dtype),
        .dtype = dtype,
        .rank = 2,
        .shape = {rows, lines},
        .strides = {lines, 1}};
    const struct tandem_tensor_desc *inputs[] = {&input};
    const struct tandem_tensor_desc *outputs[] = {&output};
    const struct op_request request = {.group_log2 = 8,
                                       .op = &op,
                                       .inputs = inputs,
                                       .outputs = outputs,
                                       .input_count = 1,
                                       .output_count = 1};
    struct launch_plan plan = {.step_count = 0};
    plan_copy(&plan, &request);
    ck_assert_uint_eq(KEY_KERNEL(plan.step[0].key), KERNEL_TRANSPOSE_TILED);
    return KEY_64BIT_INDEX(plan.step[0].key) != 0;
}

START_TEST(sheared_tiles_count_what_they_work_out)
{
    ck_assert(!transpose_wide(64, 100, 1 << 20, 1, TANDEM_U8));
    /* No element is 2^31 away, but the line past the last is. */
    ck_assert(transpose_wide(64, 100, 1 << 25, 1, TANDEM_U8));
    ck_assert(!transpose_wide(64, 100, 1 << 25, 0, TANDEM_U8));
    /* Nor here, but as many lines before the first are. */
    ck_assert(transpose_wide(8, 100, 0x0c000001, 0, TANDEM_U8));
    ck_assert(transpose_wide(9, 200000001, 200000001, 0, TANDEM_F32));
    ck_assert(transpose_wide(8, 100, -0x0c000001, 0, TANDEM_U8));
    ck_assert(transpose_wide(64, 100, -(1 << 25), 1, TANDEM_U8));
    ck_assert(!transpose_wide(64, 100, -(1 << 20), 1, TANDEM_U8));
    ck_assert(!transpose_wide(64, 100, 1 << 24, 1, TANDEM_F32));
    /* A tile is worked out whole, of few lines and of few rows. */
    ck_assert(!transpose_wide(8, 100, (1 << 23) + 1, 0, TANDEM_U8));
    ck_assert(transpose_wide(8, 100, (1 << 24) + 1, 0, TANDEM_U8));
    ck_assert(!transpose_wide((1 << 23) + 1, 8, 8, 0, TANDEM_U8));
    ck_assert(transpose_wide((1 << 24) + 1, 8, 8, 0, TANDEM_U8));
}
END_TEST

/* Whether y = op(x) of a shape counts in 64 bits, x having these strides, or y
 * where turned; the other one has no gaps. */
static bool strided_wide(uint32_t id, const int64_t *shape,
                         const int64_t *strides, bool turned)
{
    const struct platform_device hardware = {.info.compute_units = 4};
    const struct tandem_op op = {.struct_size = sizeof(op), .id = id};
    struct tandem_tensor_desc gaps = {.dtype = TANDEM_F32, .rank = 3};
    struct tandem_tensor_desc none = gaps;
    int64_t elements = 1;
    for (uint32_t i = 3; i-- > 0;) {
        gaps.shape[i] = none.shape[i] = shape[i];
        gaps.strides[i] = strides[i];
        none.strides[i] = elements;
        elements *= shape[i];
    }
    const struct tandem_tensor_desc *inputs[] = {turned ? &none : &gaps};
    const struct tandem_tensor_desc *outputs[] = {turned ? &gaps : &none};
    const struct op_request request = {.hardware = &hardware,
                                       .group_log2 = 8,
                                       .op = &op,
                                       .inputs = inputs,
                                       .outputs = outputs,
                                       .input_count = 1,
                                       .output_count = 1};
    struct launch_plan plan = {.step_count = 0};
    ck_assert_int_eq(launch_plan_make(&plan, &request), TANDEM_OK);
    ck_assert_uint_ne(KEY_KERNEL(plan.step[0].key),
                      KERNEL_ELEMENTWISE_CONTIGUOUS);
    return KEY_64BIT_INDEX(plan.step[0].key) != 0;
}

/* 2^31 elements back are as far as 2^31 on, and what goes back along one axis
 * does not bring nearer what goes on along another. */
START_TEST(strides_reach_as_far_back_as_on)
{
    static const int64_t shape[] = {5, 6, 7};
    static const struct {
        int64_t strides[3];
        bool wide;
    } cases[] = {
        {{1 << 28, 100, 1}, false},       {{1 << 29, 100, 1}, true},
        {{-(1 << 28), 100, 1}, false},    {{-(1 << 29), 100, 1}, true},
        {{1 << 28, -(1 << 28), 1}, true}, {{-(1 << 28), 1 << 28, 1}, true},
        {{1000, 100, -(1 << 29)}, true},  {{1000, -(1 << 29), 7}, true},
        {{1000, -(1 << 28), 7}, false},
    };
    static const uint32_t ids[] = {TANDEM_OP_NEG, TANDEM_OP_COPY};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t k = 0; k < 4; k++)
            ck_assert_msg(strided_wide(ids[k % 2], shape, cases[i].strides,
                                       k / 2 != 0) == cases[i].wide,
                          "case %zu, %zu", i, k);
}
END_TEST

enum way { UNSPLIT, JOINED, APART };

/* How rows, or columns, are summed on a device whose groups may see what others
 * wrote. */
static enum way sum_way(uint32_t units, int64_t rows, int64_t columns,
                        int64_t axes)
{
    static struct platform_device hardware;
    static struct launch_plan plan;
    const int64_t ints[] = {axes, 0};
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_SUM,
                                 .ints = ints,
                                 .int_count = 2};
    const struct tandem_tensor_desc input = {.dtype = TANDEM_F32,
                                             .rank = 2,
                                             .shape = {rows, columns},
                                             .strides = {columns, 1}};
    const struct tandem_tensor_desc output = {
        .dtype = TANDEM_F32,
        .rank = 1,
        .shape = {axes == 1 ? columns : rows},
        .strides = {1}};
    const struct tandem_tensor_desc *inputs[] = {&input};
    const struct tandem_tensor_desc *outputs[] = {&output};
    const struct op_request request = {.hardware = &hardware,
                                       .group_log2 = 8,
                                       .op = &op,
                                       .inputs = inputs,
                                       .outputs = outputs,
                                       .input_count = 1,
                                       .output_count = 1,
                                       .has_device_scope_visibility = true};
    hardware.info.kind = TANDEM_DEVICE_GPU;
    hardware.info.compute_units = units;
    plan.step_count = 0;
    plan_reduce(&plan, &request);
    if (KEY_KERNEL(plan.step[0].key) == KERNEL_REDUCE_LAST_GROUP) {
        ck_assert_uint_eq(plan.step_count, 1);
        ck_assert_ptr_null(plan.step[0].buffers[1]);
        ck_assert_uint_eq(plan.step[0].arrival_counters, 3);
        return JOINED;
    }
    ck_assert_uint_eq(plan.step[0].arrival_counters, 0);
    return plan.step_count == 1 ? UNSPLIT : APART;
}

START_TEST(the_last_group_joins_what_is_quick_to_join)
{
    ck_assert_uint_eq(sum_way(64, 1, 10000, 2), UNSPLIT);
    ck_assert_uint_eq(sum_way(64, 1, 1000000, 2), JOINED);
    ck_assert_uint_eq(sum_way(64, 3, 1000000, 2), JOINED);
    ck_assert_uint_eq(sum_way(64, 1000, 1000, 1), JOINED);
    /* More splits than one lane is to join. */
    ck_assert_uint_eq(sum_way(64, 4096, 4096, 1), APART);
    /* As many groups of outputs as there are counters, and one more. */
    ck_assert_uint_eq(sum_way(132, ARRIVAL_COUNTERS, 100000, 2), JOINED);
    ck_assert_uint_eq(sum_way(132, ARRIVAL_COUNTERS + 1, 100000, 2), APART);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("plan");
    tcase_add_test(tests, no_more_is_packed_than_is_counted);
    tcase_add_test(tests, sheared_tiles_count_what_they_work_out);
    tcase_add_test(tests, strides_reach_as_far_back_as_on);
    tcase_add_test(tests, the_last_group_joins_what_is_quick_to_join);
    return runner_run_case("plan", tests);
}
