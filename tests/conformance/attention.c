/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention: causal or not, with additive and bool masks, softcap, fewer heads
 * of keys than of queries, past keys, and strided operands.
 */
#include "element_value.h"
#include "inputs.h"
#include "suite_class.h"
#include "tolerance.h"

#include <math.h>
#include <stdlib.h>

enum { CAUSAL, PAST };
enum { SCALE, SOFTCAP };

/* ---- reference ---- */

/* Returns the element of an operand with four axes. */
static double element_at(const struct dense *in, int64_t a, int64_t b,
                         int64_t c, int64_t d)
{
    int64_t at = ((a * in->shape[1] + b) * in->shape[2] + c) * in->shape[3] + d;

    return dense_real(in, at);
}

/* Returns what the mask adds to a score, -infinity for a masked key. */
static double mask_at(const struct dense *mask, const int64_t *at)
{
    int64_t index = 0;
    bool shown;

    for (uint32_t i = 0; i < mask->rank; i++) {
        const int64_t length = mask->shape[i];

        index = index * length + (length == 1 ? 0 : at[4 - mask->rank + i]);
    }
    if (mask->dtype != TANDEM_BOOL)
        return dense_real(mask, index);
    shown = dense_integer(mask, index) != 0;
    return shown ? 0.0 : (double)-INFINITY;
}

/* The scores of a query, and the bound `a` of their magnitudes. */
struct scores {
    double *of_key, largest, magnitude;
    bool unspecified;
};

static void scores_fill(const struct call *call, const struct dense *in,
                        const int64_t *query, struct scores *out)
{
    const struct dense *q = &in[0], *k = &in[1];
    const int64_t head = query[1] * k->shape[1] / q->shape[1];
    const double scale = reference_attribute(call->floats[SCALE]);
    const double cap = reference_attribute(call->floats[SOFTCAP]);

    out->largest = (double)-INFINITY;
    out->magnitude = 0.0;
    out->unspecified = false;
    for (int64_t j = 0; j < k->shape[2]; j++) {
        const int64_t at[] = {query[0], query[1], query[2], j};
        double sum = 0.0, magnitude = 0.0, added = 0.0;

        out->of_key[j] = (double)-INFINITY;
        for (int64_t d = 0; d < q->shape[3]; d++) {
            double product = element_at(q, query[0], query[1], query[2], d) *
                             element_at(k, query[0], head, j, d);

            sum += product;
            magnitude += fabs(product);
        }
        if (call->inputs > 3)
            added = mask_at(&in[3], at);
        if (!isfinite(sum) || isnan(added) || added == (double)INFINITY)
            out->unspecified = true;
        if (added == (double)-INFINITY ||
            (call->ints[CAUSAL] != 0 && j > query[2] + call->ints[PAST]))
            continue;
        sum *= scale;
        if (cap > 0.0)
            sum = cap * tanh(sum / cap);
        out->of_key[j] = sum + added;
        out->largest = fmax(out->largest, out->of_key[j]);
        out->magnitude =
            fmax(out->magnitude, fabs(scale) * magnitude + fabs(added));
    }
    if (out->magnitude > 0x1p16)
        out->unspecified = true;
}

static void query_fill(const struct call *call, const struct dense *in,
                       const int64_t *query, const struct scores *scores,
                       int64_t at, struct expected *out)
{
    const struct dense *v = &in[2];
    const int64_t head = query[1] * v->shape[1] / in[0].shape[1];
    double total = 0.0;

    for (int64_t j = 0; j < v->shape[2]; j++)
        total += scores->largest > (double)-INFINITY
                     ? exp(scores->of_key[j] - scores->largest)
                     : 0.0;
    for (int64_t e = 0; e < v->shape[3]; e++) {
        double sum = 0.0, magnitude = 0.0, size = 0.0;
        bool finite = true;

        for (int64_t j = 0; j < v->shape[2]; j++) {
            double x = element_at(v, query[0], head, j, e), p = 0.0;

            if (total > 0.0)
                p = exp(scores->of_key[j] - scores->largest) / total;
            sum += p * x;
            magnitude += p * fabs(x);
            size += fabs(x);
            finite = finite && isfinite(x);
        }
        out->real[at + e] = sum;
        out->tolerance[at + e] = call->row->tolerance * TOLERANCE_2EPS *
                                     (1.0 + scores->magnitude) * magnitude +
                                 0x1p-125 * (1.0 + size);
        if (scores->unspecified || !finite || size > 0x1p126)
            out->unspecified[at + e] = UNSPECIFIED;
    }
}

static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    const struct tandem_tensor_desc *desc = &call->operands[call->inputs].desc;
    const int64_t count = call->operands[call->inputs].elements;
    struct scores scores = {
        .of_key = must_allocate((uint64_t)(in[1].shape[2] + 1) * 8)};
    int64_t query[4] = {0};

    expected_init(out, EXPECTED_REAL, count);
    expected_allow_unspecified(out);
    out->subnormal_tolerance = TOLERANCE_SUBNORMAL;
    for (int64_t i = 0; i < count; i += desc->shape[3]) {
        scores_fill(call, in, query, &scores);
        query_fill(call, in, query, &scores, i, out);
        index_next(3, desc->shape, query);
    }
    free(scores.of_key);
}

/* ---- random calls ---- */

/* Returns a number of columns. Some kernels support a limited number. */
static int64_t width_draw(struct random *random)
{
    if (random_once_in(random, 16))
        return 0;
    return random_between(random, 1, random_once_in(random, 6) ? 300 : 70);
}

static void draw(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    const bool is_causal = block->numbers[5] % 2 != 0;
    const bool has_mask = block->numbers[5] / 2 % 2 != 0;
    const bool mask_is_bool = block->numbers[5] / 4 % 2 != 0;
    const int64_t batch = random_between(random, 0, 3);
    const int64_t queries =
        random_once_in(random, 4) ? 1 : random_between(random, 0, 40);
    const int64_t keys =
        random_between(random, 0, random_once_in(random, 8) ? 700 : 80);
    const int64_t width = width_draw(random);
    const int64_t value_width = width_draw(random);
    const int64_t key_heads = random_between(random, 1, 3);
    const int64_t heads = key_heads * random_between(random, 1, 3);
    const struct shape q = S(batch, heads, queries, width);
    const struct shape k = S(batch, key_heads, keys, width);
    const struct shape v = S(batch, key_heads, keys, value_width);
    const struct shape out = S(batch, heads, queries, value_width);
    const struct shape mask = S(batch, heads, queries, keys);
    struct shape narrow;

    call->int_count = call->float_count = 2;
    call->ints[CAUSAL] = is_causal;
    call->ints[PAST] = random_once_in(random, 2)
                           ? keys - queries
                           : random_between(random, -60, 60);
    call->floats[SCALE] = 1.0 / sqrt((double)(width > 0 ? width : 1));
    call->floats[SOFTCAP] = random_once_in(random, 4) ? 1.5 : 0.0;
    call->inputs = has_mask ? 4 : 3;
    operand_draw(call, 0, TANDEM_F32, &q);
    operand_draw(call, 1, TANDEM_F32, &k);
    operand_draw(call, 2, TANDEM_F32, &v);
    shape_narrow(&narrow, random, &mask,
                 (uint32_t)random_u64(random) | (uint32_t)random_u64(random));
    if (has_mask)
        operand_draw(call, 3, mask_is_bool ? TANDEM_BOOL : TANDEM_F32, &narrow);
    operand_draw(call, call->inputs, TANDEM_F32, &out);
}

/* Fills the mask with numbers, or with true for two keys of three. */
static bool fill_mask(struct call *call, uint32_t input,
                      const struct spread *spread)
{
    struct operand *mask = &call->operands[3];

    (void)spread;
    for (int64_t i = 0; input == 3 && i < mask->elements; i++) {
        bool shown = random_below(call->random, 3) != 0;
        double value = random_normal(call->random);

        if (mask->desc.dtype == TANDEM_BOOL)
            operand_set(mask, i, bits_from_integer(TANDEM_BOOL, shown));
        else
            element_set(mask, i,
                        random_once_in(call->random, 8) ? (double)-INFINITY
                                                        : value);
    }
    return input == 3;
}

static bool draw_invalid_attribute(struct call *call)
{
    if (random_once_in(call->random, 2))
        call->ints[CAUSAL] = invalid_number_draw(call->random, 0, 1);
    else
        call->floats[SOFTCAP] = -1.0;
    return true;
}

/* ---- invalid calls ---- */

static void make_valid(struct mistaken_call *p)
{
    MISTAKEN_SHAPE(&p->ins[0], 1, 4, 3, 2);
    MISTAKEN_SHAPE(&p->ins[1], 1, 2, 5, 2);
    MISTAKEN_SHAPE(&p->ins[2], 1, 2, 5, 3);
    mistaken_tensor_set(&p->ins[3], TANDEM_F32, 2, 3, 5);
    MISTAKEN_SHAPE(&p->outs[0], 1, 4, 3, 3);
    p->in_count = 4;
    p->ints[CAUSAL] = p->ints[PAST] = 1;
    p->floats[SCALE] = 1;
    p->floats[SOFTCAP] = 0;
}

#define ATTENTION_MISTAKES(X)                                                  \
    X(attention_rank, ATTENTION, "a q of rank 3", 0, p->ins[0].rank = 3)       \
    X(attention_width, ATTENTION, "another width of k", 0,                     \
      p->ins[1].shape[3] = 1)                                                  \
    X(attention_keys, ATTENTION, "fewer values than keys", 0,                  \
      p->ins[2].shape[2] = 4)                                                  \
    X(attention_heads, ATTENTION, "heads that do not divide", 0,               \
      p->ins[1].shape[1] = p->ins[2].shape[1] = 3)                             \
    X(attention_batch, ATTENTION, "another batch of v", 0,                     \
      p->ins[2].shape[0] = 2)                                                  \
    X(attention_mask, ATTENTION, "a mask that does not broadcast", 0,          \
      p->ins[3].shape[1] = 4)                                                  \
    X(attention_mask_dtype, ATTENTION, "a mask of i32", MAYBE_LATER,           \
      p->ins[3].dtype = TANDEM_I32)                                            \
    X(attention_causal, ATTENTION, "causal 2", 0, p->ints[0] = 2)              \
    X(attention_past, ATTENTION, "a huge past", 0, p->ints[1] = INT64_MAX)     \
    X(attention_softcap, ATTENTION, "a negative softcap", 0,                   \
      p->floats[1] = -1)                                                       \
    X(attention_scale, ATTENTION, "an infinite scale", 0,                      \
      p->floats[0] = (double)INFINITY)                                         \
    X(attention_output, ATTENTION, "another width of the output", 0,           \
      p->outs[0].shape[3] = 2)                                                 \
    X(attention_no_values, ATTENTION, "no values", 0, p->in_count = 2)         \
    X(attention_inputs_many, ATTENTION, "five inputs", 0, p->in_count = 5)

MISTAKE_TABLE(attention_mistakes, ATTENTION_MISTAKES)

const struct suite_class suite_attention = {
    .rules = VARIADIC,
    .reference = reference,
    .draw = draw,
    .fill = fill_mask,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 6,
    .make_valid = make_valid,
    CLASS_MISTAKES(attention_mistakes),
};
