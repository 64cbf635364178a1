/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes for which the provider tries a model with open dimensions. */
#ifndef TANDEM_ONNXRUNTIME_ASSUMPTIONS_H
#define TANDEM_ONNXRUNTIME_ASSUMPTIONS_H

#include "adapters/onnxruntime/graph.h"

/* The kind of tensor that has an open axis. */
enum axis_kind { AXIS_OF_SEQUENCE, AXIS_OF_IMAGE, AXIS_OF_VOLUME, AXIS_KINDS };

/* One guess for everything that the model leaves open. */
struct assumption {
    /* Lengths of open axes except batch axes, which have length 1. */
    int64_t lengths[AXIS_KINDS];
    uint32_t rank;   /* of f32 values whose rank is unknown */
    bool empty_past; /* axes with "past" in their names have length 0 */
    /* Tried only if the model can run under no earlier assumption. */
    bool last_resort;
};

#define MAX_ASSUMPTIONS 256u

/* Lists the assumptions to try, typical ones first.  Sets *out_typical to the
 * number of typical ones.  Returns the number of assumptions, at most
 * MAX_ASSUMPTIONS and at least 1. */
uint32_t assumptions_list(const struct graph *graph, struct assumption *out,
                          uint32_t *out_typical);

/* Returns the length of an open axis of the value. */
int64_t assumption_length(const struct graph *graph,
                          const struct assumption *assumption,
                          const struct graph_value *value, uint32_t axis);

/* Returns true if the rank of the value is unknown.  ONNX Runtime reports rank
 * 0 then.  Integers of rank 0 are usually scalars. */
static inline bool rank_is_open(const struct graph_value *value)
{
    return !value->has_shape ||
           (value->rank == 0 && value->dtype == TANDEM_F32);
}

#endif
