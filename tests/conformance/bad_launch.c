/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad input to supports, launch, prepare and ready: each case takes a valid
 * call of one operator, spoils one thing and must see it refused by name,
 * with nothing written and the device as able as before.
 */
#include "contract.h"

#include "table.h"

#include <stdio.h>
#include <string.h>

#define GROUP "bad-launch"
#define BYTES 4096u
#define OPERANDS 4u

/* A call over one buffer: input i at 512 i, output k at 2048 + 512 k. */
struct call_parts {
    struct suite *suite;
    const struct op_row *row;
    struct tandem_op op;
    const struct tandem_op *op_pointer;
    int64_t ints[TANDEM_MAX_RANK];
    double floats[8];
    struct tandem_tensor_desc ins[OPERANDS], outs[OPERANDS];
    const struct tandem_tensor_desc *in_pointers[TANDEM_MAX_OPERANDS + 2];
    const struct tandem_tensor_desc *out_pointers[TANDEM_MAX_OPERANDS + 2];
    const struct tandem_tensor_desc *const *in_array, *const *out_array;
    uint32_t in_count, out_count;
    struct tandem_buffer *buffer, *foreign, *freed;
};

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

/* Shapes of operators that are not [3,4] -> [3,4]. */
static void shapes_adjust(struct call_parts *p)
{
    switch (p->op.id) {
    case TANDEM_OP_SUM:
    case TANDEM_OP_REDUCE_MAX:
        p->ints[0] = 2; /* the columns */
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
        p->ints[0] = 1; /* the step */
        break;
    default:
        break;
    }
}

static void parts_set(struct call_parts *p, const struct op_row *row)
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
    for (uint32_t i = 0; i < 8; i++)
        p->floats[i] = 0.5;
    p->in_count = row->inputs;
    p->out_count = row->outputs;
    p->in_array = p->in_pointers;
    p->out_array = p->out_pointers;
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS + 2; i++) {
        uint32_t k = i % OPERANDS;

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

/* ---- what is spoilt ----------------------------------------------------- */

#define SPOIL(name, statement)                                                 \
    static void name(struct call_parts *p)                                     \
    {                                                                          \
        statement;                                                             \
    }

SPOIL(op_null, p->op_pointer = NULL)
SPOIL(op_unknown, p->op.id = 99)
SPOIL(op_zero, p->op.id = 0)
SPOIL(op_huge, p->op.id = 4000000000u)
SPOIL(op_sizeless, p->op.struct_size = 0)
SPOIL(op_short, p->op.struct_size = TANDEM_OP_BYTES_1_0 - 1)
SPOIL(op_flags, p->op.flags = 1u << 31)
SPOIL(op_fused, p->op.id = TANDEM_OP_FUSED)
SPOIL(inputs_null, p->in_array = NULL)
SPOIL(outputs_null, p->out_array = NULL)
SPOIL(input_null, p->in_pointers[0] = NULL)
SPOIL(all_null, p->in_pointers[0] = p->in_pointers[1] = NULL)
SPOIL(output_null, p->out_pointers[0] = NULL)
SPOIL(inputs_few, p->in_count--)
SPOIL(inputs_many, p->in_count++)
SPOIL(inputs_absurd, p->in_count = UINT32_MAX)
SPOIL(outputs_few, p->out_count--)
SPOIL(outputs_many, p->out_count++)
SPOIL(ints_few, p->op.int_count--)
SPOIL(floats_few, p->op.float_count--)
SPOIL(ints_null, p->op.ints = NULL)
SPOIL(floats_null, p->op.floats = NULL)
SPOIL(rank_large, p->ins[0].rank = 9)
SPOIL(rank_absurd, p->outs[0].rank = UINT32_MAX)
SPOIL(shape_negative, p->ins[0].shape[0] = -3)
SPOIL(shape_differs, p->ins[0].shape[1] = 3)
SPOIL(output_differs, p->outs[0].shape[0] = 2)
SPOIL(output_rank, p->outs[0].rank = 1)
SPOIL(dtype_unknown, p->ins[0].dtype = 0x9999)
SPOIL(dtype_zero, p->outs[0].dtype = 0)
SPOIL(dtype_input, p->ins[0].dtype = TANDEM_I32)
SPOIL(dtype_output, p->outs[0].dtype = TANDEM_I32)
SPOIL(dtype_output_f, p->outs[0].dtype = TANDEM_F32)
SPOIL(dtype_labels, p->ins[1].dtype = TANDEM_F32)
SPOIL(axis_large, p->ints[0] = 2)
SPOIL(axis_negative, p->ints[0] = -3)
SPOIL(axes_large, p->ints[0] = 4)
SPOIL(axes_none, p->ints[0] = 0)
SPOIL(axes_negative, p->ints[0] = -1)
SPOIL(axes_two_of_three, (p->ins[0].rank = 3, p->ins[0].shape[2] = 1,
                          p->ins[0].strides[2] = 1, p->ints[0] = 3))
SPOIL(perm_repeats, p->ints[0] = 0)
SPOIL(perm_large, p->ints[1] = 2)
SPOIL(step_zero, p->ints[0] = 0)
SPOIL(first_two, p->ints[0] = 2)
SPOIL(first_minus, p->ints[0] = -1)
SPOIL(first_large, p->ints[0] = INT64_C(1) << 32)
SPOIL(second_two, p->ints[1] = 2)
SPOIL(second_minus, p->ints[1] = -1)
SPOIL(reduce_of_none, p->ins[0].shape[1] = 0)
SPOIL(buffer_null, p->ins[0].buffer = NULL)
SPOIL(output_buffer_null, p->outs[0].buffer = NULL)
SPOIL(buffer_foreign, p->ins[0].buffer = p->foreign)
SPOIL(output_foreign, p->outs[0].buffer = p->foreign)
SPOIL(buffer_freed, p->ins[0].buffer = p->freed)
SPOIL(output_freed, p->outs[0].buffer = p->freed)
SPOIL(offset_past, p->ins[0].byte_offset = BYTES - 44)
SPOIL(output_offset_past, p->outs[0].byte_offset = BYTES - 44)
SPOIL(offset_absurd, p->ins[0].byte_offset = UINT64_MAX - 3)
SPOIL(offset_odd, p->ins[0].byte_offset = 2)
SPOIL(stride_before, p->ins[0].strides[0] = -4)
SPOIL(stride_absurd, p->ins[0].strides[0] = INT64_MAX / 2)
SPOIL(stride_least, p->ins[0].strides[0] = INT64_MIN)

static void shape_huge(struct call_parts *p)
{
    p->ins[0].shape[0] = p->outs[0].shape[0] = INT64_C(1) << 40;
    p->ins[0].shape[1] = p->outs[0].shape[1] = INT64_C(1) << 40;
}

/* ---- cases -------------------------------------------------------------- */

enum spoilt_flags {
    BUFFERS = 1,  /* of launch alone: supports does not look at it */
    NAMELESS = 2, /* there is no operator to name */
    EITHER = 4,   /* invalid anywhere, or not served here */
    FIRM = 8,     /* a NULL, a size or a flag, which the header calls invalid */
    SIZES = 16    /* sizes that no buffer has: supports need not look */
};

#define BAD TANDEM_INVALID_ARGUMENT

static const struct spoilt {
    const char *name;
    uint32_t op;
    void (*spoil)(struct call_parts *p);
    uint32_t flags;
} spoilts[] = {
    {"no operator", TANDEM_OP_NEG, op_null, NAMELESS | FIRM},
    {"an unknown operator", TANDEM_OP_NEG, op_unknown, NAMELESS | EITHER},
    {"operator 0", TANDEM_OP_NEG, op_zero, NAMELESS | EITHER},
    {"operator 4000000000", TANDEM_OP_NEG, op_huge, NAMELESS | EITHER},
    {"a struct_size of 0", TANDEM_OP_NEG, op_sizeless, NAMELESS | FIRM},
    {"a struct_size that is too small", TANDEM_OP_NEG, op_short,
     NAMELESS | FIRM},
    {"the reserved operator", TANDEM_OP_NEG, op_fused, NAMELESS | EITHER},
    {"flags that there are not", TANDEM_OP_NEG, op_flags, FIRM},
    {"flags that there are not", TANDEM_OP_SUM, op_flags, FIRM},
    {"no array of inputs", TANDEM_OP_NEG, inputs_null, FIRM},
    {"no array of outputs", TANDEM_OP_NEG, outputs_null, FIRM},
    {"a NULL input", TANDEM_OP_NEG, input_null, FIRM},
    {"a NULL output", TANDEM_OP_NEG, output_null, FIRM},
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
    {"a shape of 2^80 elements", TANDEM_OP_NEG, shape_huge, SIZES},
    {"an unknown dtype", TANDEM_OP_NEG, dtype_unknown, 0},
    {"output dtype 0", TANDEM_OP_NEG, dtype_zero, 0},
    {"an input dtype that differs", TANDEM_OP_NEG, dtype_input, EITHER},
    {"an output dtype that differs", TANDEM_OP_NEG, dtype_output, EITHER},
    {"an input without a buffer", TANDEM_OP_NEG, buffer_null, BUFFERS},
    {"an output without a buffer", TANDEM_OP_NEG, output_buffer_null, BUFFERS},
    {"an input of another device", TANDEM_OP_NEG, buffer_foreign, BUFFERS},
    {"an output of another device", TANDEM_OP_NEG, output_foreign, BUFFERS},
    {"a freed input", TANDEM_OP_NEG, buffer_freed, BUFFERS},
    {"a freed output", TANDEM_OP_NEG, output_freed, BUFFERS},
    {"an input past the end", TANDEM_OP_NEG, offset_past, BUFFERS},
    {"an output past the end", TANDEM_OP_NEG, output_offset_past, BUFFERS},
    {"an offset that wraps around", TANDEM_OP_ABS, offset_absurd, BUFFERS},
    {"an offset within an element", TANDEM_OP_NEG, offset_odd, BUFFERS},
    {"a stride to before the buffer", TANDEM_OP_NEG, stride_before, BUFFERS},
    {"a stride of 2^62", TANDEM_OP_CEIL, stride_absurd, BUFFERS},
    {"a stride of -2^63", TANDEM_OP_SIGN, stride_least, BUFFERS},
    {"shapes that do not broadcast", TANDEM_OP_ADD, shape_differs, 0},
    {"an output that is not the broadcast", TANDEM_OP_ADD, output_differs, 0},
    {"a scalar without a value", TANDEM_OP_ADD, input_null, 0},
    {"scalars alone", TANDEM_OP_ADD, all_null, 0},
    {"dtypes that differ", TANDEM_OP_ADD, dtype_input, EITHER},
    {"an output of f32", TANDEM_OP_LESS, dtype_output_f, EITHER},
    {"an input of i32", TANDEM_OP_AND, dtype_input, EITHER},
    {"a condition of i32", TANDEM_OP_WHERE, dtype_input, EITHER},
    {"an attribute too few", TANDEM_OP_LEAKY_RELU, floats_few, 0},
    {"attributes at NULL", TANDEM_OP_ELU, floats_null, FIRM},
    {"an attribute too few", TANDEM_OP_CLIP, floats_few, 0},
    {"an attribute too few", TANDEM_OP_GELU, ints_few, 0},
    {"form 2", TANDEM_OP_GELU, first_two, 0},
    {"form -1", TANDEM_OP_GELU, first_minus, 0},
    {"form 2^32", TANDEM_OP_GELU, first_large, 0},
    {"attributes at NULL", TANDEM_OP_ARGMIN, ints_null, FIRM},
    {"shapes that differ", TANDEM_OP_RELU_GRAD, shape_differs, 0},
    {"an axis too large", TANDEM_OP_SUM, axes_large, 0},
    {"no axes", TANDEM_OP_SUM, axes_none, 0},
    {"negative axes", TANDEM_OP_SUM, axes_negative, 0},
    {"keepdims 2", TANDEM_OP_SUM, second_two, 0},
    {"keepdims -1", TANDEM_OP_ARGMAX, second_minus, 0},
    {"an attribute too few", TANDEM_OP_SUM, ints_few, 0},
    {"another output shape", TANDEM_OP_SUM, output_differs, 0},
    {"the maximum of nothing", TANDEM_OP_REDUCE_MAX, reduce_of_none, 0},
    {"an output of f32", TANDEM_OP_ARGMAX, dtype_output_f, EITHER},
    {"two of three axes", TANDEM_OP_ARGMAX, axes_two_of_three, 0},
    {"the first of nothing", TANDEM_OP_ARGMAX, reduce_of_none, 0},
    {"lengths that differ", TANDEM_OP_DOT, output_rank, 0},
    {"an axis too large", TANDEM_OP_SOFTMAX, axis_large, 0},
    {"an axis too small", TANDEM_OP_SOFTMAX, axis_negative, 0},
    {"no axis", TANDEM_OP_SOFTMAX, ints_few, 0},
    {"another output shape", TANDEM_OP_SOFTMAX, output_differs, 0},
    {"labels of f32", TANDEM_OP_CROSS_ENTROPY, dtype_labels, EITHER},
    {"another output shape", TANDEM_OP_CROSS_ENTROPY, output_differs, 0},
    {"an axis too large", TANDEM_OP_GATHER, axis_large, 0},
    {"an axis too small", TANDEM_OP_GATHER, axis_negative, 0},
    {"indices of f32", TANDEM_OP_GATHER, dtype_labels, EITHER},
    {"another output shape", TANDEM_OP_GATHER, output_differs, 0},
    {"a permutation that repeats", TANDEM_OP_TRANSPOSE, perm_repeats, 0},
    {"a permutation out of range", TANDEM_OP_TRANSPOSE, perm_large, 0},
    {"a permutation too short", TANDEM_OP_TRANSPOSE, ints_few, 0},
    {"another output shape", TANDEM_OP_TRANSPOSE, output_differs, 0},
    {"another dtype", TANDEM_OP_COPY, dtype_output, EITHER},
    {"another shape", TANDEM_OP_CAST, output_differs, 0},
    {"an unknown dtype", TANDEM_OP_CAST, dtype_zero, 0},
    {"step 0", TANDEM_OP_ADAM, step_zero, 0},
    {"an attribute too few", TANDEM_OP_ADAM, floats_few, 0},
    {"too few inputs", TANDEM_OP_ADAM, inputs_few, 0},
    {"too few outputs", TANDEM_OP_ADAM, outputs_few, 0},
    {"decoupled 2", TANDEM_OP_ADAM, second_two, 0},
    {"decoupled -1", TANDEM_OP_ADAM, second_minus, 0},
    {"shapes that differ", TANDEM_OP_SGD, shape_differs, 0},
    {"nesterov 2", TANDEM_OP_SGD, first_two, 0},
    {"nesterov -1", TANDEM_OP_SGD, first_minus, 0},
};
#define SPOILTS (sizeof(spoilts) / sizeof(spoilts[0]))

static enum tandem_status supports(struct call_parts *p)
{
    return p->suite->api.supports(p->suite->device, p->op_pointer, p->in_array,
                                  p->in_count, p->out_array, p->out_count);
}

static enum tandem_status launch(struct call_parts *p)
{
    return p->suite->api.launch(p->suite->stream, p->op_pointer, p->in_array,
                                p->in_count, p->out_array, p->out_count);
}

static void unchanged_check(struct call_parts *p, const unsigned char *before)
{
    unsigned char after[BYTES];
    struct suite *suite = p->suite;

    if (EXPECT_OK(suite, suite->api.download(suite->stream, p->buffer, 0, after,
                                             BYTES, 0, SUITE_TIMEOUT_NS)) &&
        memcmp(before, after, BYTES) != 0)
        case_fail(suite, "the refused launch wrote the buffer");
}

/* Whether it may be called unsupported as well.  The header does not say which
 * comes first where a call is invalid and not served. */
static bool either(const struct suite *suite, const struct spoilt *spoilt)
{
    return (spoilt->flags & EITHER) ||
           (!suite->options->strict && !(spoilt->flags & (BUFFERS | FIRM)));
}

/* Refused; either status where the case says so. */
static void refused_check(struct call_parts *p, const struct spoilt *spoilt,
                          enum tandem_status got, struct refusals *refusals)
{
    enum tandem_status want = BAD;
    static char what[SPOILTS][100];
    char *text = what[spoilt - spoilts];
    const char *name = p->row->name;

    if (either(p->suite, spoilt) && got == TANDEM_UNSUPPORTED)
        want = TANDEM_UNSUPPORTED;
    snprintf(text, sizeof(what[0]), "%s with %s", name, spoilt->name);
    expect_refusal(p->suite, refusals, got, want,
                   spoilt->flags & NAMELESS ? NULL : name, text);
}

/* What supports and prepare make of it. */
static void questions_check(struct call_parts *p, const struct spoilt *spoilt)
{
    struct suite *suite = p->suite;
    const bool strict = suite->options->strict;
    enum tandem_status status = supports(p);

    if (!strict && (spoilt->flags & SIZES))
        return;
    if (!either(suite, spoilt) || status != TANDEM_UNSUPPORTED)
        expect(suite, status, BAD, "supports of what launch refused");
    if (!strict || suite->api.prepare == NULL)
        return;
    status = suite->api.prepare(suite->device, p->op_pointer, p->in_array,
                                p->in_count, p->out_array, p->out_count);
    if (status != TANDEM_UNSUPPORTED)
        expect(suite, status, BAD, "prepare of what launch refused");
}

/* A valid call of the operator; where it is not served, and has one input and
 * no attributes, of another such. */
static enum tandem_status operator_choose(struct call_parts *p,
                                          const struct op_row *row)
{
    enum tandem_status status;

    parts_set(p, row);
    status = supports(p);
    for (uint32_t id = TANDEM_OP_NEG;
         status == TANDEM_UNSUPPORTED && row->op_class == TANDEM_CLASS_UNARY &&
         row->ints + row->floats == 0 && id <= TANDEM_OP_HARDSWISH;
         id++) {
        const struct op_row *other = op_find(id);

        if (other == NULL || other->ints + other->floats != 0)
            continue;
        parts_set(p, other);
        status = supports(p);
    }
    return status;
}

static void spoilt_run(struct call_parts *p, const struct spoilt *spoilt,
                       const unsigned char *before, struct refusals *refusals)
{
    struct suite *suite = p->suite;
    enum tandem_status status;

    status = operator_choose(p, op_find(spoilt->op));
    if (status == TANDEM_UNSUPPORTED) {
        case_skip(suite, "needs the operator %s", op_find(spoilt->op)->name);
        return;
    }
    if (!expect(suite, status, TANDEM_OK, "supports of the valid call"))
        return;
    spoilt->spoil(p);
    refused_check(p, spoilt, launch(p), refusals);
    if (!(spoilt->flags & BUFFERS))
        questions_check(p, spoilt);
    unchanged_check(p, before);
    parts_set(p, p->row);
    expect(suite, launch(p), TANDEM_OK, "the valid call afterwards");
    EXPECT_OK(suite,
              suite->api.upload(suite->stream, p->buffer, 0, before, BYTES, 0));
}

static bool parts_open(struct suite *suite, struct call_parts *p,
                       struct tandem_device **out_other,
                       const unsigned char *before)
{
    const struct tandem_backend *api = &suite->api;

    memset(p, 0, sizeof(*p));
    p->suite = suite;
    *out_other = NULL;
    if (!EXPECT_OK(suite, suite_open(suite, NULL, NULL, out_other)) ||
        !EXPECT_OK(suite, api->alloc(*out_other, BYTES, &p->foreign)) ||
        !EXPECT_OK(suite, api->alloc(suite->device, BYTES, &p->freed)) ||
        !EXPECT_OK(suite, api->alloc(suite->device, BYTES, &p->buffer)))
        return false;
    api->free(p->freed);
    return EXPECT_OK(
        suite, api->upload(suite->stream, p->buffer, 0, before, BYTES, 0));
}

/* A NULL stream or device, to every function that takes an operator. */
static void case_no_device(struct suite *suite)
{
    struct refusals refusals = {0};
    struct tandem_tensor_desc desc = flat_desc(NULL, TANDEM_F32, 4);
    const struct tandem_tensor_desc *descs[] = {&desc};
    struct tandem_op op = {.struct_size = sizeof(op), .id = TANDEM_OP_NEG};
    const struct tandem_backend *api = &suite->api;

    if (!case_begin(suite, GROUP, "no stream, no device"))
        return;
    expect_refusal(suite, &refusals, api->launch(NULL, &op, descs, 1, descs, 1),
                   BAD, NULL, "launch on no stream");
    expect_refusal(suite, &refusals,
                   api->supports(NULL, &op, descs, 1, descs, 1), BAD, NULL,
                   "supports of no device");
    if (api->prepare != NULL)
        expect_refusal(suite, &refusals,
                       api->prepare(NULL, &op, descs, 1, descs, 1), BAD, NULL,
                       "prepare on no device");
    if (api->ready != NULL)
        expect_refusal(suite, &refusals,
                       api->ready(NULL, &op, descs, 1, descs, 1), BAD, NULL,
                       "ready of no device");
    case_end(suite);
}

void bad_input_launch(struct suite *suite)
{
    static struct refusals refusals; /* distinct over all the cases */
    unsigned char before[BYTES];
    struct tandem_device *other = NULL;
    struct call_parts parts;

    memset(&refusals, 0, sizeof(refusals));
    for (uint32_t i = 0; i < BYTES; i++)
        before[i] = (unsigned char)(i % 3 == 0);
    case_no_device(suite);
    for (uint32_t i = 0; i < SPOILTS; i++) {
        if (!case_begin(suite, GROUP, "%s: %s", op_find(spoilts[i].op)->name,
                        spoilts[i].name))
            continue;
        if (parts_open(suite, &parts, &other, before))
            spoilt_run(&parts, &spoilts[i], before, &refusals);
        suite->api.free(parts.buffer);
        if (other != NULL)
            suite->api.close(other);
        case_end(suite);
    }
}
