/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes, shapes, strides and dtypes of random calls; see random_call.h.
 */
#include "random_call.h"

#include "conformance/element_value.h"

#include <math.h>

struct shape {
    uint32_t rank;
    int64_t at[TANDEM_MAX_RANK];
};

/* Selects a length near the limits at which kernels change their algorithm. */
static int64_t length_long(struct random *random)
{
    static const int64_t lengths[] = {
        31,   32,   33,   63,   64,   65,   100,  127,  128,  129,   255,
        256,  257,  300,  511,  513,  1000, 1023, 1024, 1025, 2047,  2049,
        3001, 3858, 4095, 4096, 4097, 4735, 5343, 8193, 9001, 16385, 20011};

    return lengths[random_below(random, sizeof(lengths) / sizeof(lengths[0]))];
}

static int64_t pad_draw(struct random *random)
{
    if (random_once_in(random, 300))
        return 150000;
    return random_once_in(random, 12) ? 21000 : 1500;
}

/* Selects a shape with at least min_rank axes. */
static void shape_draw(struct shape *shape, struct random *random,
                       uint32_t least, uint32_t most)
{
    int64_t room = pad_draw(random), length;
    uint32_t at;

    shape->rank = (uint32_t)random_between(random, least, most);
    if (shape->rank > 4 && random_once_in(random, 2) && least <= 4)
        shape->rank = (uint32_t)random_between(random, least, 4);
    for (uint32_t i = 0; i < shape->rank; i++)
        shape->at[i] = 1;
    if (shape->rank > 0 && random_once_in(random, 2)) {
        length = length_long(random);
        at = random_once_in(random, 3)
                 ? (uint32_t)random_below(random, shape->rank)
                 : shape->rank - 1u;
        if (length <= room) {
            shape->at[at] = length;
            room /= length;
        }
    }
    for (uint32_t i = 0; i < shape->rank; i++) {
        at = (uint32_t)random_below(random, shape->rank);
        if (shape->at[at] != 1)
            continue;
        shape->at[at] = random_between(random, 1, room < 40 ? room : 40);
        room /= shape->at[at];
    }
    if (shape->rank > 0 && random_once_in(random, 24))
        shape->at[random_below(random, shape->rank)] = 0;
}

static enum operand_layout layout_draw(struct random *random)
{
    if (random_once_in(random, 2))
        return LAYOUT_DENSE;
    return (enum operand_layout)random_below(random, LAYOUT_COUNT);
}

static void operand_draw(struct problem *problem, struct random *random,
                         uint32_t place, uint32_t dtype,
                         const struct shape *shape)
{
    bool output = place >= problem->inputs;

    operand_init(&problem->operands[place], random, dtype, shape->rank,
                 shape->at, layout_draw(random), output);
}

static uint32_t input_dtype(const struct op_row *row, uint32_t i)
{
    if (row->op_class == TANDEM_CLASS_LOGICAL ||
        (row->id == TANDEM_OP_WHERE && i == 0))
        return TANDEM_BOOL;
    return TANDEM_F32;
}

static uint32_t output_dtype(const struct op_row *row)
{
    if (row->op_class == TANDEM_CLASS_COMPARE ||
        row->op_class == TANDEM_CLASS_LOGICAL)
        return TANDEM_BOOL;
    return row->op_class == TANDEM_CLASS_ARG_REDUCE ? TANDEM_I64 : TANDEM_F32;
}

/*
 * Keeps the axes in the mask and sets others to 1; leaves out some leading
 * axes.
 */
static void shape_narrow(struct shape *out, struct random *random,
                         const struct shape *whole, uint32_t full)
{
    uint32_t drop = 0;

    while (drop < whole->rank && !(full >> drop & 1u) &&
           random_once_in(random, 2))
        drop++;
    out->rank = whole->rank - drop;
    for (uint32_t i = drop; i < whole->rank; i++)
        out->at[i - drop] = full >> i & 1u ? whole->at[i] : 1;
}

/*
 * Selects the axes that each input has in full. At least one input has each
 * axis.
 */
static void axes_share(struct random *random, uint32_t rank, uint32_t inputs,
                       uint32_t scalars, uint32_t *full)
{
    uint32_t all = (1u << rank) - 1u, last = 0;

    for (uint32_t i = 0; i < inputs; i++) {
        full[i] = all;
        if (random_once_in(random, 3))
            full[i] = (uint32_t)random_u64(random) & all;
        if (!(scalars >> i & 1u))
            last = i;
    }
    for (uint32_t axis = 0; axis < rank; axis++) {
        bool found = false;

        for (uint32_t i = 0; i < inputs; i++)
            found |= !(scalars >> i & 1u) && (full[i] >> axis & 1u) != 0;
        if (!found)
            full[last] |= 1u << axis;
    }
}

static void broadcast_make(struct problem *p, struct random *random)
{
    struct shape whole, own;
    uint32_t full[4], scalars = 0, all = (1u << p->inputs) - 1u;

    shape_draw(&whole, random, 0, TANDEM_MAX_RANK);
    if (p->inputs > 1 && random_once_in(random, 5))
        scalars = (uint32_t)random_below(random, all);
    axes_share(random, whole.rank, p->inputs, scalars, full);
    for (uint32_t i = 0; i < p->inputs; i++) {
        if (scalars >> i & 1u) {
            operand_scalar(&p->operands[i], 0.0);
            continue;
        }
        shape_narrow(&own, random, &whole, full[i]);
        operand_draw(p, random, i, input_dtype(p->row, i), &own);
    }
    operand_draw(p, random, p->inputs, output_dtype(p->row), &whole);
}

static void equal_make(struct problem *p, struct random *random)
{
    struct shape shape;

    shape_draw(&shape, random, 0, TANDEM_MAX_RANK);
    for (uint32_t i = 0; i < p->inputs + p->outputs; i++)
        operand_draw(p, random, i, TANDEM_F32, &shape);
    if (p->row->id == TANDEM_OP_GELU)
        p->ints[0] = random_between(random, 0, 1);
    if (p->row->op_class != TANDEM_CLASS_OPTIMIZER)
        return;
    p->ints[0] = random_between(random, 0, 1);
    if (p->row->id == TANDEM_OP_ADAM) {
        p->ints[0] = random_once_in(random, 2)
                         ? random_between(random, 1, 5)
                         : random_between(random, 1, 100000);
        p->ints[1] = random_between(random, 0, 1);
    }
}

static void move_make(struct problem *p, struct random *random,
                      const struct block *block)
{
    struct shape in, out;
    bool cast = p->row->op_class == TANDEM_CLASS_CAST;

    shape_draw(&in, random, 0, TANDEM_MAX_RANK);
    out = in;
    if (p->row->op_class == TANDEM_CLASS_COPY && random_once_in(random, 3))
        shape_narrow(&in, random, &out, (uint32_t)random_u64(random) & 255u);
    if (p->row->op_class == TANDEM_CLASS_TRANSPOSE) {
        p->int_count = in.rank;
        for (uint32_t i = 0; i < in.rank; i++)
            p->ints[i] = i;
        for (uint32_t i = in.rank; i > 1; i--) {
            uint32_t j = (uint32_t)random_below(random, i);
            int64_t swapped = p->ints[i - 1];

            p->ints[i - 1] = p->ints[j];
            p->ints[j] = swapped;
        }
        for (uint32_t i = 0; i < in.rank; i++)
            out.at[i] = in.at[p->ints[i]];
    }
    operand_draw(p, random, 0, cast ? block->from : block->moved, &in);
    operand_draw(p, random, 1, cast ? block->to : block->moved, &out);
}

static int64_t axis_draw(struct random *random, uint32_t rank)
{
    int64_t axis = (int64_t)random_below(random, rank);

    return random_once_in(random, 3) ? axis - rank : axis;
}

static void gather_make(struct problem *p, struct random *random,
                        const struct block *block)
{
    struct shape data, indices, out = {0};
    uint32_t axis;

    shape_draw(&data, random, 1, 5);
    for (uint32_t i = 0; i < data.rank; i++)
        if (data.at[i] > 3000)
            data.at[i] = 3000;
    p->ints[0] = axis_draw(random, data.rank);
    axis = (uint32_t)(p->ints[0] < 0 ? p->ints[0] + data.rank : p->ints[0]);
    indices.rank =
        (uint32_t)random_below(random, TANDEM_MAX_RANK + 2u - data.rank);
    if (indices.rank > 3)
        indices.rank = 3;
    for (uint32_t i = 0; i < indices.rank; i++)
        indices.at[i] = random_between(random, 0, i == 0 ? 9 : 3);
    for (uint32_t i = 0; i < axis; i++)
        out.at[out.rank++] = data.at[i];
    for (uint32_t i = 0; i < indices.rank; i++)
        out.at[out.rank++] = indices.at[i];
    for (uint32_t i = axis + 1u; i < data.rank; i++)
        out.at[out.rank++] = data.at[i];
    operand_draw(p, random, 0, block->moved, &data);
    operand_draw(p, random, 1,
                 random_once_in(random, 2) ? TANDEM_I32 : TANDEM_I64, &indices);
    operand_draw(p, random, 2, block->moved, &out);
}

/*
 * max, min, argmax and argmin of an empty row are errors if the output has
 * elements.
 */
static bool empty_is_wrong(const struct op_row *row, const struct shape *in,
                           uint32_t axes)
{
    bool reduced_empty = false, reduces_empty_row = false;

    for (uint32_t i = 0; i < in->rank; i++)
        *(axes >> i & 1u ? &reduced_empty : &reduces_empty_row) |=
            in->at[i] == 0;
    return reduced_empty && !reduces_empty_row &&
           (row->op_class == TANDEM_CLASS_ARG_REDUCE ||
            row->id == TANDEM_OP_REDUCE_MAX || row->id == TANDEM_OP_REDUCE_MIN);
}

static void reduce_make(struct problem *p, struct random *random)
{
    struct shape in, out = {0};
    uint32_t all, axes;

    shape_draw(&in, random, 0, TANDEM_MAX_RANK);
    all = (1u << in.rank) - 1u;
    axes = in.rank == 0 || random_once_in(random, 4)
               ? all
               : (uint32_t)random_between(random, 1, all);
    if (in.rank > 0 &&
        (random_once_in(random, 3) ||
         (p->row->op_class == TANDEM_CLASS_ARG_REDUCE && axes != all)))
        axes = 1u << random_below(random, in.rank);
    p->ints[0] = axes;
    p->ints[1] = random_between(random, 0, 1);
    for (uint32_t i = 0; i < in.rank; i++)
        if (!(axes >> i & 1u) || p->ints[1] == 1)
            out.at[out.rank++] = axes >> i & 1u ? 1 : in.at[i];
    operand_draw(p, random, 0, TANDEM_F32, &in);
    operand_draw(p, random, 1, output_dtype(p->row), &out);
    if (empty_is_wrong(p->row, &in, axes)) {
        p->expected_status = EXPECT_INVALID_ARGUMENT;
        p->what = "a reduction of nothing";
    }
}

static void dot_make(struct problem *p, struct random *random)
{
    struct shape in, out = {0};

    shape_draw(&in, random, 1, 1);
    operand_draw(p, random, 0, TANDEM_F32, &in);
    operand_draw(p, random, 1, TANDEM_F32, &in);
    operand_draw(p, random, 2, TANDEM_F32, &out);
}

static void loss_make(struct problem *p, struct random *random)
{
    struct shape logits, labels = {.rank = 1};

    shape_draw(&logits, random, 2, 2);
    labels.at[0] = logits.at[0];
    operand_draw(p, random, 0, TANDEM_F32, &logits);
    operand_draw(p, random, 1,
                 random_once_in(random, 2) ? TANDEM_I32 : TANDEM_I64, &labels);
    operand_draw(p, random, 2, TANDEM_F32,
                 p->row->id == TANDEM_OP_CROSS_ENTROPY ? &labels : &logits);
}

/* Softmax and norms. */
static void rows_make(struct problem *p, struct random *random)
{
    struct shape in, rest = {0};
    uint32_t first;

    shape_draw(&in, random, 1, random_once_in(random, 3) ? 8 : 3);
    p->ints[0] = random_once_in(random, 2) ? -1 : axis_draw(random, in.rank);
    first = (uint32_t)(p->ints[0] < 0 ? p->ints[0] + in.rank : p->ints[0]);
    for (uint32_t i = first; i < in.rank; i++)
        rest.at[rest.rank++] = in.at[i];
    operand_draw(p, random, 0, TANDEM_F32, &in);
    for (uint32_t i = 1; i < p->inputs; i++)
        operand_draw(p, random, i, TANDEM_F32, &rest);
    operand_draw(p, random, p->inputs, TANDEM_F32, &in);
}

void shapes_make(struct problem *problem, struct random *random,
                 const struct block *block)
{
    switch (problem->row->op_class) {
    case TANDEM_CLASS_BINARY:
    case TANDEM_CLASS_COMPARE:
    case TANDEM_CLASS_LOGICAL:
    case TANDEM_CLASS_TERNARY:
        broadcast_make(problem, random);
        break;
    case TANDEM_CLASS_CAST:
    case TANDEM_CLASS_COPY:
    case TANDEM_CLASS_TRANSPOSE:
        move_make(problem, random, block);
        break;
    case TANDEM_CLASS_GATHER:
        gather_make(problem, random, block);
        break;
    case TANDEM_CLASS_REDUCE:
    case TANDEM_CLASS_ARG_REDUCE:
        reduce_make(problem, random);
        break;
    case TANDEM_CLASS_DOT:
        dot_make(problem, random);
        break;
    case TANDEM_CLASS_CROSS_ENTROPY:
        loss_make(problem, random);
        break;
    case TANDEM_CLASS_SOFTMAX:
    case TANDEM_CLASS_NORM:
        rows_make(problem, random);
        break;
    default:
        equal_make(problem, random);
        break;
    }
}
