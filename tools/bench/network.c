/* SPDX-License-Identifier: Apache-2.0 */
/* Records the operators and arrays of a network; see network.h. */
#include <config.h>

#include "network.h"

#include <math.h>
#include <stdlib.h>

const struct value absent_value = {.array = NO_ARRAY};

struct network *network_create(void)
{
    return calloc(1, sizeof(struct network));
}

void network_destroy(struct network *network)
{
    if (network == NULL)
        return;
    for (uint32_t i = 0; i < network->array_count; i++)
        free(network->arrays[i].numbers);
    free(network);
}

/* ---- arrays ---- */

static void set_shape(struct value *x, uint32_t rank, const int64_t *shape)
{
    int64_t stride = 1;

    x->rank = rank;
    for (uint32_t axis = rank; axis-- > 0;) {
        x->shape[axis] = shape[axis];
        x->strides[axis] = stride;
        stride *= shape[axis];
    }
}

int64_t value_elements(const struct value *x)
{
    int64_t elements = 1;

    for (uint32_t axis = 0; axis < x->rank; axis++)
        elements *= x->shape[axis];
    return elements;
}

/* Adds an array and returns a view of all its elements.  If there is no room,
 * returns a view of array 0, so that the caller can go on. */
static struct value add_array(struct network *network,
                              struct network_array array, uint32_t rank,
                              const int64_t *shape)
{
    struct value x = {.dtype = array.dtype};

    set_shape(&x, rank, shape);
    array.elements = value_elements(&x);
    if (network->array_count == MAX_NETWORK_ARRAYS) {
        network->failed = true;
        free(array.numbers);
        return x;
    }
    x.array = network->array_count++;
    network->arrays[x.array] = array;
    return x;
}

struct value network_random(struct network *network, double mean,
                            double deviation, uint32_t rank,
                            const int64_t *shape)
{
    const struct network_array array = {.content = CONTENT_RANDOM,
                                        .dtype = TANDEM_F32,
                                        .mean = mean,
                                        .deviation = deviation};

    return add_array(network, array, rank, shape);
}

struct value network_indices(struct network *network, int64_t limit,
                             uint32_t rank, const int64_t *shape)
{
    const struct network_array array = {
        .content = CONTENT_INDICES, .dtype = TANDEM_I64, .limit = limit};

    return add_array(network, array, rank, shape);
}

struct value network_numbers(struct network *network, float *numbers,
                             uint32_t rank, const int64_t *shape)
{
    const struct network_array array = {
        .content = CONTENT_NUMBERS, .dtype = TANDEM_F32, .numbers = numbers};

    if (numbers == NULL)
        network->failed = true;
    return add_array(network, array, rank, shape);
}

struct value network_result(struct network *network, uint32_t dtype,
                            uint32_t rank, const int64_t *shape)
{
    const struct network_array array = {.content = CONTENT_RESULT,
                                        .dtype = dtype};

    return add_array(network, array, rank, shape);
}

void network_keep(struct network *network, const struct value *x)
{
    network->arrays[x->array].kept = true;
}

/* ---- views ---- */

struct value value_reshape(struct value x, uint32_t rank, const int64_t *shape)
{
    set_shape(&x, rank, shape);
    return x;
}

struct value value_slice(struct value x, uint32_t axis, int64_t first,
                         int64_t count)
{
    x.first_element += first * x.strides[axis];
    x.shape[axis] = count;
    return x;
}

struct value value_transpose(struct value x, uint32_t axis, uint32_t other)
{
    const int64_t shape = x.shape[axis], stride = x.strides[axis];

    x.shape[axis] = x.shape[other];
    x.strides[axis] = x.strides[other];
    x.shape[other] = shape;
    x.strides[other] = stride;
    return x;
}

struct value value_heads(struct value x, int64_t heads)
{
    const int64_t tokens = x.shape[1], stride = x.strides[1];

    x.rank = 4;
    x.shape[3] = x.shape[2] / heads;
    x.strides[3] = 1;
    x.shape[1] = heads;
    x.strides[1] = x.shape[3];
    x.shape[2] = tokens;
    x.strides[2] = stride;
    return x;
}

/* ---- calls ---- */

void network_append(struct network *network, const struct network_call *call,
                    uint32_t products)
{
    struct network_array *output = &network->arrays[call->output.array];
    uint32_t before = output->products;

    if (network->call_count == MAX_NETWORK_CALLS || network->failed) {
        network->failed = true;
        return;
    }
    for (uint32_t i = 0; i < call->input_count; i++) {
        struct network_array *input;

        if (call->inputs[i].array == NO_ARRAY)
            continue;
        input = &network->arrays[call->inputs[i].array];
        input->last_call = network->call_count;
        if (input->products > before)
            before = input->products;
    }
    output->last_call = network->call_count;
    output->products = before + products;
    network->calls[network->call_count++] = *call;
    network->output = call->output;
}

void network_count_product(struct network *network, int64_t elements,
                           int64_t terms)
{
    network->operations += 2.0 * (double)elements * (double)terms;
    if (terms > network->max_terms)
        network->max_terms = terms;
}

double network_error_bound(const struct network *network)
{
    const uint32_t products = network->arrays[network->output.array].products;

    return 0x1p-24 * sqrt((double)network->max_terms / 6) *
           sqrt(2.0 * (double)products);
}
