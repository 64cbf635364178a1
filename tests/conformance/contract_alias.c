/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contract cases: outputs that overlap inputs, other outputs or themselves.
 * The operators' own cases test outputs that are exactly an input.
 */
#include "contract.h"

#include "../../tools/common/tensor_call.h"

#include "operator_list.h"

#define GROUP "alias"

/* A launch: descriptors over one buffer of 4096 bytes. */
struct overlap {
    const char *name;
    uint32_t op;
    int64_t ints[2];
    struct tandem_tensor_desc descs[6]; /* Inputs, then outputs. */
};

/* f32 tensors of rank 1 and 2: byte offset, shape, strides. */
#define VECTOR(offset, n, stride)                                              \
    {                                                                          \
        NULL, offset, TANDEM_F32, 1, {n},                                      \
        {                                                                      \
            stride                                                             \
        }                                                                      \
    }
#define MATRIX(offset, rows, columns, outer, inner)                            \
    {                                                                          \
        NULL, offset, TANDEM_F32, 2, {rows, columns},                          \
        {                                                                      \
            outer, inner                                                       \
        }                                                                      \
    }

/* The name, the operator, two integer attributes, and the operands. */
#define OVERLAP(name, op, first, second, ...)                                  \
    {                                                                          \
        name, TANDEM_OP_##op, {first, second},                                 \
        {                                                                      \
            __VA_ARGS__                                                        \
        }                                                                      \
    }

/* Calls that must be rejected. */
static const struct overlap invalid[] = {
    OVERLAP("one element further", NEG, 0, 0, VECTOR(0, 100, 1),
            VECTOR(4, 100, 1)),
    OVERLAP("one element before", NEG, 0, 0, VECTOR(4, 100, 1),
            VECTOR(0, 100, 1)),
    OVERLAP("the last element of the first is the first of the last", ADD, 0, 0,
            VECTOR(0, 100, 1), VECTOR(2000, 100, 1), VECTOR(396, 100, 1)),
    OVERLAP("backwards over itself", NEG, 0, 0, VECTOR(0, 100, 1),
            VECTOR(396, 100, -1)),
    OVERLAP("transposed over itself", NEG, 0, 0, MATRIX(0, 10, 10, 10, 1),
            MATRIX(0, 10, 10, 1, 10)),
    OVERLAP("broadcast input under the output", ADD, 0, 0, VECTOR(0, 1, 1),
            VECTOR(1000, 100, 1), VECTOR(0, 100, 1)),
    OVERLAP("an output that repeats an element", NEG, 0, 0, VECTOR(0, 100, 1),
            VECTOR(2000, 100, 0)),
    OVERLAP("an output whose rows overlap", NEG, 0, 0, MATRIX(0, 10, 10, 10, 1),
            MATRIX(2000, 10, 10, 5, 1)),
    OVERLAP("two outputs in one place", SGD, 0, 0, VECTOR(0, 50, 1),
            VECTOR(400, 50, 1), VECTOR(800, 50, 1), VECTOR(1200, 50, 1),
            VECTOR(1200, 50, 1)),
    OVERLAP("two outputs over one input", SGD, 0, 0, VECTOR(0, 50, 1),
            VECTOR(400, 50, 1), VECTOR(800, 50, 1), VECTOR(0, 50, 1),
            VECTOR(0, 50, 1)),
    OVERLAP("softmax in place", SOFTMAX, 0, 0, VECTOR(0, 100, 1),
            VECTOR(0, 100, 1)),
    OVERLAP("copy in place", COPY, 0, 0, VECTOR(0, 100, 1), VECTOR(0, 100, 1)),
    OVERLAP("sum into its input", SUM, 1, 1, VECTOR(0, 100, 1),
            VECTOR(396, 1, 1)),
    OVERLAP("transpose in place", TRANSPOSE, 1, 0, MATRIX(0, 10, 10, 10, 1),
            MATRIX(0, 10, 10, 10, 1)),
    OVERLAP("a row through the columns", NEG, 0, 0, VECTOR(4, 10, 20),
            VECTOR(20 * 4 - 20, 10, 1)),
};

/* Calls that must work. */
static const struct overlap disjoint[] = {
    OVERLAP("side by side", NEG, 0, 0, VECTOR(0, 100, 1), VECTOR(400, 100, 1)),
    OVERLAP("side by side, the output first", NEG, 0, 0, VECTOR(400, 100, 1),
            VECTOR(0, 100, 1)),
    OVERLAP("columns between the input's", NEG, 0, 0, MATRIX(0, 10, 10, 20, 2),
            MATRIX(4, 10, 10, 20, 2)),
    OVERLAP("columns between the input's, transposed", NEG, 0, 0,
            MATRIX(0, 10, 10, 20, 2), MATRIX(4, 10, 10, 2, 20)),
    OVERLAP("every third element, backwards", NEG, 0, 0, VECTOR(0, 10, 3),
            VECTOR(28 * 4, 10, -3)),
    OVERLAP("sums of rows beside them", SUM, 2, 0, MATRIX(0, 10, 10, 11, 1),
            VECTOR(40, 10, 11)),
    OVERLAP("an input without elements, within the output", SUM, 1, 0,
            MATRIX(40, 0, 5, 5, 1), VECTOR(0, 5, 1)),
    OVERLAP("empty, in one place", NEG, 0, 0, VECTOR(0, 0, 1), VECTOR(0, 0, 1)),
    OVERLAP("inputs that overlap each other", ADD, 0, 0, VECTOR(0, 100, 1),
            VECTOR(40, 100, 1), VECTOR(2000, 100, 1)),
    OVERLAP("one input twice, in place", ADD, 0, 0, VECTOR(0, 100, 1),
            VECTOR(0, 100, 1), VECTOR(0, 100, 1)),
    OVERLAP("rows apart in one buffer, in place", NEG, 0, 0,
            MATRIX(8, 10, 10, 20, 1), MATRIX(8, 10, 10, 20, 1)),
};

static void overlap_launch(struct suite *suite, const struct overlap *overlap,
                           bool valid, struct vector *all)
{
    static const double floats[] = {0.1, 0.9, 0, 0}; /* For SGD. */
    const struct op_row *row = op_find(overlap->op);
    struct tandem_tensor_desc descs[6];
    const struct tandem_tensor_desc *pointers[6];
    struct tandem_op op = {.struct_size = sizeof(op),
                           .id = overlap->op,
                           .int_count = row->ints,
                           .float_count = row->floats,
                           .ints = overlap->ints,
                           .floats = floats};
    enum tandem_status status;

    /* The operator table does not count the axes of a permutation. */
    if (row->id == TANDEM_OP_TRANSPOSE)
        op.int_count = 2;
    for (uint32_t i = 0; i < COUNT_OF(descs); i++) {
        descs[i] = overlap->descs[i];
        descs[i].buffer = all->buffer;
        pointers[i] = &descs[i];
    }
    status =
        tensors_launch(&suite->api, suite->device, suite->stream, &op, pointers,
                       row->inputs, pointers + row->inputs, row->outputs, 0);
    if (status == TANDEM_UNSUPPORTED) {
        case_skip(suite, "%s: %s", row->name, plugin_message(suite));
    } else if (valid) {
        expect(suite, status, TANDEM_OK, "launch");
        stream_finish(suite, NULL);
    } else {
        expect_error(suite, status, TANDEM_INVALID_ARGUMENT, "launch");
        case_note(suite, "%s: %s", status_text(status), plugin_message(suite));
        expect_vector(suite, NULL, all, 1.0f, 1.0f,
                      "the buffer of the rejected call");
    }
}

static void overlaps_run(struct suite *suite, const struct overlap *table,
                         uint32_t count, bool valid)
{
    for (uint32_t i = 0; i < count; i++) {
        struct vector *all;

        if (!case_begin(suite, GROUP, "%s: %s", op_find(table[i].op)->name,
                        table[i].name))
            continue;
        all = vector_new(suite, NULL, NULL, 1024, 1.0f, 1.0f);
        if (all != NULL)
            overlap_launch(suite, &table[i], valid, all);
        contract_case_end(suite);
    }
}

void contract_alias(struct suite *suite)
{
    overlaps_run(suite, invalid, COUNT_OF(invalid), false);
    overlaps_run(suite, disjoint, COUNT_OF(disjoint), true);
}
