/* SPDX-License-Identifier: Apache-2.0 */
/* Interface of the layer wait-layer.so to the program that uses it. */
#ifndef TANDEM_TESTS_WAIT_COUNTING_LAYER_H
#define TANDEM_TESTS_WAIT_COUNTING_LAYER_H

#include <stdint.h>

/* Counts of the calling thread. */
struct wait_layer_counts {
    uint64_t waits;   /* Waits in the driver for work. */
    uint64_t queries; /* Queries whether work is complete. */
};

/* The layer's exported function, for dlsym. */
typedef struct wait_layer_counts wait_layer_counts_fn(void);
wait_layer_counts_fn wait_layer_counts;

#endif
