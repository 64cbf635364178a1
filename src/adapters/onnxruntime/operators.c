/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the ONNX operators that the provider serves, and the conditions
 * on a node's dtypes and attributes; see operators.h. */
#include <config.h>

#include "adapters/onnxruntime/operators.h"
#include "adapters/onnxruntime/lower_ops.h"

#include <string.h>

#define MICROSOFT "com.microsoft"

/* Operator-set versions 24 to 28 only add element types to these operators
 * (https://github.com/onnx/onnx/blob/main/docs/Changelog.md). */
#define NEWEST 28

#define ALL_INPUTS UINT32_MAX

/* domain, type, newest version, operator of Tandem, rule, required inputs,
 * parameters, lower, evaluate */
#define UNARY(type, OP)                                                        \
    {                                                                          \
        "", type, NEWEST, TANDEM_OP_##OP, RULE_F32, 1, 0,                      \
            lower_elementwise_unary, NULL                                      \
    }
#define BINARY(type, OP, evaluate)                                             \
    {                                                                          \
        "", type, NEWEST, TANDEM_OP_##OP, RULE_F32, 2, 0,                      \
            lower_elementwise_binary, evaluate                                 \
    }
#define COMPARE(type, OP, evaluate)                                            \
    {                                                                          \
        "", type, NEWEST, TANDEM_OP_##OP, RULE_COMPARE, 2, 0, lower_compare,   \
            evaluate                                                           \
    }
#define LOGICAL(type, OP)                                                      \
    {                                                                          \
        "", type, NEWEST, TANDEM_OP_##OP, RULE_LOGICAL, 2, 0, lower_logical,   \
            NULL                                                               \
    }
#define VARIADIC(type, OP)                                                     \
    {                                                                          \
        "", type, NEWEST, TANDEM_OP_##OP, RULE_F32, ALL_INPUTS, 0,             \
            lower_variadic, NULL                                               \
    }
#define REDUCE(type, OP)                                                       \
    {                                                                          \
        "", type, NEWEST, TANDEM_OP_##OP, RULE_F32, 1, 1u << 1, lower_reduce,  \
            NULL                                                               \
    }
#define ARG_REDUCE(type, OP)                                                   \
    {                                                                          \
        "", type, NEWEST, TANDEM_OP_##OP, RULE_ARG, 1, 0, lower_arg_reduce,    \
            NULL                                                               \
    }
#define MOVE(type, required, parameters, lower, evaluate)                      \
    {                                                                          \
        "", type, NEWEST, TANDEM_OP_INVALID, RULE_MOVE, required, parameters,  \
            lower, evaluate                                                    \
    }
#define OTHER(domain, type, OP, required, lower)                               \
    {                                                                          \
        domain, type, NEWEST, TANDEM_OP_##OP, RULE_F32, required, 0, lower,    \
            NULL                                                               \
    }

static const struct onnx_operator operators[] = {
    UNARY("Abs", ABS),
    UNARY("Ceil", CEIL),
    UNARY("Cos", COS),
    UNARY("Erf", ERF),
    UNARY("Exp", EXP),
    UNARY("Floor", FLOOR),
    UNARY("HardSwish", HARDSWISH),
    UNARY("Log", LOG),
    UNARY("Mish", MISH),
    UNARY("Neg", NEG),
    UNARY("Reciprocal", RECIPROCAL),
    UNARY("Relu", RELU),
    UNARY("Round", ROUND),
    UNARY("Sigmoid", SIGMOID),
    UNARY("Sign", SIGN),
    UNARY("Sin", SIN),
    UNARY("Softplus", SOFTPLUS),
    UNARY("Sqrt", SQRT),
    UNARY("Tanh", TANH),
    OTHER("", "Clip", CLIP, 1, lower_clip),
    OTHER("", "Elu", ELU, 1, lower_elu),
    OTHER("", "Gelu", GELU, 1, lower_gelu),
    OTHER("", "LeakyRelu", LEAKY_RELU, 1, lower_leaky_relu),
    OTHER("", "Swish", SWISH, 1, lower_swish),
    OTHER(MICROSOFT, "BiasGelu", GELU, 1, lower_gelu),
    OTHER(MICROSOFT, "FastGelu", GELU, 1, lower_gelu),
    OTHER(MICROSOFT, "Gelu", GELU, 1, lower_gelu),
    BINARY("Add", ADD, shape_binary),
    BINARY("Div", DIV, shape_binary),
    BINARY("Mul", MUL, shape_binary),
    BINARY("Sub", SUB, shape_binary),
    {"", "Pow", NEWEST, TANDEM_OP_POW, RULE_POW, 2, 0, lower_pow, NULL},
    VARIADIC("Max", MAX),
    VARIADIC("Mean", ADD),
    VARIADIC("Min", MIN),
    VARIADIC("Sum", ADD),
    COMPARE("Equal", EQUAL, shape_binary),
    COMPARE("Greater", GREATER, shape_binary),
    COMPARE("GreaterOrEqual", GREATER_EQUAL, NULL),
    COMPARE("Less", LESS, shape_binary),
    COMPARE("LessOrEqual", LESS_EQUAL, NULL),
    LOGICAL("And", AND),
    LOGICAL("Or", OR),
    LOGICAL("Xor", XOR),
    {"", "Not", NEWEST, TANDEM_OP_NOT, RULE_LOGICAL, 1, 0,
     lower_elementwise_unary, NULL},
    {"", "Where", NEWEST, TANDEM_OP_WHERE, RULE_WHERE, 3, 0, lower_where,
     shape_where},
    {"", "Cast", NEWEST, TANDEM_OP_CAST, RULE_CAST, 1, 0, lower_cast,
     shape_cast},
    {"", "CastLike", NEWEST, TANDEM_OP_CAST, RULE_CAST, 2, 0, lower_cast, NULL},
    REDUCE("ReduceL1", SUM),
    REDUCE("ReduceL2", L2),
    REDUCE("ReduceLogSum", SUM),
    REDUCE("ReduceLogSumExp", LOG_SUM_EXP),
    REDUCE("ReduceMax", REDUCE_MAX),
    REDUCE("ReduceMean", MEAN),
    REDUCE("ReduceMin", REDUCE_MIN),
    REDUCE("ReduceProd", PROD),
    REDUCE("ReduceSum", SUM),
    REDUCE("ReduceSumSquare", SUM_SQUARE),
    ARG_REDUCE("ArgMax", ARGMAX),
    ARG_REDUCE("ArgMin", ARGMIN),
    OTHER("", "LogSoftmax", LOG_SOFTMAX, 1, lower_softmax),
    OTHER("", "Softmax", SOFTMAX, 1, lower_softmax),
    OTHER("", "LayerNormalization", LAYER_NORM, 1, lower_norm),
    OTHER("", "RMSNormalization", RMS_NORM, 1, lower_norm),
    OTHER("", "SimplifiedLayerNormalization", RMS_NORM, 1, lower_norm),
    OTHER(MICROSOFT, "SkipLayerNormalization", LAYER_NORM, 3,
          lower_skip_layer_norm),
    OTHER("", "Gemm", GEMM, 2, lower_gemm),
    OTHER("", "MatMul", GEMM, 2, lower_matmul),
    OTHER(MICROSOFT, "FusedMatMul", GEMM, 2, lower_fused_matmul),
    MOVE("Concat", ALL_INPUTS, 0, lower_concat, shape_concat),
    MOVE("Dropout", 1, 0, lower_identity, NULL),
    MOVE("Expand", 2, 1u << 1, lower_expand_op, NULL),
    MOVE("Flatten", 1, 0, lower_flatten, NULL),
    MOVE("Identity", 1, 0, lower_identity, lower_identity),
    MOVE("Reshape", 2, 1u << 1, lower_reshape_op, lower_reshape_op),
    MOVE("Slice", 3, 0x1eu, lower_slice, shape_slice),
    MOVE("Split", 1, 1u << 1, lower_split, NULL),
    MOVE("Squeeze", 1, 1u << 1, lower_squeeze, lower_squeeze),
    MOVE("Transpose", 1, 0, lower_transpose, NULL),
    MOVE("Unsqueeze", 1, 1u << 1, lower_unsqueeze, lower_unsqueeze),
    {"", "Gather", NEWEST, TANDEM_OP_GATHER, RULE_GATHER, 2, 0, lower_gather,
     shape_gather},
    {"", "ConstantOfShape", NEWEST, TANDEM_OP_INVALID, RULE_SHAPE, 1, 1u << 0,
     lower_constant_of_shape, lower_constant_of_shape},
    {"", "Range", NEWEST, TANDEM_OP_INVALID, RULE_SHAPE, 3, 7u, shape_range,
     shape_range},
    {"", "Shape", NEWEST, TANDEM_OP_INVALID, RULE_SHAPE, 1, 0, lower_shape,
     lower_shape},
    {"", "Size", NEWEST, TANDEM_OP_INVALID, RULE_SHAPE, 1, 0, lower_size,
     lower_size},
};

const struct onnx_operator *operator_row(size_t index)
{
    return index < sizeof(operators) / sizeof(operators[0]) ? &operators[index]
                                                            : NULL;
}

/* ---- dtypes ---- */

static bool dtype_is_integer(uint32_t dtype)
{
    return dtype == TANDEM_I64 || dtype == TANDEM_I32;
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

static bool rule_accepts(const struct graph *graph,
                         const struct graph_node *node,
                         const struct onnx_operator *op)
{
    const struct graph_value *output;

    switch (op->rule) {
    case RULE_F32:
    case RULE_COMPARE:
    case RULE_ARG:
        return inputs_have_dtype(graph, node, op, TANDEM_F32);
    case RULE_POW:
        return pow_is_served(graph, node);
    case RULE_LOGICAL:
        return inputs_have_dtype(graph, node, op, TANDEM_BOOL);
    case RULE_WHERE:
        return input_dtype(graph, node, 0) == TANDEM_BOOL &&
               input_dtype(graph, node, 1) == TANDEM_F32 &&
               input_dtype(graph, node, 2) == TANDEM_F32;
    case RULE_CAST:
        return cast_is_served(input_dtype(graph, node, 0),
                              cast_dtype(graph, node));
    case RULE_MOVE:
        return moves_no_shape(graph, node);
    case RULE_GATHER:
        return moves_no_shape(graph, node) &&
               dtype_is_integer(input_dtype(graph, node, 1));
    case RULE_SHAPE:
        output = node_output(graph, node);
        return output != NULL && (dtype_is_integer(output->dtype) ||
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

static bool attributes_are_served(const struct graph *graph,
                                  const struct graph_node *node)
{
    if (strcmp(node->type, "Dropout") == 0)
        return dropout_is_identity(graph, node);
    if (strcmp(node->type, "FusedMatMul") == 0)
        return graph_integer(node, "transBatchA", 0) == 0 &&
               graph_integer(node, "transBatchB", 0) == 0;
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

/* Returns true if the operator computes integers on the host when the content
 * of its inputs is known. */
static bool computes_integers(const struct graph *graph,
                              const struct graph_node *node,
                              const struct onnx_operator *op)
{
    const struct graph_value *output = node_output(graph, node);

    if (op->evaluate == NULL || output == NULL ||
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

const struct onnx_operator *operator_find(const struct graph *graph,
                                          const struct graph_node *node)
{
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        const struct onnx_operator *op = &operators[i];

        if (strcmp(op->type, node->type) != 0 ||
            strcmp(op->domain, node->domain) != 0)
            continue;
        if (node->since_version <= op->newest_version &&
            required_inputs_are_present(graph, node, op) &&
            outputs_are_served(graph, node) &&
            attributes_are_served(graph, node) &&
            (rule_accepts(graph, node, op) ||
             computes_integers(graph, node, op)))
            return op;
        return NULL;
    }
    return NULL;
}
