/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that all plugins share: what the conformance suite does not test of
 * the argument check, iteration spaces, handles, the name of the CPU.
 */
#include <string.h>

#include "common/argument_check.h"
#include "common/handle_pool.h"
#include "common/iteration_space.h"
#include "common/last_error.h"
#include "common/op_class.h"
#include "common/operator_table.h"
#include "common/cpu_info.h"
#include "support/test_list.h"

/* Buffers of the tests are address ranges, and their handles point to these. */
static enum tandem_status address_range_of(const void *user,
                                           const struct tandem_buffer *buffer,
                                           struct address_range *out)
{
    (void)user;
    *out = *(const struct address_range *)(const void *)buffer;
    return TANDEM_OK;
}

static struct address_range memory_x = {.base = 4096, .bytes = 4096};
static struct address_range memory_y = {.base = 16384, .bytes = 4096};
#define X ((struct tandem_buffer *)(void *)&memory_x)
#define Y ((struct tandem_buffer *)(void *)&memory_y)

static struct tandem_tensor_desc tensor(struct tandem_buffer *buffer,
                                        uint64_t offset, uint32_t dtype,
                                        uint32_t rank, const int64_t *shape)
{
    struct tandem_tensor_desc out = {
        .buffer = buffer, .byte_offset = offset, .dtype = dtype, .rank = rank};
    for (uint32_t i = 0; i < rank; i++)
        out.shape[i] = shape[i];
    shape_strides(rank, shape, out.strides);
    return out;
}
#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

/* Messages name the attributes that are missing. */
TEST(missing_attributes)
{
    const struct tandem_tensor_desc x = tensor(X, 0, TANDEM_F32, 1, SHAPE(4)),
                                    y = tensor(Y, 0, TANDEM_F32, 1, SHAPE(4));
    const struct tandem_tensor_desc *inputs[2] = {&x, NULL}, *output = &y;
    struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_SOFTMAX};

    check_op(&op, inputs, 1, &output, 1, address_range_of, NULL);
    ck_assert_str_eq(
        last_error_get(),
        "softmax: the length of ints is 0; expected 1 or more (axis)");
    op.id = TANDEM_OP_CLIP;
    check_op(&op, inputs, 1, &output, 1, address_range_of, NULL);
    ck_assert_str_eq(
        last_error_get(),
        "clip: the length of floats is 0; expected 2 or more (min,max)");
    op.id = TANDEM_OP_ADD;
    check_op(&op, inputs, 2, &output, 1, address_range_of, NULL);
    ck_assert_str_eq(last_error_get(),
                     "add: the length of floats is 0; expected 1 or more (a "
                     "value for each input that is NULL)");
    check_op(&op, inputs, 1, &output, 1, address_range_of, NULL);
    ck_assert_str_eq(last_error_get(),
                     "add: the numbers of inputs and outputs are 1 and 1; "
                     "expected 2 and 1");
}

TEST(table_is_consistent)
{
    const struct operator_info *row;
    uint32_t count = 0;
    for (uint32_t id = 0; id < TANDEM_OP_ID_END; id++) {
        row = operator_lookup(id);
        if (row == NULL)
            continue;
        count++;
        ck_assert_uint_eq(row->id, id);
        ck_assert_ptr_eq(operator_row_by_name(row->name), row);
        ck_assert_uint_le(row->inputs, TANDEM_MAX_OPERANDS);
        ck_assert_uint_lt(row->cost_class, TANDEM_COST_CLASS_COUNT);
    }
    ck_assert_uint_gt(count, 60);
    ck_assert_ptr_null(operator_lookup(0));
    ck_assert_ptr_null(operator_lookup(TANDEM_OP_ID_END));
    ck_assert_ptr_null(operator_row_by_name("nothing"));
}

/* Returns the example of an operator, for a shape of a rank that it accepts. */
static struct op_example example_of(const struct operator_info *row)
{
    static const int64_t shape[] = {4, 3, 5, 2};
    struct op_example example;
    uint32_t rank =
        row->op_class == TANDEM_CLASS_DOT || row->op_class == TANDEM_CLASS_RANGE
            ? 1
        : row->op_class == TANDEM_CLASS_GEMM ||
                row->op_class == TANDEM_CLASS_POOL
            ? 3
            : 2;
    ck_assert_ptr_null(op_example_build(row, rank, shape, &example));
    return example;
}

/* An example passes the argument check. */
TEST(examples_are_valid)
{
    for (uint32_t id = 1; id < TANDEM_OP_ID_END; id++) {
        const struct operator_info *row = operator_lookup(id);
        const struct tandem_tensor_desc *inputs[TANDEM_MAX_OPERANDS],
            *outputs[TANDEM_MAX_OPERANDS];
        if (row == NULL || id == TANDEM_OP_GEMM)
            continue;
        struct op_example example = example_of(row);
        const struct tandem_op op = {.struct_size = sizeof op,
                                     .id = id,
                                     .int_count = example.int_count,
                                     .ints = example.ints,
                                     .float_count = example.float_count,
                                     .floats = example.floats};
        for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++) {
            inputs[i] = &example.inputs[i];
            outputs[i] = &example.outputs[i];
        }
        ck_assert_msg(check_op(&op, inputs, example.input_count, outputs,
                               example.output_count, NULL, NULL) == TANDEM_OK,
                      "%s", last_error_get());
    }
}

/* The outputs of an example follow from its inputs, except the shape of
 * RANGE. */
TEST(outputs_of_examples_are_inferred)
{
    for (uint32_t id = 1; id < TANDEM_OP_ID_END; id++) {
        const struct operator_info *row = operator_lookup(id);
        const struct tandem_tensor_desc *inputs[TANDEM_MAX_OPERANDS];
        struct tandem_tensor_desc outputs[TANDEM_MAX_OPERANDS] = {{0}};
        if (row == NULL || id == TANDEM_OP_GEMM)
            continue;
        struct op_example example = example_of(row);
        const struct tandem_op op = {.struct_size = sizeof op,
                                     .id = id,
                                     .int_count = example.int_count,
                                     .ints = example.ints,
                                     .float_count = example.float_count,
                                     .floats = example.floats};
        for (uint32_t i = 0; i < example.input_count; i++)
            inputs[i] = &example.inputs[i];
        outputs[0].dtype = example.outputs[0].dtype;
        enum tandem_status status = infer_op(&op, inputs, example.input_count,
                                             outputs, example.output_count);
        if (id == TANDEM_OP_RANGE) {
            ck_assert_int_eq(status, TANDEM_INVALID_ARGUMENT);
            continue;
        }
        ck_assert_msg(status == TANDEM_OK, "%s", last_error_get());
        for (uint32_t i = 0; i < example.output_count; i++) {
            ck_assert_uint_eq(outputs[i].dtype, example.outputs[i].dtype);
            ck_assert_uint_eq(outputs[i].rank, example.outputs[i].rank);
            for (uint32_t k = 0; k < outputs[i].rank; k++)
                ck_assert_int_eq(outputs[i].shape[k],
                                 example.outputs[i].shape[k]);
            ck_assert(tensor_contiguous(&outputs[i]));
        }
    }
}

static void tensor_has_shape(const struct tandem_tensor_desc *tensor,
                             uint32_t rank, const int64_t *shape)
{
    ck_assert_uint_eq(tensor->rank, rank);
    for (uint32_t i = 0; i < rank; i++)
        ck_assert_int_eq(tensor->shape[i], shape[i]);
}

TEST(examples_of_gemm_have_three_matrices)
{
    const struct operator_info *row = operator_lookup(TANDEM_OP_GEMM);
    struct op_example example;
    ck_assert_ptr_null(op_example_build(row, 3, SHAPE(4, 3, 5), &example));
    tensor_has_shape(&example.inputs[0], 2, SHAPE(4, 5));
    tensor_has_shape(&example.inputs[1], 2, SHAPE(5, 3));
    tensor_has_shape(&example.outputs[0], 2, SHAPE(4, 3));
    ck_assert_ptr_null(op_example_build(row, 4, SHAPE(2, 4, 3, 5), &example));
    tensor_has_shape(&example.inputs[0], 3, SHAPE(2, 4, 5));
    tensor_has_shape(&example.inputs[1], 3, SHAPE(2, 5, 3));
    tensor_has_shape(&example.outputs[0], 3, SHAPE(2, 4, 3));
    ck_assert_ptr_nonnull(op_example_build(row, 2, SHAPE(4, 3), &example));
}

TEST(examples_of_attention_have_tokens_or_queries_and_keys)
{
    const struct operator_info *row = operator_lookup(TANDEM_OP_ATTENTION);
    struct op_example example;
    ck_assert_ptr_null(op_example_build(row, 2, SHAPE(5, 8), &example));
    for (uint32_t i = 0; i < 3; i++)
        tensor_has_shape(&example.inputs[i], 4, SHAPE(1, 1, 5, 8));
    ck_assert_ptr_null(
        op_example_build(row, 5, SHAPE(2, 3, 1, 7, 8), &example));
    tensor_has_shape(&example.inputs[0], 4, SHAPE(2, 3, 1, 8));
    tensor_has_shape(&example.inputs[1], 4, SHAPE(2, 3, 7, 8));
    tensor_has_shape(&example.inputs[2], 4, SHAPE(2, 3, 7, 8));
    tensor_has_shape(&example.outputs[0], 4, SHAPE(2, 3, 1, 8));
}

TEST(examples_of_resize_have_images_or_volumes)
{
    const struct operator_info *row = operator_lookup(TANDEM_OP_RESIZE);
    struct op_example example;
    ck_assert_ptr_null(op_example_build(row, 4, SHAPE(2, 3, 4, 5), &example));
    tensor_has_shape(&example.outputs[0], 4, SHAPE(2, 3, 8, 10));
    ck_assert_ptr_null(
        op_example_build(row, 5, SHAPE(2, 3, 4, 5, 6), &example));
    tensor_has_shape(&example.outputs[0], 5, SHAPE(2, 3, 8, 10, 12));
}

/* Other shapes are refused with a text that says what the operator needs. */
TEST(examples_name_the_shape_they_need)
{
    static const uint32_t rows[] = {TANDEM_OP_SOFTMAX, TANDEM_OP_LAYER_NORM};
    struct op_example example;
    for (int i = 0; i < 2; i++)
        ck_assert_str_eq(
            op_example_build(operator_lookup(rows[i]), 0, NULL, &example),
            "a rank of 1 or more");
    ck_assert_ptr_nonnull(op_example_build(operator_lookup(TANDEM_OP_DOT), 2,
                                           SHAPE(4, 3), &example));
}

TEST(work_counts_operands_and_layout)
{
    const struct operator_info *row = operator_lookup(TANDEM_OP_ADD);
    struct op_example example = example_of(row);
    const struct tandem_tensor_desc *inputs[] = {&example.inputs[0], NULL},
                                    *outputs[] = {&example.outputs[0]};
    struct op_call call = {.info = row,
                           .inputs = inputs,
                           .outputs = outputs,
                           .input_count = 2,
                           .output_count = 1};
    struct op_work work;
    op_work_compute(&call, &work);
    ck_assert_double_eq(work.elements, 12);
    ck_assert_double_eq(work.bytes, 96);
    ck_assert_uint_eq(work.cost_class, TANDEM_COST_ELEMENTWISE);
    example.inputs[0].strides[0] = 1;
    example.inputs[0].strides[1] = 4;
    op_work_compute(&call, &work);
    ck_assert_uint_eq(work.cost_class, TANDEM_COST_STRIDED);
    call.info = operator_lookup(TANDEM_OP_COPY);
    call.input_count = 1;
    op_work_compute(&call, &work);
    ck_assert_uint_eq(work.cost_class, TANDEM_COST_STRIDED);
    example.inputs[0].strides[0] = 3;
    example.inputs[0].strides[1] = 1;
    op_work_compute(&call, &work);
    ck_assert_uint_eq(work.cost_class, TANDEM_COST_ELEMENTWISE);
}

TEST(gathers_read_as_much_data_as_they_write)
{
    struct tandem_tensor_desc data = tensor(X, 0, TANDEM_F32, 2, SHAPE(10, 3));
    struct tandem_tensor_desc indices = tensor(X, 0, TANDEM_I64, 1, SHAPE(2));
    struct tandem_tensor_desc out = tensor(Y, 0, TANDEM_F32, 2, SHAPE(2, 3));
    const struct tandem_tensor_desc *inputs[] = {&data, &indices},
                                    *outputs[] = {&out};
    struct op_call call = {.info = operator_lookup(TANDEM_OP_GATHER),
                           .inputs = inputs,
                           .outputs = outputs,
                           .input_count = 2,
                           .output_count = 1};
    struct op_work work;
    op_work_compute(&call, &work);
    ck_assert_double_eq(work.bytes, 2 * 24 + 16);
    ck_assert_double_eq(work.elements, 30);
    ck_assert_uint_eq(work.cost_class, TANDEM_COST_GATHER);
}

TEST(many_updates_of_an_element_are_unsupported)
{
    const int64_t count = INT64_C(1) << 32, reduction = 0;
    struct tandem_tensor_desc data = tensor(X, 0, TANDEM_U8, 1, SHAPE(4));
    struct tandem_tensor_desc indices =
        tensor(X, 0, TANDEM_I32, 2, SHAPE(count, 1));
    struct tandem_tensor_desc updates =
        tensor(X, 0, TANDEM_U8, 1, SHAPE(count));
    struct tandem_tensor_desc out = tensor(Y, 0, TANDEM_U8, 1, SHAPE(4));
    const struct tandem_tensor_desc *inputs[] = {&data, &indices, &updates},
                                    *outputs[] = {&out};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_SCATTER_ND,
                                 .int_count = 1,
                                 .ints = &reduction};
    ck_assert_int_eq(check_op(&op, inputs, 3, outputs, 1, NULL, NULL),
                     TANDEM_UNSUPPORTED);
}

TEST(struct_sizes_are_checked)
{
    struct tandem_tensor_desc x = tensor(X, 0, TANDEM_F32, 1, SHAPE(4));
    const struct tandem_tensor_desc *xs[] = {&x};
    struct {
        struct tandem_op op;
        unsigned char tail[64];
    } later = {
        .op = {.struct_size = TANDEM_OP_MIN_SIZE_1_0, .id = TANDEM_OP_NEG}};
    struct tandem_op *op = &later.op;
    ck_assert_int_eq(check_op(op, xs, 1, xs, 1, address_range_of, NULL),
                     TANDEM_OK);
    op->struct_size = sizeof later;
    ck_assert_int_eq(check_op(op, xs, 1, xs, 1, address_range_of, NULL),
                     TANDEM_OK);
    later.tail[63] = 1;
    ck_assert_int_eq(check_op(op, xs, 1, xs, 1, address_range_of, NULL),
                     TANDEM_UNSUPPORTED);
    op->struct_size--;
    ck_assert_int_eq(check_op(op, xs, 1, xs, 1, address_range_of, NULL),
                     TANDEM_OK);
    /* The bytes of a size that was never set are not read. */
    op->struct_size = SIZE_MAX;
    ck_assert_int_eq(check_op(op, xs, 1, xs, 1, address_range_of, NULL),
                     TANDEM_INVALID_ARGUMENT);
    op->struct_size = TANDEM_OP_MIN_SIZE_1_0 - 1;
    ck_assert_int_eq(check_op(op, xs, 1, xs, 1, address_range_of, NULL),
                     TANDEM_INVALID_ARGUMENT);
}

static enum tandem_status check_abs(const struct tandem_tensor_desc *input,
                                    const struct tandem_tensor_desc *output)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_ABS};
    return check_op(&op, &input, 1, &output, 1, address_range_of, NULL);
}

/* Plugins check this when they launch; libtandem uses check_op. */
TEST(aliasing_is_checked)
{
    struct tandem_tensor_desc x = tensor(X, 0, TANDEM_F32, 2, SHAPE(4, 8));
    struct tandem_tensor_desc shifted = x, left = x, right = x, self = x;
    shifted.byte_offset = 4;
    left.shape[1] = right.shape[1] = 4;
    right.byte_offset = 16;
    self.strides[0] = 7;
    ck_assert_int_eq(check_abs(&x, &x), TANDEM_OK);
    ck_assert_int_eq(check_abs(&x, &shifted), TANDEM_INVALID_ARGUMENT);
    ck_assert_int_eq(check_abs(&left, &right), TANDEM_OK);
    ck_assert_int_eq(check_abs(&right, &left), TANDEM_OK);
    right.byte_offset = 12;
    ck_assert_int_eq(check_abs(&left, &right), TANDEM_INVALID_ARGUMENT);
    ck_assert_int_eq(check_abs(&x, &self), TANDEM_INVALID_ARGUMENT);
}

TEST(layouts_merge_axes)
{
    struct iteration_space space;
    struct tandem_tensor_desc a = tensor(X, 0, TANDEM_F32, 3, SHAPE(2, 3, 4));
    struct tandem_tensor_desc column = tensor(X, 0, TANDEM_F32, 2, SHAPE(3, 1));
    const struct tandem_tensor_desc *same[] = {&a, &a},
                                    *mixed[] = {&a, &column, NULL};
    space_broadcast(&space, same, 2, false);
    ck_assert_uint_eq(space.rank, 1);
    ck_assert_int_eq(space.shape[0], 24);
    ck_assert(space_contiguous(&space, 0) && space_contiguous(&space, 1));
    space_broadcast(&space, mixed, 3, false);
    ck_assert_uint_eq(space.rank, 3);
    ck_assert_int_eq(space.strides[1][1], 1);
    ck_assert_int_eq(space.strides[1][2], 0);
    ck_assert(space_constant(&space, 2) && !space_constant(&space, 1));
    a.shape[1] = 0;
    space_broadcast(&space, same, 2, false);
    ck_assert_int_eq(space.elements, 0);
    ck_assert_int_eq(space.shape[0], 0);
    a.rank = 0;
    space_broadcast(&space, same, 2, false);
    ck_assert_int_eq(space.elements, 1);
    ck_assert_uint_eq(space.rank, 1);
}

TEST(layouts_order_axes_by_stride)
{
    struct iteration_space space;
    struct tandem_tensor_desc a = tensor(X, 0, TANDEM_F32, 2, SHAPE(2, 3));
    struct tandem_tensor_desc out = a;
    out.strides[0] = 1;
    out.strides[1] = 2;
    const struct tandem_tensor_desc *operands[] = {&out, &a};
    space_broadcast(&space, operands, 2, false);
    ck_assert_int_eq(space.shape[0], 3);
    ck_assert_int_eq(space.strides[0][1], 1);
    ck_assert_int_eq(space.strides[1][1], 3);
    space_broadcast(&space, operands, 2, true);
    ck_assert_int_eq(space.shape[0], 2);
}

TEST(reductions_split_axes)
{
    struct reduction_spaces split;
    struct tandem_tensor_desc a = tensor(X, 0, TANDEM_F32, 3, SHAPE(2, 3, 4));
    struct tandem_tensor_desc out = tensor(Y, 0, TANDEM_F32, 1, SHAPE(3));
    space_reduce(&split, &a, &out, 5);
    ck_assert_int_eq(split.kept.elements, 3);
    ck_assert_int_eq(split.kept.strides[1][0], 4);
    ck_assert_int_eq(split.reduced.elements, 8);
    ck_assert_uint_eq(split.reduced.rank, 2);
    ck_assert_int_eq(split.reduced.strides[0][0], 12);
    space_reduce(&split, &a, &out, 6);
    ck_assert_uint_eq(split.reduced.rank, 1);
    ck_assert_int_eq(split.reduced.shape[0], 12);
}

/* Factors are rounded to f32, and strides that affect no address are set. */
TEST(gemms_are_normalized)
{
    const struct tandem_gemm gemm = {.struct_size = sizeof gemm,
                                     .dtype = TANDEM_F32,
                                     .m = 1,
                                     .n = 5,
                                     .k = 6,
                                     .batch = 1,
                                     .alpha = 0.1,
                                     .beta = 0.3,
                                     .a = {X, 0, 100, 7},
                                     .b = {X, 512, 5, 7},
                                     .c = {Y, 0, 100, 7}};
    struct tandem_gemm out;
    gemm_args_normalize(&out, &gemm);
    ck_assert_double_eq(out.alpha, (double)0.1f);
    ck_assert_double_eq(out.beta, (double)0.3f);
    ck_assert_uint_eq(out.c_dtype, TANDEM_F32);
    ck_assert_int_eq(out.a.ld, 6);
    ck_assert_int_eq(out.b.ld, 5);
    ck_assert_int_eq(out.c.ld, 5);
    ck_assert_int_eq(out.c.batch_stride, 0);
}

struct thing {
    struct handle handle;
    char body[40];
};
static struct handle_pool things = HANDLE_POOL(struct thing, 0x7461u);

TEST(freed_handles_are_detected)
{
    struct thing *first = handle_new(&things);
    ck_assert(handle_live(&things, first));
    handle_free(&things, first);
    ck_assert(!handle_live(&things, first));
    ck_assert(!handle_live(&things, NULL));
    for (unsigned i = 0; i < HANDLE_QUARANTINE; i++) {
        struct thing *next = handle_new(&things);
        ck_assert_ptr_ne(next, first);
        handle_free(&things, next);
    }
    ck_assert(!handle_live(&things, first));
}

/* ---- the CPU ---- */

static const struct {
    const char *cpuinfo, *name;
} processors[] = {
    {"processor\t: 0\nmodel name\t: A B @ 3 GHz\n\nmodel name\t: C\n",
     "A B @ 3 GHz"},
    {"processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\n"
     "CPU part\t: 0xd0c\n",
     "Arm Neoverse N1"},
    {"CPU implementer\t: 0x61\nCPU architecture: 8\nCPU part\t: 0x023\n",
     "AArch64 (implementer 0x61, part 0x023)"},
    {"CPU implementer\t: 0x46\nCPU part\t: 0xd0c\n",
     "AArch64 (implementer 0x46, part 0xd0c)"},
    {"model name\t: A\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "A"},
    {"CPU implementer\t: 0x41\n", ""},
    {"model names\t: many\n", ""},
    {"no colon\nmodel name", ""},
    {"\n", ""},
};

LOOP_TEST(processors_have_names, CASES_IN(processors))
{
    const char *text = processors[_i].cpuinfo;
    FILE *cpuinfo = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    char name[64];
    ck_assert_ptr_nonnull(cpuinfo);
    processor_name_read(cpuinfo, name, sizeof name);
    ck_assert_str_eq(name, processors[_i].name);
    processor_name_read(cpuinfo, name, 4);
    ck_assert(strncmp(name, processors[_i].name, 3) == 0);
    ck_assert_uint_le(strlen(name), 3);
    fclose(cpuinfo);
}

TEST(this_processor_has_a_name)
{
    char name[64];
    processor_name(name, sizeof name);
    ck_assert_str_ne(name, "");
    processor_value("no such key", name, sizeof name);
    ck_assert_str_eq(name, "");
}

TEST_MAIN(tests_run("common"))
