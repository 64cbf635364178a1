/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one mistake in a valid call; see random_call.h. */
#include "random_call.h"

#include <string.h>

/*
 * A function that returns false if its mistake does not apply to the problem.
 */
typedef bool (*mistake_fn)(struct problem *p, struct random *random);

static struct tandem_tensor_desc *desc_any(struct problem *p,
                                           struct random *random)
{
    uint32_t count = p->inputs + p->outputs;
    uint32_t first = (uint32_t)random_below(random, count);

    for (uint32_t i = 0; i < count; i++)
        if (p->operands[(first + i) % count].present)
            return &p->operands[(first + i) % count].desc;
    return NULL;
}

static bool is_gemm(const struct problem *p)
{
    return p->row->op_class == TANDEM_CLASS_GEMM;
}

static bool mistake_inputs(struct problem *p, struct random *random)
{
    if (is_gemm(p))
        return false;
    p->passed_inputs += random_once_in(random, 2) ? 1u : UINT32_MAX;
    return true;
}

static bool mistake_outputs(struct problem *p, struct random *random)
{
    if (is_gemm(p))
        return false;
    p->passed_outputs += random_once_in(random, 2) ? 1u : UINT32_MAX;
    return true;
}

static bool mistake_int_count(struct problem *p, struct random *random)
{
    if (p->int_count == 0)
        return false;
    p->int_count = (uint32_t)random_below(random, p->int_count);
    return true;
}

static bool mistake_float_count(struct problem *p, struct random *random)
{
    if (p->float_count == 0)
        return false;
    p->float_count = (uint32_t)random_below(random, p->float_count);
    return true;
}

static bool mistake_struct_size(struct problem *p, struct random *random)
{
    if (is_gemm(p))
        p->gemm.struct_size = random_below(random, TANDEM_GEMM_MIN_SIZE_1_0);
    else
        p->struct_size = random_below(random, TANDEM_OP_MIN_SIZE_1_0);
    return true;
}

static int64_t number_wrong(struct random *random, int64_t low, int64_t high)
{
    switch (random_below(random, 4)) {
    case 0:
        return low - 1;
    case 1:
        return high + 1;
    case 2:
        return INT64_MIN;
    default:
        return INT64_MAX;
    }
}

static bool mistake_attribute(struct problem *p, struct random *random)
{
    const struct tandem_tensor_desc *in = &p->operands[0].desc;
    int64_t rank = in->rank;

    switch (p->row->op_class) {
    case TANDEM_CLASS_SOFTMAX:
    case TANDEM_CLASS_NORM:
    case TANDEM_CLASS_GATHER:
        p->ints[0] = number_wrong(random, -rank, rank - 1);
        return true;
    case TANDEM_CLASS_TRANSPOSE:
        if (rank == 0)
            return false;
        p->ints[random_below(random, in->rank)] =
            number_wrong(random, 0, rank - 1);
        return true;
    case TANDEM_CLASS_REDUCE:
    case TANDEM_CLASS_ARG_REDUCE:
        if (random_once_in(random, 2))
            p->ints[1] = number_wrong(random, 0, 1);
        else
            p->ints[0] |=
                random_once_in(random, 2) ? INT64_C(1) << rank : INT64_MIN;
        return true;
    default:
        if (p->row->id != TANDEM_OP_ADAM)
            return false;
        p->ints[0] = -random_between(random, 0, 3);
        return true;
    }
}

static bool mistake_rank(struct problem *p, struct random *random)
{
    struct tandem_tensor_desc *desc = desc_any(p, random);

    if (is_gemm(p))
        return false;
    desc->rank = random_once_in(random, 2) ? 9u : UINT32_MAX;
    return true;
}

static bool mistake_negative(struct problem *p, struct random *random)
{
    struct tandem_tensor_desc *desc = desc_any(p, random);

    if (is_gemm(p) || desc->rank == 0)
        return false;
    desc->shape[random_below(random, desc->rank)] =
        random_once_in(random, 2) ? -1 : INT64_MIN;
    return true;
}

/* Makes an axis of an output longer by one. */
static bool mistake_shape(struct problem *p, struct random *random)
{
    struct tandem_tensor_desc *desc = &p->operands[p->inputs].desc;
    uint32_t axis;

    if (is_gemm(p) || desc->rank == 0)
        return false;
    axis = (uint32_t)random_below(random, desc->rank);
    /* The input of COPY may broadcast to the output. */
    if (p->row->op_class == TANDEM_CLASS_COPY)
        return false;
    desc->shape[axis]++;
    return true;
}

static bool mistake_output_rank(struct problem *p, struct random *random)
{
    struct tandem_tensor_desc *desc = &p->operands[p->inputs].desc;

    (void)random;
    if (is_gemm(p) || desc->rank == TANDEM_MAX_RANK ||
        p->row->op_class == TANDEM_CLASS_COPY)
        return false;
    desc->shape[desc->rank] = 1;
    desc->strides[desc->rank++] = 1;
    return true;
}

static bool mistake_unknown_dtype(struct problem *p, struct random *random)
{
    if (is_gemm(p))
        p->gemm.dtype = 0x0230;
    else
        desc_any(p, random)->dtype = random_once_in(random, 2) ? 0 : 0x0230;
    return true;
}

static bool mistake_dtype(struct problem *p, struct random *random)
{
    struct tandem_tensor_desc *desc = desc_any(p, random);

    if (is_gemm(p) || p->row->op_class == TANDEM_CLASS_CAST)
        return false;
    desc->dtype = desc->dtype == TANDEM_I16 ? TANDEM_U16 : TANDEM_I16;
    p->expected_status = EXPECT_ERROR;
    return true;
}

static bool mistake_missing(struct problem *p, struct random *random)
{
    uint32_t count = p->inputs + p->outputs;
    uint32_t place = p->inputs;

    if (is_gemm(p))
        return false;
    if (p->row->op_class < TANDEM_CLASS_BINARY ||
        p->row->op_class > TANDEM_CLASS_TERNARY || p->inputs < 2)
        place = (uint32_t)random_below(random, count);
    p->missing = 1u << place;
    return true;
}

/*
 * ---- mistakes that only launch can detect ----------------------------------
 */

static bool mistake_unbound(struct problem *p, struct random *random)
{
    uint32_t count = p->inputs + p->outputs;
    uint32_t place = (uint32_t)random_below(random, count);

    if (!p->operands[place].present || (p->without_buffer >> place & 1u) != 0)
        return false;
    p->without_buffer |= 1u << place;
    p->only_launch_detects = true;
    return true;
}

static bool mistake_offset(struct problem *p, struct random *random)
{
    static const uint64_t offsets[] = {UINT64_MAX - 7, UINT64_C(1) << 62,
                                       UINT64_C(1) << 40};
    struct operand *operand = &p->operands[0];
    uint64_t offset = offsets[random_below(random, 3)];

    if (!operand->present || operand->elements == 0)
        return false;
    /* One element past the end. */
    if (random_once_in(random, 2))
        offset =
            operand->desc.byte_offset + ((operand->bytes + 7u) / 8u + 1u) * 8u;
    if (is_gemm(p))
        p->gemm.a.byte_offset = offset;
    else
        operand->desc.byte_offset = offset;
    p->only_launch_detects = true;
    return true;
}

static bool mistake_alignment(struct problem *p, struct random *random)
{
    struct operand *operand = &p->operands[0];

    (void)random;
    if (!operand->present || operand->elements == 0 ||
        TANDEM_DTYPE_BYTES(operand->desc.dtype) == 1 ||
        operand->desc.byte_offset == 0)
        return false;
    if (is_gemm(p))
        p->gemm.a.byte_offset--;
    else
        operand->desc.byte_offset--;
    p->only_launch_detects = true;
    return true;
}

static bool mistake_stride(struct problem *p, struct random *random)
{
    struct operand *operand = &p->operands[0];
    uint32_t axis;

    if (is_gemm(p) || !operand->present || operand->elements == 0 ||
        operand->desc.rank == 0)
        return false;
    axis = (uint32_t)random_below(random, operand->desc.rank);
    if (operand->desc.shape[axis] < 2)
        return false;
    operand->desc.strides[axis] =
        random_once_in(random, 2)
            ? (int64_t)operand->bytes * random_between(random, 1, 3)
        : random_once_in(random, 2) ? -(int64_t)operand->bytes
                                    : INT64_MIN + 1;
    p->only_launch_detects = true;
    return true;
}

/* ---- GEMM ------------------------------------------------------------------
 */

static bool mistake_gemm_size(struct problem *p, struct random *random)
{
    int64_t *sizes[4] = {&p->gemm.m, &p->gemm.n, &p->gemm.k, &p->gemm.batch};
    uint64_t which = random_below(random, 4);

    if (!is_gemm(p))
        return false;
    *sizes[which] = which == 3 && random_once_in(random, 2) ? 0 : -1;
    return true;
}

static bool mistake_gemm_flags(struct problem *p, struct random *random)
{
    if (!is_gemm(p))
        return false;
    if (random_once_in(random, 2))
        p->gemm.flags |= 16u << random_below(random, 28);
    else
        p->gemm.bias_kind = 3u + (uint32_t)random_below(random, 9);
    return true;
}

static bool mistake_gemm_ld(struct problem *p, struct random *random)
{
    static const uint32_t places[3] = {0, 1, 3};
    struct tandem_matrix *matrices[3] = {&p->gemm.a, &p->gemm.b, &p->gemm.c};
    uint64_t which = random_below(random, 3);
    struct tandem_matrix *matrix = matrices[which];
    const int64_t *shape = p->operands[places[which]].desc.shape;
    bool rows = random_once_in(random, 2);

    if (!is_gemm(p) || p->gemm.m < 1 || p->gemm.n < 1 || p->gemm.k < 1)
        return false;
    /*
     * The stride of a single row or a single matrix does not affect any
     * address.
     */
    if (rows && shape[1] > 1)
        matrix->ld = -random_between(random, 0, 3);
    else if (!rows && shape[0] > 1)
        matrix->batch_stride = -random_between(random, 1, 3);
    else
        return false;
    return true;
}

static bool mistake_gemm_c(struct problem *p, struct random *random)
{
    if (!is_gemm(p) || p->gemm.batch < 2 || p->gemm.m < 1 || p->gemm.n < 1)
        return false;
    p->gemm.c.batch_stride = random_once_in(random, 2) ? 0 : p->gemm.n - 1;
    return true;
}

static bool mistake_gemm_activation(struct problem *p, struct random *random)
{
    static const uint32_t others[] = {TANDEM_OP_EXP, TANDEM_OP_ADD,
                                      TANDEM_OP_GEMM, 255};

    if (!is_gemm(p))
        return false;
    p->gemm.activation = others[random_below(random, 4)];
    p->expected_status = EXPECT_ERROR;
    return true;
}

static bool mistake_gemm_dtype(struct problem *p, struct random *random)
{
    if (!is_gemm(p))
        return false;
    p->gemm.c_dtype = p->gemm.dtype;
    if (random_once_in(random, 2))
        p->gemm.dtype = TANDEM_F64;
    else
        p->gemm.c_dtype = TANDEM_I32;
    p->expected_status = EXPECT_UNSUPPORTED;
    return true;
}

static const struct {
    mistake_fn make_mistake;
    const char *what;
} mistakes[] = {
    {mistake_inputs, "another number of inputs"},
    {mistake_outputs, "another number of outputs"},
    {mistake_int_count, "too few integer attributes"},
    {mistake_float_count, "too few float attributes"},
    {mistake_struct_size, "struct_size too small"},
    {mistake_attribute, "an attribute out of range"},
    {mistake_attribute, "an attribute out of range"},
    {mistake_rank, "a rank past 8"},
    {mistake_negative, "a negative shape"},
    {mistake_shape, "another shape of the output"},
    {mistake_output_rank, "another rank of the output"},
    {mistake_unknown_dtype, "an unknown dtype"},
    {mistake_dtype, "another dtype"},
    {mistake_missing, "an operand that is NULL"},
    {mistake_unbound, "a buffer that is NULL"},
    {mistake_offset, "an offset past the end"},
    {mistake_alignment, "an offset within an element"},
    {mistake_stride, "strides out of the buffer"},
    {mistake_gemm_size, "a negative size"},
    {mistake_gemm_flags, "unknown flags"},
    {mistake_gemm_ld, "a leading dimension or batch stride too small"},
    {mistake_gemm_c, "matrices of c that overlap"},
    {mistake_gemm_activation, "no activation"},
    {mistake_gemm_dtype, "a dtype that is not served"},
};

void call_make_invalid(struct problem *problem, struct random *random)
{
    uint32_t count = sizeof(mistakes) / sizeof(mistakes[0]);
    uint32_t first = (uint32_t)random_below(random, count);

    problem->expected_status = EXPECT_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = (first + i) % count;

        if (!mistakes[at].make_mistake(problem, random))
            continue;
        problem->what = mistakes[at].what;
        return;
    }
}
