/* SPDX-License-Identifier: Apache-2.0 */
/* The gather operator, which selects slices of a tensor along an axis by index.
 * Runs on the caller's thread and on the thread pool. */
#include "config.h"

#include <string.h>

#include "cpu/objects.h"
#include "cpu/kernels/elementwise.h"

struct gather {
    struct iteration_space space; /* operands: output, data, indices */
    unsigned char *base[3];
    uint32_t bytes[3];
    int64_t axis_stride, axis_elements;
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

/* Returns the address of the element of `data` that *index selects, or NULL if
 * it is out of range.  A negative index counts from the end of the axis. */
static const unsigned char *source_find(const struct gather *gather,
                                        const unsigned char *data,
                                        const unsigned char *index)
{
    int64_t number;
    if (gather->bytes[2] == 8) {
        memcpy(&number, index, sizeof number);
    } else {
        int32_t narrow;
        memcpy(&narrow, index, sizeof narrow);
        number = narrow;
    }
    if (number < 0 && number >= -gather->axis_elements)
        number += gather->axis_elements;
    if (number < 0 || number >= gather->axis_elements)
        return NULL;
    return data + number * gather->axis_stride * (int64_t)gather->bytes[1];
}

/* Copies n elements that one index selects.  If `from` is NULL, the index is
 * out of range, and all n results are gather->missing. */
static void line_same(const struct gather *gather, unsigned char *to,
                      int64_t to_step, const unsigned char *from,
                      int64_t from_step, int64_t n)
{
    int64_t bytes = gather->bytes[0];
    if (from != NULL && to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)(n * bytes));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_step * bytes,
               from != NULL ? from + i * from_step * bytes : gather->missing,
               (size_t)bytes);
}

static void gather_lines(const void *context, int64_t first, int64_t end)
{
    const struct gather *gather = context;
    const struct iteration_space *space = &gather->space;
    uint32_t inner = space->rank - 1;
    int64_t extent = space->shape[inner], index[TANDEM_MAX_RANK];
    int64_t steps[3];
    unsigned char *at[3];
    space_seek(space, first, index);
    for (uint32_t i = 0; i < 3; i++) {
        at[i] = gather->base[i] +
                space_offset(space, i, index) * (int64_t)gather->bytes[i];
        steps[i] = space->strides[i][inner];
    }
    for (int64_t line = first; line < end; line++) {
        if (steps[2] == 0)
            line_same(gather, at[0], steps[0],
                      source_find(gather, at[1], at[2]), steps[1], extent);
        else
            for (int64_t i = 0; i < extent; i++)
                line_same(gather,
                          at[0] + i * steps[0] * (int64_t)gather->bytes[0], 0,
                          source_find(
                              gather,
                              at[1] + i * steps[1] * (int64_t)gather->bytes[1],
                              at[2] + i * steps[2] * (int64_t)gather->bytes[2]),
                          0, 1);
        space_next(space, index, at, gather->bytes);
    }
}

void gather_run(const struct work *work)
{
    struct gather gather;
    const struct tandem_tensor_desc *operands[3] = {
        work->outputs[0], work->inputs[0], work->inputs[1]};
    space_gather(&gather.space, operands[1], operands[2], operands[0],
                 work->op->ints[0], &gather.axis_stride, &gather.axis_elements);
    if (gather.space.elements == 0)
        return;
    for (uint32_t i = 0; i < 3; i++) {
        gather.base[i] = tensor_data(operands[i]);
        gather.bytes[i] = TANDEM_DTYPE_BYTES(operands[i]->dtype);
    }
    missing_fill(gather.missing, operands[0]->dtype);
    int64_t extent = gather.space.shape[gather.space.rank - 1];
    pool_run(work->device->pool, work->op->id, gather_lines, &gather,
             gather.space.elements / extent, extent);
}
