/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each variant of a kernel has a warm-up call (opencl/program/warmup_call.h),
 * for each operator, dtype, layout and row length. Needs no OpenCL;
 * check-samples tests that warm-up calls access only their buffers.
 */
#include <config.h>

#include <check.h>
#include <stdlib.h>

#include "../../support/check_runner.h"
#include "../../offline/variants.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/program/warmup_call.h"

/*
 * A GPU, a CPU, and an NVIDIA GPU, which caches longer rows and has larger
 * work-groups.
 */
static const struct platform_device kinds[] = {
    {.info = {.kind = TANDEM_DEVICE_GPU, .compute_units = 64},
     .group_limit = 256},
    {.info = {.kind = TANDEM_DEVICE_CPU, .compute_units = 2},
     .group_limit = 4096},
    {.info = {.kind = TANDEM_DEVICE_GPU, .compute_units = 132},
     .nvidia = true,
     .group_limit = 1024}};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Returns true if kernel_self_test.c runs the variant. */
static bool is_self_tested(uint64_t key)
{
    return KEY_KERNEL(key) == KERNEL_GEMM_3XTF32 ||
           KEY_KERNEL(key) == KERNEL_GEMM_MMA ||
           KEY_KERNEL(key) == KERNEL_GEMM_WGMMA;
}

static void expect_warmup_call(uint64_t key,
                               const struct platform_device *hardware)
{
    static struct warmup_call warmup;
    if (is_self_tested(key))
        return;
    ck_assert_msg(warmup_call_make(&warmup, key, hardware),
                  "kernel %u of opencl/plan/plan.h, key %016llx: no sample",
                  (unsigned)KEY_KERNEL(key), (unsigned long long)key);
    ck_assert_uint_eq(warmup.step->key & ~variant_key_kernel(0, 0, true, 0),
                      key & ~variant_key_kernel(0, 0, true, 0));
    ck_assert_uint_gt(warmup.step->groups, 0);
    for (uint32_t i = 0; i < warmup.step->buffer_count; i++)
        ck_assert_uint_gt(warmup.bytes[i], 0);
}

START_TEST(every_variant_has_a_warmup_call)
{
    const uint32_t groups[KINDS] = {6, 0, 8};
    struct keys keys;
    for (size_t i = 0; i < KINDS; i += 2) {
        ck_assert(keys_find(&keys, &kinds[i], groups[i]));
        for (uint32_t j = 0; j < keys.count; j++)
            expect_warmup_call(keys.key[j], &kinds[i]);
        free(keys.key);
    }
}
END_TEST

/* A call of softmax or layer_norm with rows of count elements. */
struct call {
    struct tandem_tensor_desc x, y, affine;
    const struct tandem_tensor_desc *inputs[3], *outputs[1];
    int64_t axis;
    double epsilon;
    struct tandem_op op;
};

static void call_make(struct call *call, uint32_t op, int64_t rows,
                      int64_t count, uint64_t shift)
{
    bool columns = shift == 2;
    *call = (struct call){
        .x = {.dtype = TANDEM_F32,
              .rank = 2,
              .byte_offset = shift % 2 * sizeof(float),
              .shape = {columns ? count : rows, columns ? rows : count},
              .strides = {columns ? rows : count, 1}},
        .affine = {.dtype = TANDEM_F32,
                   .rank = 1,
                   .shape = {count},
                   .strides = {1}},
        .axis = columns ? 0 : 1,
        .epsilon = 1e-5,
        .op = {.struct_size = sizeof(call->op),
               .id = op,
               .int_count = 1,
               .float_count = 1}};
    call->y = call->x;
    call->y.byte_offset = 0;
    call->inputs[0] = &call->x;
    call->inputs[1] = call->inputs[2] = &call->affine;
    call->outputs[0] = &call->y;
    call->op.ints = &call->axis;
    call->op.floats = &call->epsilon;
}

static void expect_warmup_calls(uint32_t op, int64_t rows, int64_t count,
                                uint64_t shift,
                                const struct platform_device *hardware)
{
    static struct launch_plan plan;
    static uint64_t last;
    struct call call;
    bool norm = op == TANDEM_OP_LAYER_NORM;
    call_make(&call, op, rows, count, norm && shift == 2 ? 0 : shift);
    struct op_request request = {.hardware = hardware,
                                 .group_log2 = 8,
                                 .op = &call.op,
                                 .inputs = call.inputs,
                                 .outputs = call.outputs,
                                 .input_count = norm ? 3 : 1,
                                 .output_count = 1};
    ck_assert_int_eq(launch_plan_make(&plan, &request), TANDEM_OK);
    for (uint32_t i = 0; i < plan.step_count; i++)
        if (plan.step[i].key != last) /* Most lengths use the same kernel. */
            expect_warmup_call(last = plan.step[i].key, hardware);
}

/* The key contains how a row is cached. */
START_TEST(rows_of_every_length_have_a_warmup_call)
{
    const int64_t rows[] = {1, 24, 300};
    for (size_t i = 0; i < KINDS * 3 * 3; i++)
        for (int64_t count = 1; count < 80000; count += 1 + count / 97) {
            const struct platform_device *hardware = &kinds[i / 9];
            expect_warmup_calls(TANDEM_OP_SOFTMAX, rows[i / 3 % 3], count,
                                i % 3, hardware);
            expect_warmup_calls(TANDEM_OP_LAYER_NORM, rows[i / 3 % 3], count,
                                i % 3, hardware);
        }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("sample");
    tcase_add_test(tests, every_variant_has_a_warmup_call);
    tcase_add_test(tests, rows_of_every_length_have_a_warmup_call);
    return runner_run_case("sample", tests);
}
