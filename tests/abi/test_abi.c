/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the operator table of operators.h with its golden list: numbers,
 * names, attributes. layout.c checks the layout.
 */
#include <string.h>

#include <tandem/backend.h>

#include "../support/test_list.h"

struct row {
    uint32_t number, inputs, outputs;
    const char *name, *op_class, *ints, *floats;
};

static const struct row table[] = {
#define X(ID, number, name, op_class, inputs, outputs, ints, int_count,      \
          floats, ...)                                                       \
    {number, inputs, outputs, name, #op_class, ints, floats},
    TANDEM_OPERATORS(X)
#undef X
};

static const struct row golden[] = {
#define SIZE(...)
#define ALIGNMENT(...)
#define FIELD(...)
#define ENTRY(...)
#define VALUE(...)
#define OPERATOR(ID, number, name, op_class, inputs, outputs, ints, floats)  \
    {number, inputs, outputs, name, #op_class, ints, floats},
#include "golden.h"
};

#define ROWS(array) (sizeof(array) / sizeof *(array))

static const struct row *find(uint32_t number)
{
    for (size_t i = 0; i < ROWS(table); i++)
        if (table[i].number == number)
            return &table[i];
    return NULL;
}

/* Attributes are appended, never changed. */
static bool begins_with(const char *list, const char *head)
{
    const size_t length = strlen(head);

    return strncmp(list, head, length) == 0 &&
           (length == 0 || list[length] == '\0' || list[length] == ',');
}

TEST(test_golden_rows_are_kept)
{
    for (size_t i = 0; i < ROWS(golden); i++) {
        const struct row *row = find(golden[i].number);

        ck_assert_msg(row != NULL, "operator %u is gone", golden[i].number);
        ck_assert_str_eq(row->name, golden[i].name);
        ck_assert_str_eq(row->op_class, golden[i].op_class);
        ck_assert_uint_eq(row->inputs, golden[i].inputs);
        ck_assert_uint_eq(row->outputs, golden[i].outputs);
        ck_assert_msg(begins_with(row->ints, golden[i].ints),
                      "%s: integer attributes", row->name);
        ck_assert_msg(begins_with(row->floats, golden[i].floats),
                      "%s: float attributes", row->name);
    }
}

TEST(test_new_rows_are_golden)
{
    ck_assert_uint_eq(ROWS(table), ROWS(golden));
}

TEST(test_numbers_and_names_are_unique)
{
    for (size_t i = 0; i < ROWS(table); i++) {
        ck_assert_uint_gt(table[i].number, TANDEM_OP_INVALID);
        ck_assert_uint_lt(table[i].number, TANDEM_OP_ID_END);
        for (size_t k = 0; k < i; k++) {
            ck_assert_uint_ne(table[i].number, table[k].number);
            ck_assert_str_ne(table[i].name, table[k].name);
        }
    }
}

static uint32_t names_in(const char *list)
{
    uint32_t count = list[0] ? 1 : 0;

    for (; *list; list++)
        count += *list == ',';
    return count;
}

/* Transpose and tile have as many attributes as their input has axes. */
TEST(test_attribute_counts_match_their_names)
{
#define X(ID, number, name, op_class, inputs, outputs, ints, int_count,      \
          floats, float_count, ...)                                          \
    if (number != TANDEM_OP_TRANSPOSE && number != TANDEM_OP_TILE)           \
        ck_assert_uint_eq(names_in(ints), int_count);                        \
    ck_assert_uint_eq(names_in(floats), float_count);
    TANDEM_OPERATORS(X)
#undef X
}

TEST_MAIN(tests_run("abi"))
