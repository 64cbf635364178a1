/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cast, copy and transpose: each pair of dtypes, or each element width, over
 * shapes and strides.
 */
#include "element_value.h"
#include "moved.h"

#include <math.h>

static const struct domain domains[] = {
    {TANDEM_OP_CAST,
     -300,
     300,
     6,
     {2147483648.0, -2147483648.0, 255.5, -0.9, 9223372036854775808.0, 0}},
};

static const uint32_t cast_dtypes[] = {TANDEM_F32, TANDEM_I32,  TANDEM_I64,
                                       TANDEM_U8,  TANDEM_BOOL, TANDEM_F16,
                                       TANDEM_BF16};

/* ---- reference ---- */

static void range_of(uint32_t dtype, int64_t *out_low, int64_t *out_high)
{
    switch (dtype) {
    case TANDEM_U8:
        *out_low = 0;
        *out_high = UINT8_MAX;
        break;
    case TANDEM_I32:
        *out_low = INT32_MIN;
        *out_high = INT32_MAX;
        break;
    default:
        *out_low = INT64_MIN;
        *out_high = INT64_MAX;
        break;
    }
}

static int64_t truncated(double x, uint32_t dtype)
{
    int64_t low, high;

    range_of(dtype, &low, &high);
    if (isnan(x))
        return 0;
    if (x <= (double)low)
        return low;
    if (x >= (double)high)
        return high;
    return (int64_t)x;
}

static int64_t saturated(int64_t x, uint32_t dtype)
{
    int64_t low, high;

    range_of(dtype, &low, &high);
    return x < low ? low : x > high ? high : x;
}

static int64_t cast_integer(const struct dense *in, int64_t i, uint32_t dtype)
{
    if (dtype_is_float(in->dtype)) {
        double x = dense_real(in, i);

        return dtype == TANDEM_BOOL ? x != 0.0 : truncated(x, dtype);
    }
    if (dtype == TANDEM_BOOL)
        return dense_integer(in, i) != 0;
    return saturated(dense_integer(in, i), dtype);
}

static void reference_cast(const struct call *call, const struct dense *in,
                           struct expected *out)
{
    const uint32_t dtype = call->operands[1].desc.dtype;
    bool real = dtype_is_float(dtype);

    expected_init(out, real ? EXPECTED_REAL : EXPECTED_INTEGER, in->elements);
    out->exact = true;
    for (int64_t i = 0; i < in->elements; i++) {
        if (!real)
            out->integer[i] = cast_integer(in, i, dtype);
        else if (dtype_is_float(in->dtype))
            out->real[i] = dense_real(in, i);
        else /* Rounded once, from the exact integer. */
            out->real[i] = integer_rounded(dtype, dense_integer(in, i));
    }
}

static void reference_copy(const struct call *call, const struct dense *in,
                           struct expected *out)
{
    (void)call;
    expected_init(out, EXPECTED_BITS, in->elements);
    for (int64_t i = 0; i < in->elements; i++)
        out->integer[i] = (int64_t)in->bits[i];
}

static void reference_transpose(const struct call *call, const struct dense *in,
                                struct expected *out)
{
    const struct tandem_tensor_desc *desc = &call->operands[1].desc;
    int64_t step[TANDEM_MAX_RANK], own[TANDEM_MAX_RANK];
    int64_t index[TANDEM_MAX_RANK] = {0};
    int64_t count = 1;

    for (uint32_t axis = in->rank; axis-- > 0;) {
        own[axis] = count;
        count *= in->shape[axis];
    }
    for (uint32_t axis = 0; axis < in->rank; axis++)
        step[axis] = own[call->ints[axis]];
    expected_init(out, EXPECTED_BITS, in->elements);
    for (int64_t i = 0; i < in->elements; i++) {
        int64_t at = 0;

        for (uint32_t axis = 0; axis < in->rank; axis++)
            at += index[axis] * step[axis];
        out->integer[i] = (int64_t)in->bits[at];
        index_next(desc->rank, desc->shape, index);
    }
}

/* ---- cases of cast ---- */

/*
 * Devices must support casts of f32 and, with the capability for 16-bit floats,
 * of these.
 */
static uint32_t cast_caps(uint32_t from, uint32_t to)
{
    if (dtype_has_16_bits(from) || dtype_has_16_bits(to))
        return TANDEM_CAP_CORE_OPERATORS | TANDEM_CAP_F16_BF16_STORAGE;
    return from != to && (from == TANDEM_F32 || to == TANDEM_F32)
               ? TANDEM_CAP_CORE_OPERATORS
               : 0;
}

/* Casts all 65536 values of a 16-bit dtype. */
static void numbers_run(struct suite *suite, const struct op_row *row,
                        uint32_t from, uint32_t to)
{
    static const struct shape shape = S(65536);
    struct call *call = call_begin(suite, row, "every %s to %s",
                                   dtype_text(from), dtype_text(to));

    if (call == NULL)
        return;
    call->required_caps = cast_caps(from, to);
    call_operand(call, 0, from, &shape, DENSE);
    for (int64_t i = 0; i < shape.at[0]; i++)
        operand_set(&call->operands[0], i, (uint64_t)i);
    call_operand(call, 1, to, &shape, DENSE);
    call_end(suite, call);
}

/*
 * Integers near the first ones that f32 cannot represent, and integers up to
 * 2^25 that are halfway between two neighbours in bf16 or off by one.
 */
static void integers_run(struct suite *suite, const struct op_row *row,
                         uint32_t from)
{
    static const struct shape shape = S(1021);
    struct call *call =
        call_begin(suite, row, "%s near 2^24 to bf16", dtype_text(from));

    if (call == NULL)
        return;
    call->required_caps = cast_caps(from, TANDEM_BF16);
    call_operand(call, 0, from, &shape, OFFSET);
    for (int64_t i = 0; i < shape.at[0]; i++) {
        int shift = (int)random_between(call->random, 14, 16);
        int64_t x = (random_between(call->random, 128, 254) * 2 + 1) << shift;

        x += random_between(call->random, -1, 1);
        x = random_once_in(call->random, 2) ? -x : x;
        operand_set(&call->operands[0], i, bits_from_integer(from, x));
    }
    call_operand(call, 1, TANDEM_BF16, &shape, OFFSET);
    call_end(suite, call);
}

/*
 * Each pair of dtypes. A smoke run selects pairs by the seed, because all of
 * them would compile too many kernels.
 */
static void pairs_run(struct suite *suite, const struct op_row *row)
{
    const uint64_t count = COUNT_OF(cast_dtypes);

    for (uint64_t i = 0; i < count * count; i++) {
        const struct block block = {.numbers = {i / count, i % count}};

        if (!suite->options->smoke ||
            (suite->options->seed + i / count + i % count) % 3 == 0)
            drawn_case_run(suite, row, &block, "%s to %s",
                           dtype_text(cast_dtypes[i / count]),
                           dtype_text(cast_dtypes[i % count]));
    }
}

static void cast_cases(struct suite *suite, const struct op_row *row)
{
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t j = 0; j < COUNT_OF(cast_dtypes); j++) {
            uint32_t from = i == 0 ? TANDEM_F16 : TANDEM_BF16;
            uint32_t to = cast_dtypes[j];
            bool usual =
                to == TANDEM_F32 || (dtype_has_16_bits(to) && to != from);

            if (usual || !suite->options->smoke)
                numbers_run(suite, row, from, to);
        }
    integers_run(suite, row, TANDEM_I32);
    integers_run(suite, row, TANDEM_I64);
    pairs_run(suite, row);
}

/* ---- random calls ---- */

static void draw_cast(struct call *call, const struct block *block)
{
    const uint32_t from =
        cast_dtypes[block->numbers[0] % COUNT_OF(cast_dtypes)];
    const uint32_t to = cast_dtypes[block->numbers[1] % COUNT_OF(cast_dtypes)];
    struct shape shape;

    call->required_caps = cast_caps(from, to);
    shape_draw(&shape, call->random, 0, TANDEM_MAX_RANK);
    operand_draw(call, 0, from, &shape);
    operand_draw(call, 1, to, &shape);
}

/* Half of the operands have values that are ties when they are rounded. */
static bool fill_cast(struct call *call, uint32_t input,
                      const struct spread *spread)
{
    const uint32_t to = call->operands[1].desc.dtype;

    (void)spread;
    if (!dtype_has_16_bits(to) || random_once_in(call->random, 2))
        return false;
    operand_fill_ties(&call->operands[input], call->random, call->row, to);
    return true;
}

uint32_t moved_dtype(struct call *call, const struct block *block)
{
    static const uint32_t dtypes[] = {
        TANDEM_I8,  TANDEM_I16,  TANDEM_I32, TANDEM_I64, TANDEM_U8,
        TANDEM_U16, TANDEM_U32,  TANDEM_U64, TANDEM_F16, TANDEM_F32,
        TANDEM_F64, TANDEM_BF16, TANDEM_BOOL};
    const uint32_t dtype = dtypes[block->numbers[2] % COUNT_OF(dtypes)];

    if (dtype != TANDEM_F32)
        call->required_caps = 0;
    return dtype;
}

static void draw_copy(struct call *call, const struct block *block)
{
    const uint32_t dtype = moved_dtype(call, block);
    struct shape in, out;

    shape_draw(&out, call->random, 0, TANDEM_MAX_RANK);
    in = out;
    if (random_once_in(call->random, 3))
        shape_narrow(&in, call->random, &out,
                     (uint32_t)random_u64(call->random) & 255u);
    operand_draw(call, 0, dtype, &in);
    operand_draw(call, 1, dtype, &out);
}

static void draw_transpose(struct call *call, const struct block *block)
{
    const uint32_t dtype = moved_dtype(call, block);
    struct shape in, out;

    shape_draw(&in, call->random, 0, TANDEM_MAX_RANK);
    call->int_count = in.rank;
    for (uint32_t i = 0; i < in.rank; i++)
        call->ints[i] = i;
    random_shuffle(call->random, in.rank, call->ints);
    out.rank = in.rank;
    for (uint32_t i = 0; i < in.rank; i++)
        out.at[i] = in.at[call->ints[i]];
    operand_draw(call, 0, dtype, &in);
    operand_draw(call, 1, dtype, &out);
}

bool moved_fill(struct call *call, uint32_t input, const struct spread *spread)
{
    (void)spread;
    operand_fill_bits(&call->operands[input], call->random);
    return true;
}

static bool draw_invalid_permutation(struct call *call)
{
    uint32_t rank = call->operands[0].desc.rank, axis;

    if (rank == 0)
        return false;
    axis = (uint32_t)random_below(call->random, rank);
    call->ints[axis] = invalid_number_draw(call->random, 0, (int64_t)rank - 1);
    return true;
}

/* ---- invalid calls ---- */

static void make_valid_cast(struct mistaken_call *p)
{
    p->outs[0].dtype = TANDEM_I32;
}

static void make_valid_transpose(struct mistaken_call *p)
{
    p->op.int_count = 2;
    p->ints[0] = 1;
    p->ints[1] = 0;
    mistaken_tensor_set(&p->outs[0], TANDEM_F32, 2, 4, 3);
}

#define CAST_MISTAKES(X)                                                       \
    X(cast_output_differs, CAST, "another shape", 0, p->outs[0].shape[0] = 2)
#define COPY_MISTAKES(X)                                                       \
    X(copy_dtype_output, COPY, "another dtype", MAYBE_LATER,                   \
      p->outs[0].dtype = TANDEM_I32)
#define TRANSPOSE_MISTAKES(X)                                                  \
    X(transpose_perm_repeats, TRANSPOSE, "a permutation that repeats", 0,      \
      p->ints[0] = 0)                                                          \
    X(transpose_perm_large, TRANSPOSE, "a permutation out of range", 0,        \
      p->ints[1] = 2)                                                          \
    X(transpose_ints_few, TRANSPOSE, "a permutation too short", 0,             \
      p->op.int_count--)                                                       \
    X(transpose_output_differs, TRANSPOSE, "another output shape", 0,          \
      p->outs[0].shape[0] = 2)

MISTAKE_TABLE(cast_mistakes, CAST_MISTAKES)
MISTAKE_TABLE(copy_mistakes, COPY_MISTAKES)
MISTAKE_TABLE(transpose_mistakes, TRANSPOSE_MISTAKES)

/* ---- the classes ---- */

const struct suite_class suite_cast = {
    .rules = FREE_OUTPUT_DTYPE,
    .cases = cast_cases,
    .reference = reference_cast,
    .domains = domains,
    .domain_count = COUNT_OF(domains),
    .draw = draw_cast,
    .fill = fill_cast,
    .weight = 4,
    .make_valid = make_valid_cast,
    CLASS_MISTAKES(cast_mistakes),
};

const struct suite_class suite_copy = {
    .rules = BROADCASTS | FREE_OUTPUT_SHAPE,
    .reference = reference_copy,
    .draw = draw_copy,
    .fill = moved_fill,
    .weight = 4,
    CLASS_MISTAKES(copy_mistakes),
};

const struct suite_class suite_transpose = {
    .reference = reference_transpose,
    .draw = draw_transpose,
    .fill = moved_fill,
    .draw_invalid_attribute = draw_invalid_permutation,
    .weight = 2,
    .make_valid = make_valid_transpose,
    CLASS_MISTAKES(transpose_mistakes),
};
