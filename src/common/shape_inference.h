/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What shape an operator's output has, and shapes as text.  Pure functions.
 */
#ifndef TANDEM_COMMON_SHAPE_INFERENCE_H
#define TANDEM_COMMON_SHAPE_INFERENCE_H

#include <tandem/backend.h>

#include "common/operator_table.h"

/* Room for the text of any shape. */
#define SHAPE_TEXT (TANDEM_MAX_RANK * 22u + 4u)

/* "[2, 3]" into text, of SHAPE_TEXT bytes; returns text. */
const char *shape_text(const struct tandem_tensor_desc *tensor, char *text);

/* "relu: input 0". */
void operand_name(char *text, size_t text_bytes,
                  const struct operator_row *row, bool output, uint32_t place);

/* Whether from broadcasts to exactly the shape of to. */
bool shape_broadcasts(const struct tandem_tensor_desc *from,
                      const struct tandem_tensor_desc *to);

#endif
