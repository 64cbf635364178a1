/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering: makes a form from a graph and the shapes of its inputs.
 *
 * lower_graph visits the nodes in order.  Each operator of operators.h has a
 * function that reads its input operands, appends steps to the form, and sets
 * its output operands.  Reshapes, transposes, slices and the like append no
 * step: their outputs are other views of their inputs.
 *
 * Tensors that hold shapes (Shape and what is computed from it, and constant
 * integers) are computed here, on the host.  They never reach a device unless
 * an operator needs them as a tensor. */
#ifndef TANDEM_ONNXRUNTIME_LOWER_H
#define TANDEM_ONNXRUNTIME_LOWER_H

#include "adapters/onnxruntime/form.h"

/* A tensor while a form is made. */
struct operand {
    bool present;
    uint32_t dtype;
    int64_t *integers;     /* content, if it is known now, else NULL */
    struct form_view view; /* the storage is NO_STORAGE if only `integers` is
                            * known */
};

/* Properties of an input of the graph at one run. */
struct lower_input {
    uint32_t dtype, rank;
    int64_t shape[TANDEM_MAX_RANK];
    const void *content; /* NULL if unknown */
};

struct lowering {
    const struct graph *graph;
    struct form *form;
    const struct graph_node *node; /* the node that is lowered now */
    struct operand *operands;      /* one for each value of the graph */
    const struct lower_input *inputs;
    /* Set to true for inputs whose content decides about the form. */
    bool *content_matters;
    char problem[256]; /* why lowering failed */
    /* Set to true if lowering failed because a content or shape is not known.
     */
    bool is_unknown;
};

/* Makes a form.  On failure returns false, explains it in `problem`, and leaves
 * the form empty.  The form refers to the graph's constants and nodes.
 * content_matters has an element for each input of the graph; elements are set
 * and never cleared.  An input whose content is unknown may make this fail.
 * If out_failed is not NULL, *out_failed is set on failure to the node that
 * cannot be lowered, or to NULL if the failure belongs to no node. */
bool lower_graph(const struct graph *graph, const struct lower_input *inputs,
                 bool *content_matters, struct form *form,
                 const struct graph_node **out_failed, char problem[256]);

/* Creates the operands of inputs and constants.  Returns false, with a problem,
 * on failure. */
bool lower_begin(struct lowering *l);
/* Lowers the node l->node, or evaluates it now if it computes integers from
 * known ones.  Returns false, with a problem, on failure. */
bool lower_node(struct lowering *l);

/* ---- for the functions of operators ------------------------------------- */

/* Records the reason of a failure, with the node's name.  Returns false. */
bool lower_fail(struct lowering *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns an input operand of the node, or NULL if it is absent. */
struct operand *lower_input_operand(struct lowering *l, uint32_t index);
/* Returns the content of an operand of integers or bools, and its number of
 * elements.  Returns NULL, with a problem, if the content is unknown. */
const int64_t *lower_integers(struct lowering *l, struct operand *operand,
                              int64_t *out_count);
/* Like lower_integers, for f32. */
const float *lower_reals(struct lowering *l, struct operand *operand,
                         int64_t *out_count);
/* Returns the value that an integer of the dtype has after an assignment. */
int64_t integer_narrow(uint32_t dtype, int64_t value);
/* Returns true if the input is a constant f32 tensor with one element, and its
 * value. */
bool lower_constant_scalar(struct lowering *l, uint32_t index, double *out);

/* Returns the number of elements. */
int64_t operand_elements(const struct operand *operand);
/* Sets row-major strides. */
void view_set_contiguous(struct form_view *view);
bool view_is_contiguous(const struct form_view *view);

/* Makes a new temporary. */
bool lower_new(struct lowering *l, uint32_t dtype, uint32_t rank,
               const int64_t *shape, struct operand *out);
/* Makes an operand of integers that are known now.  The caller writes them to
 * out->integers, which belongs to the form. */
bool lower_new_integers(struct lowering *l, uint32_t dtype, uint32_t rank,
                        const int64_t *shape, struct operand *out);
/* Makes an f32 constant of one element, seen with the given shape. */
bool lower_new_constant(struct lowering *l, double value, uint32_t rank,
                        const int64_t *shape, struct operand *out);

/* Gives the operand a storage if it has only integers. */
bool lower_materialize(struct lowering *l, struct operand *operand);

/* Views.  Each writes a view of the operand to *out. */
/* Prepends axes of length 1. */
struct operand operand_align(const struct operand *operand, uint32_t rank);
/* Repeats axes of length 1 to the shape.  If the operand has more axes than the
 * shape, the first ones must have length 1 and are dropped. */
bool lower_expand(struct lowering *l, const struct operand *operand,
                  uint32_t rank, const int64_t *shape, struct operand *out);
/* Reshapes; appends a copy if no strides express the new shape. */
bool lower_reshape(struct lowering *l, struct operand *operand, uint32_t rank,
                   const int64_t *shape, struct operand *out);
/* Returns the operand itself if it is contiguous, else a copy. */
bool lower_contiguous(struct lowering *l, struct operand *operand,
                      struct operand *out);
/* Computes the common shape of operands.  Returns false if their shapes do not
 * broadcast. */
bool lower_broadcast(struct lowering *l, struct operand *const *operands,
                     uint32_t count, uint32_t *out_rank, int64_t *out_shape);

/* Returns a step of the node for an operator. */
struct form_step step_make(const struct lowering *l, uint32_t op);
/* Appends an input; NULL is a scalar. */
bool step_add_input(struct lowering *l, struct form_step *step,
                    struct operand *operand);
/* Appends the step to the form, unless its outputs have no elements.  The
 * outputs have equal shapes. */
bool lower_step_outputs(struct lowering *l, struct form_step *step,
                        const struct operand *outputs, uint32_t count);
/* Like lower_step_outputs, for one output. */
bool lower_step(struct lowering *l, struct form_step *step,
                const struct operand *output);
/* Appends a step with one input and a new contiguous output of its shape. */
bool lower_unary(struct lowering *l, uint32_t op, struct operand *x,
                 struct operand *out);
/* Like lower_unary, with the parameters of an activation: the formula of gelu,
 * or the float attributes of another operator. */
bool lower_parametric(struct lowering *l, uint32_t op,
                      const double parameters[2], struct operand *x,
                      struct operand *out);
/* Appends a step with two inputs that are broadcast. */
bool lower_binary(struct lowering *l, uint32_t op, struct operand *a,
                  struct operand *b, struct operand *out);
/* Appends a copy from one view to another of the same shape. */
bool lower_copy(struct lowering *l, struct operand *from,
                const struct operand *to);

/* Sets an output of the node. */
bool lower_output(struct lowering *l, uint32_t index,
                  const struct operand *operand);

#endif
