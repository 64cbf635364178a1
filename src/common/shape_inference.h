/* SPDX-License-Identifier: Apache-2.0 */
/* Infers output shapes, formats shapes for messages, and checks broadcasting.
 * May be called from any thread. */
#ifndef TANDEM_COMMON_SHAPE_INFERENCE_H
#define TANDEM_COMMON_SHAPE_INFERENCE_H

#include <tandem/backend.h>

#include "common/operator_table.h"

/* Buffer size, in bytes, that suffices for the text of every shape. */
#define SHAPE_TEXT (TANDEM_MAX_RANK * 22u + 4u)

/* Writes a shape, as in "[2, 3]", to text (SHAPE_TEXT bytes). Returns text. */
const char *shape_text(const struct tandem_tensor_desc *tensor, char *text);

/* Returns true if `from` broadcasts to exactly the shape of `to`. */
bool shape_broadcasts(const struct tandem_tensor_desc *from,
                      const struct tandem_tensor_desc *to);

/* Sets dtype, rank and shape of *out to those of output number `output` of a
 * valid call. For CAST, the caller sets out->dtype. For COPY, sets the input's
 * shape, although the output's shape can be larger because of broadcasting. */
enum tandem_status infer_output(const struct tandem_op *op,
                                const struct tandem_tensor_desc *const *inputs,
                                uint32_t input_count, uint32_t output,
                                struct tandem_tensor_desc *out);

#endif
