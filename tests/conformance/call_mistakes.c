/* SPDX-License-Identifier: Apache-2.0 */
/* Table of invalid calls of launch; see mistakes.h. */
#include "mistakes.h"

#include <string.h>

#define BYTES MISTAKE_BYTES
/* Flags of a mistake in a buffer that the header requires to be rejected. */
#define INVALID_BUFFER (IN_BUFFER | ALWAYS_INVALID)

static void tensor_set(struct tandem_tensor_desc *desc, uint32_t dtype,
                       uint32_t rank, int64_t rows, int64_t columns)
{
    desc->dtype = dtype;
    desc->rank = rank;
    desc->shape[0] = rows;
    desc->shape[1] = columns;
    desc->strides[0] = rank == 2 ? columns : 1;
    desc->strides[1] = 1;
}

/* Changes the shapes for operators that do not map [3,4] to [3,4]. */
static void shapes_adjust(struct mistaken_call *p)
{
    switch (p->op.id) {
    case TANDEM_OP_SUM:
    case TANDEM_OP_REDUCE_MAX:
        p->ints[0] = 2; /* The columns. */
        tensor_set(&p->outs[0], TANDEM_F32, 1, 3, 0);
        break;
    case TANDEM_OP_ARGMAX:
    case TANDEM_OP_ARGMIN:
        p->ints[0] = 2;
        tensor_set(&p->outs[0], TANDEM_I64, 1, 3, 0);
        break;
    case TANDEM_OP_DOT:
        tensor_set(&p->ins[0], TANDEM_F32, 1, 5, 0);
        tensor_set(&p->ins[1], TANDEM_F32, 1, 5, 0);
        tensor_set(&p->outs[0], TANDEM_F32, 0, 0, 0);
        break;
    case TANDEM_OP_GATHER:
        tensor_set(&p->ins[1], TANDEM_I32, 1, 5, 0);
        tensor_set(&p->outs[0], TANDEM_F32, 2, 5, 4);
        break;
    case TANDEM_OP_CROSS_ENTROPY:
        tensor_set(&p->ins[1], TANDEM_I32, 1, 3, 0);
        tensor_set(&p->outs[0], TANDEM_F32, 1, 3, 0);
        break;
    case TANDEM_OP_TRANSPOSE:
        p->op.int_count = 2;
        p->ints[0] = 1;
        p->ints[1] = 0;
        tensor_set(&p->outs[0], TANDEM_F32, 2, 4, 3);
        break;
    case TANDEM_OP_CAST:
        p->outs[0].dtype = TANDEM_I32;
        break;
    case TANDEM_OP_LESS:
        p->outs[0].dtype = TANDEM_BOOL;
        break;
    case TANDEM_OP_AND:
        p->ins[0].dtype = p->ins[1].dtype = p->outs[0].dtype = TANDEM_BOOL;
        break;
    case TANDEM_OP_WHERE:
        p->ins[0].dtype = TANDEM_BOOL;
        break;
    case TANDEM_OP_ADAM:
        p->ints[0] = 1; /* The step. */
        break;
    default:
        break;
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
    for (uint32_t i = 0; i < CALL_FLOATS; i++)
        p->floats[i] = 0.5;
    p->in_count = row->inputs;
    p->out_count = row->outputs;
    p->in_array = p->in_pointers;
    p->out_array = p->out_pointers;
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS + 2; i++) {
        uint32_t k = i % CALL_OPERANDS;

        tensor_set(&p->ins[k], TANDEM_F32, 2, 3, 4);
        tensor_set(&p->outs[k], TANDEM_F32, 2, 3, 4);
        p->ins[k].buffer = p->outs[k].buffer = p->buffer;
        p->ins[k].byte_offset = 512u * k;
        p->outs[k].byte_offset = 2048u + 512u * k;
        p->in_pointers[i] = &p->ins[k];
        p->out_pointers[i] = &p->outs[k];
    }
    shapes_adjust(p);
}

/* ---- the mistakes ---- */

#define MISTAKE(name, statement)                                               \
    static void name(struct mistaken_call *p)                                  \
    {                                                                          \
        statement;                                                             \
    }

MISTAKE(op_null, p->op_pointer = NULL)
MISTAKE(op_unknown, p->op.id = 99)
MISTAKE(op_zero, p->op.id = 0)
MISTAKE(op_huge, p->op.id = 4000000000u)
MISTAKE(op_sizeless, p->op.struct_size = 0)
MISTAKE(op_short, p->op.struct_size = TANDEM_OP_MIN_SIZE_1_0 - 1)
MISTAKE(op_last, p->op.id = TANDEM_OP_ID_END - 1)
MISTAKE(op_flags, p->op.flags = 1u << 31)
MISTAKE(inputs_null, p->in_array = NULL)
MISTAKE(outputs_null, p->out_array = NULL)
MISTAKE(input_null, p->in_pointers[0] = NULL)
MISTAKE(all_null, p->in_pointers[0] = p->in_pointers[1] = NULL)
MISTAKE(output_null, p->out_pointers[0] = NULL)
MISTAKE(inputs_few, p->in_count--)
MISTAKE(inputs_many, p->in_count++)
MISTAKE(inputs_absurd, p->in_count = UINT32_MAX)
MISTAKE(outputs_few, p->out_count--)
MISTAKE(outputs_many, p->out_count++)
MISTAKE(ints_few, p->op.int_count--)
MISTAKE(floats_few, p->op.float_count--)
MISTAKE(ints_null, p->op.ints = NULL)
MISTAKE(floats_null, p->op.floats = NULL)
MISTAKE(rank_large, p->ins[0].rank = 9)
MISTAKE(rank_absurd, p->outs[0].rank = UINT32_MAX)
MISTAKE(shape_negative, p->ins[0].shape[0] = -3)
MISTAKE(shape_differs, p->ins[0].shape[1] = 3)
MISTAKE(output_differs, p->outs[0].shape[0] = 2)
MISTAKE(output_rank, p->outs[0].rank = 1)
MISTAKE(dtype_unknown, p->ins[0].dtype = 0x9999)
MISTAKE(dtype_zero, p->outs[0].dtype = 0)
MISTAKE(dtype_input, p->ins[0].dtype = TANDEM_I32)
MISTAKE(dtype_output, p->outs[0].dtype = TANDEM_I32)
MISTAKE(dtype_output_f, p->outs[0].dtype = TANDEM_F32)
MISTAKE(dtype_labels, p->ins[1].dtype = TANDEM_F32)
MISTAKE(axis_large, p->ints[0] = 2)
MISTAKE(axis_negative, p->ints[0] = -3)
MISTAKE(axes_large, p->ints[0] = 4)
MISTAKE(axes_none, p->ints[0] = 0)
MISTAKE(axes_negative, p->ints[0] = -1)
MISTAKE(axes_two_of_three, (p->ins[0].rank = 3, p->ins[0].shape[2] = 1,
                            p->ins[0].strides[2] = 1, p->ints[0] = 3))
MISTAKE(perm_repeats, p->ints[0] = 0)
MISTAKE(perm_large, p->ints[1] = 2)
MISTAKE(step_zero, p->ints[0] = 0)
MISTAKE(first_two, p->ints[0] = 2)
MISTAKE(first_minus, p->ints[0] = -1)
MISTAKE(first_large, p->ints[0] = INT64_C(1) << 32)
MISTAKE(second_two, p->ints[1] = 2)
MISTAKE(second_minus, p->ints[1] = -1)
MISTAKE(reduce_of_none, p->ins[0].shape[1] = 0)
MISTAKE(buffer_null, p->ins[0].buffer = NULL)
MISTAKE(output_buffer_null, p->outs[0].buffer = NULL)
MISTAKE(buffer_foreign, p->ins[0].buffer = p->other_device_object)
MISTAKE(output_foreign, p->outs[0].buffer = p->other_device_object)
MISTAKE(buffer_freed, p->ins[0].buffer = p->freed)
MISTAKE(output_freed, p->outs[0].buffer = p->freed)
MISTAKE(offset_past, p->ins[0].byte_offset = BYTES - 44)
MISTAKE(output_offset_past, p->outs[0].byte_offset = BYTES - 44)
MISTAKE(offset_absurd, p->ins[0].byte_offset = UINT64_MAX - 3)
MISTAKE(offset_odd, p->ins[0].byte_offset = 2)
MISTAKE(stride_before, p->ins[0].strides[0] = -4)
MISTAKE(stride_absurd, p->ins[0].strides[0] = INT64_MAX / 2)
MISTAKE(stride_least, p->ins[0].strides[0] = INT64_MIN)

static void shape_huge(struct mistaken_call *p)
{
    p->ins[0].shape[0] = p->outs[0].shape[0] = INT64_C(1) << 40;
    p->ins[0].shape[1] = p->outs[0].shape[1] = INT64_C(1) << 40;
}

const struct call_mistake call_mistakes[] = {
    {"no operator", TANDEM_OP_NEG, op_null, UNNAMED | ALWAYS_INVALID},
    {"an unknown operator", TANDEM_OP_NEG, op_unknown, UNNAMED | MAYBE_LATER},
    {"operator 0", TANDEM_OP_NEG, op_zero, UNNAMED | MAYBE_LATER},
    {"operator 4000000000", TANDEM_OP_NEG, op_huge, UNNAMED | MAYBE_LATER},
    {"a struct_size of 0", TANDEM_OP_NEG, op_sizeless,
     UNNAMED | ALWAYS_INVALID},
    {"a struct_size that is too small", TANDEM_OP_NEG, op_short,
     UNNAMED | ALWAYS_INVALID},
    {"the last operator number", TANDEM_OP_NEG, op_last,
     UNNAMED | MAYBE_LATER},
    {"unknown flags", TANDEM_OP_NEG, op_flags, ALWAYS_INVALID},
    {"unknown flags", TANDEM_OP_SUM, op_flags, ALWAYS_INVALID},
    {"no array of inputs", TANDEM_OP_NEG, inputs_null, ALWAYS_INVALID},
    {"no array of outputs", TANDEM_OP_NEG, outputs_null, ALWAYS_INVALID},
    {"a NULL input", TANDEM_OP_NEG, input_null, ALWAYS_INVALID},
    {"a NULL output", TANDEM_OP_NEG, output_null, ALWAYS_INVALID},
    {"too few inputs", TANDEM_OP_NEG, inputs_few, 0},
    {"too many inputs", TANDEM_OP_NEG, inputs_many, 0},
    {"4294967295 inputs", TANDEM_OP_NEG, inputs_absurd, 0},
    {"too few outputs", TANDEM_OP_NEG, outputs_few, 0},
    {"too many outputs", TANDEM_OP_NEG, outputs_many, 0},
    {"rank 9", TANDEM_OP_NEG, rank_large, 0},
    {"rank 4294967295", TANDEM_OP_NEG, rank_absurd, 0},
    {"a negative shape", TANDEM_OP_NEG, shape_negative, 0},
    {"another shape", TANDEM_OP_NEG, shape_differs, 0},
    {"another output shape", TANDEM_OP_NEG, output_differs, 0},
    {"another output rank", TANDEM_OP_NEG, output_rank, 0},
    {"a shape of 2^80 elements", TANDEM_OP_NEG, shape_huge, IN_SIZE},
    {"an unknown dtype", TANDEM_OP_NEG, dtype_unknown, 0},
    {"output dtype 0", TANDEM_OP_NEG, dtype_zero, 0},
    {"an input dtype that differs", TANDEM_OP_NEG, dtype_input, MAYBE_LATER},
    {"an output dtype that differs", TANDEM_OP_NEG, dtype_output, MAYBE_LATER},
    {"an input without a buffer", TANDEM_OP_NEG, buffer_null, INVALID_BUFFER},
    {"an output without a buffer", TANDEM_OP_NEG, output_buffer_null,
     INVALID_BUFFER},
    {"an input of another device", TANDEM_OP_NEG, buffer_foreign,
     INVALID_BUFFER},
    {"an output of another device", TANDEM_OP_NEG, output_foreign,
     INVALID_BUFFER},
    {"a freed input", TANDEM_OP_NEG, buffer_freed, INVALID_BUFFER},
    {"a freed output", TANDEM_OP_NEG, output_freed, INVALID_BUFFER},
    {"an input past the end", TANDEM_OP_NEG, offset_past, INVALID_BUFFER},
    {"an output past the end", TANDEM_OP_NEG, output_offset_past,
     INVALID_BUFFER},
    {"an offset that wraps around", TANDEM_OP_ABS, offset_absurd,
     INVALID_BUFFER},
    {"an offset within an element", TANDEM_OP_NEG, offset_odd, INVALID_BUFFER},
    {"a stride to before the buffer", TANDEM_OP_NEG, stride_before,
     INVALID_BUFFER},
    {"a stride of 2^62", TANDEM_OP_CEIL, stride_absurd, INVALID_BUFFER},
    {"a stride of -2^63", TANDEM_OP_SIGN, stride_least, INVALID_BUFFER},
    {"shapes that do not broadcast", TANDEM_OP_ADD, shape_differs, 0},
    {"an output that is not the broadcast", TANDEM_OP_ADD, output_differs, 0},
    {"a scalar without a value", TANDEM_OP_ADD, input_null, 0},
    {"scalars alone", TANDEM_OP_ADD, all_null, 0},
    {"dtypes that differ", TANDEM_OP_ADD, dtype_input, MAYBE_LATER},
    {"an output of f32", TANDEM_OP_LESS, dtype_output_f, MAYBE_LATER},
    {"an input of i32", TANDEM_OP_AND, dtype_input, MAYBE_LATER},
    {"a condition of i32", TANDEM_OP_WHERE, dtype_input, MAYBE_LATER},
    {"an attribute too few", TANDEM_OP_LEAKY_RELU, floats_few, 0},
    {"attributes at NULL", TANDEM_OP_ELU, floats_null, ALWAYS_INVALID},
    {"an attribute too few", TANDEM_OP_CLIP, floats_few, 0},
    {"an attribute too few", TANDEM_OP_GELU, ints_few, 0},
    {"form 2", TANDEM_OP_GELU, first_two, 0},
    {"form -1", TANDEM_OP_GELU, first_minus, 0},
    {"form 2^32", TANDEM_OP_GELU, first_large, 0},
    {"attributes at NULL", TANDEM_OP_ARGMIN, ints_null, ALWAYS_INVALID},
    {"shapes that differ", TANDEM_OP_RELU_GRAD, shape_differs, 0},
    {"an axis too large", TANDEM_OP_SUM, axes_large, 0},
    {"no axes", TANDEM_OP_SUM, axes_none, 0},
    {"negative axes", TANDEM_OP_SUM, axes_negative, 0},
    {"keepdims 2", TANDEM_OP_SUM, second_two, 0},
    {"keepdims -1", TANDEM_OP_ARGMAX, second_minus, 0},
    {"an attribute too few", TANDEM_OP_SUM, ints_few, 0},
    {"another output shape", TANDEM_OP_SUM, output_differs, 0},
    {"the maximum of nothing", TANDEM_OP_REDUCE_MAX, reduce_of_none, 0},
    {"an output of f32", TANDEM_OP_ARGMAX, dtype_output_f, MAYBE_LATER},
    {"two of three axes", TANDEM_OP_ARGMAX, axes_two_of_three, 0},
    {"the first of nothing", TANDEM_OP_ARGMAX, reduce_of_none, 0},
    {"lengths that differ", TANDEM_OP_DOT, output_rank, 0},
    {"an axis too large", TANDEM_OP_SOFTMAX, axis_large, 0},
    {"an axis too small", TANDEM_OP_SOFTMAX, axis_negative, 0},
    {"no axis", TANDEM_OP_SOFTMAX, ints_few, 0},
    {"another output shape", TANDEM_OP_SOFTMAX, output_differs, 0},
    {"labels of f32", TANDEM_OP_CROSS_ENTROPY, dtype_labels, MAYBE_LATER},
    {"another output shape", TANDEM_OP_CROSS_ENTROPY, output_differs, 0},
    {"an axis too large", TANDEM_OP_GATHER, axis_large, 0},
    {"an axis too small", TANDEM_OP_GATHER, axis_negative, 0},
    {"indices of f32", TANDEM_OP_GATHER, dtype_labels, MAYBE_LATER},
    {"another output shape", TANDEM_OP_GATHER, output_differs, 0},
    {"a permutation that repeats", TANDEM_OP_TRANSPOSE, perm_repeats, 0},
    {"a permutation out of range", TANDEM_OP_TRANSPOSE, perm_large, 0},
    {"a permutation too short", TANDEM_OP_TRANSPOSE, ints_few, 0},
    {"another output shape", TANDEM_OP_TRANSPOSE, output_differs, 0},
    {"another dtype", TANDEM_OP_COPY, dtype_output, MAYBE_LATER},
    {"another shape", TANDEM_OP_CAST, output_differs, 0},
    {"an unknown dtype", TANDEM_OP_CAST, dtype_zero, 0},
    {"step 0", TANDEM_OP_ADAM, step_zero, 0},
    {"an attribute too few", TANDEM_OP_ADAM, floats_few, 0},
    {"too few inputs", TANDEM_OP_ADAM, inputs_few, 0},
    {"too few outputs", TANDEM_OP_ADAM, outputs_few, 0},
    {"decoupled_weight_decay 2", TANDEM_OP_ADAM, second_two, 0},
    {"decoupled_weight_decay -1", TANDEM_OP_ADAM, second_minus, 0},
    {"shapes that differ", TANDEM_OP_SGD, shape_differs, 0},
    {"nesterov 2", TANDEM_OP_SGD, first_two, 0},
    {"nesterov -1", TANDEM_OP_SGD, first_minus, 0},
};
_Static_assert(sizeof(call_mistakes) / sizeof(call_mistakes[0]) ==
                   CALL_MISTAKES,
               "CALL_MISTAKES is the length of the table");
