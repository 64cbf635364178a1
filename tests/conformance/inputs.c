/* SPDX-License-Identifier: Apache-2.0 */
/* Values of inputs; see inputs.h. */
#include "inputs.h"

#include "element_value.h"
#include "suite_class.h"

#include <float.h>
#include <math.h>

static const struct domain usual = {0, -4, 4, 2, {0, 1}};

static const uint32_t special_bits[] = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, /* 0, 1 */
    0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, /* infinities, NaN */
    0x7f7fffff, 0xff7fffff, 0x00800000, 0x80800000, /* FLT_MAX, FLT_MIN */
    0x00000001, 0x80000001, 0x007fffff, 0x807fffff, /* subnormals */
    0x00400000, 0x40000000, 0xc0000000, 0x3f000000, /* 2, 0.5 */
    0x40490fdb, 0x4b800000, 0xcb000001, 0x5f000000, /* pi, 2^24, 2^63 */
    0x7f000000, 0x33800000, 0x42b17218, 0xc2aeac50, /* large, epsilon, 88.7 */
};

uint32_t input_special_count(void)
{
    return sizeof(special_bits) / sizeof(special_bits[0]);
}

float input_special(uint32_t number)
{
    return (float)bits_real(TANDEM_F32,
                            special_bits[number % input_special_count()]);
}

static const struct domain *domain_of(const struct op_row *row)
{
    const struct suite_class *class = class_of(row);

    for (uint32_t i = 0; i < class->domain_count; i++)
        if (class->domains[i].op == row->id)
            return &class->domains[i];
    return &usual;
}

/* Returns a value within 16 neighbours of the point, or within 2^-8 of it. */
float input_near(struct random *random, const struct op_row *row)
{
    const struct domain *domain = domain_of(row);
    double point = domain->points[random_below(random, domain->count)];
    float value = (float)point;
    int64_t steps = random_between(random, -16, 16);

    if (random_once_in(random, 2))
        return (float)(point + random_normal(random) *
                                   (point == 0.0 ? 0x1p-8 : point * 0x1p-8));
    for (; steps > 0; steps--)
        value = nextafterf(value, INFINITY);
    for (; steps < 0; steps++)
        value = nextafterf(value, -INFINITY);
    return value;
}

float input_value(struct random *random, const struct op_row *row)
{
    const struct domain *domain = domain_of(row);
    uint64_t kind = random_below(random, 20);

    if (kind < 8)
        return (float)random_uniform(random, domain->low, domain->high);
    if (kind < 12)
        return (float)random_normal(random);
    if (kind < 16)
        return input_near(random, row);
    if (kind < 19)
        return random_wide(random);
    return input_special((uint32_t)random_u64(random));
}

static uint64_t integer_value(struct random *random, uint32_t dtype)
{
    uint64_t bits = random_u64(random);

    if (dtype == TANDEM_BOOL)
        return bits & 1u;
    /* All magnitudes, so that a narrowing cast sometimes saturates. */
    return bits_from_integer(dtype, (int64_t)bits >> random_below(random, 64));
}

static uint64_t value_bits(struct random *random, uint32_t dtype,
                           const struct op_row *row)
{
    if (dtype == TANDEM_F32)
        return bits_from_float(input_value(random, row));
    return dtype_has_16_bits(dtype) ? random_u64(random)
                                    : integer_value(random, dtype);
}

void operand_fill(struct operand *operand, struct random *random,
                  const struct op_row *row)
{
    if (!operand->present)
        return;
    for (int64_t i = 0; i < operand->elements; i++)
        operand_set(operand, i, value_bits(random, operand->desc.dtype, row));
}

/*
 * Returns a value halfway between two neighbours of the narrower dtype, or off
 * by one unit of dtype. Beyond the largest number of the narrower dtype, the
 * next power of two counts as its neighbour.
 */
static uint64_t tie_bits(struct random *random, uint32_t dtype,
                         uint32_t narrower)
{
    uint32_t infinite = narrower == TANDEM_F16 ? 0x7c00u : 0x7f80u;
    uint64_t below = random_once_in(random, 8) ? infinite - 1
                                               : random_below(random, infinite);
    double low = bits_real(narrower, below);
    double high = bits_real(narrower, below + 1);
    int64_t step = random_between(random, -1, 1);
    uint64_t bits;

    if (isinf(high))
        high = narrower == TANDEM_F16 ? 65536.0 : 0x1p128;
    low += (high - low) / 2;
    if (dtype == TANDEM_F32) {
        bits = bits_from_float((float)low) + (uint64_t)step;
        return random_once_in(random, 2) ? bits | 0x80000000u : bits;
    }
    /* Halves the value until it is in the range of the integer dtype. */
    while (fabs(low) >= ldexp(1.0, dtype == TANDEM_I32 ? 31 : 63))
        low /= 2;
    return (uint64_t)((int64_t)low + step) *
           (random_once_in(random, 2) ? UINT64_MAX : 1u);
}

void operand_fill_ties(struct operand *operand, struct random *random,
                       const struct op_row *row, uint32_t narrower)
{
    uint32_t dtype = operand->desc.dtype;
    bool ties =
        dtype == TANDEM_F32 || dtype == TANDEM_I32 || dtype == TANDEM_I64;

    for (int64_t i = 0; i < operand->elements; i++)
        operand_set(operand, i,
                    ties && random_once_in(random, 2)
                        ? tie_bits(random, dtype, narrower)
                        : value_bits(random, dtype, row));
}

void operand_fill_normal(struct operand *operand, struct random *random,
                         double scale, double shift)
{
    for (int64_t i = 0; i < operand->elements; i++)
        operand_set(
            operand, i,
            bits_from_float((float)(random_normal(random) * scale + shift)));
}

void operand_fill_special(struct operand *operand, struct random *random,
                          uint64_t period)
{
    for (int64_t i = 0; i < operand->elements; i++) {
        float x = (float)random_normal(random);

        if (random_once_in(random, period))
            x = input_special((uint32_t)random_u64(random));
        operand_set(operand, i, bits_from_float(x));
    }
}

double input_factor(struct random *random, int64_t n)
{
    bool large = n <= 64 || random_below(random, (uint64_t)n) < 64;
    double factor =
        exp2(random_normal(random) * (large ? 1.0 : 32.0 / (double)n));

    return random_once_in(random, 3) ? -factor : factor;
}

void operand_fill_bits(struct operand *operand, struct random *random)
{
    bool truth = operand->desc.dtype == TANDEM_BOOL;

    for (int64_t i = 0; i < operand->elements; i++)
        operand_set(operand, i, random_u64(random) & (truth ? 1u : ~0ull));
}

const struct magnitude magnitudes[MAGNITUDES] = {
    {"1e-38", -127, -126}, {"1e-25", -84, -83}, {"1e-22", -74, -73},
    {"1e-19", -64, -62},   {"1e-9", -32, -29},  {"1e19", 62, 64},
    {"1e20", 66, 67},      {"1e30", 99, 100},   {"3e38", 127, 127},
    {"small", -126, -20},  {"large", 20, 127},  {"all", -126, 127},
};

double input_of_magnitude(struct random *random, const struct magnitude *size)
{
    double x = ldexp(random_uniform(random, 1.0, 2.0),
                     (int)random_between(random, size->low, size->high));

    x = x > (double)FLT_MAX ? (double)FLT_MAX : x;
    return random_once_in(random, 2) ? -x : x;
}

void operand_fill_magnitude(struct operand *operand, struct random *random,
                            const struct magnitude *size, bool positive)
{
    for (int64_t i = 0; i < operand->elements; i++) {
        double x = input_of_magnitude(random, size);

        operand_set(operand, i,
                    bits_from_float((float)(positive ? fabs(x) : x)));
    }
}
