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

static struct shape with_length(const struct shape *shape, int64_t axis,
                                int64_t k)
{
    struct shape result = *shape;

    result.at[axis_from_start(axis, shape->rank)] = k;
    return result;
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
    .reference = reference,
    .draw = draw_call,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 4,
    .make_valid = make_valid,
    CLASS_MISTAKES(topk_mistakes),
};
