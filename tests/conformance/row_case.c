/* SPDX-License-Identifier: Apache-2.0 */
/* Operators over rows; see row_case.h. */
#include "row_case.h"

#include <math.h>

void row_parameters(struct call *call, int64_t axis, enum operand_layout layout,
                    const struct magnitude *size)
{
    const struct tandem_tensor_desc *in = &call->operands[0].desc;
    struct shape shape = {0};

    for (int64_t i = axis_from_start(axis, in->rank); i < in->rank; i++)
        shape.at[shape.rank++] = in->shape[i];
    for (uint32_t i = 1; i < call->inputs; i++) {
        struct operand *operand =
            call_operand(call, i, TANDEM_F32, &shape, layout);

        if (size != NULL)
            operand_fill_magnitude(operand, call->random, size, false);
        else
            operand_fill_normal(operand, call->random, 1, 0);
    }
}

/* Sets the attributes: an axis, switches and an epsilon. */
static void attributes_set(struct call *call, int64_t axis, double epsilon)
{
    call->ints[0] = axis;
    for (uint32_t i = 1; i < call->row->ints; i++)
        call->ints[i] = random_once_in(call->random, 2);
    if (call->row->floats > 0)
        call->floats[0] = epsilon;
}

/* ---- exactly one special value in each row ---- */

/* Rows along the middle axis, or along the last two. */
static const struct {
    int64_t outer, n, inner;
    enum operand_layout layout;
    enum level level;
} special_forms[] = {
    {20, 9, 1, DENSE, SOME},      {20, 131, 1, DENSE, ALWAYS},
    {20, 1021, 1, DENSE, ALWAYS}, {20, 4100, 1, DENSE, SOME},
    {3, 20011, 1, DENSE, SOME},   {1, 70001, 1, DENSE, SOME},
    {1, 40004, 1, DENSE, ALWAYS}, {1, 9, 20, DENSE, SOME},
    {1, 300, 20, DENSE, SOME},    {2, 4099, 5, DENSE, SOME},
    {4, 67, 5, ANY, ALWAYS},      {20, 515, 1, ANY, SOME},
};

static const float specials[] = {NAN, INFINITY, -INFINITY, -0.0f, 0x1p-140f};
#define SPECIALS ((int64_t)COUNT_OF(specials))

/*
 * Sets one element of each row of n elements to a special value. step is the
 * stride of an element in its row.
 */
static void specials_set(struct operand *operand, struct random *random,
                         int64_t n, int64_t step, int64_t first)
{
    for (int64_t row = 0; row < operand->elements / n; row++) {
        int64_t begin = row / step * n * step + row % step;
        int64_t number = row + first;
        int64_t at = number / SPECIALS % 3 == 0 ? 0
                     : number / SPECIALS % 3 == 1
                         ? n - 1
                         : random_between(random, 0, n - 1);

        element_set(operand, begin + at * step,
                    (double)specials[number % SPECIALS]);
    }
}

static void special_run(struct suite *suite, const struct op_row *row,
                        const struct single_special *kind, uint32_t number,
                        int64_t first)
{
    const int64_t outer = special_forms[number].outer;
    const int64_t n = special_forms[number].n;
    const int64_t inner = special_forms[number].inner;
    const int64_t length = kind->trailing_axes ? n * inner : n;
    const enum operand_layout layout = special_forms[number].layout;
    const struct shape in = S(outer, n, inner), rest = S(outer, inner);
    struct call *call =
        call_begin(suite, row, "one alone, from %d on [%d,%d,%d]", (int)first,
                   (int)outer, (int)n, (int)inner);

    if (call == NULL)
        return;
    if (kind->keeps_shape)
        attributes_set(call, 1, 1e-5);
    else
        call->ints[0] = 2; /* A mask. */
    call_operand(call, 0, TANDEM_F32, &in, layout);
    if (kind->fill != NULL)
        kind->fill(&call->operands[0], call->random, row, length);
    else
        operand_fill_normal(&call->operands[0], call->random, 1, 0);
    specials_set(&call->operands[0], call->random, length,
                 kind->trailing_axes ? 1 : inner, first);
    row_parameters(call, 1, layout, NULL);
    call_operand(call, call->inputs, kind->out_dtype,
                 kind->keeps_shape ? &in : &rest, layout);
    call_end(suite, call);
}

/* If there are few rows, each special value and position has a case. */
void single_specials_run(struct suite *suite, const struct op_row *row,
                         const struct single_special *kind)
{
    const struct suite_options *options = suite->options;
    struct random choice;

    random_seed(&choice, options->seed, row->name);
    for (uint32_t i = 0; i < COUNT_OF(special_forms); i++) {
        bool chosen = random_once_in(&choice, options->smoke ? 12 : 4);
        int64_t rows = special_forms[i].outer * special_forms[i].inner;

        if (!options->full && options->filter == NULL && !chosen &&
            special_forms[i].level != ALWAYS)
            continue;
        if (options->smoke && rows * special_forms[i].n > 3000)
            continue;
        for (int64_t first = 0; first < 3 * SPECIALS; first += rows)
            special_run(suite, row, kind, i, first);
    }
}

/* ---- random calls ---- */

void row_draw_call(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    struct shape in, rest = {0};

    (void)block;
    shape_draw(&in, random, 1, random_once_in(random, 3) ? 8 : 3);
    attributes_set(
        call, random_once_in(random, 2) ? -1 : axis_draw(random, in.rank), 0);
    for (int64_t i = axis_from_start(call->ints[0], in.rank); i < in.rank; i++)
        rest.at[rest.rank++] = in.at[i];
    operand_draw(call, 0, TANDEM_F32, &in);
    for (uint32_t i = 1; i < call->inputs; i++)
        operand_draw(call, i, TANDEM_F32, &rest);
    operand_draw(call, call->inputs, TANDEM_F32, &in);
}

bool row_draw_invalid_attribute(struct call *call)
{
    int64_t rank = call->operands[0].desc.rank;
    uint64_t number = random_below(call->random, call->row->ints);

    call->ints[number] =
        number == 0 ? invalid_number_draw(call->random, -rank, rank - 1)
                    : invalid_number_draw(call->random, 0, 1);
    return true;
}
