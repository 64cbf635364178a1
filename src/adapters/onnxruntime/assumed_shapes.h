/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and short contents of all tensors of a model under one assumption. The
 * provider decides with them whether to take a group of nodes. */
#ifndef TANDEM_ONNXRUNTIME_ASSUMED_SHAPES_H
#define TANDEM_ONNXRUNTIME_ASSUMED_SHAPES_H

#include "adapters/onnxruntime/assumptions.h"
#include "adapters/onnxruntime/lower.h"
#include "adapters/onnxruntime/options.h"

/* Elements of a tensor whose content is assumed. */
#define MAX_ASSUMED_CONTENT 8u

struct assumed_value {
    bool known; /* the shape is known */
    struct lower_input input;
    union {
        int64_t i64[MAX_ASSUMED_CONTENT];
        int32_t i32[MAX_ASSUMED_CONTENT];
        float f32[MAX_ASSUMED_CONTENT];
    } content;
};

/* A node that the provider serves, but not with these shapes. */
struct assumed_failure {
    uint32_t node;
    char problem[256];
};

struct assumed_shapes {
    struct assumed_value *values; /* one for each value of the graph */
    struct assumed_failure *failures;
    uint32_t failure_count;
    /* Nodes that make an empty tensor of one that is not empty, for example
     * because a window is larger than the image. */
    uint32_t empty_count;
    /* The shapes that were guessed, in the syntax of the option "shapes", or ""
     * if nothing is open. */
    char text[256];
};

/* Infers the shapes under the assumption.  Outputs of nodes that the provider
 * does not serve are guessed.  The caller releases *out, which is empty if the
 * function fails because memory is exhausted. */
bool assumed_shapes_infer(const struct graph *graph,
                          const struct provider_options *options,
                          const struct assumption *assumption,
                          struct assumed_shapes *out);
/* Accepts an empty struct. */
void assumed_shapes_free(struct assumed_shapes *shapes);

/* Makes a form of a part of the graph, which the caller releases with
 * form_free().  On failure sets *out_failed to the number of the node that
 * cannot run, or to UINT32_MAX, and explains the failure in `problem`. */
bool assumed_shapes_lower(const struct assumed_shapes *shapes,
                          const struct graph *part, struct form *form,
                          uint32_t *out_failed, char problem[256]);

/* Checks an entry of the option "shapes" against the model's graph.  Returns
 * false, with a message, if no value of the graph can have this name and
 * shape. */
bool assumed_shape_check(const struct graph *graph, const char *name,
                         size_t name_length, uint32_t rank,
                         const int64_t *shape, char message[512]);

#endif
