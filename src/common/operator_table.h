/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator table of backend.h as data.  Static, any thread.
 */
#ifndef TANDEM_COMMON_OPERATOR_TABLE_H
#define TANDEM_COMMON_OPERATOR_TABLE_H

#include <float.h>
#include <math.h>

#include <tandem/backend.h>

struct operator_row {
    uint32_t id;
    uint32_t op_class;   /* enum tandem_op_class */
    uint32_t cost_class; /* enum tandem_cost_class */
    uint32_t inputs, outputs, ints, floats;
    const char *name, *int_names, *float_names;
};

/* NULL where there is no such operator. */
const struct operator_row *operator_row(uint32_t id);
const struct operator_row *operator_row_by_name(const char *name);
/* The rows in the table's order; NULL past the last. */
const struct operator_row *operator_row_at(uint32_t index);

/* "relu"; "operator 999" is not made up: "unknown operator". */
const char *operator_name(uint32_t id);
/* "f32"; "unknown dtype". */
const char *dtype_name(uint32_t dtype);
/* 0 for an unknown dtype. */
uint32_t dtype_bytes(uint32_t dtype);

/* An attribute that is no normal f32. */
float attribute_outside_f32(double value);
/* A float attribute as f32: rounded, but neither to 0 nor to infinity. */
static inline float attribute_f32(double value)
{
    double size = fabs(value);
    return size >= (double)FLT_MIN && size <= (double)FLT_MAX
               ? (float)value
               : attribute_outside_f32(value);
}
/* An epsilon as f32: if it is positive, at least the smallest normal number,
 * because a device may flush subnormal ones. */
float epsilon_f32(double value);

#endif
