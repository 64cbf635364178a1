/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the ONNX operators that the provider serves; see operators.h. */
#include <config.h>

#include "adapters/onnxruntime/operators.h"
#include "adapters/onnxruntime/lower_ops.h"

#include <string.h>

#define MICROSOFT "com.microsoft"

/* Operator-set versions 24 to 28 only add element types to these operators
 * (https://github.com/onnx/onnx/blob/main/docs/Changelog.md). */
#define NEWEST 28

/* domain, type, newest version, operator of Tandem, rule, required inputs,
 * parameters, lower, evaluate */
#define UNARY_RULE(type, OP, rule)                                             \
    {                                                                          \
        "", type, NEWEST, TANDEM_OP_##OP, rule, 1, 0, lower_elementwise_unary, \
            NULL                                                               \
    }
#define UNARY(type, OP) UNARY_RULE(type, OP, RULE_F32)
#define BINARY(type, OP, rule, evaluate)                                       \
    {                                                                          \
        "", type, NEWEST, TANDEM_OP_##OP, rule, 2, 0,                          \
            lower_elementwise_binary, evaluate                                 \
    }
#define COMPARE(type, OP, evaluate)                                            \
    {                                                                          \
        "", type, NEWEST, TANDEM_OP_##OP, RULE_COMPARE, 2, 0, lower_compare,   \
            evaluate                                                           \
    }
#define LOGICAL(type, OP, evaluate)                                            \
    {                                                                          \
        "", type, NEWEST, TANDEM_OP_##OP, RULE_LOGICAL, 2, 0, lower_logical,   \
            evaluate                                                           \
    }
#define VARIADIC(type, OP, rule, evaluate)                                     \
    {                                                                          \
        "", type, NEWEST, TANDEM_OP_##OP, rule, ALL_INPUTS, 0, lower_variadic, \
            evaluate                                                           \
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
    UNARY_RULE("Abs", ABS, RULE_NUMBER),
    UNARY("Acos", ACOS),
    UNARY("Acosh", ACOSH),
    UNARY("Asin", ASIN),
    UNARY("Asinh", ASINH),
    UNARY("Atan", ATAN),
    UNARY("Atanh", ATANH),
    UNARY("Ceil", CEIL),
    UNARY("Cos", COS),
    UNARY("Cosh", COSH),
    UNARY("Erf", ERF),
    UNARY("Exp", EXP),
    UNARY("Floor", FLOOR),
    UNARY("HardSwish", HARDSWISH),
    UNARY("Log", LOG),
    UNARY("Mish", MISH),
    UNARY_RULE("Neg", NEG, RULE_NUMBER),
    UNARY("Reciprocal", RECIPROCAL),
    UNARY("Relu", RELU),
    UNARY("Round", ROUND),
    UNARY("Sigmoid", SIGMOID),
    UNARY_RULE("Sign", SIGN, RULE_NUMBER),
    UNARY("Sin", SIN),
    UNARY("Sinh", SINH),
    UNARY("Softplus", SOFTPLUS),
    UNARY("Softsign", SOFTSIGN),
    UNARY("Sqrt", SQRT),
    UNARY("Tan", TAN),
    UNARY("Tanh", TANH),
    OTHER("", "Celu", CELU, 1, lower_activation),
    OTHER("", "Clip", CLIP, 1, lower_clip),
    OTHER("", "Elu", ELU, 1, lower_activation),
    OTHER("", "Gelu", GELU, 1, lower_gelu),
    OTHER("", "HardSigmoid", HARDSIGMOID, 1, lower_activation),
    OTHER("", "LeakyRelu", LEAKY_RELU, 1, lower_activation),
    OTHER("", "Selu", SELU, 1, lower_activation),
    OTHER("", "Swish", SWISH, 1, lower_swish),
    OTHER("", "ThresholdedRelu", THRESHOLDED_RELU, 1, lower_activation),
    OTHER(MICROSOFT, "BiasGelu", GELU, 1, lower_gelu),
    OTHER(MICROSOFT, "FastGelu", GELU, 1, lower_gelu),
    OTHER(MICROSOFT, "Gelu", GELU, 1, lower_gelu),
    BINARY("Add", ADD, RULE_NUMBER, shape_binary),
    BINARY("Div", DIV, RULE_NUMBER, shape_binary),
    {"", "Mod", NEWEST, TANDEM_OP_MOD, RULE_NUMBER, 2, 0, lower_mod, NULL},
    BINARY("Mul", MUL, RULE_NUMBER, shape_binary),
    BINARY("PRelu", PRELU, RULE_F32, NULL),
    BINARY("Sub", SUB, RULE_NUMBER, shape_binary),
    {"", "Pow", NEWEST, TANDEM_OP_POW, RULE_POW, 2, 0, lower_pow, NULL},
    VARIADIC("Max", MAX, RULE_NUMBER, shape_binary),
    VARIADIC("Mean", ADD, RULE_F32, NULL),
    VARIADIC("Min", MIN, RULE_NUMBER, shape_binary),
    VARIADIC("Sum", ADD, RULE_F32, NULL),
    COMPARE("Equal", EQUAL, shape_binary),
    COMPARE("Greater", GREATER, shape_binary),
    COMPARE("GreaterOrEqual", GREATER_EQUAL, shape_binary),
    COMPARE("Less", LESS, shape_binary),
    COMPARE("LessOrEqual", LESS_EQUAL, shape_binary),
    {"", "IsInf", NEWEST, TANDEM_OP_IS_INF, RULE_PREDICATE, 1, 0,
     lower_predicate, NULL},
    {"", "IsNaN", NEWEST, TANDEM_OP_IS_NAN, RULE_PREDICATE, 1, 0,
     lower_predicate, NULL},
    LOGICAL("And", AND, shape_binary),
    LOGICAL("Or", OR, shape_binary),
    LOGICAL("Xor", XOR, NULL),
    {"", "Not", NEWEST, TANDEM_OP_NOT, RULE_LOGICAL, 1, 0,
     lower_elementwise_unary, shape_not},
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
    {"", "CumSum", NEWEST, TANDEM_OP_CUMSUM, RULE_F32, 2, 1u << 1, lower_cumsum,
     NULL},
    {"", "Resize", NEWEST, TANDEM_OP_RESIZE, RULE_F32, 1, 0xeu, lower_resize,
     NULL},
    {"", "Upsample", 9, TANDEM_OP_RESIZE, RULE_F32, 1, 0xeu, lower_resize,
     NULL},
    {"", "TopK", NEWEST, TANDEM_OP_TOPK, RULE_F32, 1, 1u << 1, lower_topk,
     NULL},
    {"", "Attention", NEWEST, TANDEM_OP_ATTENTION, RULE_ATTENTION, 3, 0,
     lower_attention, NULL},
    {MICROSOFT, "Attention", NEWEST, TANDEM_OP_ATTENTION, RULE_PADDED, 2, 0,
     lower_microsoft_attention, NULL},
    {MICROSOFT, "MultiHeadAttention", NEWEST, TANDEM_OP_ATTENTION, RULE_PADDED,
     3, 0, lower_multi_head_attention, NULL},
    {"", "RotaryEmbedding", NEWEST, TANDEM_OP_ROTARY_EMBEDDING, RULE_ROTARY, 3,
     0, lower_rotary_embedding, NULL},
    {MICROSOFT, "RotaryEmbedding", NEWEST, TANDEM_OP_ROTARY_EMBEDDING,
     RULE_ROTARY, 4, 0, lower_microsoft_rotary_embedding, NULL},
    OTHER("", "Conv", CONV, 2, lower_conv),
    OTHER("", "ConvTranspose", CONV_TRANSPOSE, 2, lower_conv),
    OTHER(MICROSOFT, "FusedConv", CONV, 2, lower_conv),
    OTHER("", "AveragePool", AVERAGE_POOL, 1, lower_pool),
    OTHER("", "GlobalAveragePool", MEAN, 1, lower_global_pool),
    OTHER("", "GlobalMaxPool", REDUCE_MAX, 1, lower_global_pool),
    OTHER("", "MaxPool", MAX_POOL, 1, lower_pool),
    OTHER("", "LogSoftmax", LOG_SOFTMAX, 1, lower_softmax),
    OTHER("", "Softmax", SOFTMAX, 1, lower_softmax),
    OTHER("", "BatchNormalization", BATCH_NORM, 5, lower_channel_norm),
    OTHER("", "GroupNormalization", GROUP_NORM, 3, lower_channel_norm),
    OTHER("", "InstanceNormalization", INSTANCE_NORM, 3, lower_channel_norm),
    OTHER("", "LayerNormalization", LAYER_NORM, 1, lower_norm),
    OTHER("", "RMSNormalization", RMS_NORM, 1, lower_norm),
    OTHER("", "SimplifiedLayerNormalization", RMS_NORM, 1, lower_norm),
    OTHER(MICROSOFT, "SkipLayerNormalization", LAYER_NORM, 3,
          lower_skip_layer_norm),
    OTHER("", "Gemm", GEMM, 2, lower_gemm),
    OTHER("", "MatMul", GEMM, 2, lower_matmul),
    OTHER(MICROSOFT, "FusedMatMul", GEMM, 2, lower_fused_matmul),
    MOVE("Concat", ALL_INPUTS, 0, lower_concat, shape_concat),
    MOVE("DepthToSpace", 1, 0, lower_depth_to_space, NULL),
    MOVE("Dropout", 1, 0, lower_identity, NULL),
    MOVE("Expand", 2, 1u << 1, lower_expand_op, shape_expand),
    MOVE("Flatten", 1, 0, lower_flatten, NULL),
    MOVE("Identity", 1, 0, lower_identity, lower_identity),
    MOVE("Reshape", 2, 1u << 1, lower_reshape_op, lower_reshape_op),
    {"", "OneHot", NEWEST, TANDEM_OP_ONE_HOT, RULE_MOVE, 3, 1u << 1,
     lower_one_hot, NULL},
    {"", "Pad", NEWEST, TANDEM_OP_PAD, RULE_MOVE, 1, 0xeu, lower_pad, NULL},
    MOVE("Slice", 3, 0x1eu, lower_slice, shape_slice),
    MOVE("SpaceToDepth", 1, 0, lower_space_to_depth, NULL),
    MOVE("Split", 1, 1u << 1, lower_split, NULL),
    MOVE("Squeeze", 1, 1u << 1, lower_squeeze, lower_squeeze),
    {"", "Tile", NEWEST, TANDEM_OP_TILE, RULE_MOVE, 2, 1u << 1, lower_tile,
     NULL},
    MOVE("Transpose", 1, 0, lower_transpose, NULL),
    {"", "Trilu", NEWEST, TANDEM_OP_TRILU, RULE_MOVE, 1, 1u << 1, lower_trilu,
     NULL},
    MOVE("Unsqueeze", 1, 1u << 1, lower_unsqueeze, lower_unsqueeze),
    {"", "Gather", NEWEST, TANDEM_OP_GATHER, RULE_GATHER, 2, 0, lower_gather,
     shape_gather},
    {"", "GatherElements", NEWEST, TANDEM_OP_GATHER_ELEMENTS, RULE_GATHER, 2, 0,
     lower_gather_elements, NULL},
    {"", "GatherND", NEWEST, TANDEM_OP_GATHER_ND, RULE_GATHER, 2, 0,
     lower_gather_nd, NULL},
    {"", "Scatter", 10, TANDEM_OP_SCATTER_ELEMENTS, RULE_SCATTER, 3, 0,
     lower_scatter_elements, NULL},
    {"", "ScatterElements", NEWEST, TANDEM_OP_SCATTER_ELEMENTS, RULE_SCATTER, 3,
     0, lower_scatter_elements, NULL},
    {"", "ScatterND", NEWEST, TANDEM_OP_SCATTER_ND, RULE_SCATTER, 3, 0,
     lower_scatter_nd, NULL},
    {"", "ConstantOfShape", NEWEST, TANDEM_OP_INVALID, RULE_SHAPE, 1, 1u << 0,
     lower_constant_of_shape, lower_constant_of_shape},
    {"", "Range", NEWEST, TANDEM_OP_RANGE, RULE_SHAPE, 3, 7u, lower_range,
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

const struct onnx_operator *operator_by_type(const char *domain,
                                             const char *type)
{
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (strcmp(operators[i].type, type) == 0 &&
            strcmp(operators[i].domain, domain) == 0)
            return &operators[i];
    }
    return NULL;
}

void operators_assign(struct graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct graph_node *node = &graph->nodes[i];
        const struct onnx_operator *op =
            operator_by_type(node->domain, node->type);

        node->op = op != NULL && operator_serves(op, graph, node) ? op : NULL;
    }
}
