/* SPDX-License-Identifier: Apache-2.0 */
/* Padding and tiling.  A row of the output is a sequence of runs, whose
 * elements come from the input with one stride.  Runs on the caller's thread
 * and on the thread pool. */
#include "config.h"

#include "common/pad_space.h"
#include "cpu/kernels/elementwise.h"

struct pad {
    struct pad_space by;
    uint64_t value;
    unsigned char *out;
    const unsigned char *in;
    uint32_t bytes; /* size of an element */
};

/* Elements of an axis of the output that come from elements first, first + step
 * and so on of the input, or from no element if first is -1. */
struct run {
    int64_t first, step, length;
};

static int64_t remainder_of(int64_t value, int64_t divisor)
{
    int64_t rest = value % divisor;
    return rest < 0 ? rest + divisor : rest;
}

/* Returns the run that begins at element `at` of the output's axis. */
static struct run run_find(const struct pad_space *by, uint32_t axis,
                           int64_t at)
{
    int64_t n = by->length[axis], i = at - by->begin[axis];
    int64_t rest = by->space.shape[axis] - at;
    struct run run = {i, 1, n - i};
    if (i < 0 || i >= n) {
        int64_t before = i < 0 ? -i : rest;
        switch (by->mode) {
        case PAD_CONSTANT:
            run = (struct run){-1, 0, before};
            break;
        case PAD_EDGE:
            run = (struct run){i < 0 ? 0 : n - 1, 0, before};
            break;
        case PAD_WRAP:
            i = remainder_of(i, n);
            run = (struct run){i, 1, n - i};
            break;
        case PAD_REFLECT:
            i = n > 1 ? remainder_of(i, 2 * (n - 1)) : 0;
            run = i < n ? (struct run){i, 1, n - i}
                        : (struct run){2 * (n - 1) - i, -1, 2 * (n - 1) - i};
            break;
        }
    }
    run.length = min64(run.length, rest);
    return run;
}

/* Fills a row.  `in` is the input's row, or NULL if the whole row is added. */
static void row_pad(const struct pad *pad, unsigned char *out,
                    const unsigned char *in)
{
    uint32_t inner = pad->by.space.rank - 1;
    int64_t bytes = pad->bytes, n = pad->by.space.shape[inner];
    int64_t to_step = pad->by.space.strides[0][inner];
    int64_t from_step = pad->by.space.strides[1][inner];
    for (int64_t at = 0; at < n;) {
        struct run run = {-1, 0, n - at};
        const void *from = &pad->value;
        if (in != NULL)
            run = run_find(&pad->by, inner, at);
        if (run.first >= 0)
            from = in + run.first * from_step * bytes;
        elements_copy(out + at * to_step * bytes, to_step, from,
                      run.step * from_step, run.length, pad->bytes);
        at += run.length;
    }
}

static void rows_pad(const void *context, int64_t first, int64_t end)
{
    const struct pad *pad = context;
    const struct iteration_space *space = &pad->by.space;
    for (int64_t row = first; row < end; row++) {
        int64_t index[TANDEM_MAX_RANK], from = pad->by.input_offset;
        bool is_added = false;
        space_seek(space, row, index);
        for (uint32_t axis = 0; axis + 1 < space->rank; axis++) {
            int64_t at = run_find(&pad->by, axis, index[axis]).first;
            is_added = is_added || at < 0;
            from += at < 0 ? 0 : at * space->strides[1][axis];
        }
        row_pad(pad, pad->out + space_offset(space, 0, index) * pad->bytes,
                is_added ? NULL : pad->in + from * pad->bytes);
    }
}

static enum tandem_status pad_run(const struct work *work)
{
    struct pad pad = {.bytes = TANDEM_DTYPE_BYTES(work->inputs[0]->dtype)};
    const struct iteration_space *space = &pad.by.space;
    pad_space_build(&pad.by, work->op, work->inputs[0], work->outputs[0]);
    if (space->elements == 0)
        return TANDEM_OK;
    if (pad.by.mode == PAD_CONSTANT)
        pad.value = pad_value_bits(work->op, work->inputs[0]->dtype);
    pad.out = tensor_data(work->outputs[0]);
    pad.in = tensor_data(work->inputs[0]);
    int64_t n = space->shape[space->rank - 1];
    pool_run(work->device->pool, work->op->id, rows_pad, &pad,
             space->elements / n, n);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_pad = {.run = pad_run};
