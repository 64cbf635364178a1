/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the first and last elements of results before they are timed; see
 * bench.h.
 */
#include <config.h>

#include "bench.h"
#include "layer_case.h"

#include <math.h>

/* Number of checked elements at each end of an output, and of outputs whose
 * elements depend on many inputs. */
#define CHECKED 512
#define CHECKED_SLOW 4

/* `count` values of seed_value, from index `start` with stride `step`. */
struct run {
    uint64_t start, count, step;
};

static double value_at(const struct run *run, uint64_t i)
{
    return (double)seed_value(run->start + i * run->step);
}

/* Returns the sum of the values, of their squares (power 2) or of their
 * exponentials (power 0). */
static double sum_of(const struct run *run, int power)
{
    uint64_t periods = run->count / SEED_COUNT;
    double sum = 0;

    if (periods > 1) {
        const struct run one = {run->start, SEED_COUNT, run->step};
        const struct run rest = {run->start, run->count % SEED_COUNT,
                                 run->step};

        return (double)periods * sum_of(&one, power) + sum_of(&rest, power);
    }
    for (uint64_t i = 0; i < run->count; i++) {
        double x = value_at(run, i);

        sum += power == 0 ? exp(x) : power == 1 ? x : x * x;
    }
    return sum;
}

static double largest_of(const struct run *run, uint64_t *out_where)
{
    double largest = -HUGE_VAL;

    *out_where = 0;
    for (uint64_t i = 0; i < run->count && i < SEED_COUNT; i++)
        if (value_at(run, i) > largest) {
            largest = value_at(run, i);
            *out_where = i;
        }
    return largest;
}

static double expected_gemm(const struct op_case *c, uint64_t index)
{
    uint64_t m = (uint64_t)c->m, n = (uint64_t)c->n, k = (uint64_t)c->k;
    uint64_t batch = index / (m * n), i = index / n % m, j = index % n;
    double sum = 0;

    for (uint64_t p = 0; p < k; p++)
        sum += (double)seed_value((batch * m + i) * k + p) *
               (double)seed_value((batch * k + p) * n + j);
    return sum;
}

/* Returns the inputs of element `index` of a reduction over one axis or all. */
static struct run reduced_run(const struct op_case *c, uint64_t index)
{
    const struct tandem_tensor_desc *in = &c->in[0];
    struct run run = {0, 1, 1};
    uint64_t inner = 1, axis = 0;

    if (c->out[0].rank == 0) {
        run.count = (uint64_t)desc_elements(in);
        return run;
    }
    while ((c->ints[0] >> axis & 1) == 0)
        axis++;
    for (uint64_t i = axis + 1; i < in->rank; i++)
        inner *= (uint64_t)in->shape[i];
    run.count = (uint64_t)in->shape[axis];
    run.step = inner;
    run.start = index / inner * inner * run.count + index % inner;
    return run;
}

static double expected_reduction(const struct op_case *c, uint64_t index)
{
    struct run run = reduced_run(c, index);
    uint64_t where;
    double largest;

    switch (c->op.id) {
    case TANDEM_OP_SUM:
        return sum_of(&run, 1);
    case TANDEM_OP_MEAN:
        return sum_of(&run, 1) / (double)run.count;
    case TANDEM_OP_DOT:
        run.count = (uint64_t)c->in[0].shape[0];
        return sum_of(&run, 2);
    default:
        largest = largest_of(&run, &where);
        return c->op.id == TANDEM_OP_ARGMAX ? (double)where : largest;
    }
}

/* Returns the expected element of softmax or a norm along the last axis. */
static double expected_row(const struct op_case *c, uint64_t index)
{
    const struct tandem_tensor_desc *in = &c->in[0];
    uint64_t columns = (uint64_t)in->shape[in->rank - 1];
    struct run run = {index - index % columns, columns, 1};
    double x = (double)seed_value(index), n = (double)columns, mean, epsilon;

    if (c->op.id == TANDEM_OP_SOFTMAX)
        return exp(x) / sum_of(&run, 0);
    if (c->op.id == TANDEM_OP_LOG_SOFTMAX)
        return x - log(sum_of(&run, 0));
    /* Scale and bias of a norm, if any, have the values of seed_value, too. */
    epsilon = c->info->float_count > 0 ? c->floats[0] : 0;
    mean = c->op.id == TANDEM_OP_LAYER_NORM ? sum_of(&run, 1) / n : 0;
    x = (x - mean) / sqrt((sum_of(&run, 2) / n - mean * mean) + epsilon);
    if (c->inputs > 1)
        x *= (double)seed_value(index % columns);
    return c->inputs > 2 ? x + (double)seed_value(index % columns) : x;
}

static double expected_gather(const struct op_case *c, uint64_t index)
{
    uint64_t columns = (uint64_t)c->in[0].shape[1];
    int32_t row = seed_index(index / columns, c->index_limit);

    return (double)seed_value((uint64_t)row * columns + index % columns);
}

/* Returns the expected loss, or gradient, from a row's logits and label. */
static double expected_cross_entropy(const struct op_case *c, uint64_t index)
{
    bool gradient = c->op.id == TANDEM_OP_CROSS_ENTROPY_GRAD;
    uint64_t columns = (uint64_t)c->in[0].shape[1];
    uint64_t row = gradient ? index / columns : index;
    uint64_t label = (uint64_t)seed_index(row, c->index_limit);
    const struct run run = {row * columns, columns, 1};

    if (!gradient)
        return log(sum_of(&run, 0)) - value_at(&run, label);
    return c->floats[0] * (exp((double)seed_value(index)) / sum_of(&run, 0) -
                           (index % columns == label));
}

/* Returns element `index` of an optimizer's input w, g, m or v after seed_step.
 */
static float step_value(uint64_t index, uint32_t input)
{
    return seed_value(index + input * 1009);
}

/* Returns the expected element of an output after the first step. */
static double expected_step(const struct op_case *c, uint32_t output,
                            uint64_t index)
{
    const double *f = c->floats;
    bool adam = c->op.id == TANDEM_OP_ADAM;
    double w = (double)step_value(index, 0), g = (double)step_value(index, 1);
    double m = (double)step_value(index, 2), v = (double)step_value(index, 3);

    m = f[1] * m + (1 - f[adam ? 1 : 2]) * g;
    v = f[2] * v + (1 - f[2]) * g * g;
    if (output > 0)
        return output == 1 ? m : v;
    if (!adam)
        return w - f[0] * m;
    return w - f[0] * m / (1 - f[1]) / (sqrt(v / (1 - f[2])) + f[3]);
}

/* Returns element `index` of an input of an element-wise operator, which may be
 * a view. */
static double input_value(const struct op_case *c, uint32_t input,
                          uint64_t index)
{
    const struct tandem_tensor_desc *in = &c->in[input];
    uint64_t position = in->byte_offset / sizeof(float);

    for (uint32_t axis = in->rank; axis-- > 0;) {
        position +=
            index % (uint64_t)in->shape[axis] * (uint64_t)in->strides[axis];
        index /= (uint64_t)in->shape[axis];
    }
    return (double)seed_value(position);
}

/* All inputs are between 0.5 and 1.5. */
static double expected_element(const struct op_case *c, uint64_t index)
{
    double x = input_value(c, 0, index);

    switch (c->op.id) {
    case TANDEM_OP_RELU:
    case TANDEM_OP_LEAKY_RELU:
    case TANDEM_OP_ELU:
    case TANDEM_OP_COPY:
        return x;
    case TANDEM_OP_ADD:
        return x + input_value(c, 1, index);
    case TANDEM_OP_CLIP:
        return fmin(x, c->floats[1]);
    case TANDEM_OP_EXP:
        return exp(x);
    case TANDEM_OP_SIGMOID:
        return 1 / (1 + exp(-x));
    case TANDEM_OP_TANH:
        return tanh(x);
    case TANDEM_OP_SWISH:
        return x / (1 + exp(-x));
    case TANDEM_OP_GELU:
        return x * (1 + erf(x / sqrt(2.0))) / 2;
    default:
        return NAN;
    }
}

/* Returns the expected element `index` of output `output`. */
static double expected(const struct op_case *c, uint32_t output, uint64_t index)
{
    const struct tandem_tensor_desc *in = &c->in[0];
    uint64_t columns = in->rank > 0 ? (uint64_t)in->shape[in->rank - 1] : 1;
    uint64_t rows = in->rank > 1 ? (uint64_t)in->shape[0] : 1;

    switch (c->info->op_class) {
    case TANDEM_CLASS_REDUCE:
    case TANDEM_CLASS_ARG_REDUCE:
    case TANDEM_CLASS_DOT:
        return expected_reduction(c, index);
    case TANDEM_CLASS_SOFTMAX:
    case TANDEM_CLASS_NORM:
        return expected_row(c, index);
    case TANDEM_CLASS_TRANSPOSE:
        return (double)seed_value(index % rows * columns + index / rows);
    case TANDEM_CLASS_GEMM:
        return expected_gemm(c, index);
    case TANDEM_CLASS_GATHER:
        return expected_gather(c, index);
    case TANDEM_CLASS_CROSS_ENTROPY:
        return expected_cross_entropy(c, index);
    case TANDEM_CLASS_POOL:
    case TANDEM_CLASS_CHANNEL_NORM:
    case TANDEM_CLASS_RESIZE:
    case TANDEM_CLASS_CONCAT:
    case TANDEM_CLASS_CONV:
    case TANDEM_CLASS_ATTENTION:
        return layer_expected(c, index);
    case TANDEM_CLASS_OPTIMIZER:
        return expected_step(c, output, index);
    default:
        return expected_element(c, index);
    }
}

/* ---- comparing ---- */

static bool check_range(struct bench *bench, const struct op_case *c,
                        read_fn read, void *argument, uint32_t output,
                        uint64_t first, uint64_t count)
{
    /* TF32 has 10 bits after the leading one. All inputs are positive. */
    const bool is_tf32 = (c->op.flags & TANDEM_OP_ALLOW_TF32) != 0;
    const double relative = is_tf32 ? 0x1p-9 : 1e-4;
    double values[CHECKED];

    if (!read(argument, output, first, count, values)) {
        bench_fail(bench, "%s", bench->session.backend->last_error());
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        double want = expected(c, output, first + i);

        if (fabs(values[i] - want) <= relative * fabs(want) + 1e-6)
            continue;
        bench_fail(bench, "wrong: element %llu is %g, not %g",
                   (unsigned long long)(first + i), values[i], want);
        return false;
    }
    return true;
}

static uint64_t checked_elements(const struct op_case *c)
{
    double elements = desc_elements(&c->out[0]), inputs = 0;
    uint64_t count = CHECKED;

    for (uint32_t i = 0; i < c->inputs; i++)
        inputs += desc_elements(&c->in[i]);
    if (inputs > 8 * elements || c->info->op_class == TANDEM_CLASS_SOFTMAX ||
        c->info->op_class == TANDEM_CLASS_NORM ||
        c->info->op_class == TANDEM_CLASS_CHANNEL_NORM ||
        c->info->op_class == TANDEM_CLASS_GEMM ||
        c->info->op_class == TANDEM_CLASS_CONV ||
        c->info->op_class == TANDEM_CLASS_ATTENTION)
        count = CHECKED_SLOW;
    return (double)count < elements ? count : (uint64_t)elements;
}

bool check_outputs(struct bench *bench, const struct op_case *c, read_fn read,
                   void *argument)
{
    uint64_t count = checked_elements(c);

    for (uint32_t i = 0; i < c->outputs; i++) {
        uint64_t elements = (uint64_t)desc_elements(&c->out[i]);

        if (!check_range(bench, c, read, argument, i, 0, count) ||
            !check_range(bench, c, read, argument, i, elements - count, count))
            return false;
    }
    return true;
}

/* Downloads elements of an output, which may leave out columns of a buffer. */
static bool output_download(void *argument, uint32_t output, uint64_t first,
                            uint64_t count, double *out)
{
    struct resident_op *work = argument;
    struct device_session *session = work->session;
    const struct tandem_tensor_desc *desc = &work->c.out[output];
    bool is_i64 = desc->dtype == TANDEM_I64;
    uint64_t bytes = is_i64 ? sizeof(int64_t) : sizeof(float);
    uint64_t columns =
        desc->rank > 1 ? (uint64_t)desc->shape[desc->rank - 1] : first + count;
    uint64_t pitch =
        desc->rank > 1 ? (uint64_t)desc->strides[desc->rank - 2] : 0;
    int64_t integers[CHECKED];
    const float *floats = (const float *)integers;

    while (count > 0) {
        uint64_t part = columns - first % columns;
        uint64_t position = first / columns * pitch + first % columns;

        part = part < count ? part : count;
        if (session->backend->download(session->stream, desc->buffer,
                                       position * bytes, integers, part * bytes,
                                       0, TANDEM_TIMEOUT_INFINITE) != TANDEM_OK)
            return false;
        for (uint64_t i = 0; i < part; i++)
            *out++ = is_i64 ? (double)integers[i] : (double)floats[i];
        first += part;
        count -= part;
    }
    return true;
}

/* Gives the inputs of an optimizer different values at the checked elements. */
static enum tandem_status seed_step(struct resident_op *work, uint64_t first,
                                    uint64_t count)
{
    struct device_session *session = work->session;
    enum tandem_status status = TANDEM_OK;

    for (uint32_t i = 1; i < work->c.inputs && status == TANDEM_OK; i++) {
        float values[CHECKED];

        for (uint64_t j = 0; j < count; j++)
            values[j] = step_value(first + j, i);
        status = session->backend->upload(session->stream, work->c.in[i].buffer,
                                          first * sizeof *values, values,
                                          count * sizeof *values, 0);
    }
    return status;
}

bool check_resident_op(struct bench *bench, struct resident_op *work)
{
    const struct op_case *c = &work->c;
    uint64_t elements = (uint64_t)desc_elements(&c->out[0]);
    uint64_t count = checked_elements(c), ns;
    enum tandem_status status = TANDEM_OK;

    if (c->info->op_class == TANDEM_CLASS_OPTIMIZER) {
        status = seed_step(work, 0, count);
        if (status == TANDEM_OK)
            status = seed_step(work, elements - count, count);
    }
    if (status == TANDEM_OK)
        status = resident_op_stream(work, 1, &ns);
    if (status == TANDEM_OK)
        return check_outputs(bench, c, output_download, work);
    bench_fail(bench, "%s", work->session->backend->last_error());
    return false;
}
