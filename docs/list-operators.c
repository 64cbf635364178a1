/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list-operators - prints docs/operators.md, made from the operator table of
 * tandem/backend.h.
 */
#include <stdio.h>
#include <string.h>

#include <tandem/backend.h>

struct row {
    int number, inputs, outputs, required;
    const char *name, *op_class, *ints, *floats, *cost, *metric, *formula;
    double tolerance;
};

#define ROW(ID, id_number, id_name, id_class, in, out, int_names, int_count,   \
            float_names, float_count, cost_class, id_metric, t, is_required,   \
            text)                                                              \
    {.number = id_number,                                                      \
     .inputs = in,                                                             \
     .outputs = out,                                                           \
     .required = is_required,                                                  \
     .name = id_name,                                                          \
     .op_class = #id_class,                                                    \
     .ints = int_names,                                                        \
     .floats = float_names,                                                    \
     .cost = #cost_class,                                                      \
     .metric = #id_metric,                                                     \
     .formula = text,                                                          \
     .tolerance = t},

static const struct row rows[] = {TANDEM_OPERATORS(ROW)};

static const char introduction[] =
    "# Operators\n"
    "\n"
    "This page is printed by `docs/list-operators` from the operator table of\n"
    "`plugin-api/tandem/backend.h`, and a test holds the two together. To"
    " change it,\nchange the table and run `make operators`.\n"
    "\n"
    "*Class* says what shapes and dtypes an operator takes, *metric* and *t*"
    " how far\na result may be from one computed in float64; both are defined"
    " in `backend.h`\nat `enum tandem_op_class` and `enum tandem_metric`."
    " *Attributes* come in this\norder, whole numbers in `ints`, the others"
    " (in italics) in `floats`. *Cost* is\nthe curve of the profile that"
    " predicts its time. Operators marked \\* need not be\nserved by a device"
    " with `TANDEM_CAP_CORE_OPERATORS`.\n"
    "\n"
    "| No. | Name | Class | In, out | Attributes | Formula | Metric, t | Cost"
    " |\n"
    "|---|---|---|---|---|---|---|---|\n";

/* In Markdown: a bar would end the cell. */
static void text_print(const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("|*_<>", *text) != NULL)
            putchar('\\');
        putchar(*text);
    }
}

static void attributes_print(const struct row *row)
{
    text_print(row->ints);
    if (row->ints[0] != '\0' && row->floats[0] != '\0')
        putchar(',');
    if (row->floats[0] != '\0') {
        putchar('*');
        text_print(row->floats);
        putchar('*');
    }
}

int main(void)
{
    fputs(introduction, stdout);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];

        printf("| %d | `%s`%s | %s | ", row->number, row->name,
               row->required ? "" : " \\*", row->op_class);
        if (row->inputs + row->outputs > 0)
            printf("%d, %d", row->inputs, row->outputs);
        printf(" | ");
        attributes_print(row);
        printf(" | ");
        text_print(row->formula);
        printf(" | %s, %g | %s |\n", row->metric, row->tolerance, row->cost);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("standard output");
        return 1;
    }
    return 0;
}
