/* SPDX-License-Identifier: Apache-2.0 */
/* An operator call, and the checks of its operands. */
#ifndef TANDEM_HOST_RUN_CALL_H
#define TANDEM_HOST_RUN_CALL_H

#include "common/operator_table.h"
#include "host/tensor/tensor.h"

struct prepared_entry;

/* An operand of a question about a call, instead of a tensor.  desc.buffer
 * tells operands apart and is no buffer. */
struct described_operand {
    struct tandem_tensor_desc desc;
    struct tensor_layout layout;
    bool is_scalar;
};

/* An operator call.  The struct does not own the objects to which it points. */
struct call {
    struct tandem_context *context;
    const struct operator_info *row;
    const struct tandem_op *op;
    struct tandem_tensor *const *inputs;
    struct tandem_tensor *const *outputs;
    /* Inputs, then outputs; NULL if the call has tensors. */
    const struct described_operand *described;
    uint32_t input_count, output_count;
    uint32_t device; /* required device number or TANDEM_ANY_DEVICE */
    /* The call's entry in the cache of prepared operators, or NULL, and where
     * the cache records that the call uses it. */
    struct prepared_entry *entry;
    _Atomic(struct prepared_entry *) *entry_use;
    uint64_t rebinds; /* context->rebinds before the entry was searched */
};

/* Checks the tensors' handles. */
enum tandem_status call_check_handles(const struct call *call);
/* Checks the number of operands, and that their arrays are not NULL. */
enum tandem_status counts_check(const char *operator_name, bool has_inputs,
                                uint32_t input_count, bool has_outputs,
                                uint32_t output_count);
/* Checks the counts and arrays of a call, and fills `call`, which has no
 * tensors. */
enum tandem_status call_init_question(struct call *call,
                                      struct tandem_context *context,
                                      uint32_t device,
                                      const struct tandem_op *op,
                                      bool has_inputs, uint32_t input_count,
                                      bool has_outputs, uint32_t output_count);
/* Checks the tensors' handles and their number, and fills `call`. */
enum tandem_status call_init(struct call *call, struct tandem_context *context,
                             uint32_t device, const struct tandem_op *op,
                             struct tandem_tensor *const *inputs,
                             uint32_t input_count,
                             struct tandem_tensor *const *outputs,
                             uint32_t output_count);

/* The descriptions of a call's operands, for the functions of common/. */
struct call_descs {
    const struct tandem_tensor_desc *inputs[TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *outputs[TANDEM_MAX_OPERANDS];
};
/* Returns the tensor of operand i of a call with tensors, or NULL for a
 * scalar. */
static inline const struct tandem_tensor *
call_operand_tensor(const struct call *call, uint32_t i)
{
    return i < call->input_count ? call->inputs[i]
                                 : call->outputs[i - call->input_count];
}

/* Returns the description of operand i of the call, or NULL for a scalar. */
static inline const struct tandem_tensor_desc *
call_operand_desc(const struct call *call, uint32_t i)
{
    const struct tandem_tensor *tensor;

    if (call->described != NULL)
        return call->described[i].is_scalar ? NULL : &call->described[i].desc;
    tensor = call_operand_tensor(call, i);
    return tensor != NULL ? &tensor->desc : NULL;
}

void call_descs_get(const struct call *call, struct call_descs *out);

/* Returns TANDEM_OK if the operator accepts the call's operands. */
enum tandem_status call_check(const struct call *call);
/* Checks only what does not depend on the tensors' memory. */
enum tandem_status call_check_shapes(const struct call *call);
/* Checks only what depends on the tensors' memory. */
enum tandem_status call_check_memory(const struct call *call);

#endif
