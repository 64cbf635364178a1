/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions and the dot product.  Computes one result at a time;
 * column_reduce.c computes the results of many columns at once.  Only the
 * number of elements determines the chunks, so sums do not depend on the
 * number of threads.  Runs on the caller's thread and the thread pool. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "cpu/kernels/reduction.h"

/* Minimum elements of a chunk, and maximum number of chunks per result. */
#define CHUNK_ELEMENTS 8192
#define CHUNKS 256

/* ---- pieces ------------------------------------------------------------- */

/* Callback type: processes n contiguous elements, from element number
 * `position` on.  Returns false to stop the iteration. */
typedef bool (*piece_fn)(void *state, const float *x, int64_t n,
                         int64_t position);

/* Calls `fn` for contiguous pieces of the elements first <= i < end of operand
 * 0, which begins at `start`.  Copies strided elements to a buffer first. */
static void span_visit(const struct iteration_space *space, const float *start,
                       int64_t first, int64_t end, piece_fn fn, void *state)
{
    float packed[PACK_ELEMENTS];
    uint32_t inner = space->rank - 1;
    int64_t step = space->strides[0][inner];
    struct cursor cursor;
    cursor_seek(&cursor, space, first);
    while (first < end) {
        const float *x = start + cursor.offsets[0];
        int64_t n =
            min64(space->shape[inner] - cursor.index[inner],
                  step == 1 ? end - first : min64(end - first, PACK_ELEMENTS));
        if (step != 1 && n > 1) {
            line_pack(packed, x, step, n);
            x = packed;
        }
        if (!fn(state, x, n, first))
            return;
        first += n;
        cursor_move(&cursor, space, inner, n);
    }
}

/* ---- one result --------------------------------------------------------- */

/* Partial result of a reduction, over the elements of one chunk. */
struct partial {
    const struct kernels *kernels;
    uint32_t op;
    /* Maximum, minimum or product of the elements so far.  In the second pass
     * of log_sum_exp, the maximum over all chunks. */
    float value;
    bool started, shifted;
    double sum;
    int64_t found; /* result of argmax or argmin */
};

/* Reduces n contiguous elements by one kernel call.  Returns their sum, or
 * stores their maximum, minimum or product in *out_value. */
static inline double row_reduce(const struct kernels *kernels, uint32_t op,
                                const float *x, int64_t n, float *out_value)
{
    switch (op) {
    case TANDEM_OP_SUM:
    case TANDEM_OP_MEAN:
        return kernels->sum(x, n);
    case TANDEM_OP_PROD:
        *out_value = kernels->product(x, n);
        return 0;
    case TANDEM_OP_REDUCE_MIN:
    case TANDEM_OP_ARGMIN:
        *out_value = kernels->min(x, n);
        return 0;
    case TANDEM_OP_REDUCE_MAX:
    case TANDEM_OP_ARGMAX:
    case TANDEM_OP_LOG_SUM_EXP:
        *out_value = kernels->max(x, n);
        return 0;
    default:
        return kernels->sum_square(x, n);
    }
}

/* Combines `partial` with the result of the elements that follow it. */
static void partial_join(struct partial *partial, float value, double sum)
{
    const struct kernels *kernels = partial->kernels;
    float pair[2] = {partial->value, value};
    if (partial->shifted || !reduction_has_value(partial->op))
        partial->sum += sum;
    else if (partial->op == TANDEM_OP_PROD)
        partial->value *= value;
    else if (!partial->started)
        partial->value = value;
    else if (partial->op == TANDEM_OP_REDUCE_MIN ||
             partial->op == TANDEM_OP_ARGMIN)
        partial->value = kernels->min(pair, 2);
    else
        partial->value = kernels->max(pair, 2);
    partial->started = true;
}

static bool piece_reduce(void *state, const float *x, int64_t n,
                         int64_t position)
{
    struct partial *partial = state;
    const struct kernels *kernels = partial->kernels;
    float value = 0;
    (void)position;
    double sum = partial->shifted
                     ? kernels->sum_exp(x, n, partial->value)
                     : row_reduce(kernels, partial->op, x, n, &value);
    partial_join(partial, value, sum);
    return true;
}

static bool piece_find(void *state, const float *x, int64_t n, int64_t position)
{
    struct partial *partial = state;
    int64_t at = partial->kernels->find(x, n, partial->value);
    partial->found = position + at;
    return at == n;
}

struct chunk_work {
    const struct reduction *reduction;
    const float *start;
    struct partial first; /* initial state of each chunk's result */
    struct partial *partials;
};

static void chunks_run(const void *context, int64_t first, int64_t end)
{
    const struct chunk_work *work = context;
    const struct reduction *reduction = work->reduction;
    const struct iteration_space *space = &reduction->spaces.reduced;
    for (int64_t i = first; i < end; i++) {
        int64_t from = i * reduction->chunk;
        int64_t to = min64(space->elements, from + reduction->chunk);
        work->partials[i] = work->first;
        span_visit(space, work->start, from, to, piece_reduce,
                   &work->partials[i]);
    }
}

/* Reduces all input elements of one result, which begin at `start`. *partial
 * holds the initial state and receives the result. */
static void chunks_reduce(const struct reduction *reduction, const float *start,
                          struct partial *partial)
{
    struct partial partials[CHUNKS];
    struct chunk_work work = {reduction, start, *partial, partials};
    if (reduction->chunks == 1) {
        span_visit(&reduction->spaces.reduced, start, 0,
                   reduction->spaces.reduced.elements, piece_reduce, partial);
        return;
    }
    partials[0] = *partial; /* silences a maybe-uninitialized warning */
    if (reduction->pool != NULL)
        pool_run(reduction->pool, reduction->op, chunks_run, &work,
                 reduction->chunks, reduction->chunk);
    else
        chunks_run(&work, 0, reduction->chunks);
    *partial = partials[0];
    for (int64_t i = 1; i < reduction->chunks; i++)
        partial_join(partial, partials[i].value, partials[i].sum);
}

static void result_make(const struct reduction *reduction, const float *start,
                        int64_t out_offset)
{
    const struct iteration_space *space = &reduction->spaces.reduced;
    struct partial partial = {
        .kernels = reduction->kernels,
        .op = reduction->op,
        .value = reduction->op == TANDEM_OP_PROD ? 1.0f : 0.0f,
    };
    chunks_reduce(reduction, start, &partial);
    if (reduction_finds_index(reduction->op)) {
        span_visit(space, start, 0, space->elements, piece_find, &partial);
        ((int64_t *)reduction->out)[out_offset] = partial.found;
        return;
    }
    if (reduction->op == TANDEM_OP_LOG_SUM_EXP && isfinite(partial.value)) {
        partial.shifted = true;
        chunks_reduce(reduction, start, &partial);
    }
    ((float *)reduction->out)[out_offset] = reduction_finish(
        reduction->op, partial.sum, partial.value, space->elements);
}

/* Returns true if dense_rows_run supports the reduction. */
static bool rows_suit(const struct reduction *reduction)
{
    const struct iteration_space *kept = &reduction->spaces.kept;
    const struct iteration_space *along = &reduction->spaces.reduced;
    uint32_t op = reduction->op;
    return reduction->chunks == 1 && kept->rank == 1 && along->rank == 1 &&
           (along->strides[0][0] == 1 || along->elements == 1) &&
           !reduction_finds_index(op) && op != TANDEM_OP_LOG_SUM_EXP;
}

static void dense_rows_run(const void *context, int64_t first, int64_t end)
{
    const struct reduction *reduction = context;
    const struct iteration_space *kept = &reduction->spaces.kept;
    int64_t n = reduction->spaces.reduced.elements;
    uint32_t op = reduction->op;
    float *out = reduction->out;
    for (int64_t i = first; i < end; i++) {
        const float *x = reduction->in + i * kept->strides[1][0];
        float value = 0;
        double sum = row_reduce(reduction->kernels, op, x, n, &value);
        out[i * kept->strides[0][0]] = reduction_finish(op, sum, value, n);
    }
}

static void results_run(const void *context, int64_t first, int64_t end)
{
    const struct reduction *reduction = context;
    const struct iteration_space *kept = &reduction->spaces.kept;
    struct cursor cursor;
    cursor_seek(&cursor, kept, first);
    for (int64_t i = first; i < end; i++) {
        result_make(reduction, reduction->in + cursor.offsets[1],
                    cursor.offsets[0]);
        cursor_move(&cursor, kept, kept->rank - 1, 1);
    }
}

/* ---- operators ---------------------------------------------------------- */

/* Returns the number of elements per chunk of n elements. */
static int64_t chunk_elements(int64_t n)
{
    return max64(ceil_div(n, CHUNKS), CHUNK_ELEMENTS);
}

static void rows_run(struct reduction *reduction, struct pool *pool)
{
    int64_t n = reduction->spaces.reduced.elements;
    int64_t results = reduction->spaces.kept.elements;
    reduction->chunk = chunk_elements(n);
    reduction->chunks = ceil_div(n, reduction->chunk);
    /* A nested pool_run would use one thread.  Therefore threads compute either
     * different results, or different chunks of one result. */
    if (reduction->chunks > 1 && results < 32) {
        reduction->pool = pool;
        results_run(reduction, 0, results);
        return;
    }
    pool_run(pool, reduction->op,
             rows_suit(reduction) ? dense_rows_run : results_run, reduction,
             results, n);
}

/* Stores the results of a reduction over zero elements. */
static void empty_run(const struct reduction *reduction)
{
    const struct iteration_space *kept = &reduction->spaces.kept;
    float value = reduction->op == TANDEM_OP_MEAN          ? NAN
                  : reduction->op == TANDEM_OP_PROD        ? 1.0f
                  : reduction->op == TANDEM_OP_LOG_SUM_EXP ? -INFINITY
                                                           : 0.0f;
    struct cursor cursor;
    cursor_seek(&cursor, kept, 0);
    for (int64_t i = 0; i < kept->elements; i++) {
        ((float *)reduction->out)[cursor.offsets[0]] = value;
        cursor_move(&cursor, kept, kept->rank - 1, 1);
    }
}

/* Removes from `tensor` the axes whose bits in `axes` are set, if the result of
 * a reduction along these axes does not keep them. */
static void axes_drop(struct tandem_tensor_desc *tensor, uint32_t axes,
                      const struct tandem_tensor_desc *result)
{
    uint32_t rank = tensor->rank, own = 0;
    if (result->rank == rank)
        return;
    for (uint32_t i = 0; i < rank; i++) {
        if ((axes >> i & 1u) != 0)
            continue;
        tensor->shape[own] = tensor->shape[i];
        tensor->strides[own++] = tensor->strides[i];
    }
    tensor->rank = own;
}

/* Computes a reduction whose reduced axes all have length 1.  Each result then
 * depends on one element, so the reduction is an element-wise operator.  Sums
 * add 0, because a sum of -0 is 0. */
static enum tandem_status elements_run(const struct work *work)
{
    static const double zero = 0;
    static int64_t index;
    struct tandem_buffer indices = {.base = (unsigned char *)&index};
    const struct tandem_tensor_desc *result = work->outputs[0];
    struct tandem_tensor_desc x = *work->inputs[0];
    const struct tandem_tensor_desc *inputs[2] = {&x, NULL};
    struct tandem_op op = {.struct_size = sizeof op};
    struct work map = *work;
    axes_drop(&x, (uint32_t)work->op->ints[0], result);
    map.op = &op;
    map.inputs = inputs;
    switch (work->op->id) {
    case TANDEM_OP_SUM:
    case TANDEM_OP_MEAN:
    case TANDEM_OP_LOG_SUM_EXP:
        op.id = TANDEM_OP_ADD;
        op.floats = &zero;
        map.input_count = 2;
        return cpu_class_binary.run(&map);
    case TANDEM_OP_SUM_SQUARE:
        op.id = TANDEM_OP_MUL;
        inputs[1] = &x;
        map.input_count = 2;
        return cpu_class_binary.run(&map);
    case TANDEM_OP_L2:
        op.id = TANDEM_OP_ABS;
        return cpu_class_unary.run(&map);
    case TANDEM_OP_ARGMAX:
    case TANDEM_OP_ARGMIN:
        x = *result;
        x.buffer = &indices;
        x.byte_offset = 0;
        memset(x.strides, 0, sizeof x.strides);
        break;
    default:
        break;
    }
    op.id = TANDEM_OP_COPY;
    return cpu_class_copy.run(&map);
}

static enum tandem_status reduce_run(const struct work *work)
{
    struct reduction reduction = {.kernels = work->device->kernels,
                                  .op = work->op->id};
    space_reduce(&reduction.spaces, work->inputs[0], work->outputs[0],
                 (uint32_t)work->op->ints[0]);
    if (reduction.spaces.kept.elements == 0)
        return TANDEM_OK;
    reduction.in = tensor_data(work->inputs[0]);
    reduction.out = tensor_data(work->outputs[0]);
    if (reduction.spaces.reduced.elements == 1)
        return elements_run(work);
    if (reduction.spaces.reduced.elements == 0)
        empty_run(&reduction);
    else if (column_reduce_supports(&reduction.spaces))
        column_reduce_run(&reduction, work->device->pool);
    else
        rows_run(&reduction, work->device->pool);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_reduce = {.run = reduce_run};
const struct cpu_class cpu_class_arg_reduce = {.run = reduce_run};

/* ---- dot ---------------------------------------------------------------- */

struct dot {
    const struct kernels *kernels;
    const float *a, *b;
    int64_t a_step, b_step, n, chunk;
    double *partials;
};

static void dot_chunks(const void *context, int64_t first, int64_t end)
{
    const struct dot *dot = context;
    float a[PACK_ELEMENTS], b[PACK_ELEMENTS];
    bool dense = dot->a_step == 1 && dot->b_step == 1;
    for (int64_t i = first; i < end; i++) {
        int64_t from = i * dot->chunk;
        int64_t to = min64(dot->n, from + dot->chunk);
        double sum = 0;
        if (dense)
            sum = dot->kernels->dot(dot->a + from, dot->b + from, to - from);
        for (int64_t n; !dense && from < to; from += n) {
            n = min64(to - from, PACK_ELEMENTS);
            line_pack(a, dot->a + from * dot->a_step, dot->a_step, n);
            line_pack(b, dot->b + from * dot->b_step, dot->b_step, n);
            sum += dot->kernels->dot(a, b, n);
        }
        dot->partials[i] = sum;
    }
}

static enum tandem_status dot_run(const struct work *work)
{
    double partials[CHUNKS], sum = 0;
    const struct tandem_tensor_desc *a = work->inputs[0], *b = work->inputs[1];
    struct dot dot = {.kernels = work->device->kernels,
                      .a = tensor_data(a),
                      .b = tensor_data(b),
                      .a_step = a->strides[0],
                      .b_step = b->strides[0],
                      .n = a->shape[0],
                      .chunk = chunk_elements(a->shape[0]),
                      .partials = partials};
    int64_t chunks = ceil_div(dot.n, dot.chunk);
    pool_run(work->device->pool, TANDEM_OP_DOT, dot_chunks, &dot, chunks,
             min64(dot.n, dot.chunk));
    for (int64_t i = 0; i < chunks; i++)
        sum += partials[i];
    *(float *)tensor_data(work->outputs[0]) = (float)sum;
    return TANDEM_OK;
}

const struct cpu_class cpu_class_dot = {.run = dot_run};
