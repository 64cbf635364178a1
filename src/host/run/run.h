/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of an operator: checked, placed, its inputs moved, launched.
 */
#ifndef TANDEM_HOST_RUN_RUN_H
#define TANDEM_HOST_RUN_RUN_H

#include "common/operator_table.h"
#include "host/chooser/chooser.h"
#include "host/tensor/tensor.h"

struct judged;

/* One operator that a caller asked for. */
struct call {
    struct tandem_context *context;
    const struct operator_row *row;
    const struct tandem_op *op;
    /* Of tandem_matmul: a, b and, if there is one, the bias; c. */
    struct tandem_tensor *const *inputs;
    struct tandem_tensor *const *outputs;
    uint32_t input_count, output_count;
    uint32_t device;  /* asked for, or TANDEM_ANY_DEVICE */
    struct tandem_gemm *gemm; /* of tandem_matmul, else NULL */
    const struct tandem_tensor_desc *input_descs[TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *output_descs[TANDEM_MAX_OPERANDS];
};

/* A product that a caller asked for, as a call. */
struct matmul {
    struct call call;
    struct tandem_op op;
    struct tandem_gemm gemm;
    struct tandem_tensor *tensors[4]; /* a, b, bias or NULL, c */
    /* Copies that stand for inputs, or NULL. */
    struct tandem_tensor *copies[3];
};

/* Judges handles and counts of op's operands and fills call. */
enum tandem_status call_make(struct call *call, struct tandem_context *context,
                             uint32_t device, const struct tandem_op *op,
                             struct tandem_tensor *const *inputs,
                             uint32_t input_count,
                             struct tandem_tensor *const *outputs,
                             uint32_t output_count);
/* matmul.c: likewise for a product.  Copies inputs whose strides a struct
 * tandem_gemm cannot express.  Locks. */
enum tandem_status call_make_matmul(struct matmul *matmul,
                                    struct tandem_context *context,
                                    const struct tandem_matmul_options *options,
                                    struct tandem_tensor *a,
                                    struct tandem_tensor *b,
                                    struct tandem_tensor *c);
/* Frees the copies, whatever call_make_matmul returned.  Locks. */
void call_end_matmul(struct matmul *matmul);

/* call.c: whether the operator is valid with these operands.  Locked. */
enum tandem_status call_check(const struct call *call);

/* What stands for a tensor's memory: its buffer on a device, or for checks
 * (TANDEM_ANY_DEVICE) its storage. */
static inline struct tandem_buffer *
call_buffer(const struct tandem_tensor *tensor, uint32_t device)
{
    return device == TANDEM_ANY_DEVICE
               ? (struct tandem_buffer *)tensor->storage
               : tensor->storage->buffers[device];
}

/* Sets what stands for memory in the descriptors of all operands.  Locked. */
static inline void call_buffers_set(const struct call *call, uint32_t device)
{
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i] != NULL)
            call->inputs[i]->desc.buffer = call_buffer(call->inputs[i], device);
    }
    for (uint32_t i = 0; i < call->output_count; i++)
        call->outputs[i]->desc.buffer = call_buffer(call->outputs[i], device);
}

/* run.c: runs it.  Locks. */
enum tandem_status call_run(struct call *call);

/* placement_request.c: judges the operator, finds the devices it may run on,
 * and starts record.  out_forced: the device it must run on, or NULL.
 * out_judged: see call_cache.h, or NULL.  Locked. */
enum tandem_status call_start(struct call *call, struct record *record,
                              struct device **out_forced,
                              struct judged **out_judged);
/* Finds out where the operands are now; an error where what is to be read is
 * lost, or was never written. */
enum tandem_status query_locate(struct query *query);

/* ---- launch.c: one device.  Locked. ---- */

/* Whether device serves it; opens the device. */
enum tandem_status call_supported(const struct call *call,
                                  struct device *device);
/* Whether device would launch it without compiling. */
enum tandem_status call_ready(const struct call *call, struct device *device);
/* Has the device make it ready, in the background. */
void call_prepare(const struct call *call, struct device *device);
/* Launches it with all its operands in place. */
enum tandem_status call_launch_once(const struct call *call,
                                    struct device *device);
/* [may wait, up to WAIT_LIMIT]  Puts the operands in place and launches it.
 * Where it waited, record has no work any more. */
enum tandem_status call_launch(const struct call *call, struct record *record,
                               struct device *device);
/* Books what a launch has changed. */
void call_launched(struct record *record, struct device *device);

/* explain.c: the calling thread's record of this context, made if need be;
 * NULL where there is no memory for it. */
struct record *record_get(const struct tandem_context *context);
/* Fills an explanation from a record.  Locked. */
void explanation_fill(struct tandem_context *context, struct record *record,
                      struct tandem_explanation *out);

#endif
