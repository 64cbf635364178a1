/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list-onnx-operators - prints docs/onnx-operators.md from the table of the
 * ONNX Runtime provider; with the argument "names", prints "DOMAIN:TYPE" for
 * each operator.
 */
#include <stdio.h>
#include <string.h>

#include "adapters/onnxruntime/operators.h"

static const char introduction[] =
    "# ONNX operators\n"
    "\n"
    "This page lists the operators that the execution provider for ONNX"
    " Runtime serves.\n"
    "`docs/list-onnx-operators` prints it from the table in\n"
    "`src/adapters/onnxruntime/operators.c`, and a test compares both. To"
    " change it, change the\ntable and run `make operators`."
    " [Run a model](run-a-model.md) describes the provider.\n"
    "\n"
    "*Tandem* is the operator of Tandem that computes the ONNX operator."
    " The field is empty if\nthat only makes a view or a copy, or returns a"
    " shape or a constant. *Shapes* is \"yes\" if the\nprovider also computes"
    " integers with this operator on the host, when they depend only on\nthe"
    " shapes of tensors and on constants.\n"
    "\n"
    "| ONNX operator | Domain | Tandem | Dtypes | Shapes |\n"
    "|---|---|---|---|---|\n";

static const char *shape_rule_text(const struct onnx_operator *op)
{
    if (strcmp(op->type, "ConstantOfShape") == 0)
        return "the value f32, i32, i64 or bool";
    return op->tandem_op == TANDEM_OP_RANGE ? "f32, i32, i64"
                                            : "any type to i64";
}

static const char *rule_text(const struct onnx_operator *op)
{
    switch (op->rule) {
    case RULE_F32:
        return "f32";
    case RULE_POW:
        return "f32; the exponent f32 or a constant integer";
    case RULE_NUMBER:
        return "f32; i32 and i64 only from rank 2 on";
    case RULE_COMPARE:
        return "f32, i32 and i64 only from rank 2 on, to bool";
    case RULE_PREDICATE:
        return "f32 to bool";
    case RULE_LOGICAL:
        return "bool";
    case RULE_WHERE:
        return "condition bool; data f32, i32 and i64 only from rank 2 on";
    case RULE_CAST:
        return "f32, i32, i64, u8, bool; not to a shorter integer";
    case RULE_MOVE:
        return "any; integers only from rank 2 on";
    case RULE_GATHER:
        return "data any, integers only from rank 2 on; indices i32 or i64";
    case RULE_SCATTER:
        return "data any, integers only from rank 2 on, f32 with a reduction;"
               " indices i32 or i64";
    case RULE_ATTENTION:
        return "f32; mask f32 or bool";
    case RULE_ARG:
        return "f32 to i64";
    case RULE_PADDED:
        return "f32; mask i32 of rank 2 or 3";
    case RULE_ROTARY:
        return "f32; positions i32 or i64";
    case RULE_FUSED: /* not an operator of ONNX */
        break;
    case RULE_SHAPE:
        return shape_rule_text(op);
    }
    return "?";
}

static void print_row(const struct onnx_operator *op)
{
    const struct tandem_op_info *info = tandem_op_by_id(op->tandem_op);

    printf("| %s | %s | %s | %s | %s |\n", op->type,
           op->domain[0] == '\0' ? "ai.onnx" : op->domain,
           info != NULL ? info->name : "", rule_text(op),
           op->evaluate != NULL ? "yes" : "");
}

int main(int argc, char **argv)
{
    const bool names = argc == 2 && strcmp(argv[1], "names") == 0;
    const struct onnx_operator *op;

    if (argc > 1 && !names) {
        fprintf(stderr, "Usage: list-onnx-operators [names]\n");
        return 2;
    }
    if (!names)
        fputs(introduction, stdout);
    for (size_t i = 0; (op = operator_row(i)) != NULL; i++) {
        if (names)
            printf("%s:%s\n", op->domain[0] == '\0' ? "ai.onnx" : op->domain,
                   op->type);
        else
            print_row(op);
    }
    return fclose(stdout) == 0 ? 0 : 1;
}
