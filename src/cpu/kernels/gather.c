/* SPDX-License-Identifier: Apache-2.0 */
/* The gather operator, which selects slices of a tensor along an axis by index.
 * Runs on the caller's thread and on the thread pool. */
#include "config.h"

#include <string.h>

#include "cpu/kernels/elementwise.h"

/* Maximum number of elements per chunk, if each element has its own index. */
#define CHUNK_ELEMENTS 4096

struct gather {
    struct rows rows;                /* operands: output, data, indices */
    int64_t steps[3], step_bytes[3]; /* strides along the innermost axis */
    struct indexed_axes axes;        /* strides in bytes */
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

/* Returns the address of the element of `data` that the index vector selects,
 * or gather->missing if an index is out of range.  A negative index counts from
 * the end of its axis. */
static inline const unsigned char *source_find(const struct gather *gather,
                                               const unsigned char *data,
                                               const unsigned char *index)
{
    for (uint32_t i = 0; i < gather->axes.count; i++) {
        int64_t extent = gather->axes.extents[i];
        int64_t number = index_read(index, gather->rows.bytes[2]);
        if (number < 0)
            number += extent;
        if (number < 0 || number >= extent)
            return gather->missing;
        data += number * gather->axes.strides[i];
        index += gather->axes.component_stride;
    }
    return data;
}

/* Gathers elements that have their own index.  The compiler makes a loop for
 * each constant value of `bytes`. */
static inline __attribute__((always_inline)) void
elements_gather(const struct gather *gather, unsigned char *const *at,
                int64_t first, int64_t end, uint32_t bytes)
{
    const int64_t *step_bytes = gather->step_bytes;
    for (int64_t i = first; i < end; i++)
        memcpy(at[0] + i * step_bytes[0],
               source_find(gather, at[1] + i * step_bytes[1],
                           at[2] + i * step_bytes[2]),
               bytes);
}

/* Gathers a part of a row.  The parameters are those of row_part_fn. */
static inline void part_gather(const void *context, unsigned char *const *at,
                               int64_t first, int64_t end)
{
    const struct gather *gather = context;
    const int64_t *steps = gather->steps;
    uint32_t bytes = gather->rows.bytes[0];
    if (steps[2] == 0) { /* one index selects the whole row */
        const unsigned char *from = source_find(gather, at[1], at[2]);
        elements_copy(at[0], steps[0], from,
                      from == gather->missing ? 0 : steps[1], end, bytes);
    } else if (bytes == 4) {
        elements_gather(gather, at, first, end, 4);
    } else if (bytes == 8) {
        elements_gather(gather, at, first, end, 8);
    } else if (bytes == 2) {
        elements_gather(gather, at, first, end, 2);
    } else {
        elements_gather(gather, at, first, end, 1);
    }
}

static void gather_parts(const void *context, int64_t first, int64_t end)
{
    const struct gather *gather = context;
    rows_visit(&gather->rows, first, end, INT64_MAX, part_gather, gather);
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
    uint32_t inner = space->rank - 1;
    missing_fill(gather.missing, operands[0]->dtype);
    rows_set(&gather.rows, operands,
             space->strides[2][inner] == 0 ? space->shape[inner]
                                           : CHUNK_ELEMENTS);
    for (uint32_t i = 0; i < 3; i++) {
        gather.steps[i] = space->strides[i][inner];
        gather.step_bytes[i] = gather.steps[i] * (int64_t)gather.rows.bytes[i];
    }
    for (uint32_t i = 0; i < gather.axes.count; i++)
        gather.axes.strides[i] *= (int64_t)gather.rows.bytes[1];
    gather.axes.component_stride *= (int64_t)gather.rows.bytes[2];
    rows_run(&gather.rows, work->device->pool, work->op->id, gather_parts,
             &gather);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_gather = {.run = gather_run};
