/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The perceptron: owns its tensors.  One thread at a time.
 *
 * The first error is kept in network->status and makes everything after it do
 * nothing, so that a sequence of operators reads as the formulas do.
 */
#include "network.h"

#include <stdlib.h>
#include <string.h>

enum { LAYERS = 3, TENSORS = 96, EPOCH_BATCH = 64 };

static const int64_t units[LAYERS + 1] = {DIGIT_PIXELS, 256, 128,
                                          DIGIT_CLASSES};

/* The parameters of one layer and Adam's state for them: [0] is the weight,
 * inputs x outputs, [1] the bias. */
struct layer {
    struct tandem_tensor *weight_transposed;
    struct tandem_tensor *value[2], *gradient[2], *mean[2], *square[2];
};

/* Values on their way through the layers: [0] the images, [1] and [2] the
 * hidden units, [3] the logits. */
struct pass {
    struct tandem_tensor *value[LAYERS + 1];
};

struct network {
    struct tandem_context *context;
    enum tandem_status status;
    struct random_state random;
    uint32_t train_count, held_count, batch, batches;
    int64_t step, steps; /* taken, and of the whole training */
    struct layer layers[LAYERS];
    struct tandem_tensor *images, *labels; /* all that is trained on */
    struct tandem_tensor *order, **picks;  /* an epoch's indices; a batch's */
    struct pass train, held;
    struct tandem_tensor *transposed[LAYERS]; /* of train.value[i] */
    struct tandem_tensor *delta[LAYERS];      /* of train.value[i + 1] */
    struct tandem_tensor *batch_labels, *loss, *batch_loss, *epoch_loss;
    struct tandem_tensor *recognised;
    int32_t *permutation, *epoch_order, *held_labels;
    int64_t *answers;
    struct tandem_tensor *tensors[TENSORS]; /* all but picks, to destroy */
    uint32_t tensor_count;
};

uint32_t network_batches(uint32_t train_count, uint32_t batch)
{
    uint32_t size = batch < EPOCH_BATCH ? batch : EPOCH_BATCH;

    return train_count < size ? 1 : train_count / size;
}

/* ---- tensors ------------------------------------------------------------- */

static struct tandem_tensor *tensor_keep(struct network *net,
                                         struct tandem_tensor *tensor)
{
    if (net->status == TANDEM_OK)
        net->tensors[net->tensor_count++] = tensor;
    return tensor;
}

/* columns 0: a vector; rows 0 too: a single number. */
static struct tandem_tensor *tensor_new(struct network *net, uint32_t dtype,
                                        int64_t rows, int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    struct tandem_tensor *tensor = NULL;

    if (net->status == TANDEM_OK)
        net->status = tandem_tensor_create(
            net->context, dtype, (rows != 0) + (columns != 0), shape, &tensor);
    return tensor_keep(net, tensor);
}

static struct tandem_tensor *tensor_transpose(struct network *net,
                                              struct tandem_tensor *tensor,
                                              int64_t rows, int64_t columns)
{
    const int64_t shape[2] = {columns, rows};
    const int64_t strides[2] = {1, columns};
    struct tandem_tensor *view = NULL;

    if (net->status == TANDEM_OK)
        net->status = tandem_tensor_view(tensor, 0, 2, shape, strides, &view);
    return tensor_keep(net, view);
}

static void tensor_write(struct network *net, struct tandem_tensor *tensor,
                         const void *memory, size_t bytes)
{
    if (net->status == TANDEM_OK)
        net->status = tandem_tensor_write(tensor, memory, bytes);
}

static void tensor_read(struct network *net, struct tandem_tensor *tensor,
                        void *memory, size_t bytes)
{
    if (net->status == TANDEM_OK)
        net->status =
            tandem_tensor_read(tensor, memory, bytes, TANDEM_TIMEOUT_INFINITE);
}

/* ---- operators ----------------------------------------------------------- */

static void network_run(struct network *net, const struct tandem_op *op,
                        struct tandem_tensor *const *inputs,
                        uint32_t input_count,
                        struct tandem_tensor *const *outputs,
                        uint32_t output_count)
{
    if (net->status == TANDEM_OK)
        net->status = tandem_run(net->context, op, inputs, input_count, outputs,
                                 output_count, NULL);
}

/* y = op(a, b), with at most one attribute of each kind. */
static void binary_run(struct network *net, uint32_t id, const int64_t *ints,
                       const double *floats, struct tandem_tensor *a,
                       struct tandem_tensor *b, struct tandem_tensor *y)
{
    struct tandem_tensor *inputs[2] = {a, b};
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = id,
                                 .int_count = ints != NULL,
                                 .ints = ints,
                                 .float_count = floats != NULL,
                                 .floats = floats};

    network_run(net, &op, inputs, 2, &y, 1);
}

/* Over the first axis. */
static void reduce_run(struct network *net, uint32_t id,
                       struct tandem_tensor *x, struct tandem_tensor *y)
{
    if (net->status == TANDEM_OK)
        net->status = tandem_reduce(net->context, id, 1, x, y);
}

static void matmul_run(struct network *net, struct tandem_tensor *a,
                       struct tandem_tensor *b, struct tandem_tensor *bias,
                       uint32_t activation, struct tandem_tensor *c)
{
    const struct tandem_matmul_options options = {.struct_size =
                                                      sizeof(options),
                                                  .alpha = 1.0,
                                                  .bias = bias,
                                                  .activation = activation,
                                                  .device = TANDEM_ANY_DEVICE};

    if (net->status == TANDEM_OK)
        net->status = tandem_matmul(net->context, &options, a, b, c);
}

/* Falls in a line from its first value to a twentieth of it. */
static double learning_rate(const struct network *net)
{
    double part = (double)net->step / (double)net->steps;

    return 2e-3 * (part < 1.0 ? 1.0 - 0.95 * part : 0.05);
}

/* AdamW: weights decay, biases do not. */
static void adam_run(struct network *net, struct layer *layer, int part)
{
    const int64_t ints[2] = {net->step, 1};
    const double floats[5] = {learning_rate(net), 0.9, 0.999, 1e-8,
                              part == 0 ? 0.1 : 0.0};
    struct tandem_tensor *inputs[4] = {layer->value[part],
                                       layer->gradient[part], layer->mean[part],
                                       layer->square[part]};
    struct tandem_tensor *outputs[3] = {inputs[0], inputs[2], inputs[3]};
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_ADAM,
                                 .int_count = 2,
                                 .ints = ints,
                                 .float_count = 5,
                                 .floats = floats};

    network_run(net, &op, inputs, 4, outputs, 3);
}

/* ---- training ------------------------------------------------------------ */

static void network_forward(struct network *net, struct pass *pass)
{
    for (int i = 0; i < LAYERS; i++) {
        struct layer *layer = &net->layers[i];

        matmul_run(net, pass->value[i], layer->value[0], layer->value[1],
                   i < LAYERS - 1 ? TANDEM_OP_RELU : TANDEM_OP_INVALID,
                   pass->value[i + 1]);
    }
}

static void network_backward(struct network *net)
{
    const double scale = 1.0 / net->batch;

    binary_run(net, TANDEM_OP_CROSS_ENTROPY_GRAD, NULL, &scale,
               net->train.value[LAYERS], net->batch_labels,
               net->delta[LAYERS - 1]);
    for (int i = LAYERS - 1; i >= 0; i--) {
        struct layer *layer = &net->layers[i];

        matmul_run(net, net->transposed[i], net->delta[i], NULL,
                   TANDEM_OP_INVALID, layer->gradient[0]);
        reduce_run(net, TANDEM_OP_SUM, net->delta[i], layer->gradient[1]);
        if (i == 0)
            break;
        matmul_run(net, net->delta[i], layer->weight_transposed, NULL,
                   TANDEM_OP_INVALID, net->delta[i - 1]);
        binary_run(net, TANDEM_OP_RELU_GRAD, NULL, NULL, net->delta[i - 1],
                   net->train.value[i], net->delta[i - 1]);
    }
}

static void batch_train(struct network *net, struct tandem_tensor *pick)
{
    const int64_t axis = 0;

    binary_run(net, TANDEM_OP_GATHER, &axis, NULL, net->images, pick,
               net->train.value[0]);
    binary_run(net, TANDEM_OP_GATHER, &axis, NULL, net->labels, pick,
               net->batch_labels);
    network_forward(net, &net->train);
    binary_run(net, TANDEM_OP_CROSS_ENTROPY, NULL, NULL,
               net->train.value[LAYERS], net->batch_labels, net->loss);
    reduce_run(net, TANDEM_OP_MEAN, net->loss, net->batch_loss);
    binary_run(net, TANDEM_OP_ADD, NULL, NULL, net->epoch_loss, net->batch_loss,
               net->epoch_loss);
    network_backward(net);
    net->step++;
    for (int i = 0; i < LAYERS; i++)
        for (int part = 0; part < 2; part++)
            adam_run(net, &net->layers[i], part);
}

static void order_shuffle(struct network *net)
{
    const uint32_t count = net->batches * net->batch;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i % net->train_count;

        if (at == 0)
            random_shuffle(&net->random, net->permutation, net->train_count);
        net->epoch_order[i] = net->permutation[at];
    }
    tensor_write(net, net->order, net->epoch_order, count * sizeof(int32_t));
}

enum tandem_status network_train(struct network *net, float *out_loss)
{
    float loss = 0.0f;

    order_shuffle(net);
    tensor_write(net, net->epoch_loss, &loss, sizeof(loss));
    for (uint32_t i = 0; i < net->batches; i++)
        batch_train(net, net->picks[i]);
    tensor_read(net, net->epoch_loss, &loss, sizeof(loss));
    *out_loss = loss / (float)net->batches;
    return net->status;
}

enum tandem_status network_accuracy(struct network *net, double *out_accuracy)
{
    const int64_t ints[2] = {1 << 1, 0};
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_ARGMAX,
                                 .int_count = 2,
                                 .ints = ints};
    uint32_t right = 0;

    network_forward(net, &net->held);
    network_run(net, &op, &net->held.value[LAYERS], 1, &net->recognised, 1);
    tensor_read(net, net->recognised, net->answers,
                net->held_count * sizeof(int64_t));
    for (uint32_t i = 0; net->status == TANDEM_OK && i < net->held_count; i++)
        right += net->answers[i] == net->held_labels[i];
    *out_accuracy = (double)right / net->held_count;
    return net->status;
}

/* ---- making -------------------------------------------------------------- */

/* He, Zhang, Ren and Sun, "Delving deep into rectifiers", 2015: a variance of
 * 2 / inputs keeps that of the values from layer to layer. */
static void layer_initialise(struct network *net, struct layer *layer,
                             int64_t inputs, int64_t outputs)
{
    const int64_t counts[2] = {inputs * outputs, outputs};
    float *values = calloc((size_t)counts[0], sizeof(*values));

    if (values == NULL) {
        net->status = TANDEM_OUT_OF_MEMORY;
        return;
    }
    for (int part = 0; part < 2; part++) {
        size_t bytes = (size_t)counts[part] * sizeof(*values);

        tensor_write(net, layer->mean[part], values, bytes);
        tensor_write(net, layer->square[part], values, bytes);
    }
    tensor_write(net, layer->value[1], values,
                 (size_t)outputs * sizeof(*values));
    for (int64_t i = 0; i < counts[0]; i++)
        values[i] =
            (float)(sqrt(2.0 / (double)inputs) * random_normal(&net->random));
    tensor_write(net, layer->value[0], values,
                 (size_t)counts[0] * sizeof(*values));
    free(values);
}

static void layer_make(struct network *net, struct layer *layer, int64_t inputs,
                       int64_t outputs)
{
    for (int part = 0; part < 2; part++) {
        int64_t rows = part == 0 ? inputs : outputs;
        int64_t columns = part == 0 ? outputs : 0;

        layer->value[part] = tensor_new(net, TANDEM_F32, rows, columns);
        layer->gradient[part] = tensor_new(net, TANDEM_F32, rows, columns);
        layer->mean[part] = tensor_new(net, TANDEM_F32, rows, columns);
        layer->square[part] = tensor_new(net, TANDEM_F32, rows, columns);
    }
    layer->weight_transposed =
        tensor_transpose(net, layer->value[0], inputs, outputs);
    layer_initialise(net, layer, inputs, outputs);
}

static void pass_make(struct network *net, struct pass *pass, uint32_t rows)
{
    for (int i = 0; i <= LAYERS; i++)
        pass->value[i] = tensor_new(net, TANDEM_F32, rows, units[i]);
}

static void data_make(struct network *net, const struct table *train,
                      const struct table *held)
{
    const int64_t batch = net->batch, stride = 1;

    net->images = tensor_new(net, TANDEM_F32, train->count, DIGIT_PIXELS);
    net->labels = tensor_new(net, TANDEM_I32, train->count, 0);
    net->order = tensor_new(net, TANDEM_I32, net->batches * batch, 0);
    for (uint32_t i = 0; net->status == TANDEM_OK && i < net->batches; i++)
        net->status = tandem_tensor_view(net->order, i * batch, 1, &batch,
                                         &stride, &net->picks[i]);
    tensor_write(net, net->images, train->images,
                 train->count * sizeof(float) * DIGIT_PIXELS);
    tensor_write(net, net->labels, train->labels,
                 train->count * sizeof(int32_t));
    pass_make(net, &net->held, held->count);
    tensor_write(net, net->held.value[0], held->images,
                 held->count * sizeof(float) * DIGIT_PIXELS);
    net->recognised = tensor_new(net, TANDEM_I64, held->count, 0);
    memcpy(net->held_labels, held->labels, held->count * sizeof(int32_t));
    for (uint32_t i = 0; i < train->count; i++)
        net->permutation[i] = (int32_t)i;
}

static void batch_make(struct network *net)
{
    pass_make(net, &net->train, net->batch);
    net->batch_labels = tensor_new(net, TANDEM_I32, net->batch, 0);
    net->loss = tensor_new(net, TANDEM_F32, net->batch, 0);
    net->batch_loss = tensor_new(net, TANDEM_F32, 0, 0);
    net->epoch_loss = tensor_new(net, TANDEM_F32, 0, 0);
    for (int i = 0; i < LAYERS; i++) {
        net->transposed[i] =
            tensor_transpose(net, net->train.value[i], net->batch, units[i]);
        net->delta[i] = tensor_new(net, TANDEM_F32, net->batch, units[i + 1]);
    }
}

static bool memory_make(struct network *net)
{
    size_t order = (size_t)net->batches * net->batch;

    net->picks = calloc(net->batches, sizeof(struct tandem_tensor *));
    net->permutation = calloc(net->train_count, sizeof(int32_t));
    net->epoch_order = calloc(order, sizeof(int32_t));
    net->held_labels = calloc(net->held_count, sizeof(int32_t));
    net->answers = calloc(net->held_count, sizeof(int64_t));
    return net->picks != NULL && net->permutation != NULL &&
           net->epoch_order != NULL && net->held_labels != NULL &&
           net->answers != NULL;
}

enum tandem_status network_create(struct tandem_context *context,
                                  const struct table *train,
                                  const struct table *held, uint32_t batch,
                                  uint32_t epochs, uint64_t seed,
                                  struct network **out_network)
{
    struct network *net = calloc(1, sizeof(*net));
    enum tandem_status status = TANDEM_OUT_OF_MEMORY;

    *out_network = NULL;
    if (net == NULL)
        return status;
    net->context = context;
    net->random.state = seed;
    net->train_count = train->count;
    net->held_count = held->count;
    net->batch = batch;
    net->batches = network_batches(train->count, batch);
    net->steps = (int64_t)net->batches * epochs;
    if (!memory_make(net))
        goto fail;
    data_make(net, train, held);
    batch_make(net);
    for (int i = 0; i < LAYERS; i++)
        layer_make(net, &net->layers[i], units[i], units[i + 1]);
    status = net->status;
    if (status != TANDEM_OK)
        goto fail;
    *out_network = net;
    return TANDEM_OK;
fail:
    network_destroy(net);
    return status;
}

void network_destroy(struct network *net)
{
    if (net == NULL)
        return;
    for (uint32_t i = 0; net->picks != NULL && i < net->batches; i++)
        tandem_tensor_destroy(net->picks[i]);
    while (net->tensor_count > 0)
        tandem_tensor_destroy(net->tensors[--net->tensor_count]);
    free(net->picks);
    free(net->permutation);
    free(net->epoch_order);
    free(net->held_labels);
    free(net->answers);
    free(net);
}
