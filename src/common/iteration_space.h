/* SPDX-License-Identifier: Apache-2.0 */
/* Iteration spaces: shapes and strides for visiting the elements of several
 * operands together.  Broadcasting is resolved, axes of size 1 are dropped, and
 * adjacent axes are merged where all strides permit.  Pure functions; the
 * descriptors must have passed argument_check.h. */
#ifndef TANDEM_COMMON_ITERATION_SPACE_H
#define TANDEM_COMMON_ITERATION_SPACE_H

#include "common/tensor_desc.h"

#define SPACE_OPERANDS (2u * TANDEM_MAX_OPERANDS)

/* Iteration space of several operands. Axis rank - 1 is the innermost. The rank
 * is at least 1: a single element has shape {1} and strides 0. An empty space
 * has 0 elements. Strides are in elements of each operand, and 0 along axes
 * where the operand is broadcast. */
struct iteration_space {
    uint32_t rank, operands;
    int64_t elements;
    int64_t shape[TANDEM_MAX_RANK];
    int64_t strides[SPACE_OPERANDS][TANDEM_MAX_RANK];
};

/* Builds the space over the shape of operand 0, to which other operands
 * broadcast (right-aligned). A NULL operand is a scalar. Unless keep_order is
 * set, sorts the axes by the strides of operand 0, largest first. */
void space_broadcast(struct iteration_space *out,
                     const struct tandem_tensor_desc *const *operands,
                     uint32_t count, bool keep_order);

/* Builds the space of an element-wise operator. Its operands are the outputs,
 * followed by the inputs. */
void space_elementwise(struct iteration_space *out,
                       const struct tandem_tensor_desc *const *inputs,
                       uint32_t input_count,
                       const struct tandem_tensor_desc *const *outputs,
                       uint32_t output_count);

/* Returns true if the operand's elements are adjacent in the space's order. */
bool space_contiguous(const struct iteration_space *space, uint32_t operand);
/* Returns true if all strides of the operand in the space are 0. */
bool space_constant(const struct iteration_space *space, uint32_t operand);

/* Spaces of operators that combine the elements along some axes. The space
 * `kept` covers the axes that remain, with operands 0 (output) and 1 (input).
 * The space `reduced` covers the other axes in row-major order, with operand 0
 * (input) and, if space_along_axis made it, 1 (output). space_reduce reduces
 * axis i if bit i of its argument `axes` is set. */
struct reduction_spaces {
    struct iteration_space kept, reduced;
};
void space_reduce(struct reduction_spaces *out,
                  const struct tandem_tensor_desc *input,
                  const struct tandem_tensor_desc *output, uint32_t axes);
/* Builds the spaces of an operator that works along one axis and whose output
 * has the shape of its input, like softmax. The axis may be negative. */
void space_along_axis(struct reduction_spaces *out,
                      const struct tandem_tensor_desc *input,
                      const struct tandem_tensor_desc *output, int64_t axis);

/* Spaces of layer, RMS and group norm. `kept` covers the axes before `axis`,
 * with operands 0 (output) and 1 (input). `reduced` covers `axis` and later
 * axes, with operands 0 (input) and 1 (output). `affine` covers the elements of
 * `reduced` in the same order, with operands 0 (scale) and 1 (bias, if any). */
struct norm_spaces {
    struct iteration_space kept, reduced, affine;
};
void space_norm(struct norm_spaces *out,
                const struct tandem_tensor_desc *const *inputs,
                uint32_t input_count, const struct tandem_tensor_desc *output,
                int64_t axis);

/* Builds the spaces of group norm with `groups` groups, which is a divisor of
 * the number of channels and not 0. `kept` covers the images and the groups,
 * `reduced` the channels of a group and the spatial axes. `affine` always has
 * two axes: the channels of a group, and the elements of a channel. Its strides
 * are those of the first group. */
void space_group_norm(struct norm_spaces *out,
                      const struct tandem_tensor_desc *const *inputs,
                      const struct tandem_tensor_desc *output, int64_t groups);

/* Builds the space of batch norm, with the operands output, input and channel
 * number. */
void space_batch_norm(struct iteration_space *out,
                      const struct tandem_tensor_desc *input,
                      const struct tandem_tensor_desc *output);

/* The axes of a tensor that an index vector addresses. An index vector has
 * `count` components, component_stride elements apart in `indices`. Component
 * c, in [0, extents[c]), adds itself times strides[c] elements to the offset in
 * the tensor. */
struct indexed_axes {
    uint32_t count;
    int64_t component_stride;
    int64_t extents[TANDEM_MAX_RANK], strides[TANDEM_MAX_RANK];
};

/* Builds the space of an operator of class GATHER over the output's shape, with
 * the operands output, data and indices. Sets *out_axes to the axes of data
 * that `indices` address. */
void space_gather(struct iteration_space *out, struct indexed_axes *out_axes,
                  const struct tandem_op *op,
                  const struct tandem_tensor_desc *data,
                  const struct tandem_tensor_desc *indices,
                  const struct tandem_tensor_desc *output);

/* Spaces of an operator of class SCATTER. Operands are in brackets. An update
 * has a number: updates with different numbers can address the same element.
 * An element has a slot: updates that address the same slot and are at the same
 * place in `kept` address the same element. */
struct scatter_spaces {
    /* All updates [output, updates, indices, slots, numbers]. */
    struct iteration_space all;
    /* Updates by number, in row-major order [updates, indices]. */
    struct iteration_space numbered;
    /* Updates with the same number [output, updates, indices]. */
    struct iteration_space kept;
    /* Elements that updates can address [output, updates, indices, slots].
     * `slots` leaves out the places in `kept`. */
    struct iteration_space reached;
    struct indexed_axes axes;              /* the axes of the output */
    int64_t slot_strides[TANDEM_MAX_RANK]; /* of these axes */
    int64_t slots;                         /* number of slots */
};
void space_scatter(struct scatter_spaces *out, const struct tandem_op *op,
                   const struct tandem_tensor_desc *output,
                   const struct tandem_tensor_desc *indices,
                   const struct tandem_tensor_desc *updates);

/* Builds the space of the rows of TOPK, with the operands values, indices and
 * input. */
void space_topk(struct iteration_space *out,
                const struct tandem_tensor_desc *input,
                const struct tandem_tensor_desc *values,
                const struct tandem_tensor_desc *indices, uint32_t axis);

/* Sets *out to `input` with its axes permuted, for the operator TRANSPOSE. */
void space_permute(struct tandem_tensor_desc *out,
                   const struct tandem_tensor_desc *input,
                   const int64_t *permutation);

/* Builds the space over the shape of `target`, with the operands target, source
 * (of the same shape), and a number: the sum of each coordinate times its
 * element of `positions`. */
void space_with_positions(struct iteration_space *out,
                          const struct tandem_tensor_desc *target,
                          const struct tandem_tensor_desc *source,
                          const int64_t *positions);

/* Sets *out to `tensor` with another axis, along which its elements repeat. */
void tensor_insert_axis(struct tandem_tensor_desc *out,
                        const struct tandem_tensor_desc *tensor, uint32_t axis,
                        int64_t length);

/* Sets *out to the part of `tensor` with `length` elements along an axis, from
 * element `first` on. */
void tensor_slice(struct tandem_tensor_desc *out,
                  const struct tandem_tensor_desc *tensor, uint32_t axis,
                  int64_t first, int64_t length);

#endif
