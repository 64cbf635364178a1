/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of an operator call: check the arguments, choose a device, move the
 * inputs, launch.  Comments say if a function locks the context's mutex or if
 * the caller must have locked it ("the context must be locked"). */
#ifndef TANDEM_HOST_RUN_RUN_H
#define TANDEM_HOST_RUN_RUN_H

#include "common/gemm_operator.h"
#include "common/operator_table.h"
#include "host/chooser/chooser.h"
#include "host/tensor/tensor.h"

struct prepared_entry;

/* An operator call.  The struct does not own the objects to which it points. */
struct call {
    struct tandem_context *context;
    const struct operator_info *row;
    const struct tandem_op *op;
    struct tandem_tensor *const *inputs;
    struct tandem_tensor *const *outputs;
    uint32_t input_count, output_count;
    uint32_t device; /* required device number or TANDEM_ANY_DEVICE */
    /* The call's entry in the cache of prepared operators.  The call holds a
     * reference from prepared_cache_find on. */
    struct prepared_entry *entry;
};

#define MATMUL_COPIES 3 /* a, b and the bias */

/* A matrix multiplication as a call of the operator GEMM.  The call points into
 * this struct, so the struct must not be moved. */
struct matmul {
    struct call call;
    struct tandem_op op;
    int64_t ints[GEMM_INTS];
    double floats[GEMM_FLOATS];
    /* a, b, the bias if any, c if it is a residual, and c. */
    struct tandem_tensor *operands[MAX_GEMM_OPERANDS];
    uint32_t copied_inputs; /* number of operands that can be copied */
    /* Contiguous copies of inputs, owned by this struct; NULL means no copy. */
    struct tandem_tensor *copies[MATMUL_COPIES];
    /* Nothing runs, so the copies have no content.  The memory of the inputs
     * may be freed at once. */
    bool is_question;
};

/* Checks the tensors' handles and their number, and fills `call`. */
enum tandem_status call_init(struct call *call, struct tandem_context *context,
                             uint32_t device, const struct tandem_op *op,
                             struct tandem_tensor *const *inputs,
                             uint32_t input_count,
                             struct tandem_tensor *const *outputs,
                             uint32_t output_count);
/* Converts a matrix multiplication to an operator call.  Locks the context.  If
 * GEMM does not support the strides of an input, copies the input, or only
 * creates the copy for a question. */
enum tandem_status matmul_prepare(struct matmul *matmul,
                                  struct tandem_context *context,
                                  const struct tandem_matmul_options *options,
                                  struct tandem_tensor *a,
                                  struct tandem_tensor *b,
                                  struct tandem_tensor *c, bool is_question);
/* Locks the context and frees the input copies.  Must be called even if
 * matmul_prepare failed. */
void matmul_finish(struct matmul *matmul);

/* The descriptions of a call's operands, for the functions of common/. */
struct call_descs {
    const struct tandem_tensor_desc *inputs[TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *outputs[TANDEM_MAX_OPERANDS];
};
void call_descs_get(const struct call *call, struct call_descs *out);

/* Returns TANDEM_OK if the operator accepts the call's operands.  The context
 * must be locked. */
enum tandem_status call_check(const struct call *call);
/* Checks only what does not depend on the tensors' memory. */
enum tandem_status call_check_shapes(const struct call *call);
/* Checks only what depends on the tensors' memory.  The context must be locked.
 */
enum tandem_status call_check_memory(const struct call *call);

/* Returns TANDEM_OK if the device can run the call without compiling code
 * first.  If it supports the call but has to compile, it starts to compile in
 * the background, and the function returns TANDEM_NOT_READY.  Other errors say
 * why the device cannot run the call.  In a deterministic context, a device
 * that has to compile counts as ready.  The context must be locked. */
enum tandem_status call_make_ready(const struct call *call,
                                   struct device *device);

/* Locks the context and runs the call on the required or fastest device. */
enum tandem_status call_run(struct call *call);

/* Checks the call, finds its entry and the devices that may run it, and
 * initializes `decision`.  *out_forced is the device that must run the call, or
 * NULL.  The caller puts call->entry, also after a failure.  The context must
 * be locked. */
enum tandem_status call_prepare_decision(struct call *call,
                                         struct placement_decision *decision,
                                         struct device **out_forced);
/* Updates the locations of the request's operands from the storages.  Fails if
 * an input's content was lost or never written.  The context must be locked. */
enum tandem_status request_locate_operands(struct placement_request *request);

/* ---- op_launch.c: calls on one device.  The context must be locked. ---- */

/* Launches the call.  The operands must already be on the device. */
enum tandem_status call_enqueue(const struct call *call, struct device *device);
/* [may wait, up to HANG_DEADLINE]  Moves the operands to the device and
 * launches the call.  If it waited, sets decision->request.run_cost to NULL. */
enum tandem_status call_launch(const struct call *call,
                               struct placement_decision *decision,
                               struct device *device);
/* Updates the device and the operands' storages after a launch. */
void launch_note(const struct placement_request *request,
                 struct device *device);

/* Returns memory for the calling thread's next placement decision in this
 * context, or NULL if memory is exhausted.  The thread owns the memory. */
struct placement_decision *
placement_decision_get(const struct tandem_context *context);
/* Returns the calling thread's last placement decision, or NULL if it has none.
 * The decision may belong to another context. */
struct placement_decision *
placement_decision_find(const struct tandem_context *context);
/* Converts the decision to an explanation.  Predicts device times that are
 * missing.  The context must be locked. */
void explanation_fill(struct tandem_context *context,
                      struct placement_decision *decision,
                      struct tandem_explanation *out);

#endif
