/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strided copies and transposes of elements of 1, 2, 4 and 8 bytes.  If source
 * and target are contiguous along different axes, square tiles are copied to
 * use cache lines fully.  Runs on the caller's thread and on the thread pool.
 */
#include "config.h"

#include <string.h>

#include "cpu/objects.h"
#include "cpu/kernels/elementwise.h"

/* Side of a square tile, and maximum part of a row per task, in elements. */
#define TILE 64
#define CHUNK_ELEMENTS 4096

struct copy {
    struct iteration_space
        space; /* operand 0 is the target, operand 1 the source */
    const struct kernels *kernels;
    unsigned char *base[2];
    uint32_t bytes[2]; /* element sizes of target and source, which are equal */
    int64_t row_tiles; /* number of tiles along axis rank - 2 */
    int64_t chunks;    /* tasks per row if the copy does not use tiles */
};

#define MOVE(type)                                                             \
    for (int64_t i = 0; i < n; i++)                                            \
    ((type *)to)[i * to_step] = ((const type *)from)[i * from_step]

static void line_copy(void *to, int64_t to_step, const void *from,
                      int64_t from_step, int64_t n, uint32_t bytes)
{
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)n * bytes);
        return;
    }
    switch (bytes) {
    case 1:
        MOVE(uint8_t);
        break;
    case 2:
        MOVE(uint16_t);
        break;
    case 4:
        MOVE(uint32_t);
        break;
    default:
        MOVE(uint64_t);
    }
}

static void copy_lines(const void *context, int64_t first, int64_t end)
{
    const struct copy *copy = context;
    const struct iteration_space *space = &copy->space;
    uint32_t inner = space->rank - 1;
    int64_t extent = space->shape[inner], index[TANDEM_MAX_RANK];
    int64_t chunk = first % copy->chunks, bytes = copy->bytes[0];
    unsigned char *at[2];
    space_seek(space, first / copy->chunks, index);
    for (uint32_t i = 0; i < 2; i++)
        at[i] = copy->base[i] + space_offset(space, i, index) * bytes;
    for (int64_t task = first; task < end; task++) {
        int64_t skip = chunk * CHUNK_ELEMENTS;
        int64_t n =
            extent - skip < CHUNK_ELEMENTS ? extent - skip : CHUNK_ELEMENTS;
        int64_t to = space->strides[0][inner], from = space->strides[1][inner];
        line_copy(at[0] + skip * to * bytes, to, at[1] + skip * from * bytes,
                  from, n, copy->bytes[0]);
        if (++chunk < copy->chunks)
            continue;
        chunk = 0;
        space_next(space, index, at, copy->bytes);
    }
}

/* Copies a tile whose target rows and source columns are contiguous. */
static void tile_copy(const struct copy *copy, unsigned char *to,
                      int64_t to_stride, const unsigned char *from,
                      int64_t from_stride, int64_t rows, int64_t columns)
{
    int64_t bytes = copy->bytes[0];
    if (bytes == 4) {
        copy->kernels->transpose4((uint32_t *)(void *)to, to_stride,
                                  (const uint32_t *)(const void *)from,
                                  from_stride, columns, rows);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        line_copy(to + i * to_stride * bytes, 1, from + i * bytes, from_stride,
                  columns, copy->bytes[0]);
}

/* Thread-pool function: each task copies up to TILE target rows of one matrix.
 * A matrix spans the last two axes of the tensors. */
static void copy_tiles(const void *context, int64_t first, int64_t end)
{
    const struct copy *copy = context;
    struct iteration_space outer = copy->space;
    uint32_t rows_axis = outer.rank - 2, columns_axis = outer.rank - 1;
    int64_t rows = outer.shape[rows_axis], columns = outer.shape[columns_axis];
    int64_t to_stride = outer.strides[0][rows_axis];
    int64_t from_stride = outer.strides[1][columns_axis];
    int64_t index[TANDEM_MAX_RANK], bytes = copy->bytes[0];
    outer.rank--; /* makes space_seek skip the matrix's row axis */
    for (int64_t task = first; task < end; task++) {
        int64_t row = task % copy->row_tiles * TILE;
        int64_t height = rows - row < TILE ? rows - row : TILE;
        space_seek(&outer, task / copy->row_tiles, index);
        unsigned char *to =
            copy->base[0] +
            (space_offset(&outer, 0, index) + row * to_stride) * bytes;
        const unsigned char *from =
            copy->base[1] + (space_offset(&outer, 1, index) + row) * bytes;
        for (int64_t column = 0; column < columns; column += TILE) {
            int64_t width = columns - column < TILE ? columns - column : TILE;
            tile_copy(copy, to + column * bytes, to_stride,
                      from + column * from_stride * bytes, from_stride, height,
                      width);
        }
    }
}

/* Moves the axis along which the source is contiguous to position rank - 2.
 * Returns false if there is no such axis or copying by tiles is not faster. */
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

static void copy_between(const struct work *work,
                         const struct tandem_tensor_desc *to,
                         const struct tandem_tensor_desc *from)
{
    struct copy copy = {.kernels = work->device->kernels};
    const struct tandem_tensor_desc *operands[2] = {to, from};
    space_broadcast(&copy.space, operands, 2, false);
    if (copy.space.elements == 0)
        return;
    for (uint32_t i = 0; i < 2; i++) {
        copy.base[i] = tensor_data(operands[i]);
        copy.bytes[i] = TANDEM_DTYPE_BYTES(to->dtype);
    }
    if (space_tile(&copy.space)) {
        int64_t rows = copy.space.shape[copy.space.rank - 2];
        int64_t columns = copy.space.shape[copy.space.rank - 1];
        copy.row_tiles = (rows + TILE - 1) / TILE;
        pool_run(work->device->pool, work->op->id + POOL_VARIANT, copy_tiles,
                 &copy, copy.space.elements / (rows * columns) * copy.row_tiles,
                 (rows + copy.row_tiles - 1) / copy.row_tiles * columns);
        return;
    }
    int64_t extent = copy.space.shape[copy.space.rank - 1];
    copy.chunks = (extent + CHUNK_ELEMENTS - 1) / CHUNK_ELEMENTS;
    pool_run(work->device->pool, work->op->id, copy_lines, &copy,
             copy.space.elements / extent * copy.chunks,
             (extent + copy.chunks - 1) / copy.chunks);
}

void copy_run(const struct work *work)
{
    copy_between(work, work->outputs[0], work->inputs[0]);
}

void transpose_run(const struct work *work)
{
    struct tandem_tensor_desc permuted;
    space_permute(&permuted, work->inputs[0], work->op->ints);
    copy_between(work, work->outputs[0], &permuted);
}
