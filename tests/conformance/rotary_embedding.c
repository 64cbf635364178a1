/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rotary embeddings: both orders of pairs, a part of a row, with positions that
 * are partly out of range and without, and strided operands.
 */
#include "element_value.h"
#include "inputs.h"
#include "suite_class.h"
#include "tolerance.h"

#include <math.h>

enum { INTERLEAVED, ROTARY_DIM };
enum { X, COS, SIN, POSITIONS };

/* A result is unspecified if a finite term has a larger magnitude. */
#define MAX_TERM 0x1p126

/* ---- reference ---- */

/* Sets a result to the sum of two products. */
static void sum_set(const struct call *call, double p, double q,
                    struct expected *out, int64_t at)
{
    const double magnitude = fabs(p) + fabs(q);

    out->real[at] = p + q;
    out->tolerance[at] =
        call->row->tolerance * TOLERANCE_2EPS * magnitude + 0x1p-125;
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
    out->subnormal_tolerance = TOLERANCE_SUBNORMAL;
    for (int64_t i = 0; i < in[X].elements; i += shape[3]) {
        row_set(call, in, i, cache_row(call, in, index[0], index[2]), out);
        index_next(3, shape, index);
    }
}

/* ---- random calls ---- */

static void draw(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    const bool is_indexed = block->numbers[5] % 4 >= 2;
    const int64_t batch = random_between(random, 0, 3);
    const int64_t heads = random_between(random, 0, 4);
    const int64_t tokens =
        random_between(random, 0, random_once_in(random, 6) ? 300 : 30);
    const int64_t width =
        2 * random_between(random, 0, random_once_in(random, 6) ? 64 : 40);
    /* 0 stands for all elements, and others leave a rest, which may be odd. */
    const int64_t rotary_dim = random_once_in(random, 2)
                                   ? 2 * random_between(random, 0, width / 2)
                                   : 0;
    const int64_t pairs = (rotary_dim != 0 ? rotary_dim : width) / 2;
    const int64_t odd = rotary_dim != 0 && random_once_in(random, 4);
    const struct shape x = S(batch, heads, tokens, width + odd);
    const struct shape positions = S(batch, tokens);
    struct shape cache = S(batch, tokens, pairs);

    if (is_indexed)
        cache = (struct shape)S(random_between(random, 0, 50), pairs);
    call->int_count = 2;
    call->ints[INTERLEAVED] = (int64_t)(block->numbers[5] % 2);
    call->ints[ROTARY_DIM] = rotary_dim;
    call->inputs = is_indexed ? 4 : 3;
    operand_draw(call, X, TANDEM_F32, &x);
    operand_draw(call, COS, TANDEM_F32, &cache);
    operand_draw(call, SIN, TANDEM_F32, &cache);
    if (is_indexed)
        operand_draw(call, POSITIONS, index_dtype_draw(random), &positions);
    operand_draw(call, call->inputs, TANDEM_F32, &x);
}

/*
 * Fills with positions in range, counted from either end. In one call of three,
 * some are just or far out of range.
 */
static bool fill_positions(struct call *call, uint32_t input,
                           const struct spread *spread)
{
    struct operand *operand = &call->operands[POSITIONS];
    const int64_t length = call->operands[COS].desc.shape[0];
    struct random *random = call->random;
    const bool wild = random_once_in(random, 3);

    (void)spread;
    for (int64_t i = 0; input == POSITIONS && i < operand->elements; i++) {
        int64_t position =
            length > 0 ? random_between(random, -length, length - 1) : 0;

        if (wild && random_once_in(random, 6))
            position = random_once_in(random, 2) ? length : -length - 1;
        if (wild && random_once_in(random, 20))
            position = (int32_t)random_u64(random);
        operand_set(operand, i,
                    bits_from_integer(operand->desc.dtype, position));
    }
    return input == POSITIONS;
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
    .reference = reference,
    .draw = draw,
    .fill = fill_positions,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 4,
    .make_valid = make_valid,
    CLASS_MISTAKES(rotary_mistakes),
};
