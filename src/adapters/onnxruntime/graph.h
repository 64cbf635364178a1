/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a part of an ONNX graph.  ONNX Runtime's graph objects are valid
 * only during a call, and every access to them is a function call that can
 * fail, so the provider copies what it needs and then works on the copy.
 *
 * One thread at a time may change a graph.  Once built and fused, a graph is
 * only read. */
#ifndef TANDEM_ONNXRUNTIME_GRAPH_H
#define TANDEM_ONNXRUNTIME_GRAPH_H

#include "adapters/onnxruntime/arena.h"
#include "adapters/onnxruntime/ort_api.h"
#include "tandem/host.h"

#define NO_VALUE (-1)

struct mapped_file;
struct mapped_files;
struct onnx_operator;
struct weight;

/* Constants of equal ranks whose concatenation is another constant. */
struct constant_parts {
    uint32_t axis, count;
    const int32_t *values; /* `count` value indices */
};

/* A tensor of the graph. */
struct graph_value {
    const char *name;
    uint32_t dtype; /* enum tandem_dtype, 0 if Tandem has no such type */
    uint32_t rank;
    int64_t shape[TANDEM_MAX_RANK]; /* -1: not known before the model runs */
    /* Names of unknown dimensions; "" or NULL if they have none. Only inputs of
     * the model and what ONNX Runtime infers from them have names. */
    const char *dimension_names[TANDEM_MAX_RANK];
    bool has_shape;   /* false if the rank is unknown or too large */
    bool is_output;   /* the graph's user needs this value */
    int32_t producer; /* index of a node, or NO_VALUE */
    uint32_t readers; /* number of node inputs that are this value */
    int32_t input;    /* number of this graph input, or NO_VALUE */
    /* Content of a constant, row-major, or NULL.  Belongs to `weight` if that
     * is not NULL, else to `file` if that is not NULL, else to ONNX Runtime. */
    const void *constant;
    struct mapped_file *file; /* the graph that read the file is a user of it */
    /* If not NULL, the content does not exist before constants_acquire makes it
     * of these parts, and `constant` is that of the first part until then. */
    const struct constant_parts *parts;
    struct weight *weight;
};

struct graph_attribute {
    const char *name;
    enum ort_attribute_type type;
    int64_t integer;
    float real;
    const char *string;
    const int64_t *integers; /* integer_count values */
    size_t integer_count;
    const float *reals; /* real_count values */
    size_t real_count;
    /* ORT_ATTRIBUTE_TENSOR with one element: its dtype and, in `integer` or
     * `real`, its value.  0 for other tensors. */
    uint32_t tensor_dtype;
};

/* Operations that a matrix product applies to its result, in this order. */
struct graph_epilogue {
    double scale;         /* factor; 0: none */
    int32_t bias;         /* value with the product's last axis, or NO_VALUE */
    uint32_t activation;  /* enum tandem_op_id; TANDEM_OP_INVALID: none */
    double parameters[2]; /* attributes of the activation */
    /* If the product has several outputs: the columns of each. */
    const int64_t *parts;
};

struct graph_node {
    const struct onnx_operator *op; /* NULL if the provider does not serve it */
    const char *name, *type, *domain;
    int since_version;
    bool removed; /* replaced by another node */
    uint32_t input_count, output_count, attribute_count;
    int32_t *inputs, *outputs; /* value indices; NO_VALUE if absent */
    struct graph_attribute *attributes;
    struct graph_epilogue epilogue;
};

struct graph {
    struct arena arena;
    struct graph_value *values;
    uint32_t value_count, value_capacity;
    struct graph_node *nodes; /* in topological order */
    uint32_t node_count;
    /* ONNX Runtime's nodes, valid during the call that read the graph.  NULL in
     * an extracted graph. */
    const struct OrtNode **ort_nodes;
    bool uses_files;           /* of its values; false in an extracted graph */
    int32_t *inputs, *outputs; /* value indices */
    uint32_t input_count, output_count;
};

/* Copies an ONNX Runtime graph.  The content of constants is not copied; that
 * in files is mapped.  With a fused node, the graph's inputs and
 * outputs are those of the node, in this order; otherwise every value that no
 * node produces and that is not constant is an input.  Returns NULL for
 * success. On failure the graph is empty, and the caller owns the status. */
struct OrtStatus *graph_read(struct graph *graph, const struct ort_api *api,
                             struct mapped_files *files,
                             const struct OrtGraph *ort_graph,
                             const struct OrtNode *fused_node);
/* Makes a graph of some nodes of another graph, whose numbers are given in
 * ascending order.  The new graph refers to strings, attributes and constants
 * of the other one.  Returns false if memory is exhausted. */
bool graph_extract(struct graph *graph, const struct graph *from,
                   const uint32_t *nodes, uint32_t count);
/* Adds a value without producer and readers.  Returns its index, or NO_VALUE if
 * there are too many; there is room for two for each node. */
int32_t graph_add_value(struct graph *graph);
/* Frees the graph.  Accepts an empty graph. */
void graph_free(struct graph *graph);

/* Returns the attribute, or NULL if the node does not have it. */
const struct graph_attribute *graph_attribute(const struct graph_node *node,
                                              const char *name);
/* Return the attribute's value, or `otherwise` if the node does not have it. */
int64_t graph_integer(const struct graph_node *node, const char *name,
                      int64_t otherwise);
double graph_real(const struct graph_node *node, const char *name,
                  double otherwise);
/* Returns number `i` of an attribute that is a list, or the default. */
int64_t graph_list_integer(const struct graph_node *node, const char *name,
                           uint32_t i, int64_t otherwise);
/* Sets *out to the content of input number `index` and returns true if that is
 * a constant f32 tensor with one element. */
bool graph_constant_scalar(const struct graph *graph,
                           const struct graph_node *node, uint32_t index,
                           double *out);
/* Returns the name of the node, or its type if the model does not name it. */
static inline const char *node_label(const struct graph_node *node)
{
    return node->name[0] != '\0' ? node->name : node->type;
}

/* Returns the value that is input number `index` of the node, or NULL if that
 * input is absent. */
static inline const struct graph_value *
graph_input(const struct graph *graph, const struct graph_node *node,
            uint32_t index)
{
    return index < node->input_count && node->inputs[index] != NO_VALUE
               ? &graph->values[node->inputs[index]]
               : NULL;
}

/* Returns the tandem dtype of an ONNX element type, or 0 if Tandem has no
 * such type. */
uint32_t dtype_from_onnx(enum onnx_dtype type);

#endif
