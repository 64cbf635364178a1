/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iteration spaces: how the elements of several operands are walked together,
 * with broadcasting resolved, axes of one element dropped and axes that can
 * be walked as one merged.  Pure functions over checked descriptors.
 */
#ifndef TANDEM_COMMON_ITERATION_SPACE_H
#define TANDEM_COMMON_ITERATION_SPACE_H

#include <tandem/backend.h>

#define LAYOUT_OPERANDS (2u * TANDEM_MAX_OPERANDS)

/* Axis rank - 1 is the innermost.  rank is at least 1 (one element: shape
 * {1}, strides 0); elements is 0 where the space is empty.  Strides are in
 * elements of each operand, 0 where it repeats. */
struct layout {
    uint32_t rank, operands;
    int64_t elements;
    int64_t shape[TANDEM_MAX_RANK];
    int64_t strides[LAYOUT_OPERANDS][TANDEM_MAX_RANK];
};

/* Over the shape of operand 0, to which the others broadcast (right-aligned);
 * a NULL operand is a scalar.  Axes are reordered so that operand 0's strides
 * fall from outer to inner, unless keep_order. */
void layout_broadcast(struct layout *out,
                      const struct tandem_tensor_desc *const *operands,
                      uint32_t count, bool keep_order);

/* Element-wise classes: operands in the order outputs, then inputs. */
void layout_elementwise(struct layout *out,
                        const struct tandem_tensor_desc *const *inputs,
                        uint32_t input_count,
                        const struct tandem_tensor_desc *const *outputs,
                        uint32_t output_count);

/* Whether operand walks 1, 2, 3, ... (or there is one element). */
bool layout_contiguous(const struct layout *layout, uint32_t operand);
/* Whether operand stays where it is. */
bool layout_constant(const struct layout *layout, uint32_t operand);

/* Reductions, arg reductions, softmax and cross-entropy.
 * kept: operand 0 the output, 1 the input, over the axes that stay.
 * reduced: operand 0 the input (1 the output, for softmax), over the axes of
 * the mask, in row-major order. */
struct layout_reduction {
    struct layout kept, reduced;
};
void layout_reduce(struct layout_reduction *out,
                   const struct tandem_tensor_desc *input,
                   const struct tandem_tensor_desc *output, uint32_t axes);
/* axis may be negative. */
void layout_softmax(struct layout_reduction *out,
                    const struct tandem_tensor_desc *input,
                    const struct tandem_tensor_desc *output, int64_t axis);

/* Layer and RMS norm, over the axes from axis on, which may be negative.
 * kept: operand 0 the output, 1 the input.  reduced: 0 the input, 1 the
 * output; affine: 0 the scale, 1 the bias (where there is one), of the same
 * elements in the same order. */
struct layout_norm {
    struct layout kept, reduced, affine;
};
void layout_norm(struct layout_norm *out,
                 const struct tandem_tensor_desc *const *inputs,
                 uint32_t input_count, const struct tandem_tensor_desc *output,
                 int64_t axis);

/* Over the output's shape: operands output, data, indices.  The element of
 * data is at its walk plus index * (*out_axis_stride), indices in
 * [0, *out_axis_elements). */
void layout_gather(struct layout *out, const struct tandem_tensor_desc *data,
                   const struct tandem_tensor_desc *indices,
                   const struct tandem_tensor_desc *output, int64_t axis,
                   int64_t *out_axis_stride, int64_t *out_axis_elements);

/* input with its axes permuted, as TRANSPOSE reads it. */
void layout_permute(struct tandem_tensor_desc *out,
                    const struct tandem_tensor_desc *input,
                    const int64_t *permutation);

#endif
