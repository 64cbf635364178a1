/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one mistake in a valid random call; see draw.h. gemm_mistakes.c has the
 * mistakes in the sizes and attributes of a GEMM.
 */
#include "draw.h"

#include "suite_class.h"

/*
 * A function that returns false if its mistake does not apply to the problem.
 */
typedef bool (*mistake_fn)(struct call *p);

static struct tandem_tensor_desc *desc_any(struct call *p)
{
    uint32_t count = p->inputs + p->outputs;
    uint32_t first = (uint32_t)random_below(p->random, count);

    for (uint32_t i = 0; i < count; i++)
        if (p->operands[(first + i) % count].present)
            return &p->operands[(first + i) % count].desc;
    return NULL;
}

static bool has_rule(const struct call *p, enum class_rules rule)
{
    return (class_of(p->row)->rules & rule) != 0;
}

static bool mistake_inputs(struct call *p)
{
    if (has_rule(p, VARIADIC))
        p->passed_inputs = 0;
    else
        p->passed_inputs += random_once_in(p->random, 2) ? 1u : UINT32_MAX;
    return true;
}

static bool mistake_outputs(struct call *p)
{
    p->passed_outputs += random_once_in(p->random, 2) ? 1u : UINT32_MAX;
    return true;
}

static bool mistake_int_count(struct call *p)
{
    if (p->int_count == 0)
        return false;
    p->int_count = (uint32_t)random_below(p->random, p->int_count);
    return true;
}

static bool mistake_float_count(struct call *p)
{
    if (p->float_count == 0)
        return false;
    /* The attributes after those of the table are scalars or optional. */
    p->float_count = (uint32_t)random_below(
        p->random, p->row->floats > 0 ? p->row->floats : p->float_count);
    return true;
}

static bool mistake_struct_size(struct call *p)
{
    if (call_is_gemm(p))
        p->gemm.struct_size = random_below(p->random, TANDEM_GEMM_MIN_SIZE_1_0);
    else
        p->struct_size = random_below(p->random, TANDEM_OP_MIN_SIZE_1_0);
    return true;
}

static bool mistake_attribute(struct call *p)
{
    const struct suite_class *class = class_of(p->row);

    return class->draw_invalid_attribute != NULL &&
           class->draw_invalid_attribute(p);
}

static bool mistake_rank(struct call *p)
{
    struct tandem_tensor_desc *desc = desc_any(p);

    desc->rank = random_once_in(p->random, 2) ? 9u : UINT32_MAX;
    return true;
}

static bool mistake_negative(struct call *p)
{
    struct tandem_tensor_desc *desc = desc_any(p);

    if (desc->rank == 0)
        return false;
    desc->shape[random_below(p->random, desc->rank)] =
        random_once_in(p->random, 2) ? -1 : INT64_MIN;
    return true;
}

/* Makes an axis of an output longer by one. */
static bool mistake_shape(struct call *p)
{
    struct tandem_tensor_desc *desc = &p->operands[p->inputs].desc;
    uint32_t axis;

    if (desc->rank == 0)
        return false;
    axis = (uint32_t)random_below(p->random, desc->rank);
    if (has_rule(p, FREE_OUTPUT_SHAPE))
        return false;
    desc->shape[axis]++;
    return true;
}

static bool mistake_output_rank(struct call *p)
{
    struct tandem_tensor_desc *desc = &p->operands[p->inputs].desc;

    if (desc->rank == TANDEM_MAX_RANK || has_rule(p, FREE_OUTPUT_SHAPE))
        return false;
    desc->shape[desc->rank] = 1;
    desc->strides[desc->rank++] = 1;
    return true;
}

static bool mistake_unknown_dtype(struct call *p)
{
    if (call_is_gemm(p))
        p->gemm.dtype = 0x0230;
    else
        desc_any(p)->dtype = random_once_in(p->random, 2) ? 0 : 0x0230;
    p->expected_status = EXPECT_UNSUPPORTED;
    return true;
}

static bool mistake_dtype(struct call *p)
{
    struct tandem_tensor_desc *desc = desc_any(p);

    if (has_rule(p, FREE_OUTPUT_DTYPE))
        return false;
    desc->dtype = desc->dtype == TANDEM_I16 ? TANDEM_U16 : TANDEM_I16;
    p->expected_status = EXPECT_INVALID_OR_UNSUPPORTED;
    return true;
}

static bool mistake_missing(struct call *p)
{
    uint32_t count = p->inputs + p->outputs;
    uint32_t place = p->inputs;

    if (!has_rule(p, BROADCASTS) || p->inputs < 2)
        place = (uint32_t)random_below(p->random, count);
    p->missing = 1u << place;
    return true;
}

/*
 * ---- mistakes that only launch can detect ----------------------------------
 */

static bool mistake_unbound(struct call *p)
{
    uint32_t count = p->inputs + p->outputs;
    uint32_t place = (uint32_t)random_below(p->random, count);

    if (!p->operands[place].present || (p->without_buffer >> place & 1u) != 0)
        return false;
    p->without_buffer |= 1u << place;
    p->only_launch_detects = true;
    return true;
}

static bool mistake_offset(struct call *p)
{
    static const uint64_t offsets[] = {UINT64_MAX - 7, UINT64_C(1) << 62,
                                       UINT64_C(1) << 40};
    struct operand *operand = &p->operands[0];
    uint64_t offset = offsets[random_below(p->random, 3)];

    if (!operand->present || operand->elements == 0)
        return false;
    /* One element past the end. */
    if (random_once_in(p->random, 2))
        offset =
            operand->desc.byte_offset + ((operand->bytes + 7u) / 8u + 1u) * 8u;
    if (call_is_gemm(p))
        p->gemm.a.byte_offset = offset;
    else
        operand->desc.byte_offset = offset;
    p->only_launch_detects = true;
    return true;
}

static bool mistake_alignment(struct call *p)
{
    struct operand *operand = &p->operands[0];

    if (!operand->present || operand->elements == 0 ||
        TANDEM_DTYPE_BYTES(operand->desc.dtype) == 1 ||
        operand->desc.byte_offset == 0)
        return false;
    if (call_is_gemm(p))
        p->gemm.a.byte_offset--;
    else
        operand->desc.byte_offset--;
    p->only_launch_detects = true;
    return true;
}

static bool mistake_stride(struct call *p)
{
    struct operand *operand = &p->operands[0];
    uint32_t axis;

    if (!operand->present || operand->elements == 0 || operand->desc.rank == 0)
        return false;
    axis = (uint32_t)random_below(p->random, operand->desc.rank);
    if (operand->desc.shape[axis] < 2)
        return false;
    operand->desc.strides[axis] =
        random_once_in(p->random, 2)
            ? (int64_t)operand->bytes * random_between(p->random, 1, 3)
        : random_once_in(p->random, 2) ? -(int64_t)operand->bytes
                                       : INT64_MIN + 1;
    p->only_launch_detects = true;
    return true;
}

static const struct {
    mistake_fn make_mistake;
    enum { ANY_CALL, NOT_GEMM } scope;
    const char *what;
} mistakes[] = {
    {mistake_inputs, NOT_GEMM, "another number of inputs"},
    {mistake_outputs, NOT_GEMM, "another number of outputs"},
    {mistake_int_count, NOT_GEMM, "too few integer attributes"},
    {mistake_float_count, NOT_GEMM, "too few float attributes"},
    {mistake_struct_size, ANY_CALL, "struct_size too small"},
    {mistake_attribute, ANY_CALL, "an attribute out of range"},
    {mistake_attribute, ANY_CALL, "an attribute out of range"},
    {mistake_rank, NOT_GEMM, "a rank past 8"},
    {mistake_negative, NOT_GEMM, "a negative shape"},
    {mistake_shape, NOT_GEMM, "another shape of the output"},
    {mistake_output_rank, NOT_GEMM, "another rank of the output"},
    {mistake_unknown_dtype, ANY_CALL, "an unknown dtype"},
    {mistake_dtype, NOT_GEMM, "another dtype"},
    {mistake_missing, NOT_GEMM, "an operand that is NULL"},
    {mistake_unbound, ANY_CALL, "a buffer that is NULL"},
    {mistake_offset, ANY_CALL, "an offset past the end"},
    {mistake_alignment, ANY_CALL, "an offset within an element"},
    {mistake_stride, NOT_GEMM, "strides out of the buffer"},
};

void mistake_draw(struct call *call)
{
    uint32_t count = COUNT_OF(mistakes);
    uint32_t first = (uint32_t)random_below(call->random, count);

    call->expected_status = EXPECT_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = (first + i) % count;

        if ((mistakes[at].scope == NOT_GEMM && call_is_gemm(call)) ||
            !mistakes[at].make_mistake(call))
            continue;
        call->what = mistakes[at].what;
        return;
    }
}
