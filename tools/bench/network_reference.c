/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a network in plain C; see network_reference.h.  A function below returns
 * the element of a call's output at position p.
 */
#include <config.h>

#include "network_reference.h"
#include "network_run.h"

#include <math.h>
#include <stdlib.h>

struct reference {
    const struct network *network;
    double *arrays[MAX_NETWORK_ARRAYS];
};

/* Returns the address of the element whose last axes have this position. Axes
 * of length 1 are repeated. */
static double *element(const struct reference *r, const struct value *x,
                       const int64_t *p, uint32_t rank)
{
    int64_t index = x->first_element;

    for (uint32_t axis = 0; axis < x->rank; axis++)
        if (x->shape[axis] > 1)
            index += x->strides[axis] * p[rank - x->rank + axis];
    return &r->arrays[x->array][index];
}

#define READ(r, x, ...)                                                        \
    (*element(r, x, (const int64_t[]){__VA_ARGS__},                            \
              COUNT(((const int64_t[]){__VA_ARGS__}))))

/* Returns the result of an operator of class UNARY. */
static double activate(uint32_t op, const double *parameters, double x)
{
    switch (op) {
    case TANDEM_OP_RELU:
        return fmax(x, 0);
    case TANDEM_OP_CLIP:
        return fmin(fmax(x, parameters[0]), parameters[1]);
    case TANDEM_OP_SIGMOID:
        return 1 / (1 + exp(-x));
    case TANDEM_OP_SWISH:
        return x / (1 + exp(-x));
    case TANDEM_OP_HARDSWISH:
        return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case TANDEM_OP_HARDSIGMOID:
        return fmin(fmax(parameters[0] * x + parameters[1], 0), 1);
    case TANDEM_OP_GELU:
        if (parameters[0] != 0)
            return x / 2 *
                   (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
        return x / 2 * (1 + erf(x / sqrt(2)));
    default:
        return x;
    }
}

/* ---- products ---- */

static double conv_element(const struct reference *r,
                           const struct network_call *call, const int64_t *p)
{
    const struct value *x = &call->inputs[0], *weight = &call->inputs[1];
    const uint32_t spatial = x->rank - 2;
    const int64_t *strides = &call->ints[3];
    const int64_t *begins = &call->ints[3 + 2 * spatial];
    const int64_t channels = weight->shape[1];
    const int64_t group = p[1] / (call->output.shape[1] / call->ints[0]);
    int64_t kernel = 1;
    double sum = 0;

    for (uint32_t axis = 2; axis < x->rank; axis++)
        kernel *= weight->shape[axis];
    for (int64_t k = 0; k < kernel; k++) {
        int64_t from[] = {p[0], 0, 0, 0}, at[] = {p[1], 0, 0, 0}, rest = k;
        bool is_inside = true;

        for (uint32_t i = spatial; i-- > 0;) {
            at[2 + i] = rest % weight->shape[2 + i];
            rest /= weight->shape[2 + i];
            from[2 + i] = p[2 + i] * strides[i] - begins[i] + at[2 + i];
            is_inside &= from[2 + i] >= 0 && from[2 + i] < x->shape[2 + i];
        }
        for (int64_t c = 0; c < channels && is_inside; c++) {
            from[1] = group * channels + c;
            at[1] = c;
            sum += *element(r, x, from, x->rank) *
                   *element(r, weight, at, x->rank);
        }
    }
    for (uint32_t i = 2; i < call->input_count; i++)
        sum += call->inputs[i].rank == 1
                   ? READ(r, &call->inputs[i], p[1])
                   : *element(r, &call->inputs[i], p, x->rank);
    return activate((uint32_t)call->ints[1], call->floats, sum);
}

static double gemm_element(const struct reference *r,
                           const struct network_call *call, const int64_t *p)
{
    const struct value *a = &call->inputs[0], *b = &call->inputs[1];
    double sum = 0;

    for (int64_t k = 0; k < a->shape[1]; k++)
        sum += READ(r, a, p[0], k) * READ(r, b, k, p[1]);
    if (call->inputs[2].array != NO_ARRAY)
        sum += READ(r, &call->inputs[2], p[1]);
    if (call->accumulates)
        sum += READ(r, &call->output, p[0], p[1]);
    return activate((uint32_t)call->ints[0], call->floats, sum);
}

static double attention_element(const struct reference *r,
                                const struct network_call *call,
                                const int64_t *p)
{
    const struct value *q = &call->inputs[0], *k = &call->inputs[1];
    double sum = 0, total = 0;

    /* The scores are small enough for exp. */
    for (int64_t key = 0; key < k->shape[2]; key++) {
        double score = 0;

        if ((call->ints[0] != 0 && key > p[2] + call->ints[1]) ||
            (call->input_count > 3 &&
             READ(r, &call->inputs[3], p[0], p[1], p[2], key) == 0))
            continue;
        for (int64_t i = 0; i < q->shape[3]; i++)
            score += READ(r, q, p[0], p[1], p[2], i) *
                     READ(r, k, p[0], p[1], key, i);
        score = exp(call->floats[0] * score);
        total += score;
        sum += score * READ(r, &call->inputs[2], p[0], p[1], key, p[3]);
    }
    return total > 0 ? sum / total : 0;
}

/* ---- other operators ---- */

static double norm_element(const struct reference *r,
                           const struct network_call *call, const int64_t *p)
{
    const struct value *x = &call->inputs[0];
    const uint32_t last = x->rank - 1;
    const double width = (double)x->shape[last];
    double mean = 0, variance = 0;
    int64_t at[MAX_NETWORK_AXES];

    for (uint32_t axis = 0; axis < last; axis++)
        at[axis] = p[axis];
    for (at[last] = 0; at[last] < x->shape[last]; at[last]++)
        mean += *element(r, x, at, x->rank) / width;
    for (at[last] = 0; at[last] < x->shape[last]; at[last]++)
        variance += pow(*element(r, x, at, x->rank) - mean, 2) / width;
    return READ(r, &call->inputs[1], p[last]) *
               (*element(r, x, p, x->rank) - mean) /
               sqrt(variance + call->floats[0]) +
           READ(r, &call->inputs[2], p[last]);
}

static double average_element(const struct reference *r,
                              const struct network_call *call, const int64_t *p)
{
    const struct value *x = &call->inputs[0];
    double sum = 0;

    for (int64_t i = 0; i < x->shape[2]; i++)
        for (int64_t j = 0; j < x->shape[3]; j++)
            sum += READ(r, x, p[0], p[1], i, j);
    return sum / (double)(x->shape[2] * x->shape[3]);
}

static double pool_element(const struct reference *r,
                           const struct network_call *call, const int64_t *p)
{
    const struct value *x = &call->inputs[0];
    const int64_t window = call->ints[1], stride = call->ints[3];
    const int64_t top = p[2] * stride - call->ints[7];
    const int64_t left = p[3] * stride - call->ints[7];
    double largest = -INFINITY;

    for (int64_t i = top; i < top + window; i++)
        for (int64_t j = left; j < left + window; j++)
            if (i >= 0 && i < x->shape[2] && j >= 0 && j < x->shape[3])
                largest = fmax(largest, READ(r, x, p[0], p[1], i, j));
    return largest;
}

/* The softmax of axis 1. */
static double softmax_element(const struct reference *r,
                              const struct network_call *call, const int64_t *p)
{
    const struct value *x = &call->inputs[0];
    double total = 0;

    for (int64_t i = 0; i < x->shape[1]; i++)
        total +=
            exp(READ(r, x, p[0], i, p[2], p[3]) - *element(r, x, p, x->rank));
    return 1 / total;
}

static double concat_element(const struct reference *r,
                             const struct network_call *call, const int64_t *p)
{
    const uint32_t axis = (uint32_t)call->ints[0];
    const struct value *part = call->inputs;
    int64_t at[] = {p[0], p[1], p[2], p[3]};

    for (; at[axis] >= part->shape[axis]; part++)
        at[axis] -= part->shape[axis];
    return *element(r, part, at, call->output.rank);
}

static double resize_element(const struct reference *r,
                             const struct network_call *call, const int64_t *p)
{
    return READ(r, &call->inputs[0], p[0], p[1], p[2] / 2, p[3] / 2);
}

static double gather_element(const struct reference *r,
                             const struct network_call *call, const int64_t *p)
{
    const int64_t row = (int64_t)READ(r, &call->inputs[1], p[0], p[1]);

    return READ(r, &call->inputs[0], row, p[2]);
}

static double elementwise_element(const struct reference *r,
                                  const struct network_call *call,
                                  const int64_t *p)
{
    const uint32_t rank = call->output.rank;
    const double a = *element(r, &call->inputs[0], p, rank);
    double b = call->floats[0];

    if (call->input_count > 1 && call->inputs[1].array != NO_ARRAY)
        b = *element(r, &call->inputs[1], p, rank);
    switch (call->op) {
    case TANDEM_OP_ADD:
        return a + b;
    case TANDEM_OP_SUB:
        return a - b;
    case TANDEM_OP_MUL:
        return a * b;
    case TANDEM_OP_DIV:
        return a / b;
    case TANDEM_OP_CAST: /* to bool */
        return a != 0;
    default:
        return activate(call->op, call->floats, a);
    }
}

/* ---- running ---- */

typedef double (*element_fn)(const struct reference *r,
                             const struct network_call *call, const int64_t *p);

static element_fn element_function(const struct network_call *call)
{
    switch (tandem_op_by_id(call->op)->op_class) {
    case TANDEM_CLASS_CONV:
        return conv_element;
    case TANDEM_CLASS_GEMM:
        return gemm_element;
    case TANDEM_CLASS_ATTENTION:
        return attention_element;
    case TANDEM_CLASS_NORM:
        return norm_element;
    case TANDEM_CLASS_REDUCE:
        return average_element;
    case TANDEM_CLASS_POOL:
        return pool_element;
    case TANDEM_CLASS_SOFTMAX:
        return softmax_element;
    case TANDEM_CLASS_CONCAT:
        return concat_element;
    case TANDEM_CLASS_RESIZE:
        return resize_element;
    case TANDEM_CLASS_GATHER:
        return gather_element;
    case TANDEM_CLASS_UNARY:
    case TANDEM_CLASS_BINARY:
    case TANDEM_CLASS_CAST:
        return elementwise_element;
    default:
        return NULL;
    }
}

/* Moves to the next position in row-major order. */
static void position_advance(const struct value *x, int64_t *p)
{
    for (uint32_t axis = x->rank; axis-- > 0;) {
        if (++p[axis] < x->shape[axis])
            return;
        p[axis] = 0;
    }
}

static bool call_run(const struct reference *r, const struct network_call *call)
{
    const element_fn function = element_function(call);
    const struct value *out = &call->output;
    const int64_t elements = value_elements(out);
    int64_t p[MAX_NETWORK_AXES] = {0};

    if (function == NULL)
        return false;
    for (int64_t i = 0; i < elements; i++) {
        *element(r, out, p, out->rank) = function(r, call, p);
        position_advance(out, p);
    }
    return true;
}

/* Allocates an array and sets its content. */
static bool array_create(struct reference *r, uint32_t index)
{
    const struct network_array *array = &r->network->arrays[index];
    const size_t elements = (size_t)array->elements;
    void *content;

    r->arrays[index] = calloc(elements + 1, sizeof *r->arrays[index]);
    if (r->arrays[index] == NULL || array->content == CONTENT_RESULT)
        return r->arrays[index] != NULL;
    content = malloc(elements * TANDEM_DTYPE_BYTES(array->dtype) + 1);
    if (content == NULL)
        return false;
    network_content_write(r->network, index, content);
    for (size_t i = 0; i < elements; i++)
        r->arrays[index][i] = array->dtype == TANDEM_I64
                                  ? (double)((int64_t *)content)[i]
                                  : (double)((float *)content)[i];
    free(content);
    return true;
}

bool network_reference(const struct network *network, double *out)
{
    struct reference r = {.network = network};
    const struct value *output = &network->output;
    const int64_t elements = value_elements(output);
    int64_t p[MAX_NETWORK_AXES] = {0};
    bool ok = true;

    for (uint32_t i = 0; i < network->array_count && ok; i++)
        ok = array_create(&r, i);
    for (uint32_t i = 0; i < network->call_count && ok; i++)
        ok = call_run(&r, &network->calls[i]);
    for (int64_t i = 0; i < elements && ok; i++) {
        out[i] = *element(&r, output, p, output->rank);
        position_advance(output, p);
    }
    for (uint32_t i = 0; i < network->array_count; i++)
        free(r.arrays[i]);
    return ok;
}
