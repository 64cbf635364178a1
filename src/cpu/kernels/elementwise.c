/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element-wise operators (classes UNARY to OPTIMIZER) on tensors with any
 * strides.  Iterates over the outer axes, divides the work among threads, and
 * copies strided operands to contiguous buffers (packs them).  Runs on the
 * caller's thread and on the thread pool.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "common/iteration_space.h"
#include "common/operator_table.h"
#include "cpu/objects.h"
#include "cpu/kernels/elementwise.h"

/* Elements per task of the thread pool: a 4 KiB page of f32. */
#define CHUNK_ELEMENTS 1024
/* Rows with fewer elements are processed together, as planes of two axes. */
#define SHORT_ELEMENTS 128
#define OPERANDS 7u

/* State of an operator call.  A plane is the two innermost axes together. */
struct elementwise_iterator {
    struct iteration_space space;
    row_fn fn;
    uint32_t outputs, operands;
    uint32_t constants; /* bit i is set if input i is one repeated element */
    uint32_t packed;    /* bit i is set if operand i must be packed */
    int64_t chunks;     /* number of tasks per row or plane */
    unsigned char *base[OPERANDS]; /* outputs, then inputs */
    uint32_t bytes[OPERANDS];      /* element sizes */
    struct params params;
    union {
        float f;
        uint8_t b;
    } scalars[4];
};

/* ---- attributes --------------------------------------------------------- */

static void adam_params(struct params *out, const struct tandem_op *op)
{
    const double *f = op->floats;
    double step = (double)op->ints[0];
    out->flag = op->ints[1] != 0;
    out->f[0] = attribute_f32(f[0]);
    out->f[1] = attribute_f32(f[1]);
    out->f[2] = attribute_f32(1.0 - f[1]);
    out->f[3] = attribute_f32(f[2]);
    out->f[4] = attribute_f32(1.0 - f[2]);
    out->f[5] = epsilon_f32(f[3]);
    out->f[6] = attribute_f32(f[4]);
    out->f[7] = attribute_f32(f[0] / (1.0 - pow(f[1], step)));
    out->f[8] = (float)(1.0 / (1.0 - pow(f[2], step)));
}

void elementwise_params(struct params *out, const struct tandem_op *op)
{
    switch (op->id) {
    case TANDEM_OP_LEAKY_RELU:
    case TANDEM_OP_ELU:
        out->f[0] = attribute_f32(op->floats[0]);
        break;
    case TANDEM_OP_CLIP:
        out->f[0] = (float)op->floats[0];
        out->f[1] = (float)op->floats[1];
        break;
    case TANDEM_OP_GELU:
        out->flag = op->ints[0] != 0;
        break;
    case TANDEM_OP_SGD:
        out->flag = op->ints[0] != 0;
        out->f[0] = attribute_f32(op->floats[0]);
        out->f[1] = attribute_f32(op->floats[1]);
        out->f[2] = attribute_f32(1.0 - op->floats[2]);
        out->f[3] = attribute_f32(op->floats[3]);
        break;
    case TANDEM_OP_ADAM:
        adam_params(out, op);
        break;
    default:
        break;
    }
}

/* ---- packing ------------------------------------------------------------ */

#define PACK(type)                                                             \
    for (int64_t i = 0; i < n; i++)                                            \
    memcpy((type *)to + i * to_step, (const type *)from + i * from_step,       \
           sizeof(type))

/* Copies n elements.  The steps are strides in elements. */
static void elements_move(void *to, int64_t to_step, const void *from,
                          int64_t from_step, int64_t n, uint32_t bytes)
{
    if (bytes == 4)
        PACK(uint32_t);
    else
        PACK(uint8_t);
}

static inline void element_move(unsigned char *to, const unsigned char *from,
                                uint32_t bytes)
{
    if (bytes == 4)
        memcpy(to, from, 4);
    else
        *to = *from;
}

/* Copies n elements of a plane of operand i, from element `first` on, to the
 * contiguous buffer `piece`.  If into_piece is false, copies them from `piece`
 * back to the plane.  The plane starts at address `base`. */
static void plane_move(const struct elementwise_iterator *iterator, uint32_t i,
                       unsigned char *base, unsigned char *piece, int64_t first,
                       int64_t n, bool into_piece)
{
    uint32_t inner = iterator->space.rank - 1, bytes = iterator->bytes[i];
    int64_t extent = iterator->space.shape[inner];
    int64_t step = iterator->space.strides[i][inner] * (int64_t)bytes;
    int64_t outer = iterator->space.strides[i][inner - 1] * (int64_t)bytes;
    int64_t column = first % extent;
    unsigned char *line = base + first / extent * outer;
    for (int64_t done = 0; done < n; line += outer, column = 0) {
        int64_t end = extent - column < n - done ? extent : column + n - done;
        for (; column < end; column++, done++, piece += bytes)
            if (into_piece)
                element_move(piece, line + column * step, bytes);
            else
                element_move(line + column * step, piece, bytes);
    }
}

/* Runs the kernel on elements first <= i < end of a plane. at[] holds the
 * address of the plane in each operand. */
static void plane_run(const struct elementwise_iterator *iterator,
                      unsigned char *const *at, int64_t first, int64_t end)
{
    uint32_t buffers[OPERANDS][PACK_ELEMENTS];
    struct row row = {.constants = iterator->constants,
                      .params = &iterator->params};
    for (; first < end; first += row.n) {
        row.n = end - first < PACK_ELEMENTS ? end - first : PACK_ELEMENTS;
        for (uint32_t i = 0; i < iterator->operands; i++) {
            bool output = i < iterator->outputs;
            bool repeats =
                !output &&
                (iterator->constants >> (i - iterator->outputs) & 1u) != 0;
            void *memory =
                at[i] + (repeats ? 0 : first * (int64_t)iterator->bytes[i]);
            if ((iterator->packed >> i & 1u) != 0) {
                memory = buffers[i];
                if (!output)
                    plane_move(iterator, i, at[i], memory, first, row.n, true);
            }
            if (output)
                row.out[i] = memory;
            else
                row.in[i - iterator->outputs] = memory;
        }
        iterator->fn(&row);
        for (uint32_t i = 0; i < iterator->outputs; i++)
            if ((iterator->packed >> i & 1u) != 0)
                plane_move(iterator, i, at[i], (unsigned char *)buffers[i],
                           first, row.n, false);
    }
}

/* Runs the kernel on n elements of a row, and packs strided operands into
 * buffers on the stack. at[] holds the address of the row in each operand. */
static void row_packed(const struct elementwise_iterator *iterator,
                       unsigned char *const *at, int64_t n)
{
    uint32_t buffers[OPERANDS][PACK_ELEMENTS];
    uint32_t inner = iterator->space.rank - 1;
    struct row row = {.constants = iterator->constants,
                      .params = &iterator->params};
    for (int64_t done = 0; done < n; done += row.n) {
        unsigned char *from[OPERANDS];
        row.n = n - done < PACK_ELEMENTS ? n - done : PACK_ELEMENTS;
        for (uint32_t i = 0; i < iterator->operands; i++) {
            int64_t step = iterator->space.strides[i][inner];
            bool output = i < iterator->outputs;
            from[i] = at[i] + done * step * (int64_t)iterator->bytes[i];
            void *memory = from[i];
            if ((iterator->packed >> i & 1u) != 0) {
                memory = buffers[i];
                if (!output)
                    elements_move(memory, 1, from[i], step, row.n,
                                  iterator->bytes[i]);
            }
            if (output)
                row.out[i] = memory;
            else
                row.in[i - iterator->outputs] = memory;
        }
        iterator->fn(&row);
        for (uint32_t i = 0; i < iterator->outputs; i++)
            if ((iterator->packed >> i & 1u) != 0)
                elements_move(from[i], iterator->space.strides[i][inner],
                              buffers[i], 1, row.n, iterator->bytes[i]);
    }
}

static void row_dense(const struct elementwise_iterator *iterator,
                      unsigned char *const *at, int64_t n)
{
    struct row row = {
        .n = n, .constants = iterator->constants, .params = &iterator->params};
    for (uint32_t i = 0; i < iterator->outputs; i++)
        row.out[i] = at[i];
    for (uint32_t i = iterator->outputs; i < iterator->operands; i++)
        row.in[i - iterator->outputs] = at[i];
    iterator->fn(&row);
}

/* ---- iteration ---------------------------------------------------------- */

/* Thread-pool function: each task processes a chunk of a row. */
static void chunks_run(const void *context, int64_t first, int64_t end)
{
    const struct elementwise_iterator *iterator = context;
    const struct iteration_space *space = &iterator->space;
    uint32_t inner = space->rank - 1;
    int64_t extent = space->shape[inner], index[TANDEM_MAX_RANK];
    unsigned char *start[OPERANDS], *at[OPERANDS];
    int64_t line = first / iterator->chunks, chunk = first % iterator->chunks;
    space_seek(space, line, index);
    for (uint32_t i = 0; i < iterator->operands; i++)
        start[i] = iterator->base[i] +
                   space_offset(space, i, index) * (int64_t)iterator->bytes[i];
    while (first < end) {
        int64_t chunks = iterator->chunks - chunk < end - first
                             ? iterator->chunks - chunk
                             : end - first;
        int64_t skip = chunk * CHUNK_ELEMENTS, n = chunks * CHUNK_ELEMENTS;
        n = extent - skip < n ? extent - skip : n;
        for (uint32_t i = 0; i < iterator->operands; i++)
            at[i] = start[i] + skip * space->strides[i][inner] *
                                   (int64_t)iterator->bytes[i];
        if (iterator->packed != 0)
            row_packed(iterator, at, n);
        else
            row_dense(iterator, at, n);
        first += chunks;
        chunk = 0;
        space_next(space, index, start, iterator->bytes);
    }
}

/* Thread-pool function for short rows: each task is a chunk of a plane. */
static void planes_run(const void *context, int64_t first, int64_t end)
{
    const struct elementwise_iterator *iterator = context;
    struct iteration_space outer = iterator->space;
    int64_t index[TANDEM_MAX_RANK];
    int64_t plane = outer.shape[outer.rank - 1] * outer.shape[outer.rank - 2];
    outer.rank--; /* makes space_seek skip the plane's outer axis */
    for (int64_t chunks; first < end; first += chunks) {
        int64_t chunk = first % iterator->chunks;
        chunks = iterator->chunks - chunk < end - first
                     ? iterator->chunks - chunk
                     : end - first;
        int64_t from = chunk * CHUNK_ELEMENTS,
                to = from + chunks * CHUNK_ELEMENTS;
        to = plane < to ? plane : to;
        unsigned char *at[OPERANDS];
        space_seek(&outer, first / iterator->chunks, index);
        for (uint32_t i = 0; i < iterator->operands; i++)
            at[i] = iterator->base[i] + space_offset(&outer, i, index) *
                                            (int64_t)iterator->bytes[i];
        plane_run(iterator, at, from, to);
    }
}

/* Selects how a kernel uses operand i: in place, as a constant, or packed. */
static void operand_access_choose(struct elementwise_iterator *iterator,
                                  uint32_t i, bool constants, bool plane)
{
    const struct iteration_space *space = &iterator->space;
    uint32_t inner = space->rank - 1;
    int64_t extent = space->shape[inner], step = space->strides[i][inner];
    int64_t outer = plane ? space->strides[i][inner - 1] : 0;
    if (constants && i >= iterator->outputs && step == 0 && outer == 0)
        iterator->constants |= 1u << (i - iterator->outputs);
    else if ((step != 1 && extent > 1) || (plane && outer != extent))
        iterator->packed |= 1u << i;
}

/* Sets operand i to a tensor, or to the scalar `value` if `tensor` is NULL. */
static void operand_set(struct elementwise_iterator *iterator, uint32_t i,
                        const struct tandem_tensor_desc *tensor, bool boolean,
                        double value)
{
    if (tensor != NULL) {
        iterator->base[i] = tensor_data(tensor);
        iterator->bytes[i] = TANDEM_DTYPE_BYTES(tensor->dtype);
        return;
    }
    uint32_t slot = i - iterator->outputs;
    if (boolean)
        iterator->scalars[slot].b = value != 0;
    else
        iterator->scalars[slot].f = (float)value;
    iterator->base[i] = (unsigned char *)&iterator->scalars[slot];
    iterator->bytes[i] = boolean ? 1 : 4;
}

static bool takes_constants(uint32_t op_class)
{
    return op_class >= TANDEM_CLASS_BINARY && op_class <= TANDEM_CLASS_TERNARY;
}

void elementwise_run(const struct work *work)
{
    struct elementwise_iterator iterator;
    const struct operator_info *about = operator_lookup(work->op->id);
    uint32_t scalars = 0, op_class = about->op_class;
    space_elementwise(&iterator.space, work->inputs, work->input_count,
                      work->outputs, work->output_count);
    if (iterator.space.elements == 0)
        return;
    iterator.fn = work->device->kernels->rows[work->op->id];
    iterator.outputs = work->output_count;
    iterator.operands = work->output_count + work->input_count;
    iterator.constants = iterator.packed = 0;
    memset(&iterator.params, 0, sizeof iterator.params);
    elementwise_params(&iterator.params, work->op);
    int64_t extent = iterator.space.shape[iterator.space.rank - 1];
    bool plane = iterator.space.rank > 1 && extent < SHORT_ELEMENTS;
    for (uint32_t i = 0; i < iterator.operands; i++) {
        bool output = i < iterator.outputs;
        uint32_t slot = output ? i : i - iterator.outputs;
        const struct tandem_tensor_desc *tensor =
            output ? work->outputs[slot] : work->inputs[slot];
        bool boolean = op_class == TANDEM_CLASS_LOGICAL ||
                       (work->op->id == TANDEM_OP_WHERE && slot == 0);
        operand_set(&iterator, i, tensor, boolean,
                    tensor == NULL ? work->op->floats[scalars++] : 0);
        operand_access_choose(&iterator, i, takes_constants(op_class), plane);
    }
    if (plane)
        extent *= iterator.space.shape[iterator.space.rank - 2];
    iterator.chunks = (extent + CHUNK_ELEMENTS - 1) / CHUNK_ELEMENTS;
    pool_run(work->device->pool,
             work->op->id + (iterator.packed != 0 ? POOL_VARIANT : 0),
             plane ? planes_run : chunks_run, &iterator,
             iterator.space.elements / extent * iterator.chunks,
             (extent + iterator.chunks - 1) / iterator.chunks);
}
