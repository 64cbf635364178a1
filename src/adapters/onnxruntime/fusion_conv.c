/* SPDX-License-Identifier: Apache-2.0 */
/* Gives convolutions the operators that follow them; see fusion_conv.h. ONNX
 * Runtime itself merges a batch normalization, and sums and products with a
 * constant, into the weight and bias. */
#include <config.h>

#include "adapters/onnxruntime/fusion_conv.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <string.h>

static bool is_convolution(const struct graph_node *node)
{
    return !node->removed && node->op != NULL &&
           (node->op->tandem_op == TANDEM_OP_CONV ||
            node->op->tandem_op == TANDEM_OP_CONV_TRANSPOSE);
}

/* Lets the sum of a convolution and another tensor be the convolution, because
 * the other tensor may be computed later than the convolution. Returns the node
 * that is the convolution then. */
static struct graph_node *absorb_sum(struct fusion *f, struct graph_node *conv)
{
    struct graph_node *sum = node_only_reader(f, conv);
    struct match match = {.nodes = {conv, sum}, .count = 2};
    int32_t inputs[4] = {conv->inputs[0], conv->inputs[1], NO_VALUE, NO_VALUE};
    const struct graph_value *residual, *output;

    if (!node_is_type(sum, "Add") || conv->input_count > 3 ||
        conv->epilogue.activation != TANDEM_OP_INVALID)
        return conv;
    inputs[3] = node_other_input(sum, conv->outputs[0]);
    if (inputs[3] == NO_VALUE || inputs[3] == conv->outputs[0])
        return conv;
    residual = &f->graph->values[inputs[3]];
    output = &f->graph->values[conv->outputs[0]];
    if (!residual->has_shape || !output->has_shape ||
        residual->rank != output->rank || residual->dtype != TANDEM_F32)
        return conv;
    if (conv->input_count > 2)
        inputs[2] = conv->inputs[2];
    match_replace(f, &match, sum, conv->op, inputs, 4);
    if (sum->op != conv->op)
        return conv;
    sum->attributes = conv->attributes;
    sum->attribute_count = conv->attribute_count;
    return sum;
}

void fuse_convolutions(struct fusion *f)
{
    for (uint32_t i = 0; i < f->graph->node_count; i++) {
        struct graph_node *node = &f->graph->nodes[i], *next;

        if (!is_convolution(node) || node->input_count > 3 ||
            graph_attribute(node, "activation") != NULL)
            continue;
        node = absorb_sum(f, node);
        next = node_only_reader(f, node);
        if (node->epilogue.activation == TANDEM_OP_INVALID && next != NULL &&
            !next->removed &&
            node_activation(f->graph, next, &node->epilogue.activation,
                            node->epilogue.parameters))
            node_absorb(f, node, next);
    }
}
