/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drawn cases, and random calls of all operators, valid and invalid; see
 * draw.h. The same seed, number and block size give the same call on every
 * machine.
 */
#include "draw.h"

#include "suite_class.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* The numbers of drawn cases of an operator with weight 1. */
#define DRAWN_CASES_SMOKE 4u
#define DRAWN_CASES 20u
#define DRAWN_CASES_FULL 100u
#define MAX_DRAWN_WEIGHT 6u
/* Cases with the same block. */
#define DRAWN_BLOCK 4u

static uint32_t weight_of(const struct op_row *row)
{
    uint32_t weight = class_of(row)->weight;

    return weight != 0 ? weight : 1;
}

static const struct op_row *row_draw(struct random *random)
{
    uint64_t total = 0, drawn;

    for (uint32_t i = 0; i < op_table_count; i++)
        total += weight_of(&op_table[i]);
    drawn = random_below(random, total);
    for (uint32_t i = 0; i < op_table_count; i++) {
        if (drawn < weight_of(&op_table[i]))
            return &op_table[i];
        drawn -= weight_of(&op_table[i]);
    }
    return &op_table[0];
}

static void block_draw(struct block *block, uint64_t seed, uint64_t number,
                       const char *only)
{
    struct random random;

    random_seed(&random, seed + 0x10001u * number, "block");
    for (uint32_t i = 0; i < BLOCK_OPERATORS; i++) {
        block->rows[i] = row_draw(&random);
        if (only != NULL)
            block->rows[i] = op_find_name(only);
    }
    for (uint32_t i = 0; i < BLOCK_NUMBERS; i++)
        block->numbers[i] = random_u64(&random);
}

/* Returns a scalar of an integer dtype, to which it is converted like CAST. */
static double integer_scalar_draw(const struct spread *spread,
                                  struct random *random)
{
    static const double special[] = {2.75, -1e30, 1e30, (double)NAN};

    return random_once_in(random, 2) ? value_draw(spread, random)
                                     : special[random_below(random, 4)];
}

static void scalars_draw(struct call *call, const struct spread *spread)
{
    for (uint32_t i = 0; i < call->inputs; i++) {
        struct operand *operand = &call->operands[i];

        if (operand->present)
            continue;
        if (operand->desc.dtype == TANDEM_BOOL)
            operand->scalar = (double)random_below(call->random, 2);
        else if (operand->desc.dtype == TANDEM_F32)
            operand->scalar = (double)(float)value_draw(spread, call->random);
        else
            operand->scalar = integer_scalar_draw(spread, call->random);
        call->floats[call->float_count++] = operand->scalar;
    }
}

static void values_draw(struct call *call)
{
    const struct suite_class *class = class_of(call->row);
    struct spread spread;

    spread_draw(&spread, call->random, call->row);
    for (uint32_t i = 0; i < call->inputs; i++) {
        struct operand *operand = &call->operands[i];

        if (!operand->present ||
            (class->fill != NULL && class->fill(call, i, &spread)))
            continue;
        if (operand->desc.dtype == TANDEM_F32)
            reals_fill(operand, &spread, call->random);
        else
            operand_fill(operand, call->random, call->row);
    }
    if (call_is_gemm(call))
        return;
    if (call->inputs == 2 && random_once_in(call->random, 3))
        ties_make(call);
    if (class->draw_attributes != NULL)
        class->draw_attributes(call, &spread);
    scalars_draw(call, &spread);
}

/* Draws a valid call, or one whose operands overlap. */
static void call_draw(struct call *call, const struct block *block)
{
    call->any_magnitude = true;
    class_of(call->row)->draw(call, block);
    values_draw(call);
    call->passed_inputs = call->inputs;
    call->passed_outputs = call->outputs;
    if (call->expected_status == EXPECT_OK_IF_SUPPORTED &&
        random_once_in(call->random, 6))
        sharing_draw(call);
}

/* ---- cases ---- */

void drawn_case_run(struct suite *suite, const struct op_row *row,
                    const struct block *block, const char *format, ...)
{
    struct call *call;
    char name[80], text[480];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(name, sizeof(name), format, arguments);
    va_end(arguments);
    call = call_begin(suite, row, "%s", name);
    if (call == NULL)
        return;
    /* Operators whose cases have the same names get different calls. */
    random_seed(call->random, random_u64(call->random), row->name);
    call_draw(call, block);
    while (call->expected_status != EXPECT_OK_IF_SUPPORTED) {
        call_finish(call);
        call_init(call, row, call->random);
        call_draw(call, block);
    }
    call_text(call, text, sizeof(text));
    call_run(suite, call);
    case_note(suite, "%s", text);
    call_finish(call);
    case_end(suite);
}

void drawn_cases_run(struct suite *suite, const struct op_row *row)
{
    const struct suite_options *options = suite->options;
    const uint32_t each = options->full    ? DRAWN_CASES_FULL
                          : options->smoke ? DRAWN_CASES_SMOKE
                                           : DRAWN_CASES;
    const uint32_t weight = weight_of(row);
    const uint32_t count =
        each * (weight < MAX_DRAWN_WEIGHT ? weight : MAX_DRAWN_WEIGHT);
    struct block block;

    shapes_allow_millions(options->full);
    for (uint32_t i = 0; i < count; i++) {
        block_draw(&block, options->seed, i / DRAWN_BLOCK, row->name);
        drawn_case_run(suite, row, &block, "drawn %03u", i);
    }
}

/* ---- random calls ---- */

/* Draws a call, sometimes with a mistake. */
static void any_call_draw(struct call *call, const struct block *block)
{
    call_draw(call, block);
    if (call->expected_status == EXPECT_OK_IF_SUPPORTED &&
        random_once_in(call->random, 12))
        mistake_draw(call);
}

/* Makes the random call with this number. Returns true if it was rejected. */
static bool random_call_run(struct suite *suite, uint64_t number)
{
    const struct suite_options *options = suite->options;
    enum tandem_status status;
    struct random random;
    struct block block;
    struct call call;
    char text[480];

    block_draw(&block, options->seed, number / options->block_calls,
               options->only);
    random_seed(&random, options->seed + 0x9e3779b97f4a7c15u * (number + 1),
                "case");
    call_init(&call, block.rows[random_below(&random, BLOCK_OPERATORS)],
              &random);
    if (!case_begin(suite, call.row->name, "random %llu",
                    (unsigned long long)number))
        return false;
    any_call_draw(&call, &block);
    status = call_run_once(suite, &call);
    call_text(&call, text, sizeof(text));
    case_note(suite, "%s: %s", status_text(status), text);
    if (status == TANDEM_UNSUPPORTED &&
        (call.expected_status == EXPECT_OK_IF_SUPPORTED ||
         !suite_has_capability(suite, TANDEM_CAP_CORE_OPERATORS)))
        case_skip(suite, "declined");
    suite->computed += status == TANDEM_OK;
    call_finish(&call);
    case_end(suite);
    return status != TANDEM_OK && status != TANDEM_UNSUPPORTED;
}

void random_calls_run(struct suite *suite)
{
    const struct suite_options *options = suite->options;

    for (uint64_t i = 0; i < options->random_calls; i++)
        suite->rejected += random_call_run(suite, options->first_call + i);
}
