/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the operator table from the list in backend.h. */
#include "common/operator_table.h"

#include <string.h>

/* Rows in the order of operator ids. An unused id has no name. */
#define ROW(ID, number, name, class, inputs, outputs, int_names, ints,         \
            float_names, floats, cost, metric, tolerance, required, formula)   \
    [number] = {number,                                                        \
                TANDEM_CLASS_##class,                                          \
                TANDEM_COST_##cost,                                            \
                inputs,                                                        \
                outputs,                                                       \
                ints,                                                          \
                floats,                                                        \
                name,                                                          \
                int_names,                                                     \
                float_names},
static const struct operator_info rows[] = {TANDEM_OPERATORS(ROW)};

#define ROW_COUNT (sizeof rows / sizeof rows[0])

const struct operator_info *operator_lookup(uint32_t id)
{
    return id < ROW_COUNT && rows[id].name != NULL ? &rows[id] : NULL;
}

const struct operator_info *operator_row_by_name(const char *name)
{
    for (uint32_t i = 0; name != NULL && i < ROW_COUNT; i++)
        if (rows[i].name != NULL && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const char *operator_name(uint32_t id)
{
    const struct operator_info *row = operator_lookup(id);
    return row != NULL ? row->name : "unknown operator";
}

/* Names of all dtypes. The most frequent dtypes come first. */
static const struct {
    uint32_t dtype;
    const char *name;
} dtypes[] = {{TANDEM_F32, "f32"}, {TANDEM_F16, "f16"}, {TANDEM_BF16, "bf16"},
              {TANDEM_I64, "i64"}, {TANDEM_I32, "i32"}, {TANDEM_BOOL, "bool"},
              {TANDEM_U8, "u8"},   {TANDEM_I8, "i8"},   {TANDEM_I16, "i16"},
              {TANDEM_U16, "u16"}, {TANDEM_U32, "u32"}, {TANDEM_U64, "u64"},
              {TANDEM_F64, "f64"}};

#define DTYPE_COUNT (sizeof dtypes / sizeof dtypes[0])

const char *dtype_name(uint32_t dtype)
{
    for (uint32_t i = 0; i < DTYPE_COUNT; i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return "unknown dtype";
}

uint32_t dtype_bytes(uint32_t dtype)
{
    for (uint32_t i = 0; i < DTYPE_COUNT; i++)
        if (dtypes[i].dtype == dtype)
            return TANDEM_DTYPE_BYTES(dtype);
    return 0;
}

float attribute_outside_f32(double value)
{
    float rounded = (float)value;
    if (isinf(rounded) && !isinf(value))
        return copysignf(FLT_MAX, rounded);
    if (rounded == 0 && value != 0)
        return copysignf(0x1p-149f, rounded);
    return rounded;
}

void unary_attributes(float *out, const struct tandem_op *op)
{
    const double *f = op->floats;
    for (uint32_t i = 0; i < 2; i++)
        out[i] = i < op->float_count ? attribute_f32(f[i]) : 0;
    switch (op->id) {
    case TANDEM_OP_CLIP:
        out[0] = (float)f[0];
        out[1] = (float)f[1];
        break;
    case TANDEM_OP_SELU: /* The product is the factor of e^x - 1. */
        out[0] = attribute_f32(f[0] * f[1]);
        break;
    case TANDEM_OP_IS_INF:
        out[0] = (float)op->ints[0];
        out[1] = (float)op->ints[1];
        break;
    default:
        break;
    }
}

float epsilon_f32(double value)
{
    return value > 0 && value < (double)FLT_MIN ? FLT_MIN
                                                : attribute_f32(value);
}
