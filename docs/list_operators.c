/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list-operators - prints docs/operators.md or, with the argument "golden",
 * tests/abi/golden_operators.h from the tables of tandem/backend.h.
 */
#include <stdio.h>
#include <string.h>

#include <tandem/backend.h>

struct row {
    const char *id;
    int number, inputs, outputs, required;
    const char *name, *op_class, *ints, *floats, *cost, *metric, *formula;
    double tolerance;
};

#define ROW(ID, id_number, id_name, id_class, in, out, int_names, int_count,   \
            float_names, float_count, cost_class, id_metric, t, is_required,   \
            text)                                                              \
    {.id = #ID,                                                                \
     .number = id_number,                                                      \
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
    "This page lists all operators with their attributes, formulas and"
    " tolerances.\n"
    "`docs/list-operators` prints it from the operator table of\n"
    "`plugin-api/tandem/backend.h`, and a test compares both. To change it,"
    " change the\ntable and run `make operators`.\n"
    "\n"
    "*Class* defines the shapes and dtypes of an operator, *metric* and *t*"
    " the maximum\ndifference from a result that is computed in float64;"
    " `backend.h` describes them at\n`enum tandem_op_class` and"
    " `enum tandem_metric`. *Attributes* are in the order in\nwhich they are"
    " passed: integers in `ints`, floats (in italics) in `floats`. *Cost*"
    " is\nthe profile's curve that predicts the time of the operator."
    " Operators marked \\* are\noptional for a device with"
    " `TANDEM_CAP_CORE_OPERATORS`.\n"
    "\n"
    "| Name | Attributes | Formula | In, out | Class | Metric, t | Cost | No."
    " |\n"
    "|---|---|---|---|---|---|---|---|\n";

static const char order_of_operations[] =
    "\n"
    "## Operators that are views\n"
    "\n"
    "These operators of other frameworks have no row in the table, because"
    " an operator\naccepts tensors with any strides. `tandem_tensor_view`"
    " makes a view without a copy;\n`copy` copies a view to a new tensor.\n"
    "\n"
    "| Operator | View |\n"
    "|---|---|\n"
    "| reshape, squeeze, unsqueeze, flatten | another shape; a copy if no"
    " strides express it |\n"
    "| transpose | permuted shape and strides |\n"
    "| slice | first element, lengths, and strides times the step, which may"
    " be negative |\n"
    "| split | one slice for each part |\n"
    "| expand | a stride of 0 along each axis that repeats |\n"
    "| depth to space, space to depth | axes split, permuted and joined again"
    " |\n"
    "| flip | the last element as first element, and a negative stride |\n"
    "\n"
    "## Sums and products\n"
    "\n"
    "Reductions and `dot` add or multiply their elements in an unspecified"
    " order. The\norder depends only on the device, the shapes, the strides"
    " and the byte offsets, so\nthe same call always returns the same"
    " bits.\n"
    "\n"
    "**Sums** (`reduce_sum`, `reduce_mean`, `reduce_sum_square`,"
    " `reduce_l2`, `dot`): The\nerror bound holds even if a partial sum"
    " exceeds the range of f32. For example, the sum\nof 3e38, 3e38 and"
    " -3e38 is 3e38, and `reduce_l2` of 1e-25 and 1e-25 is 1.41e-25. If\n"
    "the result itself is above the largest f32, it is infinite. The CPU"
    " plugin adds\npartial sums in float64. The OpenCL plugin adds in f32."
    " It adds a row again with\nscaled elements if the sum is not finite, or"
    " if a sum of squares or products is\nbelow 2^-64.\n"
    "\n"
    "**Products** (`reduce_prod`): Partial products are rounded to f32."
    " Let P be the product\nof all finite |x| > 1, and Q the product of all"
    " nonzero |x| < 1. If P > 2^127 or\nQ < 2^-125, a partial product may"
    " overflow or become subnormal in some order. The\nresult is then"
    " unspecified: it may be any number, an infinity or NaN. In any case,"
    " the\nresult is NaN if an x is NaN, or if one x is 0 and another is"
    " infinite. If a product\nmay exceed this range, add the logarithms of"
    " its factors instead.\n";

static const char tolerance_details[] =
    "\n"
    "## Resize\n"
    "\n"
    "With mode linear or cubic, `resize` resizes one axis after the other."
    " An axis whose\n"
    "input and output length are equal, with scale 1 and roi 0 to 1, stays"
    " as it is.\n"
    "Let c be the coordinate of an output element along an axis, and r = 1"
    " (linear) or 2\n"
    "(cubic), divided by the scale if antialias is 1 and the scale is below"
    " 1. The taps are\n"
    "at the positions from floor(c - r) to ceil(c + r). The weight of a tap"
    " is a function of\n"
    "its distance from c, as in ONNX. A tap outside the input has the value"
    " of the nearest\n"
    "input element and, if exclude\\_outside is 1, the weight 0. If"
    " exclude\\_outside or\n"
    "antialias is 1, each weight is then divided by S, the signed sum of the"
    " weights along\n"
    "the axis.\n"
    "\n"
    "Let A be the product over the axes of the sum of |weight| after that"
    " division, and B\n"
    "the product over the axes of max(1, sum of |weight| before it). Let n"
    " be the largest\n"
    "number of taps of an output element along an axis, and X the largest"
    " finite |x| of the\n"
    "taps. In this notation, s = A^2 (1 + n / 16) X. A result is unspecified"
    " if one of these is true:\n"
    "\n"
    "- A division has |S| < 2^-10.\n"
    "- A B X > 2^126.\n"
    "- A tap is infinite or NaN, and its weight along at least one axis is"
    " below 10^-5 in\n"
    "  magnitude.\n"
    "\n"
    "## Optimizers\n"
    "\n"
    "In the rows of `sgd` and `adam`, w' is the new value of w. The"
    " inequalities below\n"
    "bound intermediate results by f, the largest f32. In the inequalities,"
    " a term that is\n"
    "infinite or NaN counts as 0.\n"
    "\n"
    "For `sgd`, let\n"
    "\n"
    "    D = |g| + |weight_decay w|\n"
    "    M = |momentum m| + |1 - dampening| D\n"
    "    N = nesterov ? D + |momentum| M : M\n"
    "    W = |w| + |lr| N\n"
    "\n"
    "The s of m' is M, and the s of w' is W. The result m' is unspecified if"
    " D > f or M > f.\n"
    "The result w' is unspecified if D > f, M > f, N > f or W > f.\n"
    "\n"
    "For `adam`, let\n"
    "\n"
    "    H = |g| + (decoupled_weight_decay ? 0 : |weight_decay w|)\n"
    "    M = |beta1 m| + (1 - beta1) H\n"
    "    V = beta2 v + (1 - beta2) H^2\n"
    "    W = |w| + (decoupled_weight_decay ? |lr weight_decay w| : 0)\n"
    "    U = M / (1 - beta1^step)\n"
    "\n"
    "The s of m' is M, and the s of v' is V. The s of w' is W + |lr| U / q *"
    " R, where\n"
    "R is V / v' if v' is positive and finite, else 1. In the computation of"
    " w', the terms\n"
    "beta1 m and (1 - beta1) h, and their sum m', may be taken as 0 if they"
    " are subnormal.\n"
    "If H > f, all results are unspecified. If M > f, m' and w' are"
    " unspecified. If q is not\n"
    "0 and W + max(1, |lr|) U / min(1, q) > f, w' is unspecified.\n";

/* Prints text with escaped Markdown characters; a bar would end a cell. */
static void text_print(const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("|*_<>", *text) != NULL)
            putchar('\\');
        putchar(*text);
    }
}

/* Prints names that commas separate, each between two of `quote`. Spaces let
 * lines of a narrow column end. */
static void names_print(const char *names, const char *quote)
{
    while (*names != '\0') {
        size_t length = strcspn(names, ",");
        char name[64];

        snprintf(name, sizeof(name), "%.*s", (int)length, names);
        fputs(quote, stdout);
        text_print(name);
        fputs(quote, stdout);
        names += length;
        if (*names == ',') {
            fputs(", ", stdout);
            names++;
        }
    }
}

static void attributes_print(const struct row *row)
{
    names_print(row->ints, "");
    if (row->ints[0] != '\0' && row->floats[0] != '\0')
        fputs(", ", stdout);
    names_print(row->floats, "*");
}

static void page_print(void)
{
    fputs(introduction, stdout);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];

        printf("| `%s`%s | ", row->name, row->required ? "" : " \\*");
        attributes_print(row);
        printf(" | ");
        text_print(row->formula);
        printf(" | ");
        if (row->inputs + row->outputs > 0)
            printf("%d, %d", row->inputs, row->outputs);
        printf(" | %s | %s, %g | %s | %d |\n", row->op_class, row->metric,
               row->tolerance, row->cost, row->number);
    }
    fputs(order_of_operations, stdout);
    fputs(tolerance_details, stdout);
}

static void golden_print(void)
{
    puts(
        "/* SPDX-License-Identifier: Apache-2.0 */\n"
        "/* Classes and operators of the binary interface, for golden.h.\n"
        " * \"make operators\" writes this file from backend.h. A row that is\n"
        " * changed or removed breaks existing plugins. */");
#define CLASS(ID, number, ...)                                                 \
    puts("VALUE(TANDEM_CLASS_" #ID ", " #number "u)");
    TANDEM_CLASSES(CLASS)
#undef CLASS
#define COST(ID, number, ...) puts("VALUE(TANDEM_COST_" #ID ", " #number "u)");
    TANDEM_COST_CLASSES(COST)
#undef COST
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];

        printf("OPERATOR(%s, %d, \"%s\", %s, %d, %d, \"%s\", \"%s\")\n",
               row->id, row->number, row->name, row->op_class, row->inputs,
               row->outputs, row->ints, row->floats);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "golden") == 0)
        golden_print();
    else
        page_print();
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("standard output");
        return 1;
    }
    return 0;
}
