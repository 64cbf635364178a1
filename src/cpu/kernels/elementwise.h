/* SPDX-License-Identifier: Apache-2.0 */
/* Functions to iterate over the rows of an iteration space, and to convert the
 * attributes of element-wise operators.  Pure functions. */
#ifndef TANDEM_CPU_KERNELS_ELEMENTWISE_H
#define TANDEM_CPU_KERNELS_ELEMENTWISE_H

#include <string.h>

#include "common/tensor_desc.h"
#include "common/iteration_space.h"
#include "cpu/objects.h"

#define ROW_OPERANDS 7u

/* Operands of an operator whose rows are divided into chunks.  A chunk is a
 * task of the thread pool. */
struct rows {
    struct iteration_space space;
    uint32_t bytes[ROW_OPERANDS]; /* element sizes */
    /* Elements per row, elements per chunk, and chunks per row. */
    int64_t extent, chunk, chunks;
};

/* Converts the attributes of a validated operator to the form that its row
 * function reads.  The caller has cleared `out` to zero. */
void elementwise_params(struct params *out, const struct tandem_op *op);

/* Computes the multi-dimensional index of row number `line`, along all axes
 * except the innermost. */
static inline void space_seek(const struct iteration_space *space, int64_t line,
                              int64_t *index)
{
    for (uint32_t axis = space->rank - 1; axis-- > 0;) {
        index[axis] = line % space->shape[axis];
        line /= space->shape[axis];
    }
}

/* Returns the offset, in elements, of the row at `index` in an operand. */
static inline int64_t space_offset(const struct iteration_space *space,
                                   uint32_t operand, const int64_t *index)
{
    int64_t offset = 0;
    for (uint32_t axis = 0; axis + 1 < space->rank; axis++)
        offset += index[axis] * space->strides[operand][axis];
    return offset;
}

/* Advances the index and the pointers of all operands to the next row.  After
 * the last row, the pointers point to the first row again. */
static inline void space_next(const struct iteration_space *space,
                              int64_t *index, unsigned char **pointers,
                              const uint32_t *bytes)
{
    for (uint32_t axis = space->rank - 1; axis-- > 0;) {
        bool wraps = ++index[axis] == space->shape[axis];
        int64_t steps = wraps ? 1 - space->shape[axis] : 1;
        for (uint32_t i = 0; i < space->operands; i++)
            pointers[i] += steps * space->strides[i][axis] * (int64_t)bytes[i];
        if (!wraps)
            return;
        index[axis] = 0;
    }
}

/* Uses memcpy because elements of imported memory may be unaligned. */
#define COPY_ELEMENTS(type)                                                    \
    _Pragma("GCC unroll 4") for (int64_t i = 0; i < n; i++)                    \
        memcpy((type *)to + i * to_step, (const type *)from + i * from_step,   \
               sizeof(type))

/* Stores n copies of the element at `from` to the contiguous array `to`. */
void elements_fill(void *to, const void *from, int64_t n, uint32_t bytes);
/* Shorter arrays are filled faster by a loop than by elements_fill. */
#define MIN_FILL_ELEMENTS 16

/* Copies n elements of 1, 2, 4 or 8 bytes.  The steps are strides in elements.
 */
static inline void elements_copy(void *to, int64_t to_step, const void *from,
                                 int64_t from_step, int64_t n, uint32_t bytes)
{
    if (to_step == 1 && from_step == 1)
        memcpy(to, from, (size_t)n * bytes);
    else if (to_step == 1 && from_step == 0 && n >= MIN_FILL_ELEMENTS)
        elements_fill(to, from, n, bytes);
    else if (bytes == 4)
        COPY_ELEMENTS(uint32_t);
    else if (bytes == 2)
        COPY_ELEMENTS(uint16_t);
    else if (bytes == 1)
        COPY_ELEMENTS(uint8_t);
    else
        COPY_ELEMENTS(uint64_t);
}

/* Reads an element of an index tensor, which has 4 or 8 bytes. */
static inline int64_t index_read(const unsigned char *index, uint32_t bytes)
{
    int64_t wide;
    int32_t narrow;
    if (bytes == 8)
        memcpy(&wide, index, sizeof wide);
    else
        memcpy(&narrow, index, sizeof narrow);
    return bytes == 8 ? wide : narrow;
}

/* Function that processes elements first <= i < end of a row.  at[] holds the
 * address of the row in each operand. */
typedef void (*row_part_fn)(const void *context, unsigned char *const *at,
                            int64_t first, int64_t end);

/* Calls `fn` for chunks `first` to `end` - 1, where the chunks of all rows are
 * numbered consecutively.  A call of `fn` processes up to max_chunks chunks.
 * base[] holds the address of each operand. */
static inline void rows_visit(const struct rows *rows,
                              unsigned char *const *base, int64_t first,
                              int64_t end, int64_t max_chunks, row_part_fn fn,
                              const void *context)
{
    int64_t index[TANDEM_MAX_RANK], chunk = first % rows->chunks;
    unsigned char *at[ROW_OPERANDS];
    space_seek(&rows->space, first / rows->chunks, index);
    for (uint32_t i = 0; i < rows->space.operands; i++)
        at[i] = base[i] +
                space_offset(&rows->space, i, index) * (int64_t)rows->bytes[i];
    while (first < end) {
        int64_t chunks = 1, from = 0, to = rows->extent;
        if (rows->chunks > 1) {
            chunks = min64(rows->chunks - chunk, end - first);
            chunks = min64(chunks, max_chunks);
            from = chunk * rows->chunk;
            to = min64(to, from + chunks * rows->chunk);
        }
        fn(context, at, from, to);
        first += chunks;
        chunk += chunks;
        if (chunk < rows->chunks)
            continue;
        chunk = 0;
        space_next(&rows->space, index, at, rows->bytes);
    }
}

/* Sets everything but the space. */
void rows_plan(struct rows *rows,
               const struct tandem_tensor_desc *const *operands, int64_t chunk);
/* The same, and writes the addresses of the operands to base[]. */
void rows_set(struct rows *rows, unsigned char **base,
              const struct tandem_tensor_desc *const *operands, int64_t chunk);
/* Runs the thread-pool function `fn` on the chunks of all rows. */
void rows_run(const struct rows *rows, struct pool *pool, uint32_t kind,
              pool_fn fn, const void *context);

#endif
