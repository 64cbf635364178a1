/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of a plugin's operators that are described by tensors: struct
 * tandem_tensor_desc has the description of an operand and its memory.
 */
#ifndef TOOLS_TENSOR_CALL_H
#define TOOLS_TENSOR_CALL_H

#include <stdbool.h>

#include "../../src/common/tensor_desc.h"

/* The maximum number of inputs, and of outputs, also of invalid calls. */
#define MAX_CALL_OPERANDS (TANDEM_MAX_OPERANDS + 1)

/* The operands, as the functions of a plugin take them. */
struct tensor_call {
    struct tandem_operand_desc descs[2 * MAX_CALL_OPERANDS];
    const struct tandem_operand_desc *pointers[2 * MAX_CALL_OPERANDS];
    struct tandem_memory memory[2 * MAX_CALL_OPERANDS];
    uint32_t input_count, output_count;
    uint32_t first_output;        /* its index in the arrays */
    bool has_inputs, has_outputs; /* false: the plugin gets NULL */
};

/* Describes the tensors.  `max_alignment`, a power of two, limits the alignment
 * of the operands; it is that of their offsets.  0 means that of an element.
 * The call may be invalid: NULL arrays and wrong counts reach the plugin, but
 * of more than MAX_CALL_OPERANDS tensors none is described. */
void tensor_call_init(struct tensor_call *out,
                      const struct tandem_tensor_desc *const *inputs,
                      uint32_t input_count,
                      const struct tandem_tensor_desc *const *outputs,
                      uint32_t output_count, uint32_t max_alignment);
/* Calls prepare of the plugin, without information. */
enum tandem_status tensor_call_prepare(const struct tensor_call *call,
                                       const struct tandem_backend *api,
                                       struct tandem_device *device,
                                       const struct tandem_op *op,
                                       uint32_t flags,
                                       struct tandem_prepared **out_prepared);

/* Returns TANDEM_OK if the device supports the call. */
enum tandem_status tensors_supported(
    const struct tandem_backend *api, struct tandem_device *device,
    const struct tandem_op *op, const struct tandem_tensor_desc *const *inputs,
    uint32_t input_count, const struct tandem_tensor_desc *const *outputs,
    uint32_t output_count);
/* Prepares the call, which starts to compile it, and releases it. */
enum tandem_status tensors_prepare(
    const struct tandem_backend *api, struct tandem_device *device,
    const struct tandem_op *op, const struct tandem_tensor_desc *const *inputs,
    uint32_t input_count, const struct tandem_tensor_desc *const *outputs,
    uint32_t output_count, uint32_t max_alignment);
/* Like tensors_prepare, and returns TANDEM_NOT_READY if the call is not
 * compiled yet, or the error of the compilation.  Does not block. */
enum tandem_status tensors_poll(const struct tandem_backend *api,
                                struct tandem_device *device,
                                const struct tandem_op *op,
                                const struct tandem_tensor_desc *const *inputs,
                                uint32_t input_count,
                                const struct tandem_tensor_desc *const *outputs,
                                uint32_t output_count, uint32_t max_alignment);
/* Prepares the call, launches it once and releases it.  `max_alignment` is that
 * of tensor_call_init. */
enum tandem_status
tensors_launch(const struct tandem_backend *api, struct tandem_device *device,
               struct tandem_stream *stream, const struct tandem_op *op,
               const struct tandem_tensor_desc *const *inputs,
               uint32_t input_count,
               const struct tandem_tensor_desc *const *outputs,
               uint32_t output_count, uint32_t max_alignment);

#endif
