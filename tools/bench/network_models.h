/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The networks of the suite "networks", most with the layers of the models that
 * tests/onnxruntime builds.  Their weights are random.  network_layers.h names
 * the operators that run in one launch.
 *
 * The functions append a network to an empty description.  If `tiny` is true,
 * the network has few or narrow layers.
 */
#ifndef TANDEM_BENCH_NETWORK_MODELS_H
#define TANDEM_BENCH_NETWORK_MODELS_H

#include "network.h"

/* Image classifiers with 1000 classes.  The shape is that of the images,
 * [n][3][h][w]. */
void resnet50_build(struct network *network, const int64_t *shape, bool tiny);
void mobilenet_v2_build(struct network *network, const int64_t *shape,
                        bool tiny);
void mobilenet_v3_build(struct network *network, const int64_t *shape,
                        bool tiny);
/* The object detector, for one square image. */
void yolov8n_build(struct network *network, const int64_t *shape, bool tiny);

/* The encoder, with a mask of the keys.  The shape is [batch][tokens]. */
void bert_build(struct network *network, const int64_t *shape, bool tiny);
/* The logits of tokens that follow `past` tokens, whose keys and values are
 * given. */
void gpt2_build(struct network *network, const int64_t *shape, int64_t past,
                bool tiny);
/* Whisper tiny: the encoder, for features [n][80][frames], and the decoder,
 * which computes the keys and values of the encoder's 1500 states in each step,
 * as the exported model does. */
void whisper_encoder_build(struct network *network, const int64_t *shape,
                           bool tiny);
void whisper_decoder_build(struct network *network, const int64_t *shape,
                           int64_t past, bool tiny);

#endif
