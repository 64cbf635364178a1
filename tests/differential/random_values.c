/* SPDX-License-Identifier: Apache-2.0 */
/* Values of random calls; see random_values.h. */
#include "random_values.h"

#include "conformance/inputs.h"
#include "conformance/element_value.h"

#include <float.h>
#include <math.h>

enum spread {
    SPREAD_NORMAL, /* Mean 0, variance 1. */
    /* The values of the conformance suite for the operator. */
    SPREAD_DOMAIN,
    SPREAD_UNIFORM,  /* All of one magnitude. */
    SPREAD_MIXED,    /* All magnitudes. */
    SPREAD_INTEGERS, /* Few different values, with ties. */
    SPREAD_COUNT
};

enum special {
    SPECIAL_NONE,
    SPECIAL_ONE,  /* Exactly one special element. */
    SPECIAL_ROWS, /* Exactly one special element in some rows. */
    SPECIAL_MANY
};

struct plan {
    enum spread spread;
    enum special special;
    double low, high; /* Decimal exponents. */
    double scale;     /* For SPREAD_UNIFORM. */
    bool positive;
    bool narrow; /* No special value of large magnitude. */
    uint32_t op;
};

/*
 * Returns the decimal exponents for which a direct f32 evaluation of the
 * operator's formula remains in range.
 */
static void exponents_of(const struct op_row *row, double *out_low,
                         double *out_high)
{
    *out_low = -38.0;
    *out_high = 38.53;
    switch (row->op_class) {
    case TANDEM_CLASS_OPTIMIZER:
        *out_low = -6.0;
        *out_high = 6.0;
        break;
    case TANDEM_CLASS_NORM:
        *out_low = -14.0;
        *out_high = 14.0;
        break;
    default:
        break;
    }
    if (row->id == TANDEM_OP_L2 || row->id == TANDEM_OP_SUM_SQUARE) {
        *out_low = -16.0;
        *out_high = 16.0;
    }
    if (row->id == TANDEM_OP_MEAN)
        *out_high = 33.0;
}

static void plan_draw(struct plan *plan, struct random *random,
                      const struct op_row *row)
{
    *plan = (struct plan){.op = row->id};
    exponents_of(row, &plan->low, &plan->high);
    plan->narrow = plan->high < 38.0;
    do
        plan->spread = (enum spread)random_below(random, SPREAD_COUNT);
    while (plan->spread == SPREAD_DOMAIN && plan->narrow);
    plan->scale = pow(10.0, random_uniform(random, plan->low, plan->high));
    plan->positive = random_once_in(random, 4);
    switch (random_below(random, 8)) {
    case 0:
    case 1:
        plan->special = SPECIAL_ONE;
        break;
    case 2:
        plan->special = SPECIAL_ROWS;
        break;
    case 3:
        plan->special = SPECIAL_MANY;
        break;
    default:
        break;
    }
}

static double value_draw(const struct plan *plan, struct random *random)
{
    double value;

    switch (plan->spread) {
    case SPREAD_DOMAIN:
        value = (double)input_value(random, plan->op);
        break;
    case SPREAD_UNIFORM:
        value = random_uniform(random, -1.0, 1.0) * plan->scale;
        break;
    case SPREAD_MIXED:
        value = pow(10.0, random_uniform(random, plan->low, plan->high));
        if (random_once_in(random, 2))
            value = -value;
        break;
    case SPREAD_INTEGERS:
        value = (double)random_between(random, -4, 4);
        break;
    default:
        value = random_normal(random);
        break;
    }
    if (plan->positive)
        value = fabs(value);
    if (!isfinite(value))
        return value;
    return value > (double)FLT_MAX    ? (double)FLT_MAX
           : value < -(double)FLT_MAX ? -(double)FLT_MAX
                                      : value;
}

static double special_draw(const struct plan *plan, struct random *random)
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

    if (plan->narrow)
        return safe[random_below(random, 3)];
    return all[random_below(random, 9)];
}

static void element_set(struct operand *operand, int64_t element, double value)
{
    operand_set(operand, element, bits_from_real(operand->desc.dtype, value));
}

static void specials_set(struct operand *operand, const struct plan *plan,
                         struct random *random)
{
    const struct tandem_tensor_desc *desc = &operand->desc;
    int64_t n = operand->elements;
    int64_t row = desc->rank == 0 ? 1 : desc->shape[desc->rank - 1];

    if (n == 0)
        return;
    if (plan->special == SPECIAL_ONE)
        element_set(operand, random_between(random, 0, n - 1),
                    special_draw(plan, random));
    for (int64_t i = 0; plan->special == SPECIAL_ROWS && i < n; i += row)
        if (random_once_in(random, 2))
            element_set(operand, i + random_between(random, 0, row - 1),
                        special_draw(plan, random));
    for (int64_t i = 0; plan->special == SPECIAL_MANY && i < n; i++)
        if (random_once_in(random, 8))
            element_set(operand, i, special_draw(plan, random));
}

static void reals_fill(struct operand *operand, const struct plan *plan,
                       struct random *random)
{
    for (int64_t i = 0; i < operand->elements; i++)
        element_set(operand, i, value_draw(plan, random));
    specials_set(operand, plan, random);
}

/* Fills the operand with indices or labels of an axis of `length` elements.
 * Some are negative, and a few are out of range. */
static void values_indices(struct operand *operand, struct random *random,
                           int64_t length, bool wrap)
{
    bool outside = random_once_in(random, 3);

    for (int64_t i = 0; i < operand->elements; i++) {
        int64_t index = length > 0 ? random_between(random, 0, length - 1) : 0;

        if (wrap && random_once_in(random, 4))
            index -= length;
        if (outside && random_once_in(random, 8))
            index = random_once_in(random, 2)
                        ? random_between(random, length, length + 4)
                        : -length - random_between(random, 1, 4);
        operand_set(operand, i, bits_from_integer(operand->desc.dtype, index));
    }
}

/* Second moments are squares. */
static void squares_fill(struct operand *operand, const struct plan *plan,
                         struct random *random)
{
    for (int64_t i = 0; i < operand->elements; i++) {
        double value = value_draw(plan, random);

        element_set(operand, i, value * value);
    }
}

static void input_fill(struct problem *p, struct random *random, uint32_t i,
                       const struct plan *plan)
{
    struct operand *operand = &p->operands[i];
    const struct tandem_tensor_desc *data = &p->operands[0].desc;

    if (p->row->op_class == TANDEM_CLASS_CROSS_ENTROPY && i == 1)
        values_indices(operand, random, data->shape[1], false);
    else if (p->row->op_class == TANDEM_CLASS_GATHER && i == 1)
        values_indices(
            operand, random,
            data->shape[p->ints[0] < 0 ? p->ints[0] + data->rank : p->ints[0]],
            true);
    else if (p->row->op_class == TANDEM_CLASS_GATHER ||
             p->row->op_class == TANDEM_CLASS_COPY ||
             p->row->op_class == TANDEM_CLASS_TRANSPOSE)
        operand_fill_bits(operand, random);
    else if (p->row->id == TANDEM_OP_ADAM && i == 3)
        squares_fill(operand, plan, random);
    else if (operand->desc.dtype == TANDEM_F32)
        reals_fill(operand, plan, random);
    else
        operand_fill(operand, random, p->row->id);
}

/*
 * Creates equal elements for comparisons, and sometimes compares x with
 * itself.
 */
static void ties_make(struct problem *p, struct random *random)
{
    struct operand *a = &p->operands[0], *b = &p->operands[1];

    if (p->inputs != 2 || !a->present || !b->present ||
        a->desc.dtype != b->desc.dtype || !random_once_in(random, 3))
        return;
    for (int64_t i = 0; i < a->elements && i < b->elements; i++)
        if (random_once_in(random, 4))
            operand_set(b, i, operand_get(a, i));
}

static void scalars_fill(struct problem *p, struct random *random,
                         const struct plan *plan)
{
    for (uint32_t i = 0; i < p->inputs; i++) {
        struct operand *operand = &p->operands[i];

        if (operand->present)
            continue;
        operand->scalar = (double)(float)value_draw(plan, random);
        if (p->row->op_class == TANDEM_CLASS_LOGICAL ||
            (p->row->id == TANDEM_OP_WHERE && i == 0))
            operand->scalar = (double)random_below(random, 2);
        p->floats[p->float_count++] = operand->scalar;
    }
}

static void optimizer_attributes(struct problem *p, struct random *random)
{
    p->floats[0] = pow(10.0, random_uniform(random, -5.0, 0.0));
    p->floats[1] = random_uniform(random, 0.0, 0.99);
    if (p->row->id == TANDEM_OP_SGD) {
        p->floats[2] = random_once_in(random, 2) ? 0.0 : 0.25;
        p->floats[3] = random_once_in(random, 2) ? 0.0 : 0.01;
        return;
    }
    p->floats[2] = random_uniform(random, 0.9, 0.9999);
    p->floats[3] = 1e-8;
    p->floats[4] = random_once_in(random, 2) ? 0.0 : 0.01;
}

static void attributes_make(struct problem *p, struct random *random,
                            const struct plan *plan)
{
    static const double epsilons[] = {1e-12, 1e-8, 1e-5, 1e-3, 0.5};

    switch (p->row->id) {
    case TANDEM_OP_LEAKY_RELU:
    case TANDEM_OP_ELU:
        p->floats[0] = (double)(float)random_normal(random);
        break;
    case TANDEM_OP_CLIP:
        p->floats[0] = (double)(float)value_draw(plan, random);
        p->floats[1] = (double)(float)value_draw(plan, random);
        if (isnan(p->floats[0]) || isnan(p->floats[1]))
            p->floats[0] = p->floats[1] = 1.0;
        break;
    case TANDEM_OP_CROSS_ENTROPY_GRAD:
        p->floats[0] = (double)(float)random_uniform(random, -1.0, 1.0);
        break;
    case TANDEM_OP_LAYER_NORM:
    case TANDEM_OP_RMS_NORM:
        p->floats[0] = epsilons[random_below(random, 5)];
        break;
    case TANDEM_OP_SGD:
    case TANDEM_OP_ADAM:
        optimizer_attributes(p, random);
        break;
    default:
        break;
    }
}

void values_make(struct problem *problem, struct random *random)
{
    struct plan plan;

    plan_draw(&plan, random, problem->row);
    for (uint32_t i = 0; i < problem->inputs; i++) {
        struct plan other = plan;

        /* The scale and bias of norms. */
        if (problem->row->op_class == TANDEM_CLASS_NORM && i > 0)
            other = (struct plan){.spread = SPREAD_NORMAL};
        if (problem->operands[i].present)
            input_fill(problem, random, i, &other);
    }
    ties_make(problem, random);
    attributes_make(problem, random, &plan);
    scalars_fill(problem, random, &plan);
}

/* Removes subnormal elements, which a device may flush to zero. */
static void subnormals_clear(struct operand *operand)
{
    for (int64_t i = 0; i < operand->elements; i++) {
        uint64_t bits = operand_get(operand, i);

        operand_set(operand, i, bits_flushed(operand->desc.dtype, bits));
    }
}

void values_make_gemm(struct problem *problem, struct random *random)
{
    struct plan plan;

    plan_draw(&plan, random, problem->row);
    if (problem->gemm.flags & TANDEM_GEMM_ALLOW_NORMWISE_ERROR)
        plan.special = SPECIAL_NONE;
    for (uint32_t i = 0; i < 4; i++) {
        struct plan other = plan;

        if (i >= 2 && random_once_in(random, 2))
            other = (struct plan){.spread = SPREAD_NORMAL};
        if (i == 3 && problem->gemm.beta == 0.0)
            continue;
        reals_fill(&problem->operands[i], &other, random);
        subnormals_clear(&problem->operands[i]);
    }
}
