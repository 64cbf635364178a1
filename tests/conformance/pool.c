/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maximum and average pooling over one to three spatial axes, with strides,
 * dilations and padding.
 */
#include "element_value.h"
#include "inputs.h"
#include "suite_class.h"
#include "tolerance.h"

#include <math.h>

#define SPATIAL 3

/* ---- reference ---- */

static bool is_average(const struct call *call)
{
    return call->row->id == TANDEM_OP_AVERAGE_POOL;
}

/* Element `which` of a list of attributes. */
enum list { KERNEL, STRIDES, DILATIONS, BEGINS, ENDS, LISTS };
static int64_t *attribute(struct call *call, enum list list, uint32_t which)
{
    const uint32_t spatial = call->operands[0].desc.rank - 2;

    return &call->ints[call->row->ints + list * spatial + which];
}
static int64_t attribute_of(const struct call *call, enum list list,
                            uint32_t which)
{
    return *attribute((struct call *)call, list, which);
}

struct result {
    long double sum, magnitude;
    double best;
    int64_t where, counted, elements;
};

static void element_add(struct result *result, double x, int64_t where)
{
    result->sum += x;
    result->magnitude += fabs(x);
    result->elements++;
    if (result->where < 0 ||
        (!isnan(result->best) && (isnan(x) || x > result->best))) {
        result->best = x;
        result->where = where;
    }
}

/* Visits the elements of a window: offsets counts through the kernel. */
static struct result window_visit(const struct call *call,
                                  const struct dense *in, int64_t plane,
                                  const int64_t *at)
{
    const uint32_t spatial = in->rank - 2;
    struct result result = {.best = -INFINITY, .where = -1};
    int64_t k[SPATIAL] = {0}, kernel[SPATIAL];
    int64_t windows = 1;

    for (uint32_t i = 0; i < spatial; i++) {
        kernel[i] = attribute_of(call, KERNEL, i);
        windows *= kernel[i];
    }
    for (int64_t n = 0; n < windows; n++) {
        bool inside = true, counted = true;
        int64_t from = plane;

        for (uint32_t i = 0; i < spatial; i++) {
            int64_t position = at[i] * attribute_of(call, STRIDES, i) -
                               attribute_of(call, BEGINS, i) +
                               k[i] * attribute_of(call, DILATIONS, i);

            inside = inside && position >= 0 && position < in->shape[2 + i];
            counted = counted &&
                      position < in->shape[2 + i] + attribute_of(call, ENDS, i);
            from = from * in->shape[2 + i] + position;
        }
        if (inside)
            element_add(&result, dense_real(in, from), from);
        result.counted += call->ints[1] != 0 ? counted : inside;
        index_next(spatial, kernel, k);
    }
    return result;
}

static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    const struct tandem_tensor_desc *desc = &call->operands[1].desc;
    const int64_t count = call->operands[1].elements;
    int64_t index[TANDEM_MAX_RANK] = {0};

    expected_init(&out[0], EXPECTED_REAL, count);
    out[0].exact = !is_average(call);
    out[0].subnormal_tolerance = TOLERANCE_SUBNORMAL;
    if (call->outputs > 1)
        expected_init(&out[1], EXPECTED_INTEGER, count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t plane = index[0] * desc->shape[1] + index[1];
        struct result result = window_visit(call, in, plane, &index[2]);
        double n = (double)result.counted;

        out[0].real[i] =
            is_average(call) ? (double)result.sum / n : result.best;
        if (is_average(call))
            out[0].tolerance[i] =
                (call->row->tolerance + reference_log2(result.elements)) *
                TOLERANCE_2EPS * (double)(result.magnitude / n);
        if (call->outputs > 1)
            out[1].integer[i] = result.where;
        index_next(desc->rank, desc->shape, index);
    }
}

/* Returns the number of windows along an axis. */
static int64_t windows_of(const struct call *call, uint32_t i, int64_t n)
{
    const int64_t begin = attribute_of(call, BEGINS, i);
    const int64_t stride = attribute_of(call, STRIDES, i);
    const int64_t span =
        (attribute_of(call, KERNEL, i) - 1) * attribute_of(call, DILATIONS, i) +
        1;
    const int64_t padded = n + begin + attribute_of(call, ENDS, i);
    int64_t count = 0;

    while (count * stride + span <= padded)
        count++;
    if (call->ints[0] != 0 && count * stride < n + begin &&
        (count - 1) * stride + span < padded)
        count++;
    return count;
}

/* ---- random calls ---- */

/* Draws the window along an axis. Few windows lie in the padding alone. */
static void window_draw(struct call *call, uint32_t i)
{
    struct random *random = call->random;
    const int64_t kernel =
        random_between(random, 1, random_once_in(random, 12) ? 56 : 4);
    const int64_t dilation = random_between(random, 1, 3);
    const int64_t span = (kernel - 1) * dilation + 1;
    const int64_t most = random_once_in(random, 4) ? span + 4 : span - 1;

    *attribute(call, KERNEL, i) = kernel;
    *attribute(call, STRIDES, i) = random_between(random, 1, 4);
    *attribute(call, DILATIONS, i) = dilation;
    *attribute(call, BEGINS, i) = random_between(random, 0, most);
    *attribute(call, ENDS, i) = random_between(random, 0, most);
}

static void draw(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    struct shape shape, out;

    (void)block;
    shape_draw(&shape, random, 3, 5);
    for (uint32_t i = 0; i < shape.rank; i++) {
        const int64_t most = i < 2 ? 6 : shape.rank == 3 ? 5000 : 90;

        shape.at[i] = shape.at[i] > most ? most : shape.at[i];
    }
    call->operands[0].desc.rank = shape.rank;
    call->int_count = call->row->ints + LISTS * (shape.rank - 2);
    for (uint32_t i = 0; i < call->row->ints; i++)
        call->ints[i] = random_between(random, 0, 1);
    out = shape;
    for (uint32_t i = 0; i + 2 < shape.rank; i++) {
        window_draw(call, i);
        out.at[2 + i] = windows_of(call, i, shape.at[2 + i]);
    }
    images_draw(call, 0, &shape);
    images_draw(call, 1, &out);
    if (call->outputs > 1)
        operand_draw(call, 2, TANDEM_I64, &out);
}

static bool draw_invalid_attribute(struct call *call)
{
    const uint32_t spatial = call->operands[0].desc.rank - 2;
    const uint32_t which = (uint32_t)random_below(call->random, spatial);

    *attribute(call, (enum list)random_below(call->random, LISTS), which) =
        random_once_in(call->random, 2) ? -1 : INT64_MAX;
    return true;
}

/* ---- invalid calls ---- */

static void make_valid(struct mistaken_call *p)
{
    const uint32_t first = p->row->ints;

    MISTAKEN_SHAPE(&p->ins[0], 1, 4, 6);
    MISTAKEN_SHAPE(&p->outs[0], 1, 4, 3);
    if (p->row->outputs > 1) {
        p->outs[1] = p->outs[0];
        p->outs[1].dtype = TANDEM_I64;
        p->outs[1].byte_offset += 512;
    }
    for (uint32_t i = 0; i < first; i++)
        p->ints[i] = 0;
    p->ints[first] = p->ints[first + 1] = 2;
    p->ints[first + 2] = 1;
    p->ints[first + 3] = p->ints[first + 4] = 0;
    p->op.int_count = first + 5;
}

#define POOL_MISTAKES(X)                                                       \
    X(pool_ceil_mode, MAX_POOL, "ceil_mode 2", 0, p->ints[0] = 2)              \
    X(pool_include_pad, AVERAGE_POOL, "count_include_pad -1", 0,               \
      p->ints[1] = -1)                                                         \
    X(pool_kernel, MAX_POOL, "a kernel of 0", 0, p->ints[1] = 0)               \
    X(pool_stride, MAX_POOL, "a stride of 0", 0, p->ints[2] = 0)               \
    X(pool_dilation, MAX_POOL, "a dilation of 0", 0, p->ints[3] = 0)           \
    X(pool_pad, MAX_POOL, "huge padding", 0, p->ints[4] = INT64_MAX)           \
    X(pool_pad_negative, MAX_POOL, "negative padding", 0, p->ints[5] = -1)     \
    X(pool_huge, MAX_POOL, "a huge dilation", 0, p->ints[3] = INT64_MAX)       \
    X(pool_ints_few, MAX_POOL, "a missing end", 0, p->op.int_count--)          \
    X(pool_rank, MAX_POOL, "no spatial axis", 0,                               \
      p->ins[0].rank = p->outs[0].rank = 2)                                    \
    X(pool_output, AVERAGE_POOL, "another output shape", 0,                    \
      p->outs[0].shape[2] = 2)                                                 \
    X(pool_indices, MAX_POOL_INDICES, "indices of f32", MAYBE_LATER,           \
      p->outs[1].dtype = TANDEM_F32)

MISTAKE_TABLE(pool_mistakes, POOL_MISTAKES)

const struct suite_class suite_pool = {
    .reference = reference,
    .draw = draw,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 4,
    .make_valid = make_valid,
    CLASS_MISTAKES(pool_mistakes),
};
