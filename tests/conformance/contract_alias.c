/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contract cases: outputs that overlap inputs, other outputs or themselves.
 * The operators' own cases test outputs that are exactly an input.
 */
#include "contract.h"

#include "operator_list.h"

#include <string.h>

#define GROUP "alias"

/* The arguments of a launch: descriptors over one buffer of 4096 bytes. */
struct overlap {
    const char *name;
    uint32_t op;
    enum tandem_status want;
    uint32_t inputs, outputs;
    struct tandem_tensor_desc descs[6]; /* Inputs, then outputs. */
    int64_t ints[2];
    double floats[5];
};

#define FLAT(offset, n)                                                        \
    {                                                                          \
        .byte_offset = (offset), .dtype = TANDEM_F32, .rank = 1, .shape = {n}, \
        .strides = {                                                           \
            1                                                                  \
        }                                                                      \
    }
#define STRIDED(offset, n, stride)                                             \
    {                                                                          \
        .byte_offset = (offset), .dtype = TANDEM_F32, .rank = 1, .shape = {n}, \
        .strides = {                                                           \
            stride                                                             \
        }                                                                      \
    }
#define SQUARE(offset, n, outer, inner)                                        \
    {                                                                          \
        .byte_offset = (offset), .dtype = TANDEM_F32, .rank = 2,               \
        .shape = {n, n}, .strides = {                                          \
            outer,                                                             \
            inner                                                              \
        }                                                                      \
    }

static const struct overlap overlaps[] = {
    {"one element further",
     TANDEM_OP_NEG,
     TANDEM_INVALID_ARGUMENT,
     1,
     1,
     {FLAT(0, 100), FLAT(4, 100)},
     {0},
     {0}},
    {"one element before",
     TANDEM_OP_NEG,
     TANDEM_INVALID_ARGUMENT,
     1,
     1,
     {FLAT(4, 100), FLAT(0, 100)},
     {0},
     {0}},
    {"the last element of the first is the first of the last",
     TANDEM_OP_ADD,
     TANDEM_INVALID_ARGUMENT,
     2,
     1,
     {FLAT(0, 100), FLAT(2000, 100), FLAT(396, 100)},
     {0},
     {0}},
    {"backwards over itself",
     TANDEM_OP_NEG,
     TANDEM_INVALID_ARGUMENT,
     1,
     1,
     {FLAT(0, 100), STRIDED(396, 100, -1)},
     {0},
     {0}},
    {"transposed over itself",
     TANDEM_OP_NEG,
     TANDEM_INVALID_ARGUMENT,
     1,
     1,
     {SQUARE(0, 10, 10, 1), SQUARE(0, 10, 1, 10)},
     {0},
     {0}},
    {"broadcast input under the output",
     TANDEM_OP_ADD,
     TANDEM_INVALID_ARGUMENT,
     2,
     1,
     {FLAT(0, 1), FLAT(1000, 100), FLAT(0, 100)},
     {0},
     {0}},
    {"an output that repeats an element",
     TANDEM_OP_NEG,
     TANDEM_INVALID_ARGUMENT,
     1,
     1,
     {FLAT(0, 100), STRIDED(2000, 100, 0)},
     {0},
     {0}},
    {"an output whose rows overlap",
     TANDEM_OP_NEG,
     TANDEM_INVALID_ARGUMENT,
     1,
     1,
     {SQUARE(0, 10, 10, 1), SQUARE(2000, 10, 5, 1)},
     {0},
     {0}},
    {"two outputs in one place",
     TANDEM_OP_SGD,
     TANDEM_INVALID_ARGUMENT,
     3,
     2,
     {FLAT(0, 50), FLAT(400, 50), FLAT(800, 50), FLAT(1200, 50),
      FLAT(1200, 50)},
     {0, 0},
     {0.1, 0.9, 0, 0}},
    {"two outputs over one input",
     TANDEM_OP_SGD,
     TANDEM_INVALID_ARGUMENT,
     3,
     2,
     {FLAT(0, 50), FLAT(400, 50), FLAT(800, 50), FLAT(0, 50), FLAT(0, 50)},
     {0, 0},
     {0.1, 0.9, 0, 0}},
    {"softmax in place",
     TANDEM_OP_SOFTMAX,
     TANDEM_INVALID_ARGUMENT,
     1,
     1,
     {FLAT(0, 100), FLAT(0, 100)},
     {0},
     {0}},
    {"copy in place",
     TANDEM_OP_COPY,
     TANDEM_INVALID_ARGUMENT,
     1,
     1,
     {FLAT(0, 100), FLAT(0, 100)},
     {0},
     {0}},
    {"sum into its input",
     TANDEM_OP_SUM,
     TANDEM_INVALID_ARGUMENT,
     1,
     1,
     {FLAT(0, 100), FLAT(396, 1)},
     {1, 1},
     {0}},
    {"transpose in place",
     TANDEM_OP_TRANSPOSE,
     TANDEM_INVALID_ARGUMENT,
     1,
     1,
     {SQUARE(0, 10, 10, 1), SQUARE(0, 10, 10, 1)},
     {1, 0},
     {0}},
    {"side by side",
     TANDEM_OP_NEG,
     TANDEM_OK,
     1,
     1,
     {FLAT(0, 100), FLAT(400, 100)},
     {0},
     {0}},
    {"side by side, the output first",
     TANDEM_OP_NEG,
     TANDEM_OK,
     1,
     1,
     {FLAT(400, 100), FLAT(0, 100)},
     {0},
     {0}},
    {"columns between the input's",
     TANDEM_OP_NEG,
     TANDEM_OK,
     1,
     1,
     {SQUARE(0, 10, 20, 2), SQUARE(4, 10, 20, 2)},
     {0},
     {0}},
    {"columns between the input's, transposed",
     TANDEM_OP_NEG,
     TANDEM_OK,
     1,
     1,
     {SQUARE(0, 10, 20, 2), SQUARE(4, 10, 2, 20)},
     {0},
     {0}},
    {"every third element, backwards",
     TANDEM_OP_NEG,
     TANDEM_OK,
     1,
     1,
     {STRIDED(0, 10, 3), STRIDED(28 * 4, 10, -3)},
     {0},
     {0}},
    {"sums of rows beside them",
     TANDEM_OP_SUM,
     TANDEM_OK,
     1,
     1,
     {SQUARE(0, 10, 11, 1), STRIDED(40, 10, 11)},
     {2, 0},
     {0}},
    {"a row through the columns",
     TANDEM_OP_NEG,
     TANDEM_INVALID_ARGUMENT,
     1,
     1,
     {STRIDED(4, 10, 20), FLAT(20 * 4 - 20, 10)},
     {0},
     {0}},
    {"an input without elements, within the output",
     TANDEM_OP_SUM,
     TANDEM_OK,
     1,
     1,
     {{.byte_offset = 40,
       .dtype = TANDEM_F32,
       .rank = 2,
       .shape = {0, 5},
       .strides = {5, 1}},
      FLAT(0, 5)},
     {1, 0},
     {0}},
    {"empty, in one place",
     TANDEM_OP_NEG,
     TANDEM_OK,
     1,
     1,
     {FLAT(0, 0), FLAT(0, 0)},
     {0},
     {0}},
    {"inputs that overlap each other",
     TANDEM_OP_ADD,
     TANDEM_OK,
     2,
     1,
     {FLAT(0, 100), FLAT(40, 100), FLAT(2000, 100)},
     {0},
     {0}},
    {"one input twice, in place",
     TANDEM_OP_ADD,
     TANDEM_OK,
     2,
     1,
     {FLAT(0, 100), FLAT(0, 100), FLAT(0, 100)},
     {0},
     {0}},
    {"rows apart in one buffer, in place",
     TANDEM_OP_NEG,
     TANDEM_OK,
     1,
     1,
     {SQUARE(8, 10, 20, 1), SQUARE(8, 10, 20, 1)},
     {0},
     {0}},
};

/*
 * The table gives the number of attributes, except that TRANSPOSE has one for
 * each axis.
 */
static struct tandem_op overlap_op(const struct overlap *overlap)
{
    const struct op_row *row = op_find(overlap->op);
    struct tandem_op op = {.struct_size = sizeof(op), .id = overlap->op};

    op.int_count = row->id == TANDEM_OP_TRANSPOSE ? 2 : row->ints;
    op.float_count = row->floats;
    op.ints = op.int_count != 0 ? overlap->ints : NULL;
    op.floats = op.float_count != 0 ? overlap->floats : NULL;
    return op;
}

static void overlap_launch(struct suite *suite, const struct overlap *overlap,
                           struct vector *all)
{
    struct tandem_tensor_desc descs[6];
    const struct tandem_tensor_desc *pointers[6];
    struct tandem_op op = overlap_op(overlap);
    enum tandem_status status;

    for (int i = 0; i < 6; i++) {
        descs[i] = overlap->descs[i];
        descs[i].buffer = all->buffer;
        pointers[i] = &descs[i];
    }
    status = suite->api.launch(suite->stream, &op, pointers, overlap->inputs,
                               pointers + overlap->inputs, overlap->outputs);
    if (status == TANDEM_UNSUPPORTED) {
        case_skip(suite, "%s: %s", op_find(overlap->op)->name,
                  plugin_message(suite));
    } else if (overlap->want == TANDEM_OK) {
        expect(suite, status, TANDEM_OK, "launch");
        stream_finish(suite, NULL);
    } else {
        expect_error(suite, status, overlap->want, "launch");
        expect_vector(suite, NULL, all, 1.0f, 1.0f,
                      "the buffer of the rejected call");
    }
}

void contract_alias(struct suite *suite)
{
    for (uint32_t i = 0; i < sizeof(overlaps) / sizeof(overlaps[0]); i++) {
        struct vector all = {0};

        if (!case_begin(suite, GROUP, "%s: %s", op_find(overlaps[i].op)->name,
                        overlaps[i].name))
            continue;
        if (vector_new(suite, NULL, NULL, &all, 1024, 1.0f, 1.0f))
            overlap_launch(suite, &overlaps[i], &all);
        vector_free(suite, &all);
        case_end(suite);
    }
}
