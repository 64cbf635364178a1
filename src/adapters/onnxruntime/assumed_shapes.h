/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and contents that a group's inputs are assumed to have when the
 * provider decides whether to take the group. */
#ifndef TANDEM_ONNXRUNTIME_ASSUMED_SHAPES_H
#define TANDEM_ONNXRUNTIME_ASSUMED_SHAPES_H

#include "adapters/onnxruntime/lower.h"
#include "adapters/onnxruntime/options.h"

/* One guess for everything that the model leaves open. */
struct assumption {
    int64_t length;  /* of open axes except batch axes, which have length 1 */
    uint32_t rank;   /* of f32 values whose rank is unknown */
    bool empty_past; /* axes with "past" in their names have length 0 */
};

#define MAX_ASSUMPTIONS 128u

/* Lists the assumptions to try, typical ones first.  Sets *out_typical to the
 * number of typical ones.  Returns the number of assumptions, at most
 * MAX_ASSUMPTIONS and at least 1. */
uint32_t assumptions_list(const struct graph *graph, struct assumption *out,
                          uint32_t *out_typical);

/* Makes a form under the assumption, which the caller releases with
 * form_free().  Writes the shapes of open inputs to `text`, in the syntax of
 * the option "shapes"; `text` is empty if no input is open.  On failure sets
 * *out_failed to the number of the node that cannot run, or to UINT32_MAX, and
 * explains the failure in `problem`. */
bool assumption_lower(const struct graph *graph,
                      const struct provider_options *options,
                      const struct assumption *assumption, struct form *form,
                      char text[256], uint32_t *out_failed, char problem[256]);

/* Checks an entry of the option "shapes" against the model's graph.  Returns
 * false, with a message, if no value of the graph can have this name and
 * shape. */
bool assumed_shape_check(const struct graph *graph, const char *name,
                         size_t name_length, uint32_t rank,
                         const int64_t *shape, char message[512]);

#endif
