/* SPDX-License-Identifier: Apache-2.0 */
/* What the layer wait-layer.so tells the program under it. */
#ifndef TANDEM_TESTS_MANNERS_WAIT_LAYER_H
#define TANDEM_TESTS_MANNERS_WAIT_LAYER_H

#include <stdint.h>

/* The calling thread's, so far. */
struct wait_layer_counts {
    uint64_t waits;     /* in the driver, until work is done */
    uint64_t questions; /* whether it is */
};

/* The layer's own export, for dlsym. */
typedef struct wait_layer_counts wait_layer_counts_fn(void);
wait_layer_counts_fn wait_layer_counts;

#endif
