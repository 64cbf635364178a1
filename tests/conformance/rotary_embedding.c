/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rotary embeddings: both orders of pairs, a part of a row, with positions that
 * are partly out of range and without, and strided operands.
 */
#include "element_value.h"
#include "inputs.h"
#include "suite_class.h"

#include <math.h>

enum { INTERLEAVED, ROTARY_DIM };
enum { X, COS, SIN, POSITIONS };

/* A result is unspecified if a finite term has a larger magnitude. */
#define MAX_TERM 0x1p126

static const struct rotary_form {
    enum level level;
    int64_t batch, heads, tokens, width;
    int64_t rotary_dim; /* 0: all elements */
    int64_t length;     /* of the caches, with positions */
    enum operand_layout in, out;
} forms[] = {
    {ALWAYS, 2, 3, 5, 8, 0, 9, DENSE, DENSE},
    {ALWAYS, 1, 4, 7, 64, 32, 50, DENSE, DENSE},
    {SOME, 3, 2, 33, 128, 0, 100, DENSE, DENSE},
    {SOME, 1, 32, 1, 128, 0, 4096, DENSE, DENSE},
    {SOME, 2, 2, 4, 7, 4, 3, DENSE, DENSE},
    {SOME, 2, 5, 300, 2, 0, 512, DENSE, DENSE},
    {SOME, 2, 3, 6, 10, 6, 11, PERMUTED, PERMUTED},
    {ALWAYS, 2, 3, 6, 10, 0, 11, REVERSED, REVERSED},
    {SOME, 2, 3, 6, 10, 6, 11, PADDED, PADDED},
    {SOME, 2, 3, 6, 10, 2, 11, ANY, ANY},
    {SOME, 2, 3, 6, 10, 0, 11, OFFSET, OFFSET},
    {SOME, 2, 3, 6, 10, 8, 11, REPEATED, NEGATIVE},
    {SOME, 2, 3, 6, 10, 10, 1, DENSE, DENSE},
    {SOME, 2, 3, 6, 10, 0, 0, DENSE, DENSE},
    {SOME, 2, 3, 0, 10, 0, 4, DENSE, DENSE},
    {SOME, 0, 3, 4, 10, 0, 4, DENSE, DENSE},
    {SOME, 2, 0, 4, 10, 0, 4, DENSE, DENSE},
    {SOME, 2, 3, 4, 0, 0, 4, DENSE, DENSE},
};

/* ---- reference ---- */

/* Sets a result to the sum of two products. */
static void sum_set(const struct call *call, double p, double q,
                    struct expected *out, int64_t at)
{
    const double magnitude = fabs(p) + fabs(q);

    out->real[at] = p + q;
    out->tolerance[at] =
        call->row->tolerance * REFERENCE_2EPS * magnitude + 0x1p-125;
    if ((isfinite(p) && fabs(p) > MAX_TERM) ||
        (isfinite(q) && fabs(q) > MAX_TERM))
        out->unspecified[at] = UNSPECIFIED_UNLESS_NAN;
}

/* Sets the elements of a row, whose first one is `first`. */
static void row_set(const struct call *call, const struct dense *in,
                    int64_t first, int64_t cache, struct expected *out)
{
    const int64_t width = in[X].shape[3];
    const int64_t rotated =
        call->ints[ROTARY_DIM] != 0 ? call->ints[ROTARY_DIM] : width;
    const int64_t pairs = rotated / 2;

    for (int64_t i = 0; i < pairs; i++) {
        const bool neighbours = call->ints[INTERLEAVED] != 0;
        const int64_t at_a = first + (neighbours ? 2 * i : i);
        const int64_t at_b = at_a + (neighbours ? 1 : pairs);
        const double a = dense_real(&in[X], at_a), b = dense_real(&in[X], at_b);

        if (cache < 0) {
            out->real[at_a] = out->real[at_b] = (double)NAN;
            continue;
        }
        const double c = dense_real(&in[COS], cache * pairs + i);
        const double s = dense_real(&in[SIN], cache * pairs + i);

        sum_set(call, a * c, -(b * s), out, at_a);
        sum_set(call, a * s, b * c, out, at_b);
    }
    for (int64_t i = rotated; i < width; i++)
        out->real[first + i] = dense_real(&in[X], first + i);
}

/* Returns the row of the caches for a token, or -1. */
static int64_t cache_row(const struct call *call, const struct dense *in,
                         int64_t image, int64_t token)
{
    const int64_t at = image * in[X].shape[2] + token;
    int64_t position;

    if (call->inputs <= POSITIONS)
        return at;
    position = dense_integer(&in[POSITIONS], at);
    if (position < 0)
        position += in[COS].shape[0];
    return position >= 0 && position < in[COS].shape[0] ? position : -1;
}

static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    const int64_t *shape = in[X].shape;
    int64_t index[4] = {0};

    expected_init(out, EXPECTED_REAL, in[X].elements);
    expected_allow_unspecified(out);
    out->subnormal_tolerance = REFERENCE_SUBNORMAL;
    for (int64_t i = 0; i < in[X].elements; i += shape[3]) {
        row_set(call, in, i, cache_row(call, in, index[0], index[2]), out);
        index_next(3, shape, index);
    }
}

/* ---- cases ---- */

/* Bits of the variant of a case. */
enum { NEIGHBOURS = 1, INDEXED = 2, LONG_INDICES = 4 };

/* Adds the operands. Random calls draw their layouts. */
static void operands_add(struct call *call, const struct rotary_form *f,
                         uint32_t variant, bool drawn)
{
    const int64_t pairs = (f->rotary_dim != 0 ? f->rotary_dim : f->width) / 2;
    const struct shape x = S(f->batch, f->heads, f->tokens, f->width);
    const struct shape positions = S(f->batch, f->tokens);
    struct shape cache = S(f->batch, f->tokens, pairs);
    const struct shape *shapes[] = {&x, &cache, &cache, &positions};
    const uint32_t index_dtype =
        variant & LONG_INDICES ? TANDEM_I64 : TANDEM_I32;

    if (variant & INDEXED)
        cache = (struct shape)S(f->length, pairs);
    call->int_count = 2;
    call->ints[INTERLEAVED] = (variant & NEIGHBOURS) != 0;
    call->ints[ROTARY_DIM] = f->rotary_dim;
    call->inputs = (variant & INDEXED) != 0 ? 4 : 3;
    for (uint32_t i = 0; i < call->inputs; i++) {
        const uint32_t dtype = i == POSITIONS ? index_dtype : TANDEM_F32;

        if (drawn)
            operand_draw(call, i, dtype, shapes[i]);
        else
            call_operand(call, i, dtype, shapes[i], f->in);
    }
    if (drawn)
        operand_draw(call, call->inputs, TANDEM_F32, &x);
    else
        call_operand(call, call->inputs, TANDEM_F32, &x, f->out);
}

/* Fills with positions in range, counted from either end; with `wild`, some are
 * just or far out of range. */
static void positions_fill(struct call *call, bool wild)
{
    struct operand *operand = &call->operands[POSITIONS];
    const int64_t length = call->operands[COS].desc.shape[0];
    struct random *random = call->random;

    for (int64_t i = 0; i < operand->elements; i++) {
        int64_t position =
            length > 0 ? random_between(random, -length, length - 1) : 0;

        if (wild && random_once_in(random, 6))
            position = random_once_in(random, 2) ? length : -length - 1;
        if (wild && random_once_in(random, 20))
            position = (int32_t)random_u64(random);
        operand_set(operand, i,
                    bits_from_integer(operand->desc.dtype, position));
    }
}

static void run(struct suite *suite, const struct op_row *row,
                const struct rotary_form *form, uint32_t variant)
{
    const int64_t x[] = {form->batch, form->heads, form->tokens, form->width};
    struct call *call = call_begin(suite, row, "%s form %d%s%s",
                                   shape_text(4, x), (int)(form - forms),
                                   variant & NEIGHBOURS ? ", interleaved" : "",
                                   variant & LONG_INDICES ? ", i64 positions"
                                   : variant & INDEXED    ? ", i32 positions"
                                                          : "");

    if (call == NULL)
        return;
    operands_add(call, form, variant, false);
    call->passed_inputs = call->inputs;
    for (uint32_t i = 0; i < 3; i++)
        operand_fill_normal(&call->operands[i], call->random, 1, 0);
    if (variant & INDEXED)
        positions_fill(call, true);
    call_end(suite, call);
}

static void cases(struct suite *suite, const struct op_row *row)
{
    struct random choice;

    random_seed(&choice, suite->options->seed, row->name);
    for (uint32_t f = 0; f < COUNT_OF(forms); f++)
        for (uint32_t variant = 0; variant < 8; variant++) {
            if ((variant & LONG_INDICES) != 0 && (variant & INDEXED) == 0)
                continue;
            if (form_chosen(suite, &choice,
                            forms[f].level == ALWAYS && variant % 3 == 0, 4))
                run(suite, row, &forms[f], variant);
        }
}

/* ---- random calls ---- */

static void draw(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    struct rotary_form form = {.batch = random_between(random, 0, 3),
                               .heads = random_between(random, 0, 4),
                               .tokens = random_between(random, 0, 30),
                               .width = 2 * random_between(random, 0, 40),
                               .length = random_between(random, 0, 50)};

    if (random_once_in(random, 2))
        form.rotary_dim = 2 * random_between(random, 0, form.width / 2);
    if (form.rotary_dim != 0 && random_once_in(random, 4))
        form.width++;
    operands_add(call, &form, (uint32_t)(block->numbers[5] % 8), true);
}

static bool fill(struct call *call, uint32_t input, const struct spread *spread)
{
    (void)spread;
    if (input != POSITIONS)
        return false;
    positions_fill(call, random_once_in(call->random, 3));
    return true;
}

static bool draw_invalid_attribute(struct call *call)
{
    if (random_once_in(call->random, 2))
        call->ints[INTERLEAVED] = invalid_number_draw(call->random, 0, 1);
    else
        call->ints[ROTARY_DIM] = call->operands[X].desc.shape[3] + 2;
    return true;
}

/* ---- invalid calls ---- */

static void make_valid(struct mistaken_call *p)
{
    MISTAKEN_SHAPE(&p->ins[X], 1, 2, 3, 4);
    MISTAKEN_SHAPE(&p->outs[0], 1, 2, 3, 4);
    mistaken_tensor_set(&p->ins[COS], TANDEM_F32, 2, 5, 2);
    mistaken_tensor_set(&p->ins[SIN], TANDEM_F32, 2, 5, 2);
    mistaken_tensor_set(&p->ins[POSITIONS], TANDEM_I32, 2, 1, 3);
    p->in_count = 4;
    p->ints[INTERLEAVED] = p->ints[ROTARY_DIM] = 0;
}

#define ROTARY_MISTAKES(X)                                                     \
    X(rotary_rank, ROTARY_EMBEDDING, "an x of rank 3", 0, p->ins[0].rank = 3)  \
    X(rotary_columns, ROTARY_EMBEDDING, "another width of cos", 0,             \
      p->ins[1].shape[1] = 1)                                                  \
    X(rotary_lengths, ROTARY_EMBEDDING, "fewer rows of sin than of cos", 0,    \
      p->ins[2].shape[0] = 4)                                                  \
    X(rotary_cache_rank, ROTARY_EMBEDDING, "caches of rank 1", 0,              \
      p->ins[1].rank = p->ins[2].rank = 1)                                     \
    X(rotary_positions, ROTARY_EMBEDDING, "fewer positions than tokens", 0,    \
      p->ins[3].shape[1] = 2)                                                  \
    X(rotary_positions_rank, ROTARY_EMBEDDING, "positions of rank 1", 0,       \
      p->ins[3].rank = 1)                                                      \
    X(rotary_positions_dtype, ROTARY_EMBEDDING, "positions of f32",            \
      MAYBE_LATER, p->ins[3].dtype = TANDEM_F32)                               \
    X(rotary_caches, ROTARY_EMBEDDING, "caches of rank 2 without positions",   \
      0, p->in_count = 3)                                                      \
    X(rotary_interleaved, ROTARY_EMBEDDING, "interleaved 2", 0,                \
      p->ints[0] = 2)                                                          \
    X(rotary_dim_odd, ROTARY_EMBEDDING, "an odd rotary_dim", 0,                \
      p->ints[1] = 3)                                                          \
    X(rotary_dim_large, ROTARY_EMBEDDING, "a rotary_dim above the width", 0,   \
      p->ints[1] = 6)                                                          \
    X(rotary_dim_negative, ROTARY_EMBEDDING, "a negative rotary_dim", 0,       \
      p->ints[1] = -2)                                                         \
    X(rotary_output, ROTARY_EMBEDDING, "another width of the output", 0,       \
      p->outs[0].shape[3] = 2)                                                 \
    X(rotary_no_sin, ROTARY_EMBEDDING, "no sin", 0, p->in_count = 2)           \
    X(rotary_inputs_many, ROTARY_EMBEDDING, "five inputs", 0, p->in_count = 5)

MISTAKE_TABLE(rotary_mistakes, ROTARY_MISTAKES)

const struct suite_class suite_rotary_embedding = {
    .rules = VARIADIC,
    .cases = cases,
    .reference = reference,
    .draw = draw,
    .fill = fill,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 2,
    .make_valid = make_valid,
    CLASS_MISTAKES(rotary_mistakes),
};
