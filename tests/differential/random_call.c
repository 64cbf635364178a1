/* SPDX-License-Identifier: Apache-2.0 */
/* Random calls; see random_call.h. */
#include "random_call.h"

#include "conformance/element_value.h"
#include "random_values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Returns the relative frequency of an operator. Operators with many code
 * paths are more frequent.
 */
static uint32_t weight_of(const struct op_row *row)
{
    switch (row->op_class) {
    case TANDEM_CLASS_GEMM:
        return 12;
    case TANDEM_CLASS_NORM:
    case TANDEM_CLASS_SOFTMAX:
    case TANDEM_CLASS_GATHER:
    case TANDEM_CLASS_CAST:
    case TANDEM_CLASS_COPY:
        return 4;
    case TANDEM_CLASS_TRANSPOSE:
    case TANDEM_CLASS_REDUCE:
    case TANDEM_CLASS_ARG_REDUCE:
    case TANDEM_CLASS_DOT:
    case TANDEM_CLASS_CROSS_ENTROPY:
    case TANDEM_CLASS_TERNARY:
    case TANDEM_CLASS_OPTIMIZER:
        return 2;
    default:
        return 1;
    }
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

static void block_make(struct block *block, uint64_t seed, uint64_t number,
                       const struct op_row *only)
{
    static const uint32_t casts[] = {TANDEM_F32, TANDEM_F16, TANDEM_BF16,
                                     TANDEM_I32, TANDEM_I64, TANDEM_U8,
                                     TANDEM_BOOL};
    static const uint32_t moved[] = {
        TANDEM_I8,  TANDEM_I16,  TANDEM_I32, TANDEM_I64, TANDEM_U8,
        TANDEM_U16, TANDEM_U32,  TANDEM_U64, TANDEM_F16, TANDEM_F32,
        TANDEM_F64, TANDEM_BF16, TANDEM_BOOL};
    static const uint32_t products[] = {TANDEM_F32, TANDEM_F32, TANDEM_F32,
                                        TANDEM_F16, TANDEM_BF16};
    static const uint32_t activations[] = {
        TANDEM_OP_INVALID, TANDEM_OP_RELU, TANDEM_OP_LEAKY_RELU,
        TANDEM_OP_SIGMOID, TANDEM_OP_TANH, TANDEM_OP_GELU,
        TANDEM_OP_SWISH};
    struct random random;

    random_seed(&random, seed + 0x10001u * number, "block");
    for (uint32_t i = 0; i < BLOCK_OPERATORS; i++) {
        block->rows[i] = row_draw(&random);
        if (only != NULL)
            block->rows[i] = only;
    }
    block->from = casts[random_below(&random, 7)];
    block->to = casts[random_below(&random, 7)];
    block->moved = moved[random_below(&random, 13)];
    block->gemm_dtype = products[random_below(&random, 5)];
    block->gemm_c_dtype = products[random_below(&random, 5)];
    block->activations[0] = TANDEM_OP_INVALID;
    block->activations[1] = activations[random_below(&random, 7)];
}

void problem_make(struct problem *problem, uint64_t seed, uint64_t number,
                  uint64_t block_number, const struct op_row *only)
{
    struct random random;
    struct block block;

    memset(problem, 0, sizeof(*problem));
    block_make(&block, seed, block_number, only);
    random_seed(&random, seed + 0x9e3779b97f4a7c15u * (number + 1), "case");
    problem->number = number;
    problem->row = block.rows[random_below(&random, BLOCK_OPERATORS)];
    problem->what = "";
    problem->struct_size = sizeof(struct tandem_op);
    problem->int_count = problem->row->ints;
    problem->float_count = problem->row->floats;
    problem->inputs = problem->row->inputs;
    problem->outputs = problem->row->outputs;
    for (uint32_t i = 0; i < PROBLEM_OPERANDS; i++)
        problem->storage[i] = i;
    if (problem->row->op_class == TANDEM_CLASS_GEMM) {
        gemm_make(problem, &random, &block);
        values_make_gemm(problem, &random);
    } else {
        shapes_make(problem, &random, &block);
        values_make(problem, &random);
    }
    problem->passed_inputs = problem->inputs;
    problem->passed_outputs = problem->outputs;
    if (problem->expected_status == EXPECT_OK_IF_SUPPORTED &&
        random_once_in(&random, 6))
        sharing_make(problem, &random);
    if (problem->expected_status == EXPECT_OK_IF_SUPPORTED &&
        random_once_in(&random, 12))
        call_make_invalid(problem, &random);
}

void problem_finish(struct problem *problem)
{
    for (uint32_t i = 0; i < PROBLEM_OPERANDS; i++) {
        if (problem->storage[i] != i)
            problem->operands[i].image = NULL;
        operand_finish(&problem->operands[i]);
    }
}

static size_t gemm_text(const struct tandem_gemm *gemm, char *text, size_t size)
{
    const struct op_row *activation = op_find(gemm->activation);

    return (size_t)snprintf(text, size,
                            " %" PRId64 "x%" PRId64 "x%" PRId64
                            " batch %" PRId64
                            " flags %#x alpha %g beta %g bias %u %s %g",
                            gemm->m, gemm->n, gemm->k, gemm->batch, gemm->flags,
                            gemm->alpha, gemm->beta, gemm->bias_kind,
                            activation != NULL ? activation->name : "linear",
                            gemm->activation_parameter);
}

void problem_text(const struct problem *problem, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", problem->row->name);
    char one[400];

    if (problem->row->op_class == TANDEM_CLASS_GEMM)
        used += gemm_text(&problem->gemm, text + used, size - used);
    for (uint32_t i = 0; i < problem->int_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, " %" PRId64,
                                 problem->ints[i]);
    for (uint32_t i = 0; i < problem->float_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, " %.9g",
                                 problem->floats[i]);
    for (uint32_t i = 0; i < problem->inputs + problem->outputs && used < size;
         i++) {
        operand_text(&problem->operands[i], one, sizeof(one));
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i < problem->inputs ? ", " : " -> ", one);
        if (problem->storage[i] != i && used < size)
            used +=
                (size_t)snprintf(text + used, size - used,
                                 " in the buffer of %u", problem->storage[i]);
    }
    if (problem->what[0] != '\0' && used < size)
        snprintf(text + used, size - used, " (%s)", problem->what);
}
