/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cast, copy, transpose and gather: each pair of dtypes, or each element
 * width, over shapes and strides.
 */
#include "launch_check.h"
#include "inputs.h"
#include "element_value.h"

#include <string.h>

static const uint32_t cast_dtypes[] = {TANDEM_F32, TANDEM_I32,  TANDEM_I64,
                                       TANDEM_U8,  TANDEM_BOOL, TANDEM_F16,
                                       TANDEM_BF16};
#define CAST_DTYPES (sizeof(cast_dtypes) / sizeof(cast_dtypes[0]))

/* At least one dtype of each width that COPY, TRANSPOSE and GATHER support. */
static const uint32_t moved_dtypes[] = {TANDEM_F32, TANDEM_U8,  TANDEM_I16,
                                        TANDEM_I64, TANDEM_I32, TANDEM_BOOL,
                                        TANDEM_F16, TANDEM_F64, TANDEM_BF16};
#define MOVED_DTYPES (sizeof(moved_dtypes) / sizeof(moved_dtypes[0]))

struct move_form {
    const char *name;
    bool always;
    uint32_t rank;
    int64_t shape[TANDEM_MAX_RANK];
    enum operand_layout out, in;
};

static const struct move_form move_forms[] = {
    {"rank 0", false, 0, {0}, LAYOUT_DENSE, LAYOUT_DENSE},
    {"empty [3,0]", false, 2, {3, 0}, LAYOUT_DENSE, LAYOUT_DENSE},
    {"[1]", false, 1, {1}, LAYOUT_OFFSET, LAYOUT_OFFSET},
    {"[1021]", true, 1, {1021}, LAYOUT_DENSE, LAYOUT_DENSE},
    {"[70001]", false, 1, {70001}, LAYOUT_DENSE, LAYOUT_DENSE},
    {"offset [515]", true, 1, {515}, LAYOUT_OFFSET, LAYOUT_OFFSET},
    {"offset in [300]", false, 1, {300}, LAYOUT_DENSE, LAYOUT_OFFSET},
    {"padded [31,17]", false, 2, {31, 17}, LAYOUT_PADDED, LAYOUT_PADDED},
    {"long padded [3,523]", true, 2, {3, 523}, LAYOUT_PADDED, LAYOUT_PADDED},
    {"step [101]", false, 1, {101}, LAYOUT_STEP, LAYOUT_STEP},
    {"transposed [67,35]", true, 2, {67, 35}, LAYOUT_DENSE, LAYOUT_REVERSED},
    {"transposed out [33,65]",
     false,
     2,
     {33, 65},
     LAYOUT_REVERSED,
     LAYOUT_DENSE},
    {"negative [15,11]", true, 2, {15, 11}, LAYOUT_NEGATIVE, LAYOUT_NEGATIVE},
    {"zero [12,9]", false, 2, {12, 9}, LAYOUT_DENSE, LAYOUT_ZERO},
    {"permuted [5,3,7,4]",
     false,
     4,
     {5, 3, 7, 4},
     LAYOUT_PERMUTED,
     LAYOUT_PERMUTED},
    {"any [6,7,8]", true, 3, {6, 7, 8}, LAYOUT_RANDOM, LAYOUT_RANDOM},
    {"rank 8",
     false,
     8,
     {2, 3, 1, 2, 2, 3, 1, 2},
     LAYOUT_RANDOM,
     LAYOUT_RANDOM},
};
#define MOVE_FORMS (sizeof(move_forms) / sizeof(move_forms[0]))

static bool form_chosen(const struct suite *suite, struct random *choice,
                        bool always, uint64_t n)
{
    bool chosen = random_once_in(choice, suite->options->smoke ? 4 * n : n);

    return always || chosen || suite->options->full ||
           suite->options->filter != NULL;
}

static void cast_run(struct suite *suite, const struct op_row *row,
                     uint32_t from, uint32_t to, const struct move_form *form)
{
    struct call call;
    bool narrow = dtype_has_16_bits(from) || dtype_has_16_bits(to);

    if (!case_begin(suite, row->name, "%s to %s, %s", dtype_text(from),
                    dtype_text(to), form->name))
        return;
    call_init(&call, row);
    call.required =
        narrow ? suite_has_capability(suite, TANDEM_CAP_F16_BF16_STORAGE)
               : from != to && (from == TANDEM_F32 || to == TANDEM_F32);
    operand_init(&call.inputs[0], &suite->random, from, form->rank, form->shape,
                 form->in, false);
    if (dtype_has_16_bits(to))
        operand_fill_ties(&call.inputs[0], &suite->random, row->id, to);
    else
        operand_fill(&call.inputs[0], &suite->random, row->id);
    operand_init(&call.outputs[0], &suite->random, to, form->rank, form->shape,
                 form->out, true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

/* Testing all pairs would compile too many kernels. */
static bool pair_is_common(uint32_t from, uint32_t to)
{
    return from == TANDEM_F32 || to == TANDEM_F32 ||
           (!dtype_has_16_bits(from) && !dtype_has_16_bits(to));
}

/*
 * A smoke run selects pairs by the seed, so that each dtype occurs as source
 * and target.
 */
static bool pair_is_selected(const struct suite *suite, uint32_t i, uint32_t j)
{
    uint32_t from = cast_dtypes[i], to = cast_dtypes[j];
    bool narrow = dtype_has_16_bits(from) || dtype_has_16_bits(to);

    return pair_is_common(from, to) &&
           (!suite->options->smoke || narrow ||
            (suite->options->seed + i + j) % 3 == 0);
}

/* Tests all 65536 values of a 16-bit dtype. */
static void numbers_run(struct suite *suite, const struct op_row *row,
                        uint32_t from, uint32_t to)
{
    int64_t shape[1] = {65536};
    struct call call;

    if (!case_begin(suite, row->name, "every %s to %s", dtype_text(from),
                    dtype_text(to)))
        return;
    call_init(&call, row);
    call.required = suite_has_capability(suite, TANDEM_CAP_F16_BF16_STORAGE);
    operand_init(&call.inputs[0], &suite->random, from, 1, shape, LAYOUT_DENSE,
                 false);
    for (int64_t i = 0; i < shape[0]; i++)
        operand_set(&call.inputs[0], i, (uint64_t)i);
    operand_init(&call.outputs[0], &suite->random, to, 1, shape, LAYOUT_DENSE,
                 true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

/*
 * Integers near the first ones that f32 cannot represent, and integers up to
 * 2^25 that are halfway between two neighbours in bf16 or off by one.
 */
static void integers_run(struct suite *suite, const struct op_row *row,
                         uint32_t from)
{
    int64_t shape[1] = {1021};
    struct call call;

    if (!case_begin(suite, row->name, "%s near 2^24 to bf16", dtype_text(from)))
        return;
    call_init(&call, row);
    call.required = suite_has_capability(suite, TANDEM_CAP_F16_BF16_STORAGE);
    operand_init(&call.inputs[0], &suite->random, from, 1, shape, LAYOUT_OFFSET,
                 false);
    for (int64_t i = 0; i < shape[0]; i++) {
        int shift = (int)random_between(&suite->random, 14, 16);
        int64_t x = (random_between(&suite->random, 128, 254) * 2 + 1) << shift;

        x += random_between(&suite->random, -1, 1);
        x = random_once_in(&suite->random, 2) ? -x : x;
        operand_set(&call.inputs[0], i, bits_from_integer(from, x));
    }
    operand_init(&call.outputs[0], &suite->random, TANDEM_BF16, 1, shape,
                 LAYOUT_OFFSET, true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

static void casts_run(struct suite *suite, const struct op_row *row)
{
    struct random choice;

    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t j = 0; j < CAST_DTYPES; j++) {
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
    for (uint32_t i = 0; i < CAST_DTYPES; i++)
        for (uint32_t j = 0; j < CAST_DTYPES; j++)
            for (uint32_t f = 0; f < MOVE_FORMS; f++)
                if (form_chosen(suite, &choice,
                                f == 3 && pair_is_selected(suite, i, j), 12))
                    cast_run(suite, row, cast_dtypes[i], cast_dtypes[j],
                             &move_forms[f]);
}

static void copy_run(struct suite *suite, const struct op_row *row,
                     uint32_t dtype, const struct move_form *form,
                     bool broadcast)
{
    struct call call;
    int64_t shape[TANDEM_MAX_RANK];

    if (!case_begin(suite, row->name, "%s %s%s", dtype_text(dtype), form->name,
                    broadcast ? ", broadcast" : ""))
        return;
    call_init(&call, row);
    call.required = dtype == TANDEM_F32;
    for (uint32_t i = 0; i < form->rank; i++)
        shape[i] =
            broadcast && random_once_in(&suite->random, 2) ? 1 : form->shape[i];
    operand_init(&call.inputs[0], &suite->random, dtype, form->rank, shape,
                 form->in, false);
    operand_fill_bits(&call.inputs[0], &suite->random);
    operand_init(&call.outputs[0], &suite->random, dtype, form->rank,
                 form->shape, form->out, true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

static void copies_run(struct suite *suite, const struct op_row *row)
{
    struct random choice;

    random_seed(&choice, suite->options->seed, "copy");
    for (uint32_t i = 0; i < MOVED_DTYPES; i++)
        for (uint32_t f = 0; f < MOVE_FORMS; f++) {
            bool always = move_forms[f].always && i < 4;

            if (form_chosen(suite, &choice, always, 6))
                copy_run(suite, row, moved_dtypes[i], &move_forms[f], false);
            if (form_chosen(suite, &choice, false, 8))
                copy_run(suite, row, moved_dtypes[i], &move_forms[f], true);
        }
}

struct transpose_form {
    bool always;
    uint32_t rank;
    int64_t shape[TANDEM_MAX_RANK];
    int64_t perm[TANDEM_MAX_RANK];
};

static const struct transpose_form transpose_forms[] = {
    {false, 0, {0}, {0}},
    {false, 1, {53}, {0}},
    {true, 2, {37, 65}, {1, 0}},
    {true, 2, {128, 64}, {1, 0}},
    {false, 2, {1, 33}, {1, 0}},
    {false, 2, {33, 1}, {1, 0}},
    {false, 2, {0, 5}, {1, 0}},
    {false, 2, {301, 259}, {1, 0}},
    {true, 2, {132, 200}, {1, 0}},
    {false, 3, {3, 68, 128}, {0, 2, 1}},
    {false, 2, {20, 30}, {0, 1}},
    {true, 3, {5, 17, 33}, {0, 2, 1}},
    {false, 3, {5, 17, 33}, {2, 1, 0}},
    {false, 3, {9, 8, 7}, {1, 2, 0}},
    {true, 4, {2, 3, 5, 7}, {0, 2, 3, 1}},
    {false, 4, {2, 3, 5, 7}, {3, 1, 2, 0}},
    {false, 8, {2, 1, 3, 2, 2, 1, 2, 3}, {7, 5, 3, 1, 0, 2, 4, 6}},
};

static void transpose_run(struct suite *suite, const struct op_row *row,
                          uint32_t dtype, const struct transpose_form *form,
                          bool strided)
{
    enum operand_layout layout = strided ? LAYOUT_RANDOM : LAYOUT_DENSE;
    int64_t shape[TANDEM_MAX_RANK];
    char shapes[200], perms[200];
    struct call call;

    shape_text(form->rank, form->shape, shapes, sizeof(shapes));
    shape_text(form->rank, form->perm, perms, sizeof(perms));
    if (!case_begin(suite, row->name, "%s %s by %s%s", dtype_text(dtype),
                    shapes, perms, strided ? ", strided" : ""))
        return;
    call_init(&call, row);
    call.required = dtype == TANDEM_F32;
    call.int_count = form->rank;
    for (uint32_t i = 0; i < form->rank; i++) {
        call.ints[i] = form->perm[i];
        shape[i] = form->shape[form->perm[i]];
    }
    operand_init(&call.inputs[0], &suite->random, dtype, form->rank,
                 form->shape, layout, false);
    operand_fill_bits(&call.inputs[0], &suite->random);
    operand_init(&call.outputs[0], &suite->random, dtype, form->rank, shape,
                 layout, true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

static void transposes_run(struct suite *suite, const struct op_row *row)
{
    struct random choice;

    random_seed(&choice, suite->options->seed, "transpose");
    for (uint32_t i = 0; i < MOVED_DTYPES; i++)
        for (uint32_t f = 0;
             f < sizeof(transpose_forms) / sizeof(transpose_forms[0]); f++) {
            const struct transpose_form *form = &transpose_forms[f];

            if (form_chosen(suite, &choice, form->always && i < 2, 5))
                transpose_run(suite, row, moved_dtypes[i], form, false);
            if (form_chosen(suite, &choice, false, 8))
                transpose_run(suite, row, moved_dtypes[i], form, true);
        }
}

struct gather_form {
    bool always;
    uint32_t rank;
    int64_t shape[TANDEM_MAX_RANK];
    int64_t axis;
    uint32_t index_rank;
    int64_t index_shape[TANDEM_MAX_RANK];
};

static const struct gather_form gather_forms[] = {
    {true, 2, {50, 64}, 0, 1, {37}},        {true, 2, {17, 9}, 1, 1, {23}},
    {true, 3, {5, 11, 7}, -2, 2, {3, 4}},   {false, 1, {29}, 0, 0, {0}},
    {false, 1, {29}, -1, 1, {101}},         {false, 2, {8, 5}, 0, 1, {0}},
    {false, 2, {8, 0}, 0, 1, {6}},          {false, 2, {1000, 3}, 0, 1, {2049}},
    {false, 4, {3, 2, 6, 5}, 2, 2, {2, 2}}, {false, 2, {1, 1}, 1, 1, {1}},
    {false, 3, {2, 3, 4}, 0, 3, {2, 1, 3}}, {false, 2, {1797, 64}, 0, 1, {512}},
};

/*
 * Indices in range, counted from either end; some are just or far out of
 * range.
 */
static void indices_fill(struct operand *operand, struct random *random,
                         int64_t length)
{
    for (int64_t i = 0; i < operand->elements; i++) {
        int64_t index = random_between(random, -length, length - 1);

        if (random_once_in(random, 10))
            index = random_once_in(random, 2) ? length : -length - 1;
        if (random_once_in(random, 40))
            index = (int32_t)random_u64(random);
        if (random_once_in(random, 80) && operand->desc.dtype == TANDEM_I64)
            index = (int64_t)random_u64(random);
        operand_set(operand, i, bits_from_integer(operand->desc.dtype, index));
    }
}

static void gather_run(struct suite *suite, const struct op_row *row,
                       uint32_t dtype, uint32_t index_dtype,
                       const struct gather_form *form, bool strided)
{
    enum operand_layout layout = strided ? LAYOUT_RANDOM : LAYOUT_DENSE;
    int64_t shape[TANDEM_MAX_RANK], axis = form->axis;
    char shapes[200], indices[200];
    struct call call;
    uint32_t rank = 0;

    shape_text(form->rank, form->shape, shapes, sizeof(shapes));
    shape_text(form->index_rank, form->index_shape, indices, sizeof(indices));
    if (!case_begin(suite, row->name, "%s %s axis %d by %s %s%s",
                    dtype_text(dtype), shapes, (int)axis,
                    dtype_text(index_dtype), indices,
                    strided ? ", strided" : ""))
        return;
    call_init(&call, row);
    call.required = dtype == TANDEM_F32;
    call.ints[0] = axis;
    axis = axis < 0 ? axis + form->rank : axis;
    for (uint32_t i = 0; i < form->rank; i++) {
        if (i != (uint32_t)axis)
            shape[rank++] = form->shape[i];
        else
            for (uint32_t j = 0; j < form->index_rank; j++)
                shape[rank++] = form->index_shape[j];
    }
    operand_init(&call.inputs[0], &suite->random, dtype, form->rank,
                 form->shape, layout, false);
    operand_fill_bits(&call.inputs[0], &suite->random);
    operand_init(&call.inputs[1], &suite->random, index_dtype, form->index_rank,
                 form->index_shape, layout, false);
    indices_fill(&call.inputs[1], &suite->random, form->shape[axis]);
    operand_init(&call.outputs[0], &suite->random, dtype, rank, shape, layout,
                 true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

static void gathers_run(struct suite *suite, const struct op_row *row)
{
    static const uint32_t index_dtypes[] = {TANDEM_I32, TANDEM_I64};
    struct random choice;

    random_seed(&choice, suite->options->seed, "gather");
    for (uint32_t i = 0; i < MOVED_DTYPES; i++)
        for (uint32_t j = 0; j < 2; j++)
            for (uint32_t f = 0;
                 f < sizeof(gather_forms) / sizeof(gather_forms[0]); f++) {
                const struct gather_form *form = &gather_forms[f];

                if (form_chosen(suite, &choice, form->always && i == 0, 8))
                    gather_run(suite, row, moved_dtypes[i], index_dtypes[j],
                               form, false);
                if (form_chosen(suite, &choice, false, 12))
                    gather_run(suite, row, moved_dtypes[i], index_dtypes[j],
                               form, true);
            }
}

void cases_move(struct suite *suite)
{
    static const struct {
        uint32_t op;
        void (*run)(struct suite *suite, const struct op_row *row);
    } movers[] = {{TANDEM_OP_CAST, casts_run},
                  {TANDEM_OP_COPY, copies_run},
                  {TANDEM_OP_TRANSPOSE, transposes_run},
                  {TANDEM_OP_GATHER, gathers_run}};

    for (uint32_t i = 0; i < sizeof(movers) / sizeof(movers[0]); i++) {
        const struct op_row *row = op_find(movers[i].op);

        if (group_selected(suite, row->name))
            movers[i].run(suite, row);
    }
}
