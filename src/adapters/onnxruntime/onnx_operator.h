/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX operator that the provider serves, and the conditions on a node's
 * dtypes and attributes. */
#ifndef TANDEM_ONNXRUNTIME_ONNX_OPERATOR_H
#define TANDEM_ONNXRUNTIME_ONNX_OPERATOR_H

#include "adapters/onnxruntime/graph.h"

#define ALL_INPUTS UINT32_MAX

struct lowering;

/* Dtypes that an operator accepts. */
enum operand_rule {
    RULE_F32,       /* f32 inputs and outputs */
    RULE_NUMBER,    /* f32, or integers of rank 2 and more; equal for all */
    RULE_POW,       /* f32, and an f32 or constant integer exponent */
    RULE_COMPARE,   /* inputs as RULE_NUMBER, bool output */
    RULE_PREDICATE, /* f32 input, bool output */
    RULE_LOGICAL,   /* bool inputs and output */
    RULE_WHERE,     /* bool condition, others as RULE_NUMBER */
    RULE_CAST,      /* between f32, i32, i64, u8 and bool */
    RULE_MOVE,      /* any dtype; integers only of rank 2 and more */
    RULE_GATHER,    /* data as RULE_MOVE, i32 or i64 indices */
    RULE_SCATTER,   /* data as RULE_MOVE, f32 with a reduction; i32 or i64
                     * indices */
    RULE_ARG,       /* f32 input, i64 output */
    RULE_ATTENTION, /* f32, and an input 3 (mask) of f32 or bool */
    RULE_PADDED,    /* f32, and a padding mask of i32 with rank 2 or 3 */
    RULE_ROTARY,    /* f32, and i32 or i64 positions */
    RULE_FUSED,     /* any, because a fusion has checked them */
    RULE_SHAPE      /* the output depends only on shapes */
};

struct onnx_operator {
    const char *domain, *type;
    int newest_version; /* newest operator-set version with this meaning */
    uint32_t tandem_op; /* enum tandem_op_id, if the lowering needs one */
    enum operand_rule rule;
    uint32_t required_inputs; /* or ALL_INPUTS */
    /* Bit i is set if the content of input i, a shape or axes, must be known
     * before the operator runs. */
    uint32_t parameters;
    bool (*lower)(struct lowering *l);
    /* Computes integers on the host if the content of all inputs is known.
     * NULL if the operator never computes shapes. */
    bool (*evaluate)(struct lowering *l);
};

/* Returns true if the operator serves the node, which has its type. */
bool operator_serves(const struct onnx_operator *op, const struct graph *graph,
                     const struct graph_node *node);

/* Returns true if the node computes integers, which the provider does on the
 * host if it knows the content of all inputs. */
bool node_computes_integers(const struct graph *graph,
                            const struct graph_node *node);
/* Returns true if the node can run on a device, whatever its inputs hold.  A
 * node that is served but cannot run on a device only computes integers. */
bool node_runs_on_device(const struct graph *graph,
                         const struct graph_node *node);

/* Returns true if the node is an operator of class UNARY of its first input and
 * constants.  Sets *out_op to the operator and out_parameters[0] and [1] to its
 * attributes. */
bool node_activation(const struct graph *graph, const struct graph_node *node,
                     uint32_t *out_op, double *out_parameters);

/* Sets *out_op to the activation of a FusedConv node and out_parameters[0] and
 * [1] to its attributes. If the node has no activation, *out_op is
 * TANDEM_OP_INVALID. Returns false if Tandem does not have the activation. */
bool fused_conv_activation(const struct graph_node *node, uint32_t *out_op,
                           double *out_parameters);

/* Operators with windows have at most this many spatial axes. */
#define MAX_SPATIAL_AXES 3u
/* Returns true if the attribute pads has the padding of the windows. */
bool node_pads_explicitly(const struct graph_node *node);
/* Returns true if the attribute auto_pad is SAME_LOWER or SAME_UPPER. */
bool node_pads_same(const struct graph_node *node, bool *out_lower);

/* Returns true if a Gelu, BiasGelu or FastGelu node uses the tanh form. */
bool gelu_is_approximate(const struct graph_node *node);

/* Returns the value that Tandem has for the attribute "reduction" of a scatter,
 * or -1 if Tandem does not have this reduction. */
int64_t scatter_reduction(const struct graph_node *node);

/* Returns the output dtype of a Cast or CastLike node, or 0. */
uint32_t cast_dtype(const struct graph *graph, const struct graph_node *node);

#endif
