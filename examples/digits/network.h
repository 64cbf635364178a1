/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perceptron of 64, 256, 128 and 10 units, trained with AdamW on the
 * cross-entropy of its softmax.  Every number it computes is a tensor of
 * libtandem, every step an operator that the library places.  One thread at a
 * time.  Functions that return a status leave tandem_last_error.
 */
#ifndef DIGITS_NETWORK_H
#define DIGITS_NETWORK_H

#include "random.h"
#include "table.h"

#include <tandem/host.h>

struct network;

/* Batches of an epoch: those of 64 images that the data hold, or more where
 * batch is smaller.  A batch larger than the data repeats them. */
uint32_t network_batches(uint32_t train_count, uint32_t batch);

/* Weights by He's rule and the order of the images follow from seed alone; the
 * learning rate falls over epochs.  The tables are copied.  Ends with
 * network_destroy, before the context. */
enum tandem_status network_create(struct tandem_context *context,
                                  const struct table *train,
                                  const struct table *held, uint32_t batch,
                                  uint32_t epochs, uint64_t seed,
                                  struct network **out_network);
void network_destroy(struct network *network);

/* [blocks]  One epoch; out_loss is the mean over its batches. */
enum tandem_status network_train(struct network *network, float *out_loss);

/* [blocks]  The part of the held-out images that are recognised. */
enum tandem_status network_accuracy(struct network *network,
                                    double *out_accuracy);

#endif
