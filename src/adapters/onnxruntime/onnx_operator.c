/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on a node's dtypes and attributes; see onnx_operator.h. */
#include <config.h>

#include "adapters/onnxruntime/onnx_operator.h"

#include <math.h>
#include <string.h>

/* ---- dtypes ---- */

static bool dtype_is_integer(uint32_t dtype)
{
    return dtype == TANDEM_I64 || dtype == TANDEM_I32;
}

/* Returns true if the lowering reads numbers of the dtype. */
static bool dtype_is_number(uint32_t dtype)
{
    return dtype == TANDEM_F32 || dtype_is_integer(dtype);
}

static uint32_t input_dtype(const struct graph *graph,
                            const struct graph_node *node, uint32_t index)
{
    const struct graph_value *value = graph_input(graph, node, index);

    return value != NULL ? value->dtype : 0;
}

static const struct graph_value *node_output(const struct graph *graph,
                                             const struct graph_node *node)
{
    return node->output_count > 0 && node->outputs[0] != NO_VALUE
               ? &graph->values[node->outputs[0]]
               : NULL;
}

uint32_t cast_dtype(const struct graph *graph, const struct graph_node *node)
{
    if (strcmp(node->type, "CastLike") == 0)
        return input_dtype(graph, node, 1);
    return dtype_from_onnx((enum onnx_dtype)graph_integer(node, "to", 0));
}

bool gelu_is_approximate(const struct graph_node *node)
{
    const struct graph_attribute *form = graph_attribute(node, "approximate");

    return strcmp(node->type, "FastGelu") == 0 ||
           (form != NULL && form->string != NULL &&
            strcmp(form->string, "tanh") == 0);
}

/* Activations with float attributes, and the attributes' defaults. */
static const struct {
    uint32_t op;
    const char *names[2]; /* NULL: no such attribute */
    double defaults[2];
} activations[] = {
    {TANDEM_OP_CELU, {"alpha"}, {1}},
    {TANDEM_OP_CLIP, {"min", "max"}, {-INFINITY, INFINITY}},
    {TANDEM_OP_ELU, {"alpha"}, {1}},
    {TANDEM_OP_HARDSIGMOID, {"alpha", "beta"}, {0.2, 0.5}},
    {TANDEM_OP_LEAKY_RELU, {"alpha"}, {0.01}},
    {TANDEM_OP_SELU,
     {"alpha", "gamma"},
     {1.67326319217681884765625, 1.05070102214813232421875}},
    {TANDEM_OP_THRESHOLDED_RELU, {"alpha"}, {1}},
};

static bool op_is_unary(uint32_t op)
{
    switch (op) {
#define CLASS_OF_OP(ID, number, name, CLASS, ...)                              \
    case TANDEM_OP_##ID:                                                       \
        return TANDEM_CLASS_##CLASS == TANDEM_CLASS_UNARY;
        TANDEM_OPERATORS(CLASS_OF_OP)
#undef CLASS_OF_OP
    default:
        return false;
    }
}

bool node_activation(const struct graph *graph, const struct graph_node *node,
                     uint32_t *out_op, double *out_parameters)
{
    const bool clip = node->op != NULL && node->op->tandem_op == TANDEM_OP_CLIP;

    if (node->op == NULL || !op_is_unary(node->op->tandem_op) ||
        (node->op->tandem_op == TANDEM_OP_SWISH &&
         graph_real(node, "alpha", 1) != 1))
        return false;
    out_parameters[0] = out_parameters[1] = 0;
    if (node->op->tandem_op == TANDEM_OP_GELU)
        out_parameters[0] = gelu_is_approximate(node);
    for (size_t i = 0; i < sizeof(activations) / sizeof(activations[0]); i++) {
        if (activations[i].op != node->op->tandem_op)
            continue;
        for (uint32_t j = 0; j < 2 && activations[i].names[j] != NULL; j++)
            out_parameters[j] = graph_real(node, activations[i].names[j],
                                           activations[i].defaults[j]);
    }
    /* From opset 11 on, the bounds of Clip are inputs. BiasGelu has a bias. */
    for (uint32_t i = 1; i < 3; i++) {
        if (graph_input(graph, node, i) != NULL &&
            (!clip || !graph_constant_scalar(graph, node, i,
                                             &out_parameters[i - 1])))
            return false;
    }
    *out_op = node->op->tandem_op;
    return true;
}

int64_t scatter_reduction(const struct graph_node *node)
{
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const struct graph_attribute *attribute =
        graph_attribute(node, "reduction");

    if (attribute == NULL)
        return 0;
    for (int64_t i = 0; attribute->string != NULL && i < 5; i++) {
        if (strcmp(attribute->string, names[i]) == 0)
            return i;
    }
    return -1;
}

static bool dtype_is_cast(uint32_t dtype)
{
    return dtype == TANDEM_F32 || dtype_is_integer(dtype) ||
           dtype == TANDEM_U8 || dtype == TANDEM_BOOL;
}

/* Tandem's cast to a shorter integer saturates, ONNX's drops the upper bits. */
static bool cast_is_served(uint32_t from, uint32_t to)
{
    const bool shortens = from != TANDEM_F32 && from != TANDEM_BOOL &&
                          to != TANDEM_F32 && to != TANDEM_BOOL &&
                          TANDEM_DTYPE_BYTES(to) < TANDEM_DTYPE_BYTES(from);

    return dtype_is_cast(from) && dtype_is_cast(to) && !shortens;
}

/* Returns true if all inputs that are not parameters have the dtype. */
static bool inputs_have_dtype(const struct graph *graph,
                              const struct graph_node *node,
                              const struct onnx_operator *op, uint32_t dtype)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct graph_value *value = graph_input(graph, node, i);

        if (value != NULL && !(i < 32 && op->parameters >> i & 1) &&
            value->dtype != dtype)
            return false;
    }
    return true;
}

/* Returns true unless the data are integers of rank 0 or 1, which are shapes.
 * ONNX Runtime computes these. */
static bool moves_no_shape(const struct graph *graph,
                           const struct graph_node *node)
{
    const struct graph_value *output = node_output(graph, node);
    const uint32_t dtype = input_dtype(graph, node, 0);

    return dtype != 0 && output != NULL &&
           !(dtype_is_integer(dtype) && output->has_shape && output->rank < 2);
}

/* Returns true if the inputs from `first` on are f32, or if they are integers
 * of one dtype that are no shapes. */
static bool numbers_are_served(const struct graph *graph,
                               const struct graph_node *node, uint32_t first)
{
    const struct graph_value *output = node_output(graph, node);
    const uint32_t dtype = input_dtype(graph, node, first);

    for (uint32_t i = first; i < node->input_count; i++) {
        if (input_dtype(graph, node, i) != dtype)
            return false;
    }
    return dtype == TANDEM_F32 || (dtype_is_integer(dtype) && output != NULL &&
                                   !(output->has_shape && output->rank < 2));
}

static bool pow_is_served(const struct graph *graph,
                          const struct graph_node *node)
{
    const struct graph_value *exponent = graph_input(graph, node, 1);

    if (input_dtype(graph, node, 0) != TANDEM_F32 || exponent == NULL)
        return false;
    if (exponent->dtype == TANDEM_F32)
        return true;
    if (!dtype_is_integer(exponent->dtype) || exponent->constant == NULL)
        return false;
    for (uint32_t i = 0; i < exponent->rank; i++) {
        if (exponent->shape[i] != 1)
            return false;
    }
    return true;
}

static bool attention_is_served(const struct graph *graph,
                                const struct graph_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t dtype = input_dtype(graph, node, i);

        if (graph_input(graph, node, i) != NULL && dtype != TANDEM_F32 &&
            (i != 3 || dtype != TANDEM_BOOL))
            return false;
    }
    return true;
}

/* Returns true if the provider serves the inputs of an Attention or
 * MultiHeadAttention of com.microsoft.  Masks of rank 1 hold lengths or
 * positions, which it does not serve. */
static bool padded_is_served(const struct graph *graph,
                             const struct graph_node *node)
{
    const uint32_t mask = strcmp(node->type, "Attention") == 0 ? 3 : 4;

    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct graph_value *value = graph_input(graph, node, i);

        if (value == NULL)
            continue;
        if (i == mask ? value->dtype != TANDEM_I32 || !value->has_shape ||
                            (value->rank != 2 && value->rank != 3)
                      : value->dtype != TANDEM_F32)
            return false;
    }
    return true;
}

/* The positions are input 1 in com.microsoft, else input 3. */
static bool rotary_is_served(const struct graph *graph,
                             const struct graph_node *node)
{
    const uint32_t positions = node->domain[0] == '\0' ? 3 : 1;

    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t dtype = input_dtype(graph, node, i);

        if (graph_input(graph, node, i) != NULL &&
            !(i == positions ? dtype_is_integer(dtype) : dtype == TANDEM_F32))
            return false;
    }
    return true;
}

static bool rule_accepts(const struct graph *graph,
                         const struct graph_node *node,
                         const struct onnx_operator *op)
{
    const struct graph_value *output;

    switch (op->rule) {
    case RULE_F32:
    case RULE_PREDICATE:
    case RULE_ARG:
        return inputs_have_dtype(graph, node, op, TANDEM_F32);
    case RULE_ATTENTION:
        return attention_is_served(graph, node);
    case RULE_NUMBER:
    case RULE_COMPARE:
        return numbers_are_served(graph, node, 0);
    case RULE_POW:
        return pow_is_served(graph, node);
    case RULE_LOGICAL:
        return inputs_have_dtype(graph, node, op, TANDEM_BOOL);
    case RULE_WHERE:
        return input_dtype(graph, node, 0) == TANDEM_BOOL &&
               numbers_are_served(graph, node, 1);
    case RULE_CAST:
        return cast_is_served(input_dtype(graph, node, 0),
                              cast_dtype(graph, node));
    case RULE_MOVE:
        return moves_no_shape(graph, node);
    case RULE_GATHER:
        return moves_no_shape(graph, node) &&
               dtype_is_integer(input_dtype(graph, node, 1));
    case RULE_SCATTER:
        return moves_no_shape(graph, node) &&
               dtype_is_integer(input_dtype(graph, node, 1)) &&
               (scatter_reduction(node) == 0 ||
                (scatter_reduction(node) > 0 &&
                 input_dtype(graph, node, 0) == TANDEM_F32));
    case RULE_PADDED:
        return padded_is_served(graph, node);
    case RULE_ROTARY:
        return rotary_is_served(graph, node);
    case RULE_FUSED:
        return true;
    case RULE_SHAPE:
        output = node_output(graph, node);
        return output != NULL && (dtype_is_integer(output->dtype) ||
                                  (op->tandem_op == TANDEM_OP_RANGE &&
                                   output->dtype == TANDEM_F32) ||
                                  strcmp(node->type, "ConstantOfShape") == 0);
    }
    return false;
}

/* ---- attributes ---- */

static bool output_is_used(const struct graph *graph,
                           const struct graph_node *node, uint32_t index)
{
    const struct graph_value *value;

    if (index >= node->output_count || node->outputs[index] == NO_VALUE)
        return false;
    value = &graph->values[node->outputs[index]];
    return value->readers > 0 || value->is_output;
}

/* Dropout does nothing unless a model is trained. */
static bool dropout_is_identity(const struct graph *graph,
                                const struct graph_node *node)
{
    const struct graph_value *training = graph_input(graph, node, 2);

    return training == NULL || (training->constant != NULL &&
                                *(const uint8_t *)training->constant == 0);
}

static bool is_attention(const struct graph_node *node)
{
    return strcmp(node->type, "Attention") == 0 ||
           strcmp(node->type, "MultiHeadAttention") == 0;
}

/* Returns true if only outputs are used that the lowering sets, and all outputs
 * have a dtype and rank of Tandem. */
static bool outputs_are_served(const struct graph *graph,
                               const struct graph_node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != NO_VALUE &&
            graph->values[node->outputs[i]].dtype == 0)
            return false;
        if (i > 0 && output_is_used(graph, node, i) &&
            strcmp(node->type, "Split") != 0 &&
            strcmp(node->type, "TopK") != 0 &&
            strcmp(node->type, "MaxPool") != 0 &&
            !(i < 3 && is_attention(node)) &&
            !(i == 3 && strcmp(node->type, "SkipLayerNormalization") == 0))
            return false;
    }
    return true;
}

/* ConstantOfShape without a value makes f32 zeros. */
static bool fill_value_is_served(const struct graph_node *node)
{
    const struct graph_attribute *value = graph_attribute(node, "value");

    return value == NULL || value->tensor_dtype == TANDEM_F32 ||
           dtype_is_integer(value->tensor_dtype) ||
           value->tensor_dtype == TANDEM_BOOL;
}

/* Returns true if the lowering can read the value that Pad adds. */
static bool pad_is_served(const struct graph *graph,
                          const struct graph_node *node)
{
    const struct graph_value *x = graph_input(graph, node, 0);

    return graph_input(graph, node, 2) == NULL ||
           (x != NULL && (x->dtype == TANDEM_F32 || x->dtype == TANDEM_I32 ||
                          x->dtype == TANDEM_I64 || x->dtype == TANDEM_U8 ||
                          x->dtype == TANDEM_BOOL));
}

/* ONNX Runtime reports rank 0 if it does not know the rank. */
static bool rank_is_known(const struct graph_value *value)
{
    return value->has_shape && value->rank > 0;
}

/* Returns true if there are one to three spatial axes, and indices are
 * row-major. */
static bool pool_is_served(const struct graph *graph,
                           const struct graph_node *node)
{
    const struct graph_value *x = graph_input(graph, node, 0);

    return x != NULL &&
           (!rank_is_known(x) ||
            (x->rank >= 3 && x->rank <= 2 + MAX_SPATIAL_AXES)) &&
           graph_integer(node, "storage_order", 0) == 0;
}

static const char *auto_pad_of(const struct graph_node *node)
{
    const struct graph_attribute *mode = graph_attribute(node, "auto_pad");

    return mode != NULL && mode->string != NULL ? mode->string : "NOTSET";
}

bool node_pads_explicitly(const struct graph_node *node)
{
    return strcmp(auto_pad_of(node), "NOTSET") == 0;
}

bool node_pads_same(const struct graph_node *node, bool *out_lower)
{
    const char *mode = auto_pad_of(node);

    *out_lower = strcmp(mode, "SAME_LOWER") == 0;
    return *out_lower || strcmp(mode, "SAME_UPPER") == 0;
}

/* Returns true if the windows of a convolution are known and valid. The shape
 * of the weight is usually known, because it is constant. */
static bool conv_is_served(const struct graph *graph,
                           const struct graph_node *node)
{
    const struct graph_value *x = graph_input(graph, node, 0);
    const struct graph_value *weight = graph_input(graph, node, 1);
    bool lower, pads_same;
    uint32_t spatial;

    if (x == NULL || weight == NULL || !weight->has_shape ||
        weight->rank < 3 || weight->rank > 2 + MAX_SPATIAL_AXES ||
        (rank_is_known(x) && x->rank != weight->rank) ||
        graph_attribute(node, "output_shape") != NULL)
        return false;
    spatial = weight->rank - 2;
    pads_same = strcmp(node->type, "ConvTranspose") == 0 &&
                node_pads_same(node, &lower);
    for (uint32_t i = 0; i < spatial; i++) {
        const int64_t kernel = weight->shape[2 + i];
        const int64_t stride = graph_list_integer(node, "strides", i, 1);
        const int64_t dilation = graph_list_integer(node, "dilations", i, 1);
        const int64_t more = graph_list_integer(node, "output_padding", i, 0);
        const int64_t begin = graph_list_integer(node, "pads", i, 0);
        const int64_t end = graph_list_integer(node, "pads", spatial + i, 0);
        const int64_t span = (kernel - 1) * dilation + 1;

        if (kernel < 1 || stride < 1 || dilation < 1 || begin < 0 || end < 0 ||
            begin > INT32_MAX || end > INT32_MAX || more < 0 ||
            (more >= stride && more >= dilation) ||
            (pads_same && span + more < stride))
            return false;
    }
    return true;
}

bool fused_conv_activation(const struct graph_node *node, uint32_t *out_op,
                           double *out_parameters)
{
    static const struct {
        const char *name;
        uint32_t op, parameters;
    } names[] = {
        {"Clip", TANDEM_OP_CLIP, 2},
        {"HardSigmoid", TANDEM_OP_HARDSIGMOID, 2},
        {"LeakyRelu", TANDEM_OP_LEAKY_RELU, 1},
        {"Relu", TANDEM_OP_RELU, 0},
        {"Sigmoid", TANDEM_OP_SIGMOID, 0},
        {"Tanh", TANDEM_OP_TANH, 0},
    };
    const struct graph_attribute *name = graph_attribute(node, "activation");
    const struct graph_attribute *parameters =
        graph_attribute(node, "activation_params");
    const size_t count = parameters != NULL ? parameters->real_count : 0;

    *out_op = TANDEM_OP_INVALID;
    for (size_t i = 0; i < 2; i++)
        out_parameters[i] = i < count ? parameters->reals[i] : 0;
    if (name == NULL || name->string == NULL || name->string[0] == '\0')
        return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i].name, name->string) == 0 &&
            names[i].parameters <= count)
            *out_op = names[i].op;
    }
    return *out_op != TANDEM_OP_INVALID;
}

/* Returns true if a normalization has channels and is not part of a training.
 * Until opset 6, BatchNormalization trains unless is_test is 1. Until opset 8,
 * a batch normalization that is not spatial has parameters of each element. */
static bool channel_norm_is_served(const struct graph *graph,
                                   const struct graph_node *node)
{
    const struct graph_value *x = graph_input(graph, node, 0);

    /* ONNX Runtime reports rank 0 if it does not know the rank. */
    return x != NULL && x->rank != 1 &&
           graph_integer(node, "training_mode", 0) == 0 &&
           graph_integer(node, "spatial", 1) != 0 &&
           (strcmp(node->type, "BatchNormalization") != 0 ||
            node->since_version >= 7 || graph_integer(node, "is_test", 0) != 0);
}

/* Returns true if queries, keys and values are separate.  The bias is not that
 * of keys and values with four axes, which come from another attention. */
static bool multi_head_is_served(const struct graph *graph,
                                 const struct graph_node *node)
{
    const struct graph_value *query = graph_input(graph, node, 0);
    const struct graph_value *key = graph_input(graph, node, 1);

    return node->input_count <= 8 && query != NULL && key != NULL &&
           (!rank_is_known(query) || query->rank == 3) &&
           (graph_input(graph, node, 3) == NULL ||
            (rank_is_known(key) && key->rank == 3));
}

static bool attributes_are_served(const struct graph *graph,
                                  const struct graph_node *node)
{
    double parameters[2];
    uint32_t activation;

    if (strcmp(node->type, "Dropout") == 0)
        return dropout_is_identity(graph, node);
    if (strcmp(node->type, "MaxPool") == 0 ||
        strcmp(node->type, "AveragePool") == 0)
        return pool_is_served(graph, node);
    if (strcmp(node->type, "Conv") == 0 ||
        strcmp(node->type, "ConvTranspose") == 0)
        return conv_is_served(graph, node);
    if (strcmp(node->type, "FusedConv") == 0)
        return conv_is_served(graph, node) &&
               fused_conv_activation(node, &activation, parameters);
    if (strcmp(node->type, "BatchNormalization") == 0 ||
        strcmp(node->type, "GroupNormalization") == 0 ||
        strcmp(node->type, "InstanceNormalization") == 0)
        return channel_norm_is_served(graph, node);
    /* Input 6 of Attention limits the keys of each image, or tells how much of
     * a shared buffer is used. */
    if (strcmp(node->type, "Attention") == 0)
        return graph_input(graph, node, 6) == NULL &&
               graph_integer(node, "do_rotary", 0) == 0 &&
               graph_integer(node, "past_present_share_buffer", 0) == 0 &&
               graph_integer(node, "left_window_size", -1) < 0 &&
               graph_integer(node, "right_window_size", -1) < 0;
    if (strcmp(node->type, "MultiHeadAttention") == 0)
        return multi_head_is_served(graph, node);
    if (strcmp(node->type, "RotaryEmbedding") == 0)
        return graph_real(node, "scale", 1) == 1 &&
               graph_integer(node, "is_packed_batching", 0) == 0;
    if (strcmp(node->type, "Celu") == 0)
        return graph_real(node, "alpha", 1) > 0;
    if (strcmp(node->type, "OneHot") == 0)
        return dtype_is_number(input_dtype(graph, node, 0)) &&
               dtype_is_number(input_dtype(graph, node, 1));
    if (strcmp(node->type, "Pad") == 0)
        return pad_is_served(graph, node);
    if (strcmp(node->type, "ConstantOfShape") == 0)
        return fill_value_is_served(node);
    return graph_integer(node, "select_last_index", 0) == 0;
}

/* Returns true if the inputs that the lowering reads without a check exist. */
static bool required_inputs_are_present(const struct graph *graph,
                                        const struct graph_node *node,
                                        const struct onnx_operator *op)
{
    const uint32_t required = op->required_inputs == ALL_INPUTS
                                  ? node->input_count
                                  : op->required_inputs;

    for (uint32_t i = 0; i < required; i++) {
        if (graph_input(graph, node, i) == NULL)
            return false;
    }
    return node->input_count > 0;
}

/* Returns true unless the operator computes integers from vectors only and its
 * first input is not known to be one. */
static bool rank_is_evaluated(const struct graph *graph,
                              const struct graph_node *node,
                              const struct onnx_operator *op)
{
    const struct graph_value *input = graph_input(graph, node, 0);

    return (strcmp(op->type, "Concat") != 0 &&
            strcmp(op->type, "Gather") != 0 &&
            strcmp(op->type, "Slice") != 0) ||
           (input != NULL && input->has_shape && input->rank == 1);
}

/* Returns true if the operator computes integers on the host when the content
 * of its inputs is known. */
static bool computes_integers(const struct graph *graph,
                              const struct graph_node *node,
                              const struct onnx_operator *op)
{
    const struct graph_value *output = node_output(graph, node);

    if (op->evaluate == NULL || output == NULL ||
        !rank_is_evaluated(graph, node, op) ||
        (op->rule == RULE_SHAPE && input_dtype(graph, node, 0) == 0) ||
        (op->required_inputs == ALL_INPUTS && op->rule != RULE_MOVE &&
         node->input_count != 2) ||
        !(dtype_is_integer(output->dtype) || output->dtype == TANDEM_BOOL))
        return false;
    for (uint32_t i = 0; i < node->input_count && op->rule != RULE_SHAPE; i++) {
        const uint32_t dtype = input_dtype(graph, node, i);

        if (dtype != 0 && !dtype_is_integer(dtype) && dtype != TANDEM_BOOL)
            return false;
    }
    return true;
}

bool node_computes_integers(const struct graph *graph,
                            const struct graph_node *node)
{
    return node->op != NULL && computes_integers(graph, node, node->op);
}

bool node_runs_on_device(const struct graph *graph,
                         const struct graph_node *node)
{
    return node->op != NULL && rule_accepts(graph, node, node->op);
}

bool operator_serves(const struct onnx_operator *op, const struct graph *graph,
                     const struct graph_node *node)
{
    return node->since_version <= op->newest_version &&
           required_inputs_are_present(graph, node, op) &&
           outputs_are_served(graph, node) &&
           attributes_are_served(graph, node) &&
           (rule_accepts(graph, node, op) ||
            computes_integers(graph, node, op));
}
