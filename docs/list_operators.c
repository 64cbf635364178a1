/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list-operators - prints docs/operators.md or, with the argument "golden",
 * tests/abi/golden_operators.h from the tables of tandem/operators.h.
 */
#include <stdio.h>
#include <string.h>

#include <tandem/backend.h>

#include "list_operator_classes.h"

/* Columns of a line of text. */
#define LINE_COLUMNS 88

struct row {
    const char *id;
    int number, class_number, inputs, outputs, required;
    const char *name, *op_class, *ints, *floats, *cost, *metric, *formula;
    double tolerance;
};

#define ROW(ID, id_number, id_name, id_class, in, out, int_names, int_count,   \
            float_names, float_count, cost_class, id_metric, t, is_required,   \
            text)                                                              \
    {.id = #ID,                                                                \
     .number = id_number,                                                      \
     .class_number = TANDEM_CLASS_##id_class,                                  \
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
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

/* The classes, with their texts for the page. */
#define CLASS_ROW(ID, id_number, name) {id_number, #ID, text_##name},
static const struct {
    int number;
    const char *name, *text;
} classes[] = {TANDEM_CLASSES(CLASS_ROW)};
#define CLASS_COUNT (sizeof(classes) / sizeof(classes[0]))

static const char introduction[] =
    "# Operators\n"
    "\n"
    "This page lists all operators by class, with their attributes, formulas,"
    " inputs,\noutputs and tolerances. [Use from"
    " C](use-from-c.md#operators-and-their-attributes)\nshows how a program"
    " passes them.\n"
    "\n"
    "## How to read the tables\n"
    "\n"
    "- *Attributes* are in the order in which they are passed: integers in"
    " `ints`, floats\n  (in italics) in `floats`. The text before a table names"
    " the lists that follow them.\n"
    "- *Constant* is the value of `id` in `struct tandem_op`.\n"
    "- *In, out* are the numbers of inputs and outputs, without optional"
    " ones.\n"
    "- *Metric, t* is the maximum difference from a result that is computed in"
    " float64.\n  `operators.h` defines the metrics at `enum tandem_metric`. "
    "Some"
    " of them use s, which\n  the formula defines.\n"
    "- *Cost* is the curve of the profile that predicts the time of the"
    " operator.\n"
    "- *No.* is the number of the operator in the binary interface.\n";

static const char optional_mark[] =
    "- Operators marked \\* are optional for a device with"
    " `TANDEM_CAP_CORE_OPERATORS`.\n";

static const char rules[] =
    "\n"
    "These rules hold for all classes:\n"
    "\n"
    "- A negative axis or index counts from the end. `axes` is a bit mask: bit"
    " i is axis i.\n"
    "- *Any dtype* is one of 1, 2, 4 or 8 bytes per element, the same for the"
    " output. The\n  operator does not change the bits of an element.\n"
    "- NaN propagates through every operator that computes, also through `max`,"
    " `min`, `relu`\n  and `clip`. `argmax` and `argmin` return the first NaN."
    " NaN need not reach a result\n  that is unspecified.\n"
    "- A result that is called unspecified may be any number, infinity or"
    " NaN.\n"
    "\n"
    "## Index\n"
    "\n"
    "| Class | Operators |\n"
    "|---|---|\n";

static const char table_heading[] = "\n"
                                    "| Name | Attributes | Formula | Constant "
                                    "| In, out | Metric, t | Cost | No."
                                    " |\n"
                                    "|---|---|---|---|---|---|---|---|\n";

static const char maintenance[] =
    "\n"
    "## How this page is made\n"
    "\n"
    "`docs/list-operators` prints this page from the operator table of"
    "\n`plugin-api/tandem/operators.h` and the texts of"
    " `docs/list_operator_classes.h`, and a\ntest compares both. To change it,"
    " change these files and run `make operators`.\n";

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

/* Returns the length of the text up to the next space or end of line outside of
 * `code`. */
static size_t word_length(const char *text)
{
    size_t length = 0;
    int in_code = 0;

    while (text[length] != '\0' && text[length] != '\n' &&
           (text[length] != ' ' || in_code)) {
        in_code ^= text[length] == '`';
        length++;
    }
    return length;
}

/* Prints paragraphs and lists of Markdown with lines of at most LINE_COLUMNS.
 * Each line of the text is a paragraph, or an item of a list. */
static void paragraphs_print(const char *text)
{
    while (*text != '\0') {
        const int indentation = strncmp(text, "- ", 2) == 0 ? 2 : 0;
        size_t column = 0;

        while (*text != '\n' && *text != '\0') {
            const size_t length = word_length(text);

            if (column > 0 && column + 1 + length > LINE_COLUMNS)
                column = (size_t)printf("\n%*s", indentation, "") - 1;
            else if (column > 0)
                column += (size_t)printf(" ");
            column += (size_t)printf("%.*s", (int)length, text);
            text += length;
            text += *text == ' ';
        }
        putchar('\n');
        text += *text == '\n';
    }
}

static void row_print(const struct row *row)
{
    printf("| `%s`%s | ", row->name, row->required ? "" : " \\*");
    attributes_print(row);
    printf(" | ");
    text_print(row->formula);
    printf(" | `TANDEM_OP_%s` | ", row->id);
    if (row->inputs + row->outputs > 0)
        printf("%d, %d", row->inputs, row->outputs);
    printf(" | %s, %g | %s | %d |\n", row->metric, row->tolerance, row->cost,
           row->number);
}

/* Prints a row of the index: the class, with a link, and its operators. */
static void index_row_print(size_t number)
{
    const char *between = "";

    printf("| [%s](#class-", classes[number].name);
    for (const char *at = classes[number].name; *at != '\0'; at++)
        putchar(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
    printf(") | ");
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].class_number != classes[number].number)
            continue;
        printf("%s`%s`", between, rows[i].name);
        between = ", ";
    }
    printf(" |\n");
}

static void class_print(size_t number)
{
    printf("\n### Class %s\n\n", classes[number].name);
    paragraphs_print(classes[number].text);
    fputs(table_heading, stdout);
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].class_number == classes[number].number)
            row_print(&rows[i]);
}

static void page_print(void)
{
    int has_optional = 0;

    for (size_t i = 0; i < ROW_COUNT; i++)
        has_optional |= !rows[i].required;
    fputs(introduction, stdout);
    if (has_optional)
        fputs(optional_mark, stdout);
    fputs(rules, stdout);
    for (size_t i = 0; i < CLASS_COUNT; i++)
        index_row_print(i);
    fputs("\n## Operators by class\n", stdout);
    for (size_t i = 0; i < CLASS_COUNT; i++)
        class_print(i);
    fputs(order_of_operations, stdout);
    fputs(tolerance_details, stdout);
    fputs(maintenance, stdout);
}

static void golden_print(void)
{
    puts(
        "/* SPDX-License-Identifier: Apache-2.0 */\n"
        "/* Classes and operators of the binary interface, for golden.h.\n"
        " * \"make operators\" writes this file from operators.h. A row that is"
        "\n"
        " * changed or removed breaks existing plugins. */");
#define CLASS(ID, number, ...)                                                 \
    puts("VALUE(TANDEM_CLASS_" #ID ", " #number "u)");
    TANDEM_CLASSES(CLASS)
#undef CLASS
#define COST(ID, number, ...) puts("VALUE(TANDEM_COST_" #ID ", " #number "u)");
    TANDEM_COST_CLASSES(COST)
#undef COST
    for (size_t i = 0; i < ROW_COUNT; i++) {
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
