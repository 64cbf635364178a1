/* SPDX-License-Identifier: Apache-2.0 */
/* The operator table of backend.h as constant data. May be called from any
 * thread. */
#ifndef TANDEM_COMMON_OPERATOR_TABLE_H
#define TANDEM_COMMON_OPERATOR_TABLE_H

#include <float.h>
#include <math.h>

#include <tandem/backend.h>

struct operator_info {
    uint32_t id;
    uint32_t op_class;   /* enum tandem_op_class */
    uint32_t cost_class; /* enum tandem_cost_class */
    uint32_t inputs, outputs, ints, floats;
    const char *name, *int_names, *float_names;
};

/* Two functions that return the table's row of an operator, or NULL if there is
 * no such operator. Every id is less than TANDEM_OP_ID_END. */
const struct operator_info *operator_lookup(uint32_t id);
const struct operator_info *operator_row_by_name(const char *name);

/* Returns an operator's name, for example "relu", or "unknown operator". */
const char *operator_name(uint32_t id);
/* Returns a dtype's name, for example "f32", or "unknown dtype". */
const char *dtype_name(uint32_t dtype);
/* Returns the size of an element in bytes, or 0 for an unknown dtype. */
uint32_t dtype_bytes(uint32_t dtype);

/* Slow path of attribute_f32, for values outside f32's normal range. */
float attribute_outside_f32(double value);
/* Rounds a float attribute to f32. A finite value stays finite, and a nonzero
 * value stays nonzero. */
static inline float attribute_f32(double value)
{
    double size = fabs(value);
    return size >= (double)FLT_MIN && size <= (double)FLT_MAX
               ? (float)value
               : attribute_outside_f32(value);
}
/* Rounds the attribute epsilon to f32. A positive epsilon becomes at least
 * FLT_MIN, because a device may flush subnormals to 0. */
float epsilon_f32(double value);

/* Sets out[0] and out[1] to the attributes of an operator of one input, in the
 * form that its kernels read.  An attribute that the operator lacks is 0. */
void unary_attributes(float *out, const struct tandem_op *op);

#endif
