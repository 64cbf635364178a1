/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the operator table from the list in backend.h. */
#include "common/operator_table.h"

#include <string.h>

#define ROW(ID, number, name, class, inputs, outputs, int_names, ints,         \
            float_names, floats, cost, metric, tolerance, required, formula)   \
    {number,                                                                   \
     TANDEM_CLASS_##class,                                                     \
     TANDEM_COST_##cost,                                                       \
     inputs,                                                                   \
     outputs,                                                                  \
     ints,                                                                     \
     floats,                                                                   \
     name,                                                                     \
     int_names,                                                                \
     float_names},
static const struct operator_info rows[] = {TANDEM_OPERATORS(ROW)};
#undef ROW

#define ROW_COUNT (sizeof rows / sizeof rows[0])

/* index_of_id maps an operator id to its index in the array `rows` plus 1. The
 * value 0 means that no operator has this id. */
enum {
#define INDEX(ID, ...) INDEX_##ID,
    TANDEM_OPERATORS(INDEX)
#undef INDEX
};
static const uint8_t index_of_id[TANDEM_OP_ID_END] = {
#define SLOT(ID, number, ...) [number] = INDEX_##ID + 1,
    TANDEM_OPERATORS(SLOT)
#undef SLOT
};

const struct operator_info *operator_lookup(uint32_t id)
{
    if (id >= TANDEM_OP_ID_END || index_of_id[id] == 0)
        return NULL;
    return &rows[index_of_id[id] - 1];
}

const struct operator_info *operator_row_by_name(const char *name)
{
    for (uint32_t i = 0; name != NULL && i < ROW_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const struct operator_info *operator_row_at(uint32_t index)
{
    return index < ROW_COUNT ? &rows[index] : NULL;
}

const char *operator_name(uint32_t id)
{
    const struct operator_info *row = operator_lookup(id);
    return row != NULL ? row->name : "unknown operator";
}

const char *dtype_name(uint32_t dtype)
{
    switch (dtype) {
    case TANDEM_I8:
        return "i8";
    case TANDEM_I16:
        return "i16";
    case TANDEM_I32:
        return "i32";
    case TANDEM_I64:
        return "i64";
    case TANDEM_U8:
        return "u8";
    case TANDEM_U16:
        return "u16";
    case TANDEM_U32:
        return "u32";
    case TANDEM_U64:
        return "u64";
    case TANDEM_F16:
        return "f16";
    case TANDEM_F32:
        return "f32";
    case TANDEM_F64:
        return "f64";
    case TANDEM_BF16:
        return "bf16";
    case TANDEM_BOOL:
        return "bool";
    default:
        return "unknown dtype";
    }
}

uint32_t dtype_bytes(uint32_t dtype)
{
    switch (dtype) {
    case TANDEM_I8:
    case TANDEM_I16:
    case TANDEM_I32:
    case TANDEM_I64:
    case TANDEM_U8:
    case TANDEM_U16:
    case TANDEM_U32:
    case TANDEM_U64:
    case TANDEM_F16:
    case TANDEM_F32:
    case TANDEM_F64:
    case TANDEM_BF16:
    case TANDEM_BOOL:
        return TANDEM_DTYPE_BYTES(dtype);
    default:
        return 0;
    }
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

float epsilon_f32(double value)
{
    return value > 0 && value < (double)FLT_MIN ? FLT_MIN
                                                : attribute_f32(value);
}
