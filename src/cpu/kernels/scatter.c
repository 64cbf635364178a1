/* SPDX-License-Identifier: Apache-2.0 */
/* The scatter operators: copy a tensor, and replace elements that indices
 * select, or combine them with updates.  A task applies the updates of its
 * elements in order.  Runs on the caller's thread and on the thread pool. */
#include "config.h"

#include "common/tensor_overlap.h"
#include "cpu/kernels/elementwise.h"

/* Maximum number of neighbouring updates per task. */
#define CHUNK_ELEMENTS 256

struct scatter {
    struct rows rows; /* operands: output, updates, indices */
    unsigned char *base[ROW_OPERANDS];
    int64_t steps[3], step_bytes[3]; /* strides along the innermost axis */
    struct iteration_space numbered; /* operands: updates, indices */
    uint32_t numbered_bytes[2];      /* their element sizes */
    struct indexed_axes axes;        /* strides in bytes */
    int64_t reduction;
};

/* Returns the address of the element that the index vector selects, or NULL if
 * an index is out of range. */
static inline unsigned char *target_find(const struct scatter *scatter,
                                         unsigned char *output,
                                         const unsigned char *index)
{
    for (uint32_t i = 0; i < scatter->axes.count; i++) {
        int64_t extent = scatter->axes.extents[i];
        int64_t number = index_read(index, scatter->rows.bytes[2]);
        if (number < 0)
            number += extent;
        if (number < 0 || number >= extent)
            return NULL;
        output += number * scatter->axes.strides[i];
        index += scatter->axes.component_stride;
    }
    return output;
}

/* Replaces an element, or combines two floats. */
static inline void update_apply(unsigned char *to, const unsigned char *from,
                                uint32_t bytes, int64_t reduction)
{
    float a, b;
    if (reduction == 0) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(&a, to, sizeof a);
    memcpy(&b, from, sizeof b);
    if (reduction == 1)
        a += b;
    else if (reduction == 2)
        a *= b;
    else if (reduction == 3)
        a = a < b || a != a ? a : b;
    else
        a = a > b || a != a ? a : b;
    memcpy(to, &a, sizeof a);
}

/* Applies a part of the updates with one number. */
static inline __attribute__((always_inline)) void
line_apply(const struct scatter *scatter, unsigned char *const *at,
           int64_t first, int64_t end, uint32_t bytes, int64_t reduction)
{
    const int64_t *step_bytes = scatter->step_bytes;
    if (scatter->steps[2] != 0) {
        for (int64_t i = first; i < end; i++) {
            unsigned char *to = target_find(scatter, at[0] + i * step_bytes[0],
                                            at[2] + i * step_bytes[2]);
            if (to != NULL)
                update_apply(to, at[1] + i * step_bytes[1], bytes, reduction);
        }
        return;
    }
    unsigned char *to = target_find(scatter, at[0], at[2]);
    if (to == NULL)
        return;
    to += first * step_bytes[0];
    const unsigned char *from = at[1] + first * step_bytes[1];
    if (reduction == 0) {
        elements_copy(to, scatter->steps[0], from, scatter->steps[1],
                      end - first, bytes);
        return;
    }
    for (int64_t i = 0; i < end - first; i++)
        update_apply(to + i * step_bytes[0], from + i * step_bytes[1], bytes,
                     reduction);
}

/* Applies the updates with all numbers, in order.  The compiler makes a loop
 * for each constant value of `bytes` and `reduction`. */
static inline __attribute__((always_inline)) void
lines_apply(const struct scatter *scatter, unsigned char *const *at,
            int64_t first, int64_t end, uint32_t bytes, int64_t reduction)
{
    const struct iteration_space *space = &scatter->numbered;
    const uint32_t inner = space->rank - 1;
    int64_t steps[2], index[TANDEM_MAX_RANK] = {0};
    unsigned char *row[2] = {at[1], at[2]};
    for (uint32_t i = 0; i < 2; i++)
        steps[i] =
            space->strides[i][inner] * (int64_t)scatter->numbered_bytes[i];
    for (int64_t line = space->elements / space->shape[inner]; line > 0;
         line--) {
        for (int64_t i = 0; i < space->shape[inner]; i++) {
            unsigned char *const line_at[3] = {at[0], row[0] + i * steps[0],
                                               row[1] + i * steps[1]};
            line_apply(scatter, line_at, first, end, bytes, reduction);
        }
        space_next(space, index, row, scatter->numbered_bytes);
    }
}

/* Applies the updates of a part of a row.  The parameters are those of
 * row_part_fn. */
static void part_scatter(const void *context, unsigned char *const *at,
                         int64_t first, int64_t end)
{
    const struct scatter *scatter = context;
    const uint32_t bytes = scatter->rows.bytes[0];
    switch (scatter->reduction) {
    case 1:
        lines_apply(scatter, at, first, end, 4, 1);
        return;
    case 2:
        lines_apply(scatter, at, first, end, 4, 2);
        return;
    case 3:
        lines_apply(scatter, at, first, end, 4, 3);
        return;
    case 4:
        lines_apply(scatter, at, first, end, 4, 4);
        return;
    default:
        break;
    }
    if (bytes == 4)
        lines_apply(scatter, at, first, end, 4, 0);
    else if (bytes == 8)
        lines_apply(scatter, at, first, end, 8, 0);
    else if (bytes == 2)
        lines_apply(scatter, at, first, end, 2, 0);
    else
        lines_apply(scatter, at, first, end, 1, 0);
}

static void scatter_parts(const void *context, int64_t first, int64_t end)
{
    const struct scatter *scatter = context;
    rows_visit(&scatter->rows, scatter->base, first, end, 1, part_scatter,
               scatter);
}

static void copy_data(const struct work *work)
{
    const struct tandem_op op = {.id = TANDEM_OP_COPY};
    struct work copy = *work;
    copy.op = &op;
    cpu_class_copy.run(&copy);
}

/* Returns the number of neighbouring updates per task: one if the updates of an
 * element are closer to one another than its neighbours. */
static int64_t chunk_choose(const struct scatter *scatter)
{
    const struct iteration_space *numbered = &scatter->numbered;
    int64_t own = numbered->strides[0][numbered->rank - 1];
    int64_t next = scatter->steps[1];
    return (own < 0 ? -own : own) < (next < 0 ? -next : next) ? 1
                                                              : CHUNK_ELEMENTS;
}

static enum tandem_status scatter_run(const struct work *work)
{
    struct scatter scatter;
    struct scatter_spaces spaces;
    const struct tandem_op *op = work->op;
    const struct tandem_tensor_desc *operands[3] = {
        work->outputs[0], work->inputs[2], work->inputs[1]};
    /* No index is in range of an empty output. */
    for (uint32_t i = 0; i < operands[0]->rank; i++)
        if (operands[0]->shape[i] == 0)
            return TANDEM_OK;
    if (!tensors_same(work->inputs[0], work->outputs[0]))
        copy_data(work);
    space_scatter(&spaces, op, operands[0], operands[2], operands[1]);
    if (spaces.all.elements == 0)
        return TANDEM_OK;
    scatter.rows.space = spaces.kept;
    scatter.numbered = spaces.numbered;
    scatter.axes = spaces.axes;
    scatter.reduction = op->ints[op->id == TANDEM_OP_SCATTER_ND ? 0 : 1];
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t bytes = TANDEM_DTYPE_BYTES(operands[i]->dtype);
        scatter.steps[i] = spaces.kept.strides[i][spaces.kept.rank - 1];
        scatter.step_bytes[i] = scatter.steps[i] * (int64_t)bytes;
        if (i > 0)
            scatter.numbered_bytes[i - 1] = bytes;
    }
    rows_set(&scatter.rows, scatter.base, operands, chunk_choose(&scatter));
    for (uint32_t i = 0; i < scatter.axes.count; i++)
        scatter.axes.strides[i] *= (int64_t)scatter.rows.bytes[0];
    scatter.axes.component_stride *= (int64_t)scatter.rows.bytes[2];
    pool_run(work->device->pool, op->id, scatter_parts, &scatter,
             spaces.kept.elements / scatter.rows.extent * scatter.rows.chunks,
             ceil_div(scatter.rows.extent, scatter.rows.chunks) *
                 spaces.numbered.elements);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_scatter = {.run = scatter_run};
