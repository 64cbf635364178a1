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

const uint32_t moved_dtypes[MOVED_DTYPES] = {
    TANDEM_F32,  TANDEM_U8,  TANDEM_I16, TANDEM_I64, TANDEM_I32,
    TANDEM_BOOL, TANDEM_F16, TANDEM_F64, TANDEM_BF16};

/* Shapes and layouts of cast and copy. */
struct move_form {
    const char *name;
    enum level level;
    struct shape shape;
    enum operand_layout out, in;
};

static const struct move_form move_forms[] = {
    {"rank 0", SOME, S0, DENSE, DENSE},
    {"empty [3,0]", SOME, S(3, 0), DENSE, DENSE},
    {"[1]", SOME, S(1), OFFSET, OFFSET},
    {"[1021]", ALWAYS, S(1021), DENSE, DENSE},
    {"[70001]", SOME, S(70001), DENSE, DENSE},
    {"offset [515]", ALWAYS, S(515), OFFSET, OFFSET},
    {"offset in [300]", SOME, S(300), DENSE, OFFSET},
    {"padded [31,17]", SOME, S(31, 17), PADDED, PADDED},
    {"long padded [3,523]", ALWAYS, S(3, 523), PADDED, PADDED},
    {"step [101]", SOME, S(101), STEP, STEP},
    {"transposed [67,35]", ALWAYS, S(67, 35), DENSE, REVERSED},
    {"transposed out [33,65]", SOME, S(33, 65), REVERSED, DENSE},
    {"negative [15,11]", ALWAYS, S(15, 11), NEGATIVE, NEGATIVE},
    {"zero [12,9]", SOME, S(12, 9), DENSE, REPEATED},
    {"permuted [5,3,7,4]", SOME, S(5, 3, 7, 4), PERMUTED, PERMUTED},
    {"any [6,7,8]", ALWAYS, S(6, 7, 8), ANY, ANY},
    {"rank 8", SOME, S(2, 3, 1, 2, 2, 3, 1, 2), ANY, ANY},
};
/* The form with which a smoke run tests each pair of dtypes. */
#define CAST_FORM 3u

static const struct transpose_form {
    enum level level;
    struct shape shape;
    int64_t perm[TANDEM_MAX_RANK];
} transpose_forms[] = {
    {SOME, S0, {0}},
    {SOME, S(53), {0}},
    {ALWAYS, S(37, 65), {1, 0}},
    {ALWAYS, S(128, 64), {1, 0}},
    {SOME, S(1, 33), {1, 0}},
    {SOME, S(33, 1), {1, 0}},
    {SOME, S(0, 5), {1, 0}},
    {SOME, S(301, 259), {1, 0}},
    {ALWAYS, S(132, 200), {1, 0}},
    {SOME, S(3, 68, 128), {0, 2, 1}},
    {SOME, S(20, 30), {0, 1}},
    {ALWAYS, S(5, 17, 33), {0, 2, 1}},
    {SOME, S(5, 17, 33), {2, 1, 0}},
    {SOME, S(9, 8, 7), {1, 2, 0}},
    {ALWAYS, S(2, 3, 5, 7), {0, 2, 3, 1}},
    {SOME, S(2, 3, 5, 7), {3, 1, 2, 0}},
    {SOME, S(2, 1, 3, 2, 2, 1, 2, 3), {7, 5, 3, 1, 0, 2, 4, 6}},
};

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

/* ---- cast ---- */

/* Devices with the capability for 16-bit floats must cast them. */
static uint32_t cast_caps(uint32_t from, uint32_t to, bool required)
{
    if (dtype_has_16_bits(from) || dtype_has_16_bits(to))
        return TANDEM_CAP_CORE_OPERATORS | TANDEM_CAP_F16_BF16_STORAGE;
    return required ? TANDEM_CAP_CORE_OPERATORS : 0;
}

static void cast_run(struct suite *suite, const struct op_row *row,
                     uint32_t from, uint32_t to, const struct move_form *form)
{
    struct call *call = call_begin(suite, row, "%s to %s, %s", dtype_text(from),
                                   dtype_text(to), form->name);

    if (call == NULL)
        return;
    call->required_caps = cast_caps(
        from, to, from != to && (from == TANDEM_F32 || to == TANDEM_F32));
    call_operand(call, 0, from, &form->shape, form->in);
    if (dtype_has_16_bits(to))
        operand_fill_ties(&call->operands[0], call->random, row, to);
    else
        operand_fill(&call->operands[0], call->random, row);
    call_operand(call, 1, to, &form->shape, form->out);
    call_end(suite, call);
}

/*
 * A smoke run selects pairs by the seed, so that each dtype occurs as source
 * and target. Testing all pairs would compile too many kernels.
 */
static bool pair_is_selected(const struct suite *suite, uint32_t i, uint32_t j)
{
    uint32_t from = cast_dtypes[i], to = cast_dtypes[j];
    bool narrow = dtype_has_16_bits(from) || dtype_has_16_bits(to);
    bool common = from == TANDEM_F32 || to == TANDEM_F32 ||
                  (!dtype_has_16_bits(from) && !dtype_has_16_bits(to));

    return common && (!suite->options->smoke || narrow ||
                      (suite->options->seed + i + j) % 3 == 0);
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
    call->required_caps = cast_caps(from, to, true);
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
    call->required_caps = cast_caps(from, TANDEM_BF16, true);
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

static void cast_cases(struct suite *suite, const struct op_row *row)
{
    struct random choice;

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

    random_seed(&choice, suite->options->seed, "cast");
    for (uint32_t i = 0; i < COUNT_OF(cast_dtypes); i++)
        for (uint32_t j = 0; j < COUNT_OF(cast_dtypes); j++)
            for (uint32_t f = 0; f < COUNT_OF(move_forms); f++)
                if (form_chosen(suite, &choice,
                                f == CAST_FORM && pair_is_selected(suite, i, j),
                                12))
                    cast_run(suite, row, cast_dtypes[i], cast_dtypes[j],
                             &move_forms[f]);
}

/* ---- copy and transpose ---- */

void moved_require(struct call *call, uint32_t dtype)
{
    if (dtype != TANDEM_F32)
        call->required_caps = 0;
}

static void copy_run(struct suite *suite, const struct op_row *row,
                     uint32_t dtype, const struct move_form *form,
                     bool broadcast)
{
    struct call *call = call_begin(suite, row, "%s %s%s", dtype_text(dtype),
                                   form->name, broadcast ? ", broadcast" : "");
    struct shape shape = form->shape;

    if (call == NULL)
        return;
    moved_require(call, dtype);
    for (uint32_t i = 0; i < shape.rank; i++)
        if (broadcast && random_once_in(call->random, 2))
            shape.at[i] = 1;
    operand_fill_bits(call_operand(call, 0, dtype, &shape, form->in),
                      call->random);
    call_operand(call, 1, dtype, &form->shape, form->out);
    call_end(suite, call);
}

static void copy_cases(struct suite *suite, const struct op_row *row)
{
    struct random choice;

    random_seed(&choice, suite->options->seed, "copy");
    for (uint32_t i = 0; i < MOVED_DTYPES; i++)
        for (uint32_t f = 0; f < COUNT_OF(move_forms); f++) {
            bool always = move_forms[f].level == ALWAYS && i < 4;

            if (form_chosen(suite, &choice, always, 6))
                copy_run(suite, row, moved_dtypes[i], &move_forms[f], false);
            if (form_chosen(suite, &choice, false, 8))
                copy_run(suite, row, moved_dtypes[i], &move_forms[f], true);
        }
}

/* Sets the permutation. Returns the shape of the output. */
static struct shape permuted(struct call *call, const struct shape *shape,
                             const int64_t *perm)
{
    struct shape out = {shape->rank, {0}};

    call->int_count = shape->rank;
    for (uint32_t i = 0; i < shape->rank; i++) {
        call->ints[i] = perm[i];
        out.at[i] = shape->at[perm[i]];
    }
    return out;
}

static void transpose_run(struct suite *suite, const struct op_row *row,
                          uint32_t dtype, const struct transpose_form *form,
                          bool strided)
{
    enum operand_layout layout = strided ? ANY : DENSE;
    struct shape out;
    struct call *call = call_begin(
        suite, row, "%s %s by %s%s", dtype_text(dtype),
        shape_text(form->shape.rank, form->shape.at),
        shape_text(form->shape.rank, form->perm), strided ? ", strided" : "");

    if (call == NULL)
        return;
    moved_require(call, dtype);
    out = permuted(call, &form->shape, form->perm);
    operand_fill_bits(call_operand(call, 0, dtype, &form->shape, layout),
                      call->random);
    call_operand(call, 1, dtype, &out, layout);
    call_end(suite, call);
}

static void transpose_cases(struct suite *suite, const struct op_row *row)
{
    struct random choice;

    random_seed(&choice, suite->options->seed, "transpose");
    for (uint32_t i = 0; i < MOVED_DTYPES; i++)
        for (uint32_t f = 0; f < COUNT_OF(transpose_forms); f++) {
            const struct transpose_form *form = &transpose_forms[f];

            if (form_chosen(suite, &choice, form->level == ALWAYS && i < 2, 5))
                transpose_run(suite, row, moved_dtypes[i], form, false);
            if (form_chosen(suite, &choice, false, 8))
                transpose_run(suite, row, moved_dtypes[i], form, true);
        }
}

/* ---- random calls ---- */

static void draw_cast(struct call *call, const struct block *block)
{
    const uint32_t from =
        cast_dtypes[block->numbers[0] % COUNT_OF(cast_dtypes)];
    const uint32_t to = cast_dtypes[block->numbers[1] % COUNT_OF(cast_dtypes)];
    struct shape shape;

    call->required_caps = cast_caps(from, to, true);
    shape_draw(&shape, call->random, 0, TANDEM_MAX_RANK);
    operand_draw(call, 0, from, &shape);
    operand_draw(call, 1, to, &shape);
}

uint32_t moved_dtype(const struct block *block)
{
    static const uint32_t dtypes[] = {
        TANDEM_I8,  TANDEM_I16,  TANDEM_I32, TANDEM_I64, TANDEM_U8,
        TANDEM_U16, TANDEM_U32,  TANDEM_U64, TANDEM_F16, TANDEM_F32,
        TANDEM_F64, TANDEM_BF16, TANDEM_BOOL};

    return dtypes[block->numbers[2] % COUNT_OF(dtypes)];
}

static void draw_copy(struct call *call, const struct block *block)
{
    const uint32_t dtype = moved_dtype(block);
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
    const uint32_t dtype = moved_dtype(block);
    int64_t perm[TANDEM_MAX_RANK];
    struct shape in, out;

    shape_draw(&in, call->random, 0, TANDEM_MAX_RANK);
    for (uint32_t i = 0; i < in.rank; i++)
        perm[i] = i;
    random_shuffle(call->random, in.rank, perm);
    out = permuted(call, &in, perm);
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
    .weight = 4,
    .make_valid = make_valid_cast,
    CLASS_MISTAKES(cast_mistakes),
};

const struct suite_class suite_copy = {
    .rules = BROADCASTS | FREE_OUTPUT_SHAPE,
    .cases = copy_cases,
    .reference = reference_copy,
    .draw = draw_copy,
    .fill = moved_fill,
    .weight = 4,
    CLASS_MISTAKES(copy_mistakes),
};

const struct suite_class suite_transpose = {
    .cases = transpose_cases,
    .reference = reference_transpose,
    .draw = draw_transpose,
    .fill = moved_fill,
    .draw_invalid_attribute = draw_invalid_permutation,
    .weight = 2,
    .make_valid = make_valid_transpose,
    CLASS_MISTAKES(transpose_mistakes),
};
