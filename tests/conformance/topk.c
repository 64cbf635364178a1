/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Top k: the largest and the smallest elements along each axis, with ties and
 * special values.
 */
#include "element_value.h"
#include "row_case.h"

#include <math.h>
#include <stdlib.h>

enum { AXIS, K, LARGEST, SORTED };

/* ---- reference ---- */

struct item {
    double value;
    int64_t index;
    bool largest;
};

/* Returns the order of two values; NaN is larger than any number. */
static int value_order(double a, double b)
{
    if (isnan(a) || isnan(b))
        return (int)isnan(a) - (int)isnan(b);
    return (a > b) - (a < b);
}

static int item_order(const void *a, const void *b)
{
    const struct item *left = a, *right = b;
    int order = value_order(left->value, right->value);

    if (order != 0)
        return left->largest ? -order : order;
    return (left->index > right->index) - (left->index < right->index);
}

static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    const int64_t axis = axis_from_start(call->ints[AXIS], in->rank);
    const int64_t n = in->shape[axis], k = call->ints[K];
    struct item *items = must_allocate((uint64_t)n * sizeof(*items));
    const int64_t inner =
        shape_count(in->rank - (uint32_t)axis - 1, &in->shape[axis + 1]);

    expected_init(&out[0], EXPECTED_REAL, call->operands[1].elements);
    expected_init(&out[1], EXPECTED_INTEGER, call->operands[2].elements);
    out[0].exact = true;
    for (uint32_t i = 0; i < 2 && call->ints[SORTED] == 0; i++)
        expected_allow_unspecified(&out[i]);
    for (int64_t row = 0; k > 0 && row < in->elements / n; row++) {
        int64_t from = row / inner * n * inner + row % inner;
        int64_t to = row / inner * k * inner + row % inner;

        for (int64_t i = 0; i < n; i++)
            items[i] = (struct item){dense_real(in, from + i * inner), i,
                                     call->ints[LARGEST] != 0};
        qsort(items, (size_t)n, sizeof(*items), item_order);
        for (int64_t i = 0; i < k; i++) {
            out[0].real[to + i * inner] = items[i].value;
            out[1].integer[to + i * inner] = items[i].index;
            /* Any order is allowed. */
            for (uint32_t j = 0; j < 2 && call->ints[SORTED] == 0; j++)
                out[j].unspecified[to + i * inner] = UNSPECIFIED;
        }
    }
    free(items);
}

/* ---- cases ---- */

enum values { NORMAL, TIES, SPECIALS, RISING, FALLING };

static const struct topk_form {
    const char *name;
    enum level level;
    struct shape shape;
    int64_t axis, k;
    enum operand_layout in, out;
    enum values values;
} forms[] = {
    {"[1] 1", SOME, S(1), 0, 1, DENSE, DENSE, NORMAL},
    {"[5] 0", SOME, S(5), 0, 0, DENSE, DENSE, NORMAL},
    {"[7] 7", SOME, S(7), -1, 7, DENSE, DENSE, NORMAL},
    {"[100] 10", ALWAYS, S(100), 0, 10, DENSE, DENSE, NORMAL},
    {"ties [300] 40", ALWAYS, S(300), 0, 40, DENSE, DENSE, TIES},
    {"specials [33,64] 9", ALWAYS, S(33, 64), 1, 9, DENSE, DENSE, SPECIALS},
    {"specials [3,70] 70", SOME, S(3, 70), 1, 70, DENSE, DENSE, SPECIALS},
    {"[1000,8] 2", ALWAYS, S(1000, 8), 1, 2, DENSE, DENSE, NORMAL},
    {"[3,9000] 1", SOME, S(3, 9000), 1, 1, DENSE, DENSE, NORMAL},
    {"rising [2,9000] 100", SOME, S(2, 9000), 1, 100, DENSE, DENSE, RISING},
    {"falling [9000] 300", SOME, S(9000), 0, 300, DENSE, DENSE, FALLING},
    {"ties [40001] 17", ALWAYS, S(40001), 0, 17, DENSE, DENSE, TIES},
    {"rising [70001] 1000", SOME, S(70001), 0, 1000, DENSE, DENSE, RISING},
    {"[2,5000] 1024", ALWAYS, S(2, 5000), 1, 1024, DENSE, DENSE, NORMAL},
    {"[3,3001] 1025", ALWAYS, S(3, 3001), 1, 1025, DENSE, DENSE, TIES},
    {"[2500] 2500", SOME, S(2500), 0, 2500, DENSE, DENSE, SPECIALS},
    {"[20,6,5] 4", ALWAYS, S(20, 6, 5), 0, 4, DENSE, DENSE, NORMAL},
    {"[4,60,7] 11", ALWAYS, S(4, 60, 7), 1, 11, DENSE, DENSE, TIES},
    {"offset [9,31] 6", SOME, S(9, 31), 1, 6, OFFSET, OFFSET, NORMAL},
    {"padded [9,23] 5", SOME, S(9, 23), -2, 5, PADDED, PADDED, NORMAL},
    {"transposed [19,21] 3", SOME, S(19, 21), 1, 3, REVERSED, DENSE, NORMAL},
    {"negative [12,34] 34", SOME, S(12, 34), 1, 34, NEGATIVE, NEGATIVE, NORMAL},
    {"any [5,6,7] 2", ALWAYS, S(5, 6, 7), 1, 2, ANY, ANY, TIES},
    {"rank 8", SOME, S(2, 1, 3, 2, 2, 4, 2, 2), 5, 3, ANY, ANY, NORMAL},
    {"zero [8,9] 4", SOME, S(8, 9), 1, 4, REPEATED, DENSE, NORMAL},
    {"empty [0,4] 2", SOME, S(0, 4), 1, 2, DENSE, DENSE, NORMAL},
    {"empty [4,0] 0", SOME, S(4, 0), 1, 0, DENSE, DENSE, NORMAL},
    {"long [300007] 5000", FULL, S(300007), 0, 5000, DENSE, DENSE, NORMAL},
    {"long [2,300007] 64", FULL, S(2, 300007), 1, 64, DENSE, DENSE, RISING},
};

static void values_fill(struct operand *operand, struct random *random,
                        enum values values)
{
    if (values == NORMAL)
        operand_fill_normal(operand, random, 1, 0);
    else if (values == SPECIALS)
        operand_fill_special(operand, random, 3);
    for (int64_t i = 0; i < operand->elements && values >= TIES; i++) {
        if (values == TIES)
            element_set(operand, i, (double)random_between(random, -3, 3));
        else if (values == RISING)
            element_set(operand, i, (double)i);
        else if (values == FALLING)
            element_set(operand, i, (double)-i);
    }
}

static struct shape with_length(const struct shape *shape, int64_t axis,
                                int64_t k)
{
    struct shape result = *shape;

    result.at[axis_from_start(axis, shape->rank)] = k;
    return result;
}

static void form_run(struct suite *suite, const struct op_row *row,
                     const struct topk_form *form, bool largest, bool sorted)
{
    const struct shape out = with_length(&form->shape, form->axis, form->k);
    struct call *call =
        call_begin(suite, row, "%s %s%s", form->name,
                   largest ? "largest" : "smallest", sorted ? "" : " unsorted");

    if (call == NULL)
        return;
    call->ints[AXIS] = form->axis;
    call->ints[K] = form->k;
    call->ints[LARGEST] = largest;
    call->ints[SORTED] = sorted;
    values_fill(call_operand(call, 0, TANDEM_F32, &form->shape, form->in),
                call->random, form->values);
    call_operand(call, 1, TANDEM_F32, &out, form->out);
    call_operand(call, 2, TANDEM_I64, &out, form->out);
    call_end(suite, call);
}

static void cases(struct suite *suite, const struct op_row *row)
{
    const struct suite_options *options = suite->options;
    struct random choice;

    random_seed(&choice, options->seed, row->name);
    for (uint32_t i = 0; i < COUNT_OF(forms); i++)
        for (uint32_t k = 0; k < 3; k++) {
            bool chosen = random_once_in(&choice, options->smoke ? 12 : 2);
            bool always = forms[i].level == ALWAYS && k < 2 && !options->smoke;

            if (forms[i].level == FULL && !options->full)
                continue;
            if (options->full || options->filter != NULL || always || chosen)
                form_run(suite, row, &forms[i], k != 1, k != 2);
        }
}

/* ---- random calls ---- */

static void draw_call(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    struct shape in, out;
    int64_t n;

    (void)block;
    shape_draw(&in, random, 1, TANDEM_MAX_RANK);
    call->ints[AXIS] = axis_draw(random, in.rank);
    n = in.at[axis_from_start(call->ints[AXIS], in.rank)];
    call->ints[K] = random_once_in(random, 4)
                        ? n
                        : random_between(random, 0, n < 9 ? n : 9);
    if (random_once_in(random, 3))
        call->ints[K] = random_between(random, 0, n);
    call->ints[LARGEST] = random_once_in(random, 2);
    call->ints[SORTED] = !random_once_in(random, 5);
    out = with_length(&in, call->ints[AXIS], call->ints[K]);
    operand_draw(call, 0, TANDEM_F32, &in);
    operand_draw(call, 1, TANDEM_F32, &out);
    operand_draw(call, 2, TANDEM_I64, &out);
}

static bool draw_invalid_attribute(struct call *call)
{
    const struct tandem_tensor_desc *in = &call->operands[0].desc;
    const int64_t rank = in->rank;
    uint64_t number = random_below(call->random, 4);

    call->ints[number] =
        number == AXIS ? invalid_number_draw(call->random, -rank, rank - 1)
        : number == K
            ? invalid_number_draw(
                  call->random, 0,
                  in->shape[axis_from_start(call->ints[AXIS], in->rank)])
            : invalid_number_draw(call->random, 0, 1);
    return true;
}

/* ---- invalid calls ---- */

static void make_valid(struct mistaken_call *p)
{
    p->ints[AXIS] = 1;
    p->ints[K] = 2;
    mistaken_tensor_set(&p->outs[0], TANDEM_F32, 2, 3, 2);
    mistaken_tensor_set(&p->outs[1], TANDEM_I64, 2, 3, 2);
}

#define TOPK_MISTAKES(X)                                                       \
    X(topk_axis_large, TOPK, "an axis too large", 0, p->ints[AXIS] = 2)        \
    X(topk_axis_negative, TOPK, "an axis too small", 0, p->ints[AXIS] = -3)    \
    X(topk_k_large, TOPK, "a k above the length", 0,                           \
      (p->ints[K] = 5, p->outs[0].shape[1] = p->outs[1].shape[1] = 5))         \
    X(topk_k_negative, TOPK, "a negative k", 0, p->ints[K] = -1)               \
    X(topk_largest, TOPK, "largest 2", 0, p->ints[LARGEST] = 2)                \
    X(topk_sorted, TOPK, "sorted -1", 0, p->ints[SORTED] = -1)                 \
    X(topk_ints_few, TOPK, "no sorted", 0, p->op.int_count--)                  \
    X(topk_length, TOPK, "2^32 elements along the axis", IN_SIZE,              \
      p->ins[0].shape[1] = INT64_C(1) << 32)                                   \
    X(topk_values_differ, TOPK, "another shape of values", 0,                  \
      p->outs[0].shape[1] = 3)                                                 \
    X(topk_indices_differ, TOPK, "another shape of indices", 0,                \
      p->outs[1].shape[0] = 2)                                                 \
    X(topk_indices_i32, TOPK, "indices of i32", MAYBE_LATER,                   \
      p->outs[1].dtype = TANDEM_I32)                                           \
    X(topk_one_output, TOPK, "no indices", 0, p->out_count--)
MISTAKE_TABLE(topk_mistakes, TOPK_MISTAKES)

const struct suite_class suite_topk = {
    .cases = cases,
    .reference = reference,
    .draw = draw_call,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 2,
    .make_valid = make_valid,
    CLASS_MISTAKES(topk_mistakes),
};
