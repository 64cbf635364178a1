/* SPDX-License-Identifier: Apache-2.0 */
/* Selects operators that represent cost classes; see representative_op.h. */
#include <config.h>

#include "representative_op.h"

#include "common/op_class.h"

#include <string.h>

#define ROW 1024     /* row length of reductions, softmax and norms */
#define SHORT_ROW 64 /* at most SAMPLE_FIRST */

static const struct {
    const char *curve;
    uint32_t op; /* the usual operator of the class */
} cost_classes[TANDEM_COST_CLASS_COUNT] = {
#define COST_CLASS(ID, number, name, operator)                                 \
    [number] = {#name, TANDEM_OP_##operator},
    TANDEM_COST_CLASSES(COST_CLASS)
#undef COST_CLASS
};

const char *cost_class_curve(uint32_t cost_class)
{
    return cost_classes[cost_class].curve;
}

static uint32_t example_shape(const struct tandem_op_info *info)
{
    return op_class_get(info->op_class)->example_shape;
}

bool representative_op_has_rows(const struct representative_op *representative)
{
    return example_shape(representative->info) == OP_EXAMPLE_ROWS;
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

uint32_t representative_op_shape(const struct representative_op *representative,
                                 int64_t elements, int64_t shape[3])
{
    shape[0] = elements;
    if (representative->cost_class == TANDEM_COST_STRIDED)
        return square_shape(elements, shape);
    switch (example_shape(representative->info)) {
    case OP_EXAMPLE_CUBE:
        shape[1] = shape[2] = elements;
        return 3;
    case OP_EXAMPLE_SHORT_ROWS:
        return rows_shape(elements, SHORT_ROW, shape);
    case OP_EXAMPLE_ROWS:
        /* Only two row lengths, since each may need its own kernel. */
        return rows_shape(elements, elements < ROW ? SHORT_ROW : ROW, shape);
    default:
        return 1;
    }
}

/* Builds the case, with a transposed input if the operator needs one to have
 * the costs of TANDEM_COST_STRIDED. */
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
        work->c.cost_class != TANDEM_COST_STRIDED)
        op_case_transpose_input(&work->c);
    return true;
}

bool representative_op_next(struct representative_op *representative)
{
    const uint32_t first = cost_classes[representative->cost_class].op;

    while (representative->next < TANDEM_OP_ID_END) {
        const uint32_t id = representative->next++;
        struct resident_op work;

        representative->info = tandem_op_by_id(id == 0 ? first : id);
        if (id == 0 ||
            (id != first && representative->info != NULL &&
             representative_op_build(representative, SAMPLE_FIRST, &work) &&
             work.c.cost_class == representative->cost_class))
            return true;
    }
    return false;
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
    const bool product = representative->info->id == TANDEM_OP_GEMM;
    const int64_t last = product ? SAMPLE_LAST_SIDE : SAMPLE_LAST;
    struct resident_op work;

    for (int64_t elements = product ? SAMPLE_FIRST_SIDE : SAMPLE_FIRST;
         elements <= last; elements *= 2)
        if (representative_op_build(representative, elements, &work) &&
            resident_op_describe(&work, session) == TANDEM_OK)
            return elements;
    return 0;
}

enum tandem_status
representative_op_create_smallest(struct device_session *session,
                                  struct resident_op *work)
{
    for (uint32_t c = 0; c < TANDEM_COST_CLASS_COUNT; c++) {
        struct representative_op representative = {.cost_class = c};

        while (representative_op_next(&representative)) {
            const int64_t elements =
                representative_op_is_supported(&representative, session);

            if (elements != 0)
                return representative_op_create(&representative, session,
                                                elements, work);
        }
    }
    return TANDEM_UNSUPPORTED;
}
