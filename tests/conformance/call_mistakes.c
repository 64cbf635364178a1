/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid calls of launch that do not depend on the operator, made with neg and
 * other operators of one input; see mistakes.h.
 */
#include "mistakes.h"

#include "suite_class.h"

#include <string.h>

void mistaken_tensor_set(struct tandem_tensor_desc *desc, uint32_t dtype,
                         uint32_t rank, int64_t rows, int64_t columns)
{
    desc->dtype = dtype;
    desc->rank = rank;
    desc->shape[0] = rows;
    desc->shape[1] = columns;
    desc->strides[0] = rank == 2 ? columns : 1;
    desc->strides[1] = 1;
}

void mistaken_shape_set(struct tandem_tensor_desc *desc, struct shape shape)
{
    int64_t stride = 1;

    desc->dtype = TANDEM_F32;
    desc->rank = shape.rank;
    for (uint32_t i = shape.rank; i-- > 0; stride *= shape.at[i]) {
        desc->shape[i] = shape.at[i];
        desc->strides[i] = stride;
    }
}

void mistaken_call_reset(struct mistaken_call *p, const struct op_row *row)
{
    p->row = row;
    p->op = (struct tandem_op){.struct_size = sizeof(p->op),
                               .id = row->id,
                               .int_count = row->ints,
                               .float_count = row->floats,
                               .ints = p->ints,
                               .floats = p->floats};
    p->op_pointer = &p->op;
    memset(p->ints, 0, sizeof(p->ints));
    for (uint32_t i = 0; i < TANDEM_MAX_ATTRIBUTES; i++)
        p->floats[i] = 0.5;
    p->in_count = row->inputs;
    p->out_count = row->outputs;
    p->in_array = p->in_pointers;
    p->out_array = p->out_pointers;
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS + 2; i++) {
        uint32_t k = i % MISTAKE_OPERANDS;

        mistaken_tensor_set(&p->ins[k], TANDEM_F32, 2, 3, 4);
        mistaken_tensor_set(&p->outs[k], TANDEM_F32, 2, 3, 4);
        p->ins[k].buffer = p->outs[k].buffer = p->buffer;
        p->ins[k].byte_offset = 512u * k;
        p->outs[k].byte_offset = 2048u + 512u * k;
        p->in_pointers[i] = &p->ins[k];
        p->out_pointers[i] = &p->outs[k];
    }
    if (class_of(row)->make_valid != NULL)
        class_of(row)->make_valid(p);
}

static void shape_set_huge(struct mistaken_call *p)
{
    p->ins[0].shape[0] = p->outs[0].shape[0] = INT64_C(1) << 40;
    p->ins[0].shape[1] = p->outs[0].shape[1] = INT64_C(1) << 40;
}

#define MISTAKES(X)                                                            \
    X(op_null, NEG, "no operator", ALWAYS_INVALID, p->op_pointer = NULL)       \
    X(op_unknown, NEG, "an unknown operator", MAYBE_LATER, p->op.id = 99)      \
    X(op_zero, NEG, "operator 0", MAYBE_LATER, p->op.id = 0)                   \
    X(op_huge, NEG, "operator 4000000000", MAYBE_LATER,                        \
      p->op.id = 4000000000u)                                                  \
    X(op_sizeless, NEG, "a struct_size of 0", ALWAYS_INVALID,                  \
      p->op.struct_size = 0)                                                   \
    X(op_short, NEG, "a struct_size that is too small", ALWAYS_INVALID,        \
      p->op.struct_size = TANDEM_OP_MIN_SIZE_1_0 - 1)                          \
    X(op_last, NEG, "the last operator number", MAYBE_LATER,                   \
      p->op.id = TANDEM_OP_ID_END - 1)                                         \
    X(inputs_null, NEG, "no array of inputs", ALWAYS_INVALID,                  \
      p->in_array = NULL)                                                      \
    X(outputs_null, NEG, "no array of outputs", ALWAYS_INVALID,                \
      p->out_array = NULL)                                                     \
    X(input_null, NEG, "a NULL input", ALWAYS_INVALID,                         \
      p->in_pointers[0] = NULL)                                                \
    X(output_null, NEG, "a NULL output", ALWAYS_INVALID,                       \
      p->out_pointers[0] = NULL)                                               \
    X(inputs_few, NEG, "too few inputs", 0, p->in_count--)                     \
    X(inputs_many, NEG, "too many inputs", 0, p->in_count++)                   \
    X(inputs_absurd, NEG, "4294967295 inputs", 0, p->in_count = UINT32_MAX)    \
    X(outputs_few, NEG, "too few outputs", 0, p->out_count--)                  \
    X(outputs_many, NEG, "too many outputs", 0, p->out_count++)                \
    X(rank_large, NEG, "rank 9", 0, p->ins[0].rank = 9)                        \
    X(rank_absurd, NEG, "rank 4294967295", 0, p->outs[0].rank = UINT32_MAX)    \
    X(shape_negative, NEG, "a negative shape", 0, p->ins[0].shape[0] = -3)     \
    X(shape_differs, NEG, "another shape", 0, p->ins[0].shape[1] = 3)          \
    X(output_differs, NEG, "another output shape", 0, p->outs[0].shape[0] = 2) \
    X(output_rank, NEG, "another output rank", 0, p->outs[0].rank = 1)         \
    X(shape_huge, NEG, "a shape of 2^80 elements", IN_SIZE, shape_set_huge(p)) \
    X(dtype_input, NEG, "an input dtype that differs", MAYBE_LATER,            \
      p->ins[0].dtype = TANDEM_I32)                                            \
    X(dtype_output, NEG, "an output dtype that differs", MAYBE_LATER,          \
      p->outs[0].dtype = TANDEM_I32)                                           \
    X(buffer_null, NEG, "an input without a buffer", INVALID_BUFFER,           \
      p->ins[0].buffer = NULL)                                                 \
    X(output_buffer_null, NEG, "an output without a buffer", INVALID_BUFFER,   \
      p->outs[0].buffer = NULL)                                                \
    X(buffer_foreign, NEG, "an input of another device", INVALID_BUFFER,       \
      p->ins[0].buffer = p->other_device_object)                               \
    X(output_foreign, NEG, "an output of another device", INVALID_BUFFER,      \
      p->outs[0].buffer = p->other_device_object)                              \
    X(buffer_freed, NEG, "a freed input", INVALID_BUFFER,                      \
      p->ins[0].buffer = p->freed)                                             \
    X(output_freed, NEG, "a freed output", INVALID_BUFFER,                     \
      p->outs[0].buffer = p->freed)                                            \
    X(offset_past, NEG, "an input past the end", INVALID_BUFFER,               \
      p->ins[0].byte_offset = MISTAKE_BYTES - 44)                              \
    X(output_offset_past, NEG, "an output past the end", INVALID_BUFFER,       \
      p->outs[0].byte_offset = MISTAKE_BYTES - 44)                             \
    X(offset_absurd, ABS, "an offset that wraps around", INVALID_BUFFER,       \
      p->ins[0].byte_offset = UINT64_MAX - 3)                                  \
    X(offset_odd, NEG, "an offset within an element", INVALID_BUFFER,          \
      p->ins[0].byte_offset = 2)                                               \
    X(stride_before, NEG, "a stride to before the buffer", INVALID_BUFFER,     \
      p->ins[0].strides[0] = -4)                                               \
    X(stride_absurd, CEIL, "a stride of 2^62", INVALID_BUFFER,                 \
      p->ins[0].strides[0] = INT64_MAX / 2)                                    \
    X(stride_least, SIGN, "a stride of -2^63", INVALID_BUFFER,                 \
      p->ins[0].strides[0] = INT64_MIN)

MISTAKES(MISTAKE_FUNCTION)
const struct call_mistake general_mistakes[] = {MISTAKES(MISTAKE_ROW)};
const uint32_t general_mistake_count = COUNT_OF(general_mistakes);
