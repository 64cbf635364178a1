/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BERT-base and GPT-2, as in tests/onnxruntime/exported_models.py, and Whisper
 * tiny.  One product computes queries, keys and values.
 */
#include <config.h>

#include "network_layers.h"
#include "network_models.h"

#define GELU_TANH 1.0 /* the attribute `approximate` of gelu */

/* The sizes of a transformer. */
struct sizes {
    int layers, heads;
    int64_t width, vocabulary;
    double epsilon;
    bool gelu_is_tanh;
};

static struct sizes model_sizes(bool tiny, struct sizes sizes)
{
    if (tiny) {
        sizes.layers = 2;
        sizes.width = 16 * sizes.heads;
        sizes.vocabulary = 500;
    }
    return sizes;
}

static struct value token_embeddings(struct network *n, const int64_t *shape,
                                     const struct sizes *sizes)
{
    struct value table =
        network_random(n, 0, 1, AXES(sizes->vocabulary, sizes->width));

    return network_gather(n, table,
                          network_indices(n, sizes->vocabulary, 2, shape));
}

/* Columns of a product that belong to queries, keys or values. */
static struct value head_columns(struct value product, int index,
                                 const struct sizes *sizes)
{
    return value_heads(
        value_slice(product, 2, index * sizes->width, sizes->width),
        sizes->heads);
}

/* Adds a linear layer of `source` to x, which it overwrites. */
static struct value add_linear(struct network *n, struct value source,
                               struct value x)
{
    return network_linear(
        n, source,
        &(struct linear){.outputs = x.shape[x.rank - 1], .residual = &x});
}

/* Adds the two linear layers of `source` to x, which they overwrite. */
static struct value add_feed_forward(struct network *n, struct value source,
                                     struct value x, const struct sizes *sizes)
{
    const struct activation gelu = {
        .op = TANDEM_OP_GELU,
        .parameters = {sizes->gelu_is_tanh ? GELU_TANH : 0}};

    return add_linear(
        n,
        network_linear(
            n, source,
            &(struct linear){.outputs = 4 * sizes->width, .activation = gelu}),
        x);
}

/* Returns the attention of `source` to itself. */
static struct value self_attention(struct network *n, struct value source,
                                   const struct value *mask,
                                   const struct sizes *sizes)
{
    struct value product = network_linear(
        n, source, &(struct linear){.outputs = 3 * sizes->width});

    return network_attention(
        n, &(struct attention){.q = head_columns(product, 0, sizes),
                               .k = head_columns(product, 1, sizes),
                               .v = head_columns(product, 2, sizes),
                               .mask = mask});
}

/* Returns the causal attention of `source` to `past` earlier tokens and to
 * itself.  The keys and values of all tokens are outputs of the network. */
static struct value cached_attention(struct network *n, struct value source,
                                     int64_t past, const struct sizes *sizes)
{
    const int64_t batch = source.shape[0], tokens = source.shape[1];
    const int64_t head = sizes->width / sizes->heads;
    struct value product = network_linear(
        n, source, &(struct linear){.outputs = 3 * sizes->width});
    struct attention attention = {.q = head_columns(product, 0, sizes),
                                  .k = head_columns(product, 1, sizes),
                                  .v = head_columns(product, 2, sizes),
                                  .causal = true,
                                  .past = past};
    struct value *const parts[] = {&attention.k, &attention.v};

    for (int i = 0; past > 0 && i < 2; i++) {
        struct value earlier =
            network_random(n, 0, 1, AXES(batch, sizes->heads, past, head));
        struct value every = network_result(
            n, TANDEM_F32, AXES(batch, sizes->heads, past + tokens, head));

        network_join(n, earlier, *parts[i], every);
        network_keep(n, &every);
        *parts[i] = every;
    }
    return network_attention(n, &attention);
}

/* ---- BERT ---- */

void bert_build(struct network *n, const int64_t *shape, bool tiny)
{
    const struct sizes sizes =
        model_sizes(tiny, (struct sizes){.layers = 12,
                                         .heads = 12,
                                         .width = 768,
                                         .vocabulary = 30522,
                                         .epsilon = 1e-12});
    const int64_t tokens = shape[1];
    struct value mask = network_to_bool(n, network_indices(n, 2, 2, shape));
    struct value types = network_random(n, 0, 1, AXES(2, sizes.width));
    struct value x = token_embeddings(n, shape, &sizes);

    mask = value_reshape(mask, AXES(shape[0], 1, 1, tokens));
    types = network_gather(n, types, network_indices(n, 2, 2, shape));
    x = network_binary(n, TANDEM_OP_ADD, x, types);
    x = network_binary(n, TANDEM_OP_ADD, x,
                       network_random(n, 0, 1, AXES(tokens, sizes.width)));
    x = network_layer_norm(n, x, sizes.epsilon);
    for (int i = 0; i < sizes.layers; i++) {
        x = add_linear(n, self_attention(n, x, &mask, &sizes), x);
        x = network_layer_norm(n, x, sizes.epsilon);
        x = add_feed_forward(n, x, x, &sizes);
        x = network_layer_norm(n, x, sizes.epsilon);
    }
}

/* ---- GPT-2 ---- */

void gpt2_build(struct network *n, const int64_t *shape, int64_t past,
                bool tiny)
{
    const struct sizes sizes =
        model_sizes(tiny, (struct sizes){.layers = 12,
                                         .heads = 12,
                                         .width = 768,
                                         .vocabulary = 50257,
                                         .epsilon = 1e-5,
                                         .gelu_is_tanh = true});
    struct value x = token_embeddings(n, shape, &sizes);

    x = network_binary(n, TANDEM_OP_ADD, x,
                       network_random(n, 0, 1, AXES(shape[1], sizes.width)));
    for (int i = 0; i < sizes.layers; i++) {
        struct value normal = network_layer_norm(n, x, sizes.epsilon);

        x = add_linear(n, cached_attention(n, normal, past, &sizes), x);
        normal = network_layer_norm(n, x, sizes.epsilon);
        x = add_feed_forward(n, normal, x, &sizes);
    }
    x = network_layer_norm(n, x, sizes.epsilon);
    network_linear(
        n, x, &(struct linear){.outputs = sizes.vocabulary, .no_bias = true});
}

/* ---- Whisper ---- */

static struct sizes whisper_sizes(bool tiny)
{
    return model_sizes(tiny, (struct sizes){.layers = 4,
                                            .heads = 6,
                                            .width = 384,
                                            .vocabulary = 51865,
                                            .epsilon = 1e-5});
}

void whisper_encoder_build(struct network *n, const int64_t *shape, bool tiny)
{
    const struct sizes sizes = whisper_sizes(tiny);
    const struct convolution first = {
        .outputs = sizes.width, .window = 3, .activation.op = TANDEM_OP_GELU};
    const struct convolution second = {.outputs = sizes.width,
                                       .window = 3,
                                       .stride = 2,
                                       .activation.op = TANDEM_OP_GELU};
    struct value x = network_random(n, 0, 1, 3, shape);

    x = network_conv(n, network_conv(n, x, &first), &second);
    x = value_transpose(x, 1, 2);
    x = network_binary(n, TANDEM_OP_ADD, x,
                       network_random(n, 0, 1, AXES(x.shape[1], sizes.width)));
    for (int i = 0; i < sizes.layers; i++) {
        struct value normal = network_layer_norm(n, x, sizes.epsilon);

        x = add_linear(n, self_attention(n, normal, NULL, &sizes), x);
        normal = network_layer_norm(n, x, sizes.epsilon);
        x = add_feed_forward(n, normal, x, &sizes);
    }
    network_layer_norm(n, x, sizes.epsilon);
}

/* Returns the attention of `source` to the states of the encoder. */
static struct value cross_attention(struct network *n, struct value source,
                                    struct value states,
                                    const struct sizes *sizes)
{
    struct value q =
        network_linear(n, source, &(struct linear){.outputs = sizes->width});
    struct value product = network_linear(
        n, states, &(struct linear){.outputs = 2 * sizes->width});

    return network_attention(
        n, &(struct attention){.q = value_heads(q, sizes->heads),
                               .k = head_columns(product, 0, sizes),
                               .v = head_columns(product, 1, sizes)});
}

void whisper_decoder_build(struct network *n, const int64_t *shape,
                           int64_t past, bool tiny)
{
    const struct sizes sizes = whisper_sizes(tiny);
    struct value states =
        network_random(n, 0, 1, AXES(shape[0], tiny ? 12 : 1500, sizes.width));
    struct value x = token_embeddings(n, shape, &sizes);

    x = network_binary(n, TANDEM_OP_ADD, x,
                       network_random(n, 0, 1, AXES(shape[1], sizes.width)));
    for (int i = 0; i < sizes.layers; i++) {
        struct value normal = network_layer_norm(n, x, sizes.epsilon);

        x = add_linear(n, cached_attention(n, normal, past, &sizes), x);
        normal = network_layer_norm(n, x, sizes.epsilon);
        x = add_linear(n, cross_attention(n, normal, states, &sizes), x);
        normal = network_layer_norm(n, x, sizes.epsilon);
        x = add_feed_forward(n, normal, x, &sizes);
    }
    x = network_layer_norm(n, x, sizes.epsilon);
    network_linear(
        n, x, &(struct linear){.outputs = sizes.vocabulary, .no_bias = true});
}
