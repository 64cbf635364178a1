/* SPDX-License-Identifier: Apache-2.0 */
/* Draws shapes, layouts and values; see draw.h. */
#include "draw.h"

#include "element_value.h"
#include "inputs.h"
#include "suite_class.h"

#include <float.h>
#include <math.h>

static bool millions_allowed;

void shapes_allow_millions(bool allowed)
{
    millions_allowed = allowed;
}

/* Selects a length near the limits at which kernels change their algorithm. */
static int64_t length_long(struct random *random)
{
    static const int64_t lengths[] = {
        31,   32,    33,    63,    64,    65,     100,    127,  128,  129,
        255,  256,   257,   300,   511,   513,    1000,   1023, 1024, 1025,
        2047, 2049,  3001,  3858,  4095,  4096,   4097,   4735, 5343, 8193,
        9001, 16385, 20011, 40004, 70001, 300007, 1048583};

    return lengths[random_below(random, sizeof(lengths) / sizeof(lengths[0]))];
}

/* One length in four is a power of two, as the sizes of vectors are. */
static int64_t length_short(struct random *random, int64_t most)
{
    int64_t length = 1;

    if (!random_once_in(random, 4))
        return random_between(random, 1, most);
    while (2 * length <= most && !random_once_in(random, 5))
        length *= 2;
    return length;
}

static int64_t max_elements_draw(struct random *random)
{
    if (millions_allowed && random_once_in(random, 200))
        return 4000000;
    if (random_once_in(random, 60))
        return 150000;
    return random_once_in(random, 12) ? 21000 : 1500;
}

void shape_draw(struct shape *shape, struct random *random, uint32_t min_rank,
                uint32_t max_rank)
{
    int64_t room = max_elements_draw(random), length;
    uint32_t at;

    shape->rank = (uint32_t)random_between(random, min_rank, max_rank);
    if (shape->rank > 4 && random_once_in(random, 2) && min_rank <= 4)
        shape->rank = (uint32_t)random_between(random, min_rank, 4);
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
        shape->at[at] = length_short(random, room < 40 ? room : 40);
        room /= shape->at[at];
    }
    if (shape->rank > 0 && random_once_in(random, 24))
        shape->at[random_below(random, shape->rank)] = 0;
}

int64_t shape_storage(const struct shape *shape)
{
    int64_t count = 1;

    for (uint32_t i = 0; i < shape->rank; i++)
        count *= shape->at[i] > 0 ? shape->at[i] : 1;
    return count;
}

static enum operand_layout layout_draw(struct random *random)
{
    if (random_once_in(random, 2))
        return DENSE;
    return (enum operand_layout)random_below(random, LAYOUT_COUNT);
}

void operand_draw(struct call *call, uint32_t place, uint32_t dtype,
                  const struct shape *shape)
{
    call_operand(call, place, dtype, shape, layout_draw(call->random));
}

void images_draw(struct call *call, uint32_t place, const struct shape *shape)
{
    call_operand(call, place, TANDEM_F32, shape,
                 random_once_in(call->random, 4) ? CHANNELS_LAST
                                                 : layout_draw(call->random));
}

void shape_narrow(struct shape *out, struct random *random,
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

int64_t axis_draw(struct random *random, uint32_t rank)
{
    int64_t axis = (int64_t)random_below(random, rank);

    return random_once_in(random, 3) ? axis - rank : axis;
}

uint32_t index_dtype_draw(struct random *random)
{
    return random_once_in(random, 2) ? TANDEM_I32 : TANDEM_I64;
}

int64_t invalid_number_draw(struct random *random, int64_t low, int64_t high)
{
    switch (random_below(random, 4)) {
    case 0:
        return low - 1;
    case 1:
        return high + 1;
    case 2:
        return INT64_MIN;
    default:
        return INT64_MAX;
    }
}

/* ---- values ---- */

uint32_t activation_draw(const struct block *block)
{
    static const uint32_t usual[] = {TANDEM_OP_INVALID,    TANDEM_OP_RELU,
                                     TANDEM_OP_LEAKY_RELU, TANDEM_OP_SIGMOID,
                                     TANDEM_OP_TANH,       TANDEM_OP_GELU,
                                     TANDEM_OP_SWISH};
    uint32_t number = block->numbers[5], id = number / 8;
    const struct op_row *row;

    if (number % 8 != 7)
        return usual[number % 8];
    do {
        id = (id + 1) % TANDEM_OP_ID_END;
        row = op_find(id);
    } while (row == NULL || row->op_class != TANDEM_CLASS_UNARY);
    return id;
}

uint64_t block_number_of_activation(uint32_t id)
{
    return (uint64_t)(id - 1) * 8 + 7;
}

void spread_draw(struct spread *spread, struct random *random,
                 const struct op_row *row)
{
    const struct suite_class *class = class_of(row);

    *spread = (struct spread){.low = -38.0, .high = 38.53, .row = row};
    if (class->limit_exponents != NULL)
        class->limit_exponents(row, &spread->low, &spread->high);
    spread->narrow = spread->high < 38.0;
    do
        spread->kind = random_below(random, SPREAD_COUNT);
    while (spread->kind == SPREAD_DOMAIN && spread->narrow);
    spread->scale =
        pow(10.0, random_uniform(random, spread->low, spread->high));
    spread->positive = random_once_in(random, 4);
    switch (random_below(random, 8)) {
    case 0:
    case 1:
        spread->special = SPECIAL_ONE;
        break;
    case 2:
        spread->special = SPECIAL_ROWS;
        break;
    case 3:
        spread->special = SPECIAL_MANY;
        break;
    default:
        break;
    }
}

double value_draw(const struct spread *spread, struct random *random)
{
    double value;

    switch (spread->kind) {
    case SPREAD_DOMAIN:
        value = (double)input_value(random, spread->row);
        break;
    case SPREAD_UNIFORM:
        value = random_uniform(random, -1.0, 1.0) * spread->scale;
        break;
    case SPREAD_MIXED:
        value = pow(10.0, random_uniform(random, spread->low, spread->high));
        if (random_once_in(random, 2))
            value = -value;
        break;
    case SPREAD_INTEGERS:
        value = (double)random_between(random, -4, 4);
        break;
    case SPREAD_FAR:
        value = 1000.0 + random_normal(random);
        break;
    default:
        value = random_normal(random);
        break;
    }
    if (spread->positive)
        value = fabs(value);
    if (!isfinite(value))
        return value;
    return value > (double)FLT_MAX    ? (double)FLT_MAX
           : value < -(double)FLT_MAX ? -(double)FLT_MAX
                                      : value;
}

static double special_draw(const struct spread *spread, struct random *random)
{
    static const double all[] = {(double)NAN,
                                 (double)NAN,
                                 (double)INFINITY,
                                 -(double)INFINITY,
                                 (double)FLT_MAX,
                                 0x1p-149,
                                 0.0,
                                 -0.0,
                                 -(double)FLT_MAX};
    static const double safe[] = {(double)NAN, 0.0, -0.0};

    if (spread->narrow)
        return safe[random_below(random, 3)];
    return all[random_below(random, 9)];
}

void element_set(struct operand *operand, int64_t element, double value)
{
    operand_set(operand, element, bits_from_real(operand->desc.dtype, value));
}

static void specials_set(struct operand *operand, const struct spread *spread,
                         struct random *random)
{
    const struct tandem_tensor_desc *desc = &operand->desc;
    int64_t n = operand->elements;
    int64_t row = desc->rank == 0 ? 1 : desc->shape[desc->rank - 1];

    if (n == 0)
        return;
    if (spread->special == SPECIAL_ONE)
        element_set(operand, random_between(random, 0, n - 1),
                    special_draw(spread, random));
    for (int64_t i = 0; spread->special == SPECIAL_ROWS && i < n; i += row)
        if (random_once_in(random, 2))
            element_set(operand, i + random_between(random, 0, row - 1),
                        special_draw(spread, random));
    for (int64_t i = 0; spread->special == SPECIAL_MANY && i < n; i++)
        if (random_once_in(random, 8))
            element_set(operand, i, special_draw(spread, random));
}

void reals_fill(struct operand *operand, const struct spread *spread,
                struct random *random)
{
    for (int64_t i = 0; i < operand->elements; i++)
        element_set(operand, i, value_draw(spread, random));
    specials_set(operand, spread, random);
}

int64_t index_draw(struct random *random, int64_t length, bool wrap,
                   bool outside)
{
    int64_t index = length > 0 ? random_between(random, 0, length - 1) : 0;

    if (wrap && random_once_in(random, 4))
        index -= length;
    if (outside && random_once_in(random, 8))
        index = random_once_in(random, 2)
                    ? random_between(random, length, length + 4)
                    : -length - random_between(random, 1, 4);
    return index;
}

void ties_make(struct call *call)
{
    struct operand *a = &call->operands[0], *b = &call->operands[1];

    if (call->inputs < 2 || !a->present || !b->present ||
        a->desc.dtype != b->desc.dtype)
        return;
    for (int64_t i = 0; i < a->elements && i < b->elements; i++)
        if (random_once_in(call->random, 4))
            operand_set(b, i, operand_get(a, i));
}
