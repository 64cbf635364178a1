/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects operators that represent cost classes; see representative_op.h.
 */
#include <config.h>

#include "representative_op.h"

#include <string.h>

#define ROW 1024     /* row length of reductions, softmax and norms */
#define SHORT_ROW 64 /* at most SAMPLE_FIRST */

/* The usual operator of each cost class, and the name of its curve. */
static const struct {
    const char *curve;
    uint32_t op;
} usual[TANDEM_COST_CLASS_COUNT] = {
    [TANDEM_COST_ELEMENTWISE] = {"elementwise", TANDEM_OP_ADD},
    [TANDEM_COST_TRANSCENDENTAL] = {"transcendental", TANDEM_OP_EXP},
    [TANDEM_COST_MULTI_TRANSCENDENTAL] = {"multi_transcendental",
                                          TANDEM_OP_GELU},
    [TANDEM_COST_REDUCE] = {"reduce", TANDEM_OP_SUM},
    [TANDEM_COST_SOFTMAX] = {"softmax", TANDEM_OP_SOFTMAX},
    [TANDEM_COST_STRIDED] = {"strided", TANDEM_OP_TRANSPOSE},
    [TANDEM_COST_GATHER] = {"gather", TANDEM_OP_GATHER},
    [TANDEM_COST_OPTIMIZER] = {"optimizer", TANDEM_OP_ADAM},
    [TANDEM_COST_GEMM] = {"gemm", TANDEM_OP_GEMM},
    [TANDEM_COST_NORM] = {"norm", TANDEM_OP_LAYER_NORM},
};

const char *cost_class_curve(uint32_t cost_class)
{
    return usual[cost_class].curve;
}

/* Returns true if libtandem uses TANDEM_COST_STRIDED for the operator when an
 * operand is strided. */
static bool elementwise(const struct tandem_op_info *info)
{
    switch (info->op_class) {
    case TANDEM_CLASS_UNARY:
    case TANDEM_CLASS_BINARY:
    case TANDEM_CLASS_COMPARE:
    case TANDEM_CLASS_LOGICAL:
    case TANDEM_CLASS_TERNARY:
    case TANDEM_CLASS_GRADIENT:
    case TANDEM_CLASS_CAST:
        return true;
    default:
        return false;
    }
}

/* Returns true if libtandem uses the costs of the class for the operator: those
 * of its table entry or, if `second`, those for strided operands. */
static bool stands_for(const struct tandem_op_info *info, uint32_t cost_class,
                       bool second)
{
    if (info == NULL)
        return false;
    if (!second)
        return info->cost_class == cost_class;
    if (cost_class == TANDEM_COST_ELEMENTWISE)
        return info->op_class == TANDEM_CLASS_COPY;
    return cost_class == TANDEM_COST_STRIDED && elementwise(info);
}

bool representative_op_next(struct representative_op *representative)
{
    const uint32_t first = usual[representative->cost_class].op;

    for (; representative->next < 2 * TANDEM_OP_ID_END;
         representative->next++) {
        const uint32_t id = representative->next % TANDEM_OP_ID_END;

        representative->info =
            tandem_op_by_id(representative->next == 0 ? first : id);
        if (representative->next == 0 ||
            (id != first &&
             stands_for(representative->info, representative->cost_class,
                        representative->next >= TANDEM_OP_ID_END))) {
            representative->next++;
            return true;
        }
    }
    return false;
}

static uint32_t rows_shape(int64_t elements, int64_t row, int64_t shape[3])
{
    shape[0] = elements / row;
    shape[1] = row;
    return 2;
}

static uint32_t square_shape(int64_t elements, int64_t shape[3])
{
    int64_t side = 1;

    while (side * side < elements)
        side *= 2;
    return rows_shape(side * side, side, shape);
}

static uint32_t
representative_op_shape(const struct representative_op *representative,
                        int64_t elements, int64_t shape[3])
{
    shape[0] = elements;
    if (representative->cost_class == TANDEM_COST_STRIDED)
        return square_shape(elements, shape);
    switch (representative->info->op_class) {
    case TANDEM_CLASS_GEMM:
        shape[0] = shape[1] = shape[2] = elements;
        return 3;
    case TANDEM_CLASS_GATHER:
        return rows_shape(elements, SHORT_ROW, shape);
    case TANDEM_CLASS_REDUCE:
    case TANDEM_CLASS_ARG_REDUCE:
    case TANDEM_CLASS_SOFTMAX:
    case TANDEM_CLASS_CROSS_ENTROPY:
    case TANDEM_CLASS_NORM:
        /* Only two row lengths, since each may need its own kernel. */
        return rows_shape(elements, elements < ROW ? SHORT_ROW : ROW, shape);
    default:
        return 1;
    }
}

static bool
representative_op_build(const struct representative_op *representative,
                        int64_t elements, struct resident_op *work)
{
    char error[OPCASE_ERROR_BYTES];
    int64_t shape[3];
    uint32_t rank = representative_op_shape(representative, elements, shape);

    memset(work, 0, sizeof *work);
    if (!op_case_build(&work->c, representative->info->name, rank, shape,
                       error))
        return false;
    if (representative->cost_class == TANDEM_COST_STRIDED &&
        representative->info->op_class != TANDEM_CLASS_TRANSPOSE)
        op_case_transpose_input(&work->c);
    return true;
}

enum tandem_status
representative_op_create(const struct representative_op *representative,
                         struct device_session *session, int64_t elements,
                         struct resident_op *work)
{
    return representative_op_build(representative, elements, work)
               ? resident_op_begin(work, session)
               : TANDEM_UNSUPPORTED;
}

int64_t
representative_op_is_supported(const struct representative_op *representative,
                               struct device_session *session)
{
    const bool product = representative->info->op_class == TANDEM_CLASS_GEMM;
    const int64_t last = product ? SAMPLE_LAST_SIDE : SAMPLE_LAST;
    struct resident_op work;

    for (int64_t elements = product ? SAMPLE_FIRST_SIDE : SAMPLE_FIRST;
         elements <= last; elements *= 2)
        if (representative_op_build(representative, elements, &work) &&
            resident_op_describe(&work, session) == TANDEM_OK)
            return elements;
    return 0;
}
