/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operators (classes UNARY to OPTIMIZER) on tensors with any
 * strides.  Iterates over the outer axes, divides the work among threads,
 * and copies strided operands to contiguous buffers (packs them).  Runs on
 * the caller's thread and on the thread pool. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "common/op_class.h"
#include "cpu/kernels/elementwise.h"

/* Elements per task of the thread pool: a 4 KiB page of f32. */
#define CHUNK_ELEMENTS 1024
/* Rows with fewer elements are processed together, as planes of two axes. */
#define SHORT_ELEMENTS 128

/* A scalar operand, converted to the operator's dtype. */
union scalar {
    uint8_t bool_bits;
    uint32_t bits32;
    uint64_t bits64;
};

/* A planned call of an element-wise operator. */
struct elementwise_iterator {
    struct rows rows; /* operands: the outputs, then the inputs */
    /* If is_plane is true, a row consists of the two innermost axes (a plane),
     * and rows.space.rank does not count the last axis. */
    bool is_plane;
    uint32_t inner; /* last axis */
    row_fn fn;
    uint32_t outputs, operands;
    uint32_t constants; /* bit i is set if input i is one repeated element */
    uint32_t packed;    /* bit i is set if operand i must be packed */
    uint32_t is_scalar; /* bit i is set if operand i is in `scalars` */
    struct params params;
    int64_t pack_elements; /* elements of an operand that are packed at once */
    union scalar scalars[4];
};

struct elementwise_call {
    const struct elementwise_iterator *iterator;
    unsigned char *base[ROW_OPERANDS]; /* addresses of the operands */
    union scalar scalars[4];           /* those of the plan */
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
        unary_attributes(out->f, op);
        break;
    }
}

/* ---- fill ---------------------------------------------------------------- */

/* Maximum number of bytes that elements_fill copies at once: they stay in the
 * L1 cache. */
#define FILL_BYTES 4096

void elements_fill(void *to, const void *from, int64_t n, uint32_t bytes)
{
    static const unsigned char zeros[8];
    int64_t all = n * bytes, done = min64(all, bytes), step;
    if (memcmp(from, zeros, bytes) == 0) {
        memset(to, 0, (size_t)all);
        return;
    }
    memcpy(to, from, (size_t)done);
    for (; done < all; done += step) {
        step = min64(min64(done, FILL_BYTES), all - done);
        memcpy((char *)to + done, to, (size_t)step);
    }
}

/* ---- packing ------------------------------------------------------------ */

static inline void element_move(unsigned char *to, const unsigned char *from,
                                uint32_t bytes)
{
    if (bytes == 4)
        memcpy(to, from, 4);
    else if (bytes == 8)
        memcpy(to, from, 8);
    else
        *to = *from;
}

/* Copies n elements of a plane of operand i, from element `first` on, to the
 * contiguous buffer `piece` if into_piece is true.  Otherwise, copies them from
 * `piece` to the plane.  The plane starts at address `base`. */
static void plane_move(const struct elementwise_iterator *iterator, uint32_t i,
                       unsigned char *base, unsigned char *piece, int64_t first,
                       int64_t n, bool into_piece)
{
    const struct iteration_space *space = &iterator->rows.space;
    uint32_t inner = iterator->inner, bytes = iterator->rows.bytes[i];
    int64_t extent = space->shape[inner];
    int64_t step = space->strides[i][inner] * (int64_t)bytes;
    int64_t outer = space->strides[i][inner - 1] * (int64_t)bytes;
    int64_t column = first % extent;
    unsigned char *line = base + first / extent * outer;
    for (int64_t done = 0; done < n; line += outer, column = 0) {
        int64_t end = min64(extent, column + n - done);
        for (; column < end; column++, done++, piece += bytes)
            if (into_piece)
                element_move(piece, line + column * step, bytes);
            else
                element_move(line + column * step, piece, bytes);
    }
}

/* Copies n elements of a row or plane; see plane_move for the parameters. */
static void piece_move(const struct elementwise_iterator *iterator, uint32_t i,
                       unsigned char *base, void *piece, int64_t first,
                       int64_t n, bool into_piece)
{
    uint32_t bytes = iterator->rows.bytes[i];
    int64_t step = iterator->rows.space.strides[i][iterator->inner];
    unsigned char *start = base + first * step * (int64_t)bytes;
    if (iterator->is_plane)
        plane_move(iterator, i, base, piece, first, n, into_piece);
    else if (into_piece)
        elements_copy(piece, 1, start, step, n, bytes);
    else
        elements_copy(start, step, piece, 1, n, bytes);
}

/* ---- iteration ---------------------------------------------------------- */

/* Runs the kernel on a part of a row or plane, and packs strided operands into
 * buffers on the stack.  The parameters are those of row_part_fn. */
static void part_packed(const void *context, unsigned char *const *at,
                        int64_t first, int64_t end)
{
    const struct elementwise_iterator *iterator = context;
    uint64_t buffers[ROW_OPERANDS][PACK_ELEMENTS / 2];
    uint32_t packed = iterator->packed;
    struct row row = {.constants = iterator->constants,
                      .params = &iterator->params};
    for (; first < end; first += row.n) {
        row.n = min64(end - first, iterator->pack_elements);
        for (uint32_t i = 0; i < iterator->operands; i++) {
            bool output = i < iterator->outputs;
            uint32_t slot = output ? i : i - iterator->outputs;
            bool repeats = !output && (iterator->constants >> slot & 1u) != 0;
            int64_t skip = repeats ? 0 : first;
            void *memory = at[i] + skip * (int64_t)iterator->rows.bytes[i];
            if ((packed >> i & 1u) != 0) {
                memory = buffers[i];
                if (!output)
                    piece_move(iterator, i, at[i], memory, first, row.n, true);
            }
            if (output)
                row.out[slot] = memory;
            else
                row.in[slot] = memory;
        }
        iterator->fn(&row);
        for (uint32_t i = 0; i < iterator->outputs; i++)
            if ((packed >> i & 1u) != 0)
                piece_move(iterator, i, at[i], buffers[i], first, row.n, false);
    }
}

/* Runs the kernel on a part of a row without packing any operand. */
static void part_dense(const void *context, unsigned char *const *at,
                       int64_t first, int64_t end)
{
    const struct elementwise_iterator *iterator = context;
    struct row row = {.n = end - first,
                      .constants = iterator->constants,
                      .params = &iterator->params};
    for (uint32_t i = 0; i < iterator->operands; i++) {
        int64_t step = iterator->rows.space.strides[i][iterator->inner];
        void *memory = at[i] + first * step * (int64_t)iterator->rows.bytes[i];
        if (i < iterator->outputs)
            row.out[i] = memory;
        else
            row.in[i - iterator->outputs] = memory;
    }
    iterator->fn(&row);
}

/* Thread-pool function.  Each task processes a chunk of a row or plane. */
static void chunks_run(const void *context, int64_t first, int64_t end)
{
    const struct elementwise_call *call = context;
    const struct elementwise_iterator *iterator = call->iterator;
    bool is_dense = iterator->packed == 0 && !iterator->is_plane;
    rows_visit(&iterator->rows, call->base, first, end, INT64_MAX,
               is_dense ? part_dense : part_packed, iterator);
}

void rows_set(struct rows *rows, unsigned char **base,
              const struct tandem_tensor_desc *const *operands, int64_t chunk)
{
    rows_plan(rows, operands, chunk);
    for (uint32_t i = 0; i < rows->space.operands; i++)
        base[i] = tensor_data(operands[i]);
}

void rows_plan(struct rows *rows,
               const struct tandem_tensor_desc *const *operands, int64_t chunk)
{
    for (uint32_t i = 0; i < rows->space.operands; i++)
        rows->bytes[i] = TANDEM_DTYPE_BYTES(operands[i]->dtype);
    rows->extent = rows->space.shape[rows->space.rank - 1];
    rows->chunk = chunk;
    rows->chunks = ceil_div(rows->extent, chunk);
}

void rows_run(const struct rows *rows, struct pool *pool, uint32_t kind,
              pool_fn fn, const void *context)
{
    pool_run(pool, kind, fn, context,
             rows->space.elements / rows->extent * rows->chunks,
             ceil_div(rows->extent, rows->chunks));
}

/* Selects how a kernel uses operand i: in place, as a constant, or packed. */
static void operand_access_choose(struct elementwise_iterator *iterator,
                                  uint32_t i, bool constants)
{
    const struct iteration_space *space = &iterator->rows.space;
    uint32_t inner = iterator->inner;
    int64_t extent = space->shape[inner], step = space->strides[i][inner];
    int64_t outer = iterator->is_plane ? space->strides[i][inner - 1] : 0;
    if (constants && i >= iterator->outputs && step == 0 && outer == 0)
        iterator->constants |= 1u << (i - iterator->outputs);
    else if ((step != 1 && extent > 1) ||
             (iterator->is_plane && outer != extent))
        iterator->packed |= 1u << i;
}

/* Sets operand i, an input, to a scalar. */
static void scalar_set(struct elementwise_iterator *iterator, uint32_t i,
                       uint32_t dtype, double value)
{
    uint32_t slot = i - iterator->outputs;
    uint64_t bits = op_scalar_bits(dtype, value);
    if (dtype == TANDEM_BOOL)
        iterator->scalars[slot].bool_bits = (uint8_t)bits;
    else if (TANDEM_DTYPE_BYTES(dtype) == 4)
        iterator->scalars[slot].bits32 = (uint32_t)bits;
    else
        iterator->scalars[slot].bits64 = bits;
    iterator->is_scalar |= 1u << i;
    iterator->rows.bytes[i] = TANDEM_DTYPE_BYTES(dtype);
}

/* Returns the row function for operands that have the dtype or are bool. */
static row_fn row_function(const struct kernels *kernels, uint32_t op,
                           uint32_t dtype)
{
    return dtype == TANDEM_I32   ? kernels->i32_rows[op]
           : dtype == TANDEM_I64 ? kernels->i64_rows[op]
                                 : kernels->rows[op];
}

/* Plans a call, without the addresses of tensors. */
static enum tandem_status elementwise_plan(void *plan, const struct work *work)
{
    struct elementwise_iterator *iterator = plan;
    struct rows *rows = &iterator->rows;
    const struct operator_info *info = operator_lookup(work->op->id);
    const struct op_call call = {.info = info,
                                 .inputs = work->inputs,
                                 .outputs = work->outputs,
                                 .input_count = work->input_count};
    uint32_t dtype = op_scalar_dtype(&call, work->input_count - 1);
    bool constants = op_class_get(info->op_class)->scalars;
    uint32_t scalars = 0;
    space_elementwise(&rows->space, work->inputs, work->input_count,
                      work->outputs, work->output_count);
    if (rows->space.elements == 0)
        return TANDEM_OK;
    iterator->fn = row_function(work->device->kernels, work->op->id, dtype);
    iterator->pack_elements =
        TANDEM_DTYPE_BYTES(dtype) == 8 ? PACK_ELEMENTS / 2 : PACK_ELEMENTS;
    iterator->outputs = work->output_count;
    iterator->operands = work->output_count + work->input_count;
    iterator->constants = iterator->packed = iterator->is_scalar = 0;
    memset(&iterator->params, 0, sizeof iterator->params);
    elementwise_params(&iterator->params, work->op);
    iterator->inner = rows->space.rank - 1;
    rows->extent = rows->space.shape[iterator->inner];
    iterator->is_plane = iterator->inner > 0 && rows->extent < SHORT_ELEMENTS;
    for (uint32_t i = 0; i < iterator->operands; i++) {
        bool output = i < iterator->outputs;
        uint32_t slot = output ? i : i - iterator->outputs;
        const struct tandem_tensor_desc *tensor =
            output ? work->outputs[slot] : work->inputs[slot];
        if (tensor != NULL)
            rows->bytes[i] = TANDEM_DTYPE_BYTES(tensor->dtype);
        else
            scalar_set(iterator, i, op_scalar_dtype(&call, slot),
                       work->op->floats[scalars++]);
        operand_access_choose(iterator, i, constants);
    }
    if (iterator->is_plane)
        rows->extent *= rows->space.shape[--rows->space.rank - 1];
    rows->chunk = CHUNK_ELEMENTS;
    rows->chunks = ceil_div(rows->extent, CHUNK_ELEMENTS);
    return TANDEM_OK;
}

static enum tandem_status elementwise_run_plan(const void *plan,
                                               const struct work *work,
                                               unsigned char *const *addresses)
{
    const struct elementwise_iterator *iterator = plan;
    struct elementwise_call call = {.iterator = iterator};
    memcpy(call.scalars, iterator->scalars, sizeof call.scalars);
    if (iterator->rows.space.elements == 0)
        return TANDEM_OK;
    for (uint32_t i = 0; i < iterator->operands; i++) {
        bool output = i < iterator->outputs;
        uint32_t slot = output ? i : i - iterator->outputs;
        call.base[i] =
            (iterator->is_scalar >> i & 1u) != 0
                ? (unsigned char *)&call.scalars[slot]
                : addresses[output ? work->input_count + slot : slot];
    }
    rows_run(&iterator->rows, work->device->pool,
             work->op->id + (iterator->packed != 0 ? POOL_VARIANT : 0),
             chunks_run, &call);
    return TANDEM_OK;
}

static enum tandem_status elementwise_run(const struct work *work)
{
    struct elementwise_iterator iterator;
    unsigned char *addresses[2 * TANDEM_MAX_OPERANDS];
    elementwise_plan(&iterator, work);
    work_addresses(addresses, work);
    elementwise_run_plan(&iterator, work, addresses);
    return TANDEM_OK;
}

#define ELEMENTWISE_CLASS                                                      \
    .run = elementwise_run, .plan = elementwise_plan,                          \
    .run_plan = elementwise_run_plan,                                          \
    .plan_bytes = sizeof(struct elementwise_iterator)
const struct cpu_class cpu_class_unary = {ELEMENTWISE_CLASS,
                                          .small_output_dtype = TANDEM_F32};
const struct cpu_class cpu_class_binary = {ELEMENTWISE_CLASS,
                                           .small_output_dtype = TANDEM_F32};
const struct cpu_class cpu_class_compare = {ELEMENTWISE_CLASS,
                                            .small_output_dtype = TANDEM_BOOL};
const struct cpu_class cpu_class_logical = {ELEMENTWISE_CLASS};
const struct cpu_class cpu_class_ternary = {ELEMENTWISE_CLASS};
const struct cpu_class cpu_class_gradient = {ELEMENTWISE_CLASS,
                                             .small_output_dtype = TANDEM_F32};
const struct cpu_class cpu_class_optimizer = {ELEMENTWISE_CLASS};
