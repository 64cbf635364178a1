/* SPDX-License-Identifier: Apache-2.0 */
/* A form: the operators of Tandem that compute a graph for fixed input shapes.
 * lower.h makes forms; execution.h runs them.
 *
 * A form has storages (blocks of elements), views of storages, and steps that
 * read and write views.  Once made, a form is only read, by any thread. */
#ifndef TANDEM_ONNXRUNTIME_FORM_H
#define TANDEM_ONNXRUNTIME_FORM_H

#include "adapters/onnxruntime/graph.h"

enum storage_kind {
    STORAGE_INPUT,    /* filled from an input of the graph before each run */
    STORAGE_CONSTANT, /* content of a constant of the graph */
    STORAGE_FOLDED,   /* constant that was computed while the form was made */
    STORAGE_TEMPORARY /* written by steps */
};

struct form_storage {
    enum storage_kind kind;
    uint32_t dtype; /* enum tandem_dtype */
    int64_t elements;
    int32_t input;       /* STORAGE_INPUT: number of the graph's input */
    const void *content; /* constants: row-major elements */
    /* Constants: the tensor that holds the content.  Set by the owner of the
     * form, which releases the weights of STORAGE_FOLDED. */
    struct weight *weight;
    bool used; /* a step or an output needs it */
    /* STORAGE_TEMPORARY: the steps between which it has content (an output of
     * the graph until step_count), and its memory.  Temporaries of one dtype
     * whose lifetimes do not overlap share a slot. */
    uint32_t first_step, last_step;
    uint32_t slot;
};

#define NO_STORAGE (-1)
#define NO_VIEW UINT32_MAX
#define MAX_STEP_INPUTS TANDEM_MAX_OPERANDS
#define MAX_STEP_OUTPUTS 2

/* A strided view of a storage, as in tandem_tensor_view. */
struct form_view {
    int32_t storage;
    uint32_t rank;
    int64_t first_element;
    int64_t shape[TANDEM_MAX_RANK];
    int64_t strides[TANDEM_MAX_RANK];
};

struct form_step {
    uint32_t op; /* enum tandem_op_id; TANDEM_OP_GEMM is tandem_matmul */
    const struct graph_node *node;
    int64_t ints[TANDEM_MAX_ATTRIBUTES];
    double floats[TANDEM_MAX_ATTRIBUTES];
    uint32_t int_count, float_count;
    /* Indices into `views`.  NO_VIEW means that the input is one of `floats`
     * (a scalar), or that the product has no bias. */
    uint32_t inputs[MAX_STEP_INPUTS];
    uint32_t input_count;
    uint32_t outputs[MAX_STEP_OUTPUTS];
    uint32_t output_count;
    /* TANDEM_OP_GEMM: see struct tandem_matmul_options. */
    double alpha, beta, activation_parameters[2];
    uint32_t activation;
};

/* An output of the graph: a view, or integers that depend only on shapes. */
struct form_output {
    /* Index into `views`, or NO_VIEW if the output is a constant of this form;
     * `content` then points to its elements. */
    uint32_t view;
    uint32_t dtype;
    uint32_t rank;
    int64_t shape[TANDEM_MAX_RANK];
    const void *content;
    uint64_t bytes;
};

struct form {
    struct arena arena;
    struct form_storage *storages;
    struct form_view *views;
    struct form_step *steps;
    struct form_output *outputs; /* one for each output of the graph */
    uint32_t storage_count, view_count, step_count, output_count;
    uint32_t storage_capacity, view_capacity, step_capacity;
    /* Memory slots that temporaries share. */
    uint32_t slot_count;
    uint32_t *slot_dtypes;
    int64_t *slot_elements;
};

/* Append an element that is filled with zeros.  Return its index, or UINT32_MAX
 * if memory is exhausted. */
uint32_t form_add_storage(struct form *form);
uint32_t form_add_view(struct form *form, const struct form_view *view);
uint32_t form_add_step(struct form *form, const struct form_step *step);

/* Computes the lifetimes of temporaries and gives each of them a slot.  Returns
 * false if memory is exhausted. */
bool form_assign_slots(struct form *form);

/* Frees the content of the form, not the struct. */
void form_free(struct form *form);

#endif
