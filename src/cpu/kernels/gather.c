/* SPDX-License-Identifier: Apache-2.0 */
/* The gather operator, which selects slices of a tensor along an axis by index.
 * Runs on the caller's thread and on the thread pool. */
#include "config.h"

#include <string.h>

#include "cpu/kernels/elementwise.h"

/* Target number of elements per chunk. */
#define CHUNK_ELEMENTS 4096
/* Slices of more elements are copied like rows of any strides. */
#define MAX_SLICE_ELEMENTS 2048

/* A slice is the part of `data` that one index vector selects, if it is
 * contiguous in `data` and in the output.  An element is a slice, too. */
struct gather {
    struct rows rows; /* operands: output, data, indices */
    unsigned char *base[ROW_OPERANDS];
    int64_t steps[3], step_bytes[3]; /* strides along the innermost axis */
    struct indexed_axes axes;        /* strides in bytes */
    int64_t slice_elements, slice_bytes;
    unsigned char missing[8]; /* output element for an index out of range */
};

/* Fills `out` with NaN if `dtype` is a floating-point type, else with 0. */
static void missing_fill(unsigned char *out, uint32_t dtype)
{
    static const uint32_t f32 = 0x7fc00000u;
    static const uint16_t f16 = 0x7e00u, bf16 = 0x7fc0u;
    static const uint64_t f64 = 0x7ff8000000000000u;
    memset(out, 0, 8);
    if (dtype == TANDEM_F32)
        memcpy(out, &f32, sizeof f32);
    else if (dtype == TANDEM_F16)
        memcpy(out, &f16, sizeof f16);
    else if (dtype == TANDEM_BF16)
        memcpy(out, &bf16, sizeof bf16);
    else if (dtype == TANDEM_F64)
        memcpy(out, &f64, sizeof f64);
}

/* Reads an index.  Returns its position along an axis of length `extent`, or -1
 * if the index is out of range.  A negative index counts from the end. */
static inline int64_t position_read(const unsigned char *index, uint32_t bytes,
                                    int64_t extent)
{
    int64_t number = index_read(index, bytes);
    if (__builtin_expect((uint64_t)number < (uint64_t)extent, 1))
        return number;
    return number < 0 && number >= -extent ? number + extent : -1;
}

/* Returns the address of the element of `data` that the index vector selects,
 * or gather->missing if an index is out of range. */
static inline const unsigned char *source_find(const struct gather *gather,
                                               const unsigned char *data,
                                               const unsigned char *index)
{
    for (uint32_t i = 0; i < gather->axes.count; i++) {
        int64_t extent = gather->axes.extents[i];
        int64_t position = position_read(index, gather->rows.bytes[2], extent);
        if (position < 0)
            return gather->missing;
        data += position * gather->axes.strides[i];
        index += gather->axes.component_stride;
    }
    return data;
}

/* Fills a slice of the output whose index is out of range. */
static void slice_fill(const struct gather *gather, unsigned char *to)
{
    elements_copy(to, 1, gather->missing, 0, gather->slice_elements,
                  gather->rows.bytes[0]);
}

/* Gathers slices.  The parameters are those of row_part_fn. */
static void slices_gather_any(const struct gather *gather,
                              unsigned char *const *at, int64_t first,
                              int64_t end)
{
    const int64_t *steps = gather->step_bytes;
    for (int64_t i = first; i < end; i++) {
        unsigned char *to = at[0] + i * steps[0];
        const unsigned char *from =
            source_find(gather, at[1] + i * steps[1], at[2] + i * steps[2]);
        if (from == gather->missing)
            slice_fill(gather, to);
        else
            memcpy(to, from, (size_t)gather->slice_bytes);
    }
}

/* Copies a slice.  Copies of constant size, which can overlap, are faster than
 * a call of memcpy. */
static inline void slice_copy(unsigned char *to, const unsigned char *from,
                              size_t bytes)
{
    if (bytes > 8 && bytes < 16) {
        memcpy(to, from, 8);
        memcpy(to + bytes - 8, from + bytes - 8, 8);
    } else if (bytes > 16 && bytes < 32) {
        memcpy(to, from, 16);
        memcpy(to + bytes - 16, from + bytes - 16, 16);
    } else {
        memcpy(to, from, bytes);
    }
}

/* Gathers slices along one axis.  The compiler makes a loop for each pair of
 * constant values of `bytes` and `index_bytes`, and one for other sizes. */
static inline __attribute__((always_inline)) void
slices_gather(const struct gather *gather, unsigned char *const *at,
              int64_t first, int64_t end, size_t bytes, uint32_t index_bytes)
{
    const int64_t out_step = gather->step_bytes[0];
    const int64_t data_step = gather->step_bytes[1];
    const int64_t index_step = gather->step_bytes[2];
    const int64_t extent = gather->axes.extents[0];
    const int64_t stride = gather->axes.strides[0];
    unsigned char *to = at[0] + first * out_step;
    const unsigned char *data = at[1] + first * data_step;
    const unsigned char *index = at[2] + first * index_step;
    for (int64_t i = first; i < end; i++) {
        int64_t position = position_read(index, index_bytes, extent);
        if (__builtin_expect(position >= 0, 1))
            slice_copy(to, data + position * stride, bytes);
        else
            slice_fill(gather, to);
        to += out_step;
        data += data_step;
        index += index_step;
    }
}

/* Gathers elements if the output, the indices and the elements along the axis
 * are contiguous: slices_gather with constant steps, which is faster. */
static inline __attribute__((always_inline)) void
elements_gather(const struct gather *gather, unsigned char *const *at,
                int64_t first, int64_t end, size_t bytes, uint32_t index_bytes)
{
    const int64_t size = (int64_t)bytes, index_size = index_bytes;
    const int64_t extent = gather->axes.extents[0];
    unsigned char *to = at[0];
    const unsigned char *data = at[1], *index = at[2];
#pragma GCC unroll 4
    for (int64_t i = first; i < end; i++) {
        int64_t position =
            position_read(index + i * index_size, index_bytes, extent);
        if (__builtin_expect(position >= 0, 1))
            memcpy(to + i * size, data + position * size, bytes);
        else
            memcpy(to + i * size, gather->missing, bytes);
    }
}

/* Returns true if elements_gather supports the gather. */
static bool elements_are_dense(const struct gather *gather)
{
    const int64_t *steps = gather->step_bytes;
    return gather->slice_elements == 1 && steps[0] == gather->slice_bytes &&
           steps[1] == 0 && steps[2] == (int64_t)gather->rows.bytes[2] &&
           gather->axes.strides[0] == gather->slice_bytes;
}

/* Gathers elements of `size` bytes. */
#define ELEMENTS_GATHER(size)                                                  \
    case size:                                                                 \
        if (gather->rows.bytes[2] == 8)                                        \
            elements_gather(gather, at, first, end, size, 8);                  \
        else                                                                   \
            elements_gather(gather, at, first, end, size, 4);                  \
        return;

/* Gathers slices of `size` bytes. */
#define SLICES_GATHER(size)                                                    \
    case size:                                                                 \
        if (gather->rows.bytes[2] == 8)                                        \
            slices_gather(gather, at, first, end, size, 8);                    \
        else                                                                   \
            slices_gather(gather, at, first, end, size, 4);                    \
        break;

/* Gathers a part of a row.  The parameters are those of row_part_fn. */
static void part_gather(const void *context, unsigned char *const *at,
                        int64_t first, int64_t end)
{
    const struct gather *gather = context;
    if (gather->slice_elements == 0) { /* one index selects the whole row */
        const unsigned char *from = source_find(gather, at[1], at[2]);
        elements_copy(at[0], gather->steps[0], from,
                      from == gather->missing ? 0 : gather->steps[1], end,
                      gather->rows.bytes[0]);
        return;
    }
    if (gather->axes.count != 1) {
        slices_gather_any(gather, at, first, end);
        return;
    }
    switch (elements_are_dense(gather) ? gather->slice_bytes : 0) {
        ELEMENTS_GATHER(1)
        ELEMENTS_GATHER(2)
        ELEMENTS_GATHER(4)
        ELEMENTS_GATHER(8)
    default:
        break;
    }
    switch (gather->slice_bytes) {
        SLICES_GATHER(1)
        SLICES_GATHER(2)
        SLICES_GATHER(4)
        SLICES_GATHER(8)
        SLICES_GATHER(16)
        SLICES_GATHER(32)
        SLICES_GATHER(64)
        SLICES_GATHER(128)
    default:
        slices_gather(gather, at, first, end, (size_t)gather->slice_bytes,
                      gather->rows.bytes[2]);
    }
}

static void gather_parts(const void *context, int64_t first, int64_t end)
{
    const struct gather *gather = context;
    rows_visit(&gather->rows, gather->base, first, end, INT64_MAX, part_gather,
               gather);
}

/* Sets the size of a slice, and removes the axis of its elements from the
 * space.  The size is 0 if rows are not made of slices. */
static void slice_set(struct gather *gather)
{
    struct iteration_space *space = &gather->rows.space;
    uint32_t inner = space->rank - 1;
    gather->slice_elements = 0;
    if (space->strides[2][inner] != 0) {
        gather->slice_elements = 1;
    } else if (inner > 0 && space->shape[inner] <= MAX_SLICE_ELEMENTS &&
               space->strides[0][inner] == 1 && space->strides[1][inner] == 1) {
        gather->slice_elements = space->shape[inner];
        space->rank--;
    }
}

static enum tandem_status gather_run(const struct work *work)
{
    struct gather gather;
    struct iteration_space *space = &gather.rows.space;
    const struct tandem_tensor_desc *operands[3] = {
        work->outputs[0], work->inputs[0], work->inputs[1]};
    space_gather(space, &gather.axes, work->op, operands[1], operands[2],
                 operands[0]);
    if (space->elements == 0)
        return TANDEM_OK;
    missing_fill(gather.missing, operands[0]->dtype);
    slice_set(&gather);
    uint32_t inner = space->rank - 1;
    int64_t slice = gather.slice_elements;
    rows_set(&gather.rows, gather.base, operands,
             slice == 0 ? space->shape[inner]
                        : max64(1, CHUNK_ELEMENTS / slice));
    for (uint32_t i = 0; i < 3; i++) {
        gather.steps[i] = space->strides[i][inner];
        gather.step_bytes[i] = gather.steps[i] * (int64_t)gather.rows.bytes[i];
    }
    for (uint32_t i = 0; i < gather.axes.count; i++)
        gather.axes.strides[i] *= (int64_t)gather.rows.bytes[1];
    gather.axes.component_stride *= (int64_t)gather.rows.bytes[2];
    gather.slice_bytes = slice * (int64_t)gather.rows.bytes[0];
    int64_t rows = space->elements / max64(1, slice) / gather.rows.extent;
    pool_run(work->device->pool, work->op->id, gather_parts, &gather,
             rows * gather.rows.chunks,
             max64(1, slice) *
                 ceil_div(gather.rows.extent, gather.rows.chunks));
    return TANDEM_OK;
}

const struct cpu_class cpu_class_gather = {.run = gather_run};
