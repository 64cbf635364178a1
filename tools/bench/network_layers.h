/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends layers to the description of a network, with one launch for each,
 * unless a comment says otherwise.  Each function adds the weights that the
 * layer needs and returns its result.  The weights are random, with a variance
 * that keeps the magnitude of activations.
 */
#ifndef TANDEM_BENCH_NETWORK_LAYERS_H
#define TANDEM_BENCH_NETWORK_LAYERS_H

#include "network.h"

/* An operator that is applied to the result of a product in the same launch. */
struct activation {
    uint32_t op;          /* of class UNARY; 0 means none */
    double parameters[2]; /* its attributes */
};

/* A convolution whose padding keeps the size of an image if the stride is 1.
 * Members that are 0 mean 1. */
struct convolution {
    int64_t outputs; /* channels */
    int64_t window, stride, groups;
    struct activation activation;
    const struct value *residual; /* added before the activation; may be NULL */
};
/* The convolution of an image [n][c][h][w] or of a sequence [n][c][length],
 * with a bias. */
struct value network_conv(struct network *network, struct value x,
                          const struct convolution *convolution);

/* A convolution with this weight, a window of 1 and without a bias. */
struct value network_conv_weight(struct network *network, struct value x,
                                 struct value weight);

/* x w + bias for the rows of a row-major x of rank 2 or 3.  The weight is
 * stored as [inputs][outputs], or with `transposed` as [outputs][inputs]. */
struct linear {
    int64_t outputs;
    struct activation activation;
    bool no_bias, transposed;
    /* The product is added to this value, which it overwrites; may be NULL. */
    const struct value *residual;
};
struct value network_linear(struct network *network, struct value x,
                            const struct linear *linear);

/* A norm of the last axis. */
struct value network_layer_norm(struct network *network, struct value x,
                                double epsilon);

/* Attention of q, k and v, [batch][heads][tokens][width], scaled by width^-1/2.
 * The result has the axes [batch][tokens][heads * width]. */
struct attention {
    struct value q, k, v;
    const struct value
        *mask; /* bool, false for keys to leave out; may be NULL */
    bool causal;
    int64_t past; /* number of keys before that of the first query */
};
struct value network_attention(struct network *network,
                               const struct attention *attention);

struct value network_unary(struct network *network, uint32_t op,
                           struct value x);
/* The result has the shape of the first value, to which the other broadcasts.
 */
struct value network_binary(struct network *network, uint32_t op,
                            struct value a, struct value b);
struct value network_divide(struct network *network, struct value x,
                            double divisor);
/* Returns x != 0 as bool. */
struct value network_to_bool(struct network *network, struct value x);
struct value network_concat(struct network *network, uint32_t axis,
                            uint32_t count, const struct value *parts);
/* Writes the values one after the other along axis 2 of `out`, which is a view
 * of rank 4. */
void network_join(struct network *network, struct value past, struct value new,
                  struct value out);
struct value network_softmax(struct network *network, struct value x,
                             uint32_t axis);
struct value network_max_pool(struct network *network, struct value x,
                              int64_t window, int64_t stride, int64_t padding);
/* Returns the average of each channel of an image, [n][c][1][1]. */
struct value network_average(struct network *network, struct value x);
/* Doubles the sides of an image; each element is repeated. */
struct value network_upsample(struct network *network, struct value x);
/* Returns the rows of a table [length][width] that the indices select. */
struct value network_gather(struct network *network, struct value table,
                            struct value indices);

#endif
