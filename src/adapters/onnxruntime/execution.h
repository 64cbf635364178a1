/* SPDX-License-Identifier: Apache-2.0 */
/* An execution: the tensors with which a form runs.  One thread at a time uses
 * an execution; several executions of a form run at the same time. */
#ifndef TANDEM_ONNXRUNTIME_EXECUTION_H
#define TANDEM_ONNXRUNTIME_EXECUTION_H

#include "adapters/onnxruntime/form.h"
#include "adapters/onnxruntime/runtime.h"

struct execution {
    struct execution *next; /* in the list of unused executions */
    const struct form *form;
    struct tandem_context *context;
    struct tandem_tensor **storages; /* inputs; NULL for other storages */
    struct tandem_tensor **slots;
    struct tandem_tensor **views;
};

/* Creates the tensors.  Their memory is allocated when they are first used.  On
 * failure *out is NULL and tandem_last_error has the reason. */
enum tandem_status execution_create(struct tandem_context *context,
                                    const struct form *form,
                                    struct execution **out);
/* Accepts NULL. */
void execution_destroy(struct execution *execution);

/* Copies the content of the graph's inputs, contents[i] for input i, to the
 * tensors. */
enum tandem_status execution_write_inputs(struct execution *execution,
                                          const void *const *contents);
/* Runs step number `step` on the device, or on the fastest device for
 * TANDEM_ANY_DEVICE.  `flags` are those of enum tandem_gemm_flags.  Returns
 * before the step is complete. */
enum tandem_status execution_run_step(struct execution *execution,
                                      uint32_t step, uint32_t device,
                                      uint32_t flags);
/* [blocks] Copies output number `output` to memory. */
enum tandem_status execution_read_output(struct execution *execution,
                                         uint32_t output, void *memory);

#endif
