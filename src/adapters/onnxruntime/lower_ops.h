/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that lower each ONNX operator.  Each appends the steps of
 * l->node and sets its outputs; on failure it returns false and has set
 * l->problem.  Required inputs are present. */
#ifndef TANDEM_ONNXRUNTIME_LOWER_OPS_H
#define TANDEM_ONNXRUNTIME_LOWER_OPS_H

#include "adapters/onnxruntime/lower.h"

/* Converts an axis that may count from the end.  Returns false if it is out of
 * range. */
bool axis_normalize(struct lowering *l, int64_t axis, uint32_t rank,
                    uint32_t *out);
/* Reads the axes in input `index` or in the attribute "axes".  *out_set is
 * false if there is neither; bit i of *out_mask is set for axis i. */
bool axes_read(struct lowering *l, uint32_t index, uint32_t rank, bool *out_set,
               uint32_t *out_mask);
/* Applies the parameters of a Slice node to a view. */
bool lower_slice_view(struct lowering *l, struct form_view *view);
/* Sets the output to x, whose content is known, with another dtype. */
bool lower_cast_integers(struct lowering *l, struct operand *x, uint32_t dtype);

/* Makes a view [batch, heads, tokens, width] of a tensor, which has these axes
 * or [batch, tokens, heads * width]. */
bool lower_heads_view(struct lowering *l, const struct operand *x,
                      int64_t heads, struct operand *out);

/* lower_elementwise.c */
bool lower_elementwise_unary(struct lowering *l);
bool lower_activation(struct lowering *l);
bool lower_gelu(struct lowering *l);
bool lower_swish(struct lowering *l);
bool lower_clip(struct lowering *l);
bool lower_elementwise_binary(struct lowering *l);
bool lower_pow(struct lowering *l);
bool lower_compare(struct lowering *l);
bool lower_mod(struct lowering *l);
bool lower_predicate(struct lowering *l);
bool lower_logical(struct lowering *l);
bool lower_where(struct lowering *l);
bool lower_variadic(struct lowering *l);
bool lower_cast(struct lowering *l);

/* lower_movement.c */
bool lower_identity(struct lowering *l);
bool lower_transpose(struct lowering *l);
bool lower_reshape_op(struct lowering *l);
bool lower_flatten(struct lowering *l);
bool lower_squeeze(struct lowering *l);
bool lower_unsqueeze(struct lowering *l);
bool lower_expand_op(struct lowering *l);
bool lower_slice(struct lowering *l);
bool lower_split(struct lowering *l);
bool lower_concat(struct lowering *l);
bool lower_gather(struct lowering *l);
bool lower_gather_elements(struct lowering *l);
bool lower_gather_nd(struct lowering *l);
bool lower_scatter_elements(struct lowering *l);
bool lower_scatter_nd(struct lowering *l);
bool lower_depth_to_space(struct lowering *l);
bool lower_space_to_depth(struct lowering *l);

/* lower_pad.c */
bool lower_pad(struct lowering *l);
bool lower_tile(struct lowering *l);

/* lower_generate.c */
bool lower_one_hot(struct lowering *l);
bool lower_trilu(struct lowering *l);
bool lower_range(struct lowering *l);

/* lower_attention.c */
bool lower_attention(struct lowering *l);
bool lower_multi_head_attention(struct lowering *l);
bool lower_microsoft_attention(struct lowering *l);

/* lower_conv.c */
bool lower_conv(struct lowering *l);

/* lower_pool.c */
bool lower_pool(struct lowering *l);
bool lower_global_pool(struct lowering *l);

/* lower_reduce.c */
bool lower_reduce(struct lowering *l);
bool lower_arg_reduce(struct lowering *l);
bool lower_cumsum(struct lowering *l);
bool lower_topk(struct lowering *l);
bool lower_softmax(struct lowering *l);
bool lower_norm(struct lowering *l);
bool lower_skip_layer_norm(struct lowering *l);
bool lower_channel_norm(struct lowering *l);

/* lower_resize.c */
bool lower_resize(struct lowering *l);

/* lower_fused_attention.c: nodes that fusion_attention.c made */
bool lower_fused_attention(struct lowering *l);

/* lower_rotary_embedding.c */
bool lower_rotary_embedding(struct lowering *l);
bool lower_microsoft_rotary_embedding(struct lowering *l);

/* lower_matmul.c */
bool lower_matmul(struct lowering *l);
bool lower_fused_matmul(struct lowering *l);
bool lower_gemm(struct lowering *l);

/* lower_shape.c: on the host, if the content of all inputs is known */
bool lower_shape(struct lowering *l);
bool lower_size(struct lowering *l);
bool lower_constant_of_shape(struct lowering *l);
bool shape_binary(struct lowering *l);
bool shape_not(struct lowering *l);
bool shape_expand(struct lowering *l);
bool shape_where(struct lowering *l);
bool shape_cast(struct lowering *l);
bool shape_gather(struct lowering *l);
bool shape_concat(struct lowering *l);
bool shape_slice(struct lowering *l);
bool shape_range(struct lowering *l);

#endif
