/* SPDX-License-Identifier: Apache-2.0 */
/* Strided copies, transposes and concatenations of elements of 1, 2, 4 and 8
 * bytes.  If source and target are contiguous along different axes, the
 * elements are copied in square tiles, which use cache lines fully.  Runs on
 * the caller's thread and on the thread pool. */
#include "config.h"

#include "cpu/kernels/copy.h"

#include <stdlib.h>

/* Side of a square tile and maximum length of a row chunk, in elements. */
#define TILE 64
#define CHUNK_ELEMENTS 4096

/* A planned copy and its addresses. */
struct copy_call {
    const struct copy *copy;
    const struct kernels *kernels;
    unsigned char *base[2]; /* target and source */
};

/* Copies a part of a row.  The parameters are those of row_part_fn. */
static inline void part_copy(const void *context, unsigned char *const *at,
                             int64_t first, int64_t end)
{
    const struct rows *rows = context;
    uint32_t inner = rows->space.rank - 1, bytes = rows->bytes[0];
    int64_t to_step = rows->space.strides[0][inner];
    int64_t from_step = rows->space.strides[1][inner];
    elements_copy(at[0] + first * to_step * (int64_t)bytes, to_step,
                  at[1] + first * from_step * (int64_t)bytes, from_step,
                  end - first, bytes);
}

/* Thread-pool function.  Each task copies a chunk of a row. */
static void copy_lines(const void *context, int64_t first, int64_t end)
{
    const struct copy_call *call = context;
    /* Copies one chunk at a time, because a large memcpy can bypass caches. */
    rows_visit(&call->copy->rows, call->base, first, end, 1, part_copy,
               &call->copy->rows);
}

/* Copies a plane: rows of few elements along the two innermost axes.  The
 * parameters are those of row_part_fn. */
static inline void plane_copy(const void *context, unsigned char *const *at,
                              int64_t first, int64_t end)
{
    const struct rows *rows = context;
    const struct iteration_space *space = &rows->space;
    const uint32_t rows_axis = space->rank - 1, columns_axis = space->rank;
    const int64_t bytes = rows->bytes[0], columns = space->shape[columns_axis];
    const int64_t to_step = space->strides[0][columns_axis];
    const int64_t from_step = space->strides[1][columns_axis];
    const int64_t to_row = space->strides[0][rows_axis] * bytes;
    const int64_t from_row = space->strides[1][rows_axis] * bytes;
    unsigned char *to = at[0];
    const unsigned char *from = at[1];
    (void)first; /* a plane is one chunk */
    (void)end;
    for (int64_t row = 0; row < space->shape[rows_axis]; row++)
        elements_copy(to + row * to_row, to_step, from + row * from_row,
                      from_step, columns, rows->bytes[0]);
}

/* Thread-pool function.  Each task copies a plane. */
static void copy_planes(const void *context, int64_t first, int64_t end)
{
    const struct copy_call *call = context;
    rows_visit(&call->copy->rows, call->base, first, end, 1, plane_copy,
               &call->copy->rows);
}

/* Copies a tile whose target rows and source columns are contiguous. */
static void tile_copy(const struct copy_call *call, unsigned char *to,
                      int64_t to_stride, const unsigned char *from,
                      int64_t from_stride, int64_t rows, int64_t columns)
{
    int64_t bytes = call->copy->rows.bytes[0];
    if (bytes == 4) {
        call->kernels->transpose4((void *)to, to_stride, (const void *)from,
                                  from_stride, columns, rows);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        elements_copy(to + i * to_stride * bytes, 1, from + i * bytes,
                      from_stride, columns, (uint32_t)bytes);
}

/* Thread-pool function.  Each task copies up to TILE target rows of one matrix.
 * A matrix spans the last two axes of the tensors. */
static void copy_tiles(const void *context, int64_t first, int64_t end)
{
    const struct copy_call *call = context;
    const struct copy *copy = call->copy;
    struct iteration_space outer = copy->rows.space;
    uint32_t rows_axis = outer.rank - 2, columns_axis = outer.rank - 1;
    int64_t rows = outer.shape[rows_axis], columns = outer.shape[columns_axis];
    int64_t to_stride = outer.strides[0][rows_axis];
    int64_t from_stride = outer.strides[1][columns_axis];
    int64_t index[TANDEM_MAX_RANK], bytes = copy->rows.bytes[0];
    outer.rank--; /* makes space_seek skip the matrix's row axis */
    for (int64_t task = first; task < end; task++) {
        int64_t row = task % copy->row_tiles * TILE;
        int64_t height = min64(rows - row, TILE);
        space_seek(&outer, task / copy->row_tiles, index);
        unsigned char *to =
            call->base[0] +
            (space_offset(&outer, 0, index) + row * to_stride) * bytes;
        const unsigned char *from =
            call->base[1] + (space_offset(&outer, 1, index) + row) * bytes;
        for (int64_t column = 0; column < columns; column += TILE) {
            int64_t width = min64(columns - column, TILE);
            tile_copy(call, to + column * bytes, to_stride,
                      from + column * from_stride * bytes, from_stride, height,
                      width);
        }
    }
}

/* Moves the axis along which the source is contiguous to position rank - 2.
 * Returns false if there is no such axis, or if tiles would not be faster. */
static bool space_tile(struct iteration_space *space)
{
    uint32_t inner = space->rank - 1;
    if (space->rank < 2 || space->strides[0][inner] != 1 ||
        space->strides[1][inner] == 1 || space->strides[1][inner] == 0 ||
        space->shape[inner] < 4)
        return false;
    for (uint32_t axis = 0; axis < inner; axis++) {
        if (space->strides[1][axis] != 1 || space->shape[axis] < 4)
            continue;
        int64_t shape = space->shape[axis];
        int64_t to = space->strides[0][axis];
        for (uint32_t i = axis; i + 1 < inner; i++) {
            space->shape[i] = space->shape[i + 1];
            space->strides[0][i] = space->strides[0][i + 1];
            space->strides[1][i] = space->strides[1][i + 1];
        }
        space->shape[inner - 1] = shape;
        space->strides[0][inner - 1] = to;
        space->strides[1][inner - 1] = 1;
        return true;
    }
    return false;
}

/* Rows shorter than this spend more time between rows than on elements. */
#define SHORT_ROW 8
/* Planes of at most this size are copied instead of such rows. */
#define PLANE_ELEMENTS 4096

static void axes_swap(struct iteration_space *space, uint32_t a, uint32_t b)
{
    int64_t shape = space->shape[a];
    space->shape[a] = space->shape[b];
    space->shape[b] = shape;
    for (uint32_t i = 0; i < 2; i++) {
        int64_t stride = space->strides[i][a];
        space->strides[i][a] = space->strides[i][b];
        space->strides[i][b] = stride;
    }
}

/* If rows are short and are no memcpy, makes them of another axis that is at
 * least twice as long: the one with the shortest steps. */
static void rows_lengthen(struct iteration_space *space)
{
    const uint32_t inner = space->rank - 1;
    uint32_t best = inner;
    int64_t best_step = INT64_MAX;
    if (space->rank < 2 || space->shape[inner] >= SHORT_ROW ||
        (space->strides[0][inner] == 1 && space->strides[1][inner] == 1))
        return;
    for (uint32_t axis = 0; axis < inner; axis++) {
        int64_t step =
            llabs(space->strides[0][axis]) + llabs(space->strides[1][axis]);
        if (space->shape[axis] < 2 * space->shape[inner] || step > best_step)
            continue;
        best = axis;
        best_step = step;
    }
    axes_swap(space, best, inner);
}

/* Returns true if the rows are short and are no memcpy, so that planes of two
 * axes are faster. */
static bool planes_suit(const struct iteration_space *space)
{
    const uint32_t inner = space->rank - 1;
    return space->rank >= 2 && space->shape[inner] < 2 * SHORT_ROW &&
           (space->strides[0][inner] != 1 || space->strides[1][inner] != 1) &&
           space->shape[inner] * space->shape[inner - 1] <= PLANE_ELEMENTS;
}

void copy_plan(struct copy *out, const struct tandem_tensor_desc *to,
               const struct tandem_tensor_desc *from)
{
    struct iteration_space *space = &out->rows.space;
    const struct tandem_tensor_desc *operands[2] = {to, from};
    space_broadcast(space, operands, 2, false);
    out->row_tiles = 0;
    out->task = copy_lines;
    if (space->elements == 0)
        return;
    if (space_tile(space)) {
        out->row_tiles = ceil_div(space->shape[space->rank - 2], TILE);
        out->task = copy_tiles;
    } else {
        rows_lengthen(space);
    }
    rows_plan(&out->rows, operands, CHUNK_ELEMENTS);
    if (out->row_tiles == 0 && planes_suit(space)) {
        out->task = copy_planes;
        out->rows.extent *= space->shape[--space->rank - 1];
        out->rows.chunks = 1;
    }
}

void copy_execute(const struct copy *plan, struct tandem_device *device,
                  uint32_t op, unsigned char *to, unsigned char *from)
{
    const struct copy_call call = {plan, device->kernels, {to, from}};
    const struct iteration_space *space = &plan->rows.space;
    if (space->elements == 0)
        return;
    if (plan->row_tiles == 0) {
        rows_run(&plan->rows, device->pool, op, plan->task, &call);
        return;
    }
    int64_t rows = space->shape[space->rank - 2];
    int64_t columns = space->shape[space->rank - 1];
    pool_run(device->pool, op + POOL_VARIANT, plan->task, &call,
             space->elements / (rows * columns) * plan->row_tiles,
             ceil_div(rows, plan->row_tiles) * columns);
}

static void copy_between(const struct work *work,
                         const struct tandem_tensor_desc *to,
                         const struct tandem_tensor_desc *from)
{
    struct copy plan;
    copy_plan(&plan, to, from);
    copy_execute(&plan, work->device, work->op->id, tensor_data(to),
                 tensor_data(from));
}

static enum tandem_status copy_class_plan(void *plan, const struct work *work)
{
    copy_plan(plan, work->outputs[0], work->inputs[0]);
    return TANDEM_OK;
}

static enum tandem_status transpose_class_plan(void *plan,
                                               const struct work *work)
{
    struct tandem_tensor_desc permuted;
    space_permute(&permuted, work->inputs[0], work->op->ints);
    copy_plan(plan, work->outputs[0], &permuted);
    return TANDEM_OK;
}

static enum tandem_status copy_class_run_plan(const void *plan,
                                              const struct work *work,
                                              unsigned char *const *addresses)
{
    copy_execute(plan, work->device, work->op->id, addresses[1], addresses[0]);
    return TANDEM_OK;
}

static enum tandem_status copy_run(const struct work *work)
{
    copy_between(work, work->outputs[0], work->inputs[0]);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_copy = {.run = copy_run,
                                         .plan_bytes = sizeof(struct copy),
                                         .plan = copy_class_plan,
                                         .run_plan = copy_class_run_plan};

static enum tandem_status concat_run(const struct work *work)
{
    int64_t axis = work->op->ints[0], first = 0;
    axis += axis < 0 ? work->outputs[0]->rank : 0;
    for (uint32_t i = 0; i < work->input_count; i++) {
        const struct tandem_tensor_desc *from = work->inputs[i];
        struct tandem_tensor_desc to;
        tensor_slice(&to, work->outputs[0], (uint32_t)axis, first,
                     from->shape[axis]);
        copy_between(work, &to, from);
        first += from->shape[axis];
    }
    return TANDEM_OK;
}

const struct cpu_class cpu_class_concat = {.run = concat_run};

static enum tandem_status transpose_run(const struct work *work)
{
    struct tandem_tensor_desc permuted;
    space_permute(&permuted, work->inputs[0], work->op->ints);
    copy_between(work, work->outputs[0], &permuted);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_transpose = {.run = transpose_run,
                                              .plan_bytes = sizeof(struct copy),
                                              .plan = transpose_class_plan,
                                              .run_plan = copy_class_run_plan};
