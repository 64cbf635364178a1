/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans: kernels must use 64-bit indices if an address computed past the last
 * or before the first element does not fit in 32 bits; GEMMs share kernels; and
 * a full plan is an error. Needs no OpenCL.
 */
#include <config.h>

#include "support/test_list.h"
#include "gemm_helpers.h"
#include "opencl/plan/plan.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/gemm_plan.h"
#include "opencl/plan/kernel_step.h"
#include "opencl/plan/row_mapping.h"
#include "elementwise.cl"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

TEST(packed_operands_fit_32_bit_indices)
{
    /* 2^17 rows with 2^15 + 1 vectors of four each. */
    struct tandem_gemm gemm = gemm_new(1 << 17, 64, (1 << 17) + 1, 1);
    ck_assert(!gemm_kernel_supports(&gemm, GEMM_SIMT_128X128));
    ck_assert(gemm_kernel_supports(&gemm, GEMM_SIMT_64X64));
    gemm.m = 1 << 15;
    ck_assert(gemm_kernel_supports(&gemm, GEMM_SIMT_128X128));
    /* An aligned operand is not packed. */
    gemm = gemm_new(1 << 17, 64, 1 << 17, 1);
    ck_assert(gemm_kernel_supports(&gemm, GEMM_SIMT_128X128));
}

/* Returns true if the transpose of rows with this pitch uses 64-bit indices. */
static bool transpose_is_64bit(int64_t lines, int64_t rows, int64_t pitch,
                               uint64_t lead, uint32_t dtype)
{
    const int64_t swapped[] = {1, 0};
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_TRANSPOSE,
                                 .ints = swapped,
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
    plan_class_copy.plan(&plan, &request);
    ck_assert_str_eq(plan.step[0].key.kernel->function, "transpose_tiled");
    return plan.step[0].key.index_64bit != 0;
}

TEST(tiled_transposes_compute_addresses_outside_the_tensor)
{
    ck_assert(!transpose_is_64bit(64, 100, 1 << 20, 1, TANDEM_U8));
    /* No element is at index 2^31, but the row past the last one is. */
    ck_assert(transpose_is_64bit(64, 100, 1 << 25, 1, TANDEM_U8));
    ck_assert(!transpose_is_64bit(64, 100, 1 << 25, 0, TANDEM_U8));
    /* Rows before the first one are also at such an index. */
    ck_assert(transpose_is_64bit(8, 100, 0x0c000001, 0, TANDEM_U8));
    ck_assert(transpose_is_64bit(9, 200000001, 200000001, 0, TANDEM_F32));
    ck_assert(transpose_is_64bit(8, 100, -0x0c000001, 0, TANDEM_U8));
    ck_assert(transpose_is_64bit(64, 100, -(1 << 25), 1, TANDEM_U8));
    ck_assert(!transpose_is_64bit(64, 100, -(1 << 20), 1, TANDEM_U8));
    ck_assert(!transpose_is_64bit(64, 100, 1 << 24, 1, TANDEM_F32));
    /* A tile is computed as a whole even if it has few rows or columns. */
    ck_assert(!transpose_is_64bit(8, 100, (1 << 23) + 1, 0, TANDEM_U8));
    ck_assert(transpose_is_64bit(8, 100, (1 << 24) + 1, 0, TANDEM_U8));
    ck_assert(!transpose_is_64bit((1 << 23) + 1, 8, 8, 0, TANDEM_U8));
    ck_assert(transpose_is_64bit((1 << 24) + 1, 8, 8, 0, TANDEM_U8));
}

/*
 * Returns true if y = op(x) of this shape uses 64-bit indices. x has these
 * strides and y is contiguous, or the reverse if `swapped` is set.
 */
static bool strided_is_64bit(uint32_t id, const int64_t *shape,
                             const int64_t *strides, bool swapped)
{
    const struct platform_device hardware = {.info.compute_units = 4};
    const struct tandem_op op = {.struct_size = sizeof(op), .id = id};
    struct tandem_tensor_desc strided = {.dtype = TANDEM_F32, .rank = 3};
    struct tandem_tensor_desc contiguous = strided;
    int64_t elements = 1;
    for (uint32_t i = 3; i-- > 0;) {
        strided.shape[i] = contiguous.shape[i] = shape[i];
        strided.strides[i] = strides[i];
        contiguous.strides[i] = elements;
        elements *= shape[i];
    }
    const struct tandem_tensor_desc *inputs[] = {swapped ? &contiguous
                                                         : &strided};
    const struct tandem_tensor_desc *outputs[] = {swapped ? &strided
                                                          : &contiguous};
    const struct op_request request = {.hardware = &hardware,
                                       .group_log2 = 8,
                                       .op = &op,
                                       .inputs = inputs,
                                       .outputs = outputs,
                                       .input_count = 1,
                                       .output_count = 1};
    struct launch_plan plan = {.step_count = 0};
    ck_assert_int_eq(launch_plan_make(&plan, &request), TANDEM_OK);
    ck_assert_str_ne(plan.step[0].key.kernel->function,
                     "elementwise_contiguous");
    return plan.step[0].key.index_64bit != 0;
}

/*
 * Indices down to -2^31 count like those up to 2^31, and a negative stride
 * along one axis does not compensate a positive one along another.
 */
TEST(negative_strides_count_like_positive)
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
            ck_assert_msg(strided_is_64bit(ids[k % 2], shape, cases[i].strides,
                                           k / 2 != 0) == cases[i].wide,
                          "case %zu, %zu", i, k);
}

enum sum_split { UNSPLIT, SPLIT_LAST_GROUP, SPLIT_TWO_KERNELS };

/* Returns the split of a sum with device-scope visibility. */
static enum sum_split sum_split_kind(uint32_t units, int64_t rows,
                                     int64_t columns, int64_t axes)
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
    plan_class_reduce.plan(&plan, &request);
    if (plan.step[0].buffer_count == 4) {
        ck_assert_uint_eq(plan.step_count, 1);
        ck_assert_uint_eq(plan.step[0].slots[1], SLOT_TEMP);
        ck_assert_uint_eq(plan.step[0].slots[3], SLOT_COUNTERS);
        return SPLIT_LAST_GROUP;
    }
    ck_assert_uint_eq(plan.step[0].buffer_count, 3);
    return plan.step_count == 1 ? UNSPLIT : SPLIT_TWO_KERNELS;
}

TEST(the_last_group_combines_few_splits)
{
    ck_assert_uint_eq(sum_split_kind(64, 1, 10000, 2), UNSPLIT);
    ck_assert_uint_eq(sum_split_kind(64, 1, 1000000, 2), SPLIT_LAST_GROUP);
    ck_assert_uint_eq(sum_split_kind(64, 3, 1000000, 2), SPLIT_LAST_GROUP);
    ck_assert_uint_eq(sum_split_kind(64, 1000, 1000, 1), SPLIT_LAST_GROUP);
    /* More splits than one lane can combine. */
    ck_assert_uint_eq(sum_split_kind(64, 4096, 4096, 1), SPLIT_TWO_KERNELS);
    /* Tests as many result groups as arrival counters, and one more. */
    ck_assert_uint_eq(sum_split_kind(132, ARRIVAL_COUNTERS, 100000, 2),
                      SPLIT_LAST_GROUP);
    ck_assert_uint_eq(sum_split_kind(132, ARRIVAL_COUNTERS + 1, 100000, 2),
                      SPLIT_TWO_KERNELS);
}

/* Returns the plan of an attention of `queries` rows to 384 keys. The items of
 * a batch have this distance. */
static const struct launch_plan *
attention_plan(const struct platform_device *hardware, int64_t batch,
               int64_t batch_stride, int64_t queries)
{
    static struct launch_plan plan;
    static const int64_t ints[2];
    static const double floats[] = {1, 0};
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_ATTENTION,
                                 .ints = ints,
                                 .int_count = 2,
                                 .floats = floats,
                                 .float_count = 2};
    const struct tandem_tensor_desc operand = {
        .dtype = TANDEM_F32,
        .rank = 4,
        .shape = {batch, 12, 384, 64},
        .strides = {batch_stride, 64, 2304, 1}};
    struct tandem_tensor_desc rows = operand;
    rows.shape[2] = queries;
    const struct tandem_tensor_desc *inputs[] = {&rows, &operand, &operand};
    const struct tandem_tensor_desc *outputs[] = {&rows};
    const struct op_request request = {.hardware = hardware,
                                       .group_log2 = 8,
                                       .op = &op,
                                       .inputs = inputs,
                                       .outputs = outputs,
                                       .input_count = 3,
                                       .output_count = 1};
    launch_plan_clear(&plan);
    plan_class_attention.plan(&plan, &request);
    return &plan;
}

/* Returns true if tensor cores compute this attention. */
static bool uses_tensor_cores(int64_t batch, int64_t batch_stride)
{
    const struct platform_device hardware = {.info.kind = TANDEM_DEVICE_GPU,
                                             .info.compute_units = 132,
                                             .tensor_cores = true};
    return attention_plan(&hardware, batch, batch_stride, 384)
        ->uses_attention_mma;
}

TEST(attention_for_an_unknown_number_of_compute_units)
{
    const struct platform_device hardware = {.info.kind = TANDEM_DEVICE_GPU};
    ck_assert_uint_gt(attention_plan(&hardware, 1, 1, 1)->step_count, 0);
}

TEST(the_stride_of_an_axis_of_length_1_does_not_matter)
{
    ck_assert(uses_tensor_cores(2, 384 * 2304));
    ck_assert(!uses_tensor_cores(2, 384 * 2304 + 1));
    ck_assert(uses_tensor_cores(1, 384 * 2304));
    ck_assert(uses_tensor_cores(1, 1));
}

/* Returns the key of the last step of a GEMM's plan. */
static struct kernel_key last_key(const struct tandem_gemm *gemm,
                                  enum gemm_kernel_id kernel,
                                  const struct gemm_sources *sources)
{
    const struct gemm_selection selection = {.kernel = kernel,
                                             .split = NO_SPLIT};
    struct launch_plan plan;
    launch_plan_clear(&plan);
    plan_add_gemm(&plan, gemm, sources, &selection, NULL, 8);
    ck_assert_uint_gt(plan.step_count, 0);
    return plan.step[plan.step_count - 1].key;
}

/*
 * Each key is compiled, which takes NVIDIA's compiler 0.3 to 1 s. GEMMs without
 * an activation, with relu and with clip have the same key, also if beta
 * multiplies another matrix than c.
 */
TEST(gemms_with_simple_activations_share_a_kernel)
{
    static const uint32_t activations[] = {TANDEM_OP_INVALID, TANDEM_OP_RELU,
                                           TANDEM_OP_CLIP};
    static const enum gemm_kernel_id kernels[] = {GEMM_SIMT_64X64, GEMV_1,
                                                  GEMM_MMA_TF32_128X64};
    const struct tandem_tensor_desc old = {
        .dtype = TANDEM_F32, .rank = 2, .shape = {64, 64}, .strides = {64, 1}};
    const struct gemm_sources sources = {.old = &old};

    for (size_t i = 0; i < COUNT(kernels); i++) {
        struct tandem_gemm gemm = gemm_new(64, 64, 64, 1);
        if (kernels[i] == GEMV_1)
            gemm.n = 1;
        const struct kernel_key first = last_key(&gemm, kernels[i], NULL);
        gemm.activation_parameter2 = 6;
        for (size_t j = 0; j < COUNT(activations); j++) {
            gemm.activation = activations[j];
            gemm.beta = 0;
            struct kernel_key key = last_key(&gemm, kernels[i], NULL);
            ck_assert(kernel_key_equal(&key, &first));
            gemm.beta = 1;
            key = last_key(&gemm, kernels[i], &sources);
            ck_assert(kernel_key_equal(&key, &first));
        }
        gemm.activation = TANDEM_OP_SIGMOID;
        const struct kernel_key other = last_key(&gemm, kernels[i], NULL);
        ck_assert(!kernel_key_equal(&other, &first));
    }
}

/*
 * One kernel recomputes tiles with infinities or NaN after all kernels, for all
 * layouts and alignments.
 */
TEST(one_kernel_recomputes_tiles)
{
    static const enum gemm_kernel_id kernels[] = {
        GEMM_MMA_3XTF32_128X128, GEMM_MMA_3XTF32_64X64, GEMM_MMA_FP16X3_64X64,
        GEMM_WGMMA_3XTF32_128X128, GEMM_WGMMA_FP16X3_128X64};
    struct tandem_gemm gemm = gemm_new(128, 128, 128, 1);
    const struct kernel_key first = last_key(&gemm, kernels[0], NULL);

    for (size_t i = 0; i < COUNT(kernels) * 8; i++) {
        const int64_t k = i / 2 % 2 != 0 ? 127 : 128;
        const bool transpose_b = i / 4 % 2 != 0;
        gemm = gemm_new(128, 128, k, 1);
        gemm.flags = (i % 2 != 0 ? TANDEM_GEMM_TRANSPOSE_A : 0u) |
                     (transpose_b ? TANDEM_GEMM_TRANSPOSE_B : 0u);
        gemm.a.ld = i % 2 != 0 ? 128 : k;
        gemm.b.ld = transpose_b ? k : 128;
        const struct kernel_key key = last_key(&gemm, kernels[i / 8], NULL);
        ck_assert(kernel_key_equal(&key, &first));
    }
}

/* The parameters of the first step of relu or softmax on a view. */
static void params_of(unsigned char *out, struct launch_plan *plan,
                      const struct tandem_op *op, int64_t rows, int64_t columns,
                      const struct slot_address *addresses)
{
    static const struct platform_device hardware = {.info.compute_units = 4};
    struct tandem_tensor_desc tensors[2];
    const struct tandem_tensor_desc *in = &tensors[0], *result = &tensors[1];
    for (uint32_t i = 0; i < 2; i++)
        tensors[i] = (struct tandem_tensor_desc){
            slot_buffer(i == 0 ? SLOT_INPUT : SLOT_OUTPUT, 4),
            0,
            TANDEM_F32,
            2,
            {rows, columns},
            {columns, 1}};
    const struct op_request request = {.hardware = &hardware,
                                       .group_log2 = 8,
                                       .op = op,
                                       .inputs = &in,
                                       .outputs = &result,
                                       .input_count = 1,
                                       .output_count = 1};
    ck_assert_int_eq(launch_plan_make(plan, &request), TANDEM_OK);
    ck_assert_uint_eq(plan->step_count, 1);
    step_params_patch(out, plan->step, addresses);
}

TEST(launches_patch_what_depends_on_addresses)
{
    static struct launch_plan plan;
    static struct slot_address at[SLOT_COUNT], zero[SLOT_COUNT];
    _Alignas(8) unsigned char there[MAX_PARAM_BYTES], here[MAX_PARAM_BYTES];
    const struct contiguous_params *relu[] = {(const void *)here,
                                              (const void *)there};
    const struct row_mapping *rows[] = {(const void *)here,
                                        (const void *)there};
    const int64_t axis[] = {1};
    const struct tandem_op operators[] = {
        {.struct_size = sizeof(operators[0]), .id = TANDEM_OP_RELU},
        {.struct_size = sizeof(operators[0]),
         .id = TANDEM_OP_SOFTMAX,
         .ints = axis,
         .int_count = 1}};
    /* 13 elements after a buffer that begins at a multiple of 64 bytes, and 5
     * after one that begins 2 elements after it. */
    at[SLOT_OUTPUT] = (struct slot_address){52, 0};
    at[SLOT_INPUT] = (struct slot_address){20, 8};
    params_of(here, &plan, &operators[0], 3, 7, zero);
    params_of(there, &plan, &operators[0], 3, 7, at);
    ck_assert_uint_eq(relu[0]->operands.offset[0], 0);
    ck_assert_uint_eq(relu[1]->operands.offset[0], 13);
    ck_assert_uint_eq(relu[1]->operands.offset[1], 5);
    ck_assert_uint_eq(relu[0]->misalignment, 0);
    ck_assert_uint_eq(relu[1]->misalignment, 13);
    /* The work-items of the plan suffice for each misalignment. */
    ck_assert_uint_ge(plan.step[0].groups * 256 * 4, 21 + 31);
    params_of(here, &plan, &operators[1], 3, 7, zero);
    params_of(there, &plan, &operators[1], 3, 7, at);
    ck_assert_uint_eq(plan.step[0].key.row_access, ROW_ACCESS_LOCAL_MEMORY);
    ck_assert_uint_eq(rows[0]->misalignments, 0);
    ck_assert_uint_eq(rows[1]->misalignments, 2);
    at[SLOT_OUTPUT].misalignment = 12;
    params_of(there, &plan, &operators[1], 3, 7, at);
    ck_assert_uint_eq(rows[1]->misalignments, 2 | 3 << 2);
    params_of(there, &plan, &operators[1], 3, 71, at);
    ck_assert_uint_eq(plan.step[0].key.row_access, ROW_ACCESS_SECTOR_ALIGNED);
    ck_assert_uint_eq(rows[1]->misalignments, 3);
}

TEST(a_full_plan_is_an_error)
{
    static struct launch_plan plan;
    static const struct kernel_info info = {.param_bytes = 8};
    const struct kernel_key key = {.kernel = &info};
    const struct tandem_tensor_desc tensor = {.dtype = TANDEM_F32};
    struct kernel_step *step = NULL;

    launch_plan_clear(&plan);
    for (uint32_t i = 0; i < MAX_PLAN_STEPS; i++)
        step = plan_add_step(&plan, &key, NULL);
    for (uint32_t i = 0; i < MAX_STEP_BUFFERS; i++)
        step_add_temp(step, true);
    ck_assert_int_eq(launch_plan_check(&plan), TANDEM_OK);
    step_add_temp(step, true);
    ck_assert_int_eq(launch_plan_check(&plan), TANDEM_FAILED);
    step->buffer_count = 0;
    ck_assert_int_eq(launch_plan_check(&plan), TANDEM_OK);
    for (uint32_t i = 0; i < MAX_STEP_PATCHES; i++)
        step_patch_offset(step, &tensor, 0);
    ck_assert_int_eq(launch_plan_check(&plan), TANDEM_OK);
    step_patch_offset(step, &tensor, 0);
    ck_assert_int_eq(launch_plan_check(&plan), TANDEM_FAILED);
    step->patch_count = 0;
    plan_add_step(&plan, &key, NULL);
    ck_assert_uint_eq(plan.step_count, MAX_PLAN_STEPS);
    ck_assert_int_eq(launch_plan_check(&plan), TANDEM_FAILED);
}

TEST_MAIN(tests_run("plan"))
