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
    /* Tensors that belong to one storage alone: all of a query, else inputs. */
    struct tandem_tensor **storages;
    struct tandem_tensor **slots;
    struct tandem_tensor **views;
    /* A query's memory, of memory_bytes bytes, which is never touched. */
    void *memory;
    size_t memory_bytes;
};

/* Creates the tensors. Their memory is allocated when they are first used. On
 * failure *out is NULL and tandem_last_error has the reason. */
enum tandem_status execution_create(struct tandem_context *context,
                                    const struct form *form,
                                    struct execution **out);
/* Creates an execution that cannot run, but whose steps can be prepared and
 * explained. It takes address space, but no memory. */
enum tandem_status execution_create_query(struct tandem_context *context,
                                          const struct form *form,
                                          struct execution **out);
/* Accepts NULL. */
void execution_destroy(struct execution *execution);

/* Copies the content of the graph's inputs, contents[i] for input i, to the
 * tensors. */
enum tandem_status execution_write_inputs(struct execution *execution,
                                          const void *const *contents);

/* Arguments for a step of the form. `device` may be TANDEM_ANY_DEVICE to
 * explain a step; `flags` are those of enum tandem_gemm_flags. */
struct step_arguments {
    uint32_t step, device, flags;
};
/* Runs a step. Returns before the step is complete. */
enum tandem_status execution_run(const struct execution *execution,
                                 struct step_arguments arguments);
/* Calls tandem_prepare_on or tandem_prepare_matmul. */
enum tandem_status execution_prepare(const struct execution *execution,
                                     struct step_arguments arguments);
/* Calls tandem_explain_op or tandem_explain_matmul. */
enum tandem_status execution_explain(const struct execution *execution,
                                     struct step_arguments arguments,
                                     struct tandem_explanation *out);

/* [blocks] Copies output number `output` to memory. */
enum tandem_status execution_read_output(const struct execution *execution,
                                         uint32_t output, void *memory);

#endif
