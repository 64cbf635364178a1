/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the files op_<class>.c share: error messages about operands,
 * checks of shapes and attributes, inference of common shapes, and inputs of
 * examples. May be called from any thread. */
#ifndef TANDEM_COMMON_OP_CALL_H
#define TANDEM_COMMON_OP_CALL_H

#include "common/op_class.h"

/* Returns an operand of the call, or NULL for a scalar. */
static inline const struct tandem_tensor_desc *
op_call_operand(const struct op_call *call, uint32_t operand)
{
    return operand < call->input_count
               ? call->inputs[operand]
               : call->outputs[operand - call->input_count];
}

/* ---- messages ---- */

/* Buffer size, in bytes, that suffices for the name of every operand. */
#define OPERAND_NAME_BYTES 64
/* Buffer size, in bytes, that suffices for the text of every shape. */
#define TENSOR_SHAPE_TEXT (TANDEM_MAX_RANK * 22u + 4u)

/* Writes an operand's name, as in "relu: input 0", to text. Returns text. */
const char *operand_name(const struct op_call *call, uint32_t operand,
                         char *text);
/* Writes a shape, as in "[2, 3]", to text (TENSOR_SHAPE_TEXT bytes). Returns
 * text. */
const char *tensor_shape_text(const struct tandem_tensor_desc *tensor,
                              char *text);
/* Sets the last error to the operand's name, followed by the formatted text.
 * Returns TANDEM_INVALID_ARGUMENT. */
enum tandem_status operand_error(const struct op_call *call, uint32_t operand,
                                 const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets the last error to the operand's shape and the expected shape. Returns
 * TANDEM_INVALID_ARGUMENT. */
enum tandem_status shape_mismatch(const struct op_call *call, uint32_t operand,
                                  const struct tandem_tensor_desc *expected);

/* ---- checks ---- */

/* Checks that integer attribute `index`, which is called `name`, is 0 or 1. */
enum tandem_status check_switch(const struct op_call *call, uint32_t index,
                                const char *name);
/* Sets *out_axis to the axis that integer attribute 0 names in a tensor of rank
 * `rank`. A negative attribute counts from the end. */
enum tandem_status axis_get(const struct op_call *call, uint32_t rank,
                            uint32_t *out_axis);

/* Checks that input 1, the indices of input 0 along `axis`, has the rank of
 * input 0 and is not longer than input 0 along other axes. */
enum tandem_status check_index_shape(const struct op_call *call, uint32_t axis);
/* Sets *out_components to the number of positions in the last axis of input 1.
 * They are positions in the axes of input 0 from `first_axis` on. */
enum tandem_status index_components_get(const struct op_call *call,
                                        uint32_t first_axis,
                                        uint32_t *out_components);

/* ---- shapes ---- */

/* Returns true if `from` broadcasts to exactly the shape of `to`. */
bool shape_broadcasts(const struct tandem_tensor_desc *from,
                      const struct tandem_tensor_desc *to);
static inline void shape_copy(struct tandem_tensor_desc *out,
                              const struct tandem_tensor_desc *from)
{
    out->rank = from->rank;
    for (uint32_t i = 0; i < from->rank; i++)
        out->shape[i] = from->shape[i];
}
/* Appends axes first to end - 1 of a tensor to the shape of *out. Returns false
 * if the rank would exceed the maximum. */
bool shape_append(struct tandem_tensor_desc *out,
                  const struct tandem_tensor_desc *from, uint32_t first,
                  uint32_t end);

/* Appends an input to an example. */
void example_input(struct op_example *out, uint32_t rank, const int64_t *shape);

/* ---- operators along axis ints[0] ---- */

/* The members `infer` and `example` of such a class, if the output has the
 * shape of the input. The example selects the last axis. */
enum tandem_status axis_infer(const struct op_call *call, uint32_t output,
                              struct tandem_tensor_desc *out);
const char *axis_example(const struct operator_info *info, uint32_t rank,
                         const int64_t *shape, struct op_example *out);

#endif
