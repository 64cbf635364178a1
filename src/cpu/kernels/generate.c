/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose outputs depend on positions: one_hot, range and trilu.  Runs
 * on the caller's thread and on the thread pool. */
#include "config.h"

#include "common/operator_table.h"
#include "cpu/kernels/elementwise.h"

/* ---- one_hot ---- */

struct one_hot {
    struct rows rows; /* operands: output without the new axis, indices */
    unsigned char *base[ROW_OPERANDS];
    int64_t depth, depth_step; /* length and stride of the new axis */
    const unsigned char *off, *on;
};

/* The parameters are those of row_part_fn. */
static inline void one_hot_row(const void *context, unsigned char *const *at,
                               int64_t first, int64_t end)
{
    const struct one_hot *one = context;
    uint32_t inner = one->rows.space.rank - 1, bytes = one->rows.bytes[0];
    uint32_t index_bytes = one->rows.bytes[1];
    int64_t to_step = one->rows.space.strides[0][inner] * (int64_t)bytes;
    int64_t index_step =
        one->rows.space.strides[1][inner] * (int64_t)index_bytes;
    for (int64_t i = first; i < end; i++) {
        unsigned char *to = at[0] + i * to_step;
        int64_t position = index_read(at[1] + i * index_step, index_bytes);
        position += position < 0 ? one->depth : 0;
        elements_copy(to, one->depth_step, one->off, 0, one->depth, bytes);
        if (position >= 0 && position < one->depth)
            memcpy(to + position * one->depth_step * (int64_t)bytes, one->on,
                   bytes);
    }
}

static void one_hot_rows(const void *context, int64_t first, int64_t end)
{
    const struct one_hot *one = context;
    rows_visit(&one->rows, one->base, first, end, INT64_MAX, one_hot_row, one);
}

static enum tandem_status one_hot_run(const struct work *work)
{
    const struct tandem_tensor_desc *output = work->outputs[0];
    const struct tandem_tensor_desc *values = work->inputs[1];
    struct tandem_tensor_desc target = *output;
    const struct tandem_tensor_desc *operands[] = {&target, work->inputs[0]};
    int64_t axis = work->op->ints[0];
    axis += axis < 0 ? output->rank : 0;
    struct one_hot one = {.depth = output->shape[axis],
                          .depth_step = output->strides[axis]};
    target.rank--;
    for (uint32_t i = (uint32_t)axis; i < target.rank; i++) {
        target.shape[i] = output->shape[i + 1];
        target.strides[i] = output->strides[i + 1];
    }
    space_broadcast(&one.rows.space, operands, 2, false);
    if (one.rows.space.elements == 0)
        return TANDEM_OK;
    one.off = tensor_data(values);
    one.on = one.off + values->strides[0] *
                           (int64_t)TANDEM_DTYPE_BYTES(values->dtype);
    rows_set(&one.rows, one.base, operands, 1 + 4096 / one.depth);
    rows_run(&one.rows, work->device->pool, work->op->id, one_hot_rows, &one);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_one_hot = {.run = one_hot_run};

/* ---- range ---- */

#define RANGE_CHUNK 4096

struct range {
    unsigned char *out;
    int64_t n, step; /* step: the output's stride */
    uint32_t dtype;
    uint64_t start, delta;
    float float_start, float_delta;
};

static void range_chunks(const void *context, int64_t first, int64_t end)
{
    const struct range *range = context;
    int64_t last = min64(range->n, end * RANGE_CHUNK);
    for (int64_t i = first * RANGE_CHUNK; i < last; i++) {
        uint64_t integer = range->start + (uint64_t)i * range->delta;
        if (range->dtype == TANDEM_F32)
            ((float *)range->out)[i * range->step] =
                range->float_start + (float)i * range->float_delta;
        else if (range->dtype == TANDEM_I32)
            ((uint32_t *)range->out)[i * range->step] = (uint32_t)integer;
        else
            ((uint64_t *)range->out)[i * range->step] = integer;
    }
}

static enum tandem_status range_run(const struct work *work)
{
    const struct tandem_tensor_desc *output = work->outputs[0];
    const struct tandem_op *op = work->op;
    struct range range = {.n = output->shape[0],
                          .step = output->strides[0],
                          .dtype = output->dtype,
                          .start = (uint64_t)op->ints[0],
                          .delta = (uint64_t)op->ints[1],
                          .float_start = attribute_f32(op->floats[0]),
                          .float_delta = attribute_f32(op->floats[1])};
    if (range.n == 0)
        return TANDEM_OK;
    range.out = tensor_data(output);
    pool_run(work->device->pool, op->id, range_chunks, &range,
             ceil_div(range.n, RANGE_CHUNK), RANGE_CHUNK);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_range = {.run = range_run};

/* ---- trilu ---- */

struct trilu {
    struct iteration_space space; /* operands: output, input; axes not merged */
    unsigned char *out;
    const unsigned char *in;
    uint32_t bytes;
    bool upper;
    int64_t diagonal;
};

static void trilu_rows(const void *context, int64_t first, int64_t end)
{
    static const uint64_t zero = 0;
    const struct trilu *trilu = context;
    const struct iteration_space *space = &trilu->space;
    uint32_t inner = space->rank - 1;
    int64_t bytes = trilu->bytes, n = space->shape[inner];
    int64_t to_step = space->strides[0][inner];
    int64_t from_step = space->strides[1][inner];
    for (int64_t row = first; row < end; row++) {
        int64_t index[TANDEM_MAX_RANK];
        space_seek(space, row, index);
        unsigned char *to =
            trilu->out + space_offset(space, 0, index) * bytes;
        const unsigned char *from =
            trilu->in + space_offset(space, 1, index) * bytes;
        /* The kept columns are those before `split`, or those from it on.  The
         * column number saturates, because the diagonal can be any number. */
        int64_t split;
        if (__builtin_add_overflow(index[inner - 1] + !trilu->upper,
                                   trilu->diagonal, &split))
            split = trilu->diagonal < 0 ? 0 : n;
        split = split < 0 ? 0 : min64(split, n);
        int64_t kept = trilu->upper ? split : 0;
        int64_t kept_end = trilu->upper ? n : split;
        if (to != from)
            elements_copy(to + kept * to_step * bytes, to_step,
                          from + kept * from_step * bytes, from_step,
                          kept_end - kept, trilu->bytes);
        elements_copy(to, to_step, &zero, 0, kept, trilu->bytes);
        elements_copy(to + kept_end * to_step * bytes, to_step, &zero, 0,
                      n - kept_end, trilu->bytes);
    }
}

static enum tandem_status trilu_run(const struct work *work)
{
    const struct tandem_tensor_desc *output = work->outputs[0];
    const struct tandem_tensor_desc *input = work->inputs[0];
    struct trilu trilu = {.bytes = TANDEM_DTYPE_BYTES(output->dtype),
                          .upper = work->op->ints[0] != 0,
                          .diagonal = work->op->ints[1]};
    trilu.space.rank = output->rank;
    trilu.space.operands = 2;
    trilu.space.elements = 1;
    for (uint32_t i = 0; i < output->rank; i++) {
        trilu.space.elements *= output->shape[i];
        trilu.space.shape[i] = output->shape[i];
        trilu.space.strides[0][i] = output->strides[i];
        trilu.space.strides[1][i] = input->strides[i];
    }
    if (trilu.space.elements == 0)
        return TANDEM_OK;
    trilu.out = tensor_data(output);
    trilu.in = tensor_data(input);
    int64_t n = output->shape[output->rank - 1];
    pool_run(work->device->pool, work->op->id, trilu_rows, &trilu,
             trilu.space.elements / n, n);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_trilu = {.run = trilu_run};
