/* SPDX-License-Identifier: Apache-2.0 */
/* Operator classes: the rules that the operators of a class share. The table
 * has one entry for each row of TANDEM_CLASSES; the file op_<class>.c, or a
 * file for several related classes, defines the entry. All data is constant,
 * and the functions may be called from any thread. */
#ifndef TANDEM_COMMON_OP_CLASS_H
#define TANDEM_COMMON_OP_CLASS_H

#include "common/tensor_desc.h"
#include "common/operator_table.h"

/* An operator call, whose arguments may be invalid. Operand numbers count the
 * inputs first, then the outputs. */
struct op_call {
    const struct operator_info *info;
    const struct tandem_op *op;
    const struct tandem_tensor_desc *const *inputs;
    const struct tandem_tensor_desc *const *outputs; /* NULL if unknown */
    uint32_t input_count, output_count;
    uint32_t scalars; /* number of NULL inputs, which are scalars */
};

/* Amount of work of a call. */
struct op_work {
    double elements;     /* number of elements of the largest operand */
    double bytes;        /* total bytes that the call reads and writes */
    uint32_t cost_class; /* enum tandem_cost_class */
    double gemm_size[4]; /* m, n, k, batch size (TANDEM_COST_GEMM only) */
};

/* A representative call of an operator: attributes and row-major operands
 * without buffers. */
struct op_example {
    int64_t ints[TANDEM_MAX_ATTRIBUTES];
    double floats[TANDEM_MAX_ATTRIBUTES];
    uint32_t int_count, float_count, input_count, output_count;
    struct tandem_tensor_desc inputs[TANDEM_MAX_OPERANDS];
    struct tandem_tensor_desc outputs[TANDEM_MAX_OPERANDS];
    /* Number of the input whose buffer output i overwrites, or -1. */
    int alias[TANDEM_MAX_OPERANDS];
    int64_t index_limit; /* integer inputs hold values in [0, index_limit) */
};

/* The shape that calibration and precompilation use for an example. */
enum op_example_shape {
    OP_EXAMPLE_FLAT, /* one axis; the time depends on the number of elements */
    OP_EXAMPLE_ROWS, /* rows; the time also depends on the length of a row */
    OP_EXAMPLE_SHORT_ROWS, /* short rows of one fixed length */
    OP_EXAMPLE_CUBE        /* m, n and k of a matrix product */
};

#define IN_PLACE_ANY_INPUT UINT32_MAX

/* The dtype rule is one letter per operand. If there are more operands than
 * letters, the last letter is repeated.
 *   f  a dtype that kernels compute in, equal for all operands with f, e or a
 *   e  like f, but also i32 and i64
 *   a  any dtype, equal for all operands with f, e or a
 *   b  bool
 *   i  i32 or i64
 *   l  i64
 *   c  a dtype that cast converts
 *   n  f32, i32 or i64
 *   m  bool, or like f */
struct op_class {
    const char *input_dtypes, *output_dtypes;
    /* Returns input_dtypes of an operator. NULL means that they are equal for
     * all operators of the class. */
    const char *(*op_input_dtypes)(uint32_t op);
    /* Bit i is set if an output may be exactly input i. */
    uint32_t in_place;
    /* An output may be the last input if the attribute ints[1], residual, is
     * 1. */
    bool residual_in_place;
    bool scalars; /* NULL inputs are scalars, if there are several inputs */
    /* Float attributes may change from launch to launch of a prepared operator,
     * as scalars do. */
    bool floats_change;
    /* The number of inputs in the operator table is a minimum. */
    bool variadic;
    bool equal_shapes; /* all inputs have the shape of input 0 */
    /* Operands that are not row-major have the costs of TANDEM_COST_STRIDED. */
    bool strided_cost;
    uint8_t example_shape; /* enum op_example_shape */
    /* Checks the values of attributes. The call has enough attributes, and its
     * operands are present and have valid shapes. NULL means no check. */
    enum tandem_status (*check)(const struct op_call *call);
    /* Checks the dtypes of operands that the dtype rule cannot describe. NULL
     * means that the rule suffices. */
    enum tandem_status (*check_dtypes)(const struct op_call *call);
    /* Checks the shapes of the inputs, and sets rank and shape of *out to those
     * of an output. The call has enough attributes, and call->outputs may be
     * NULL. NULL means the shape of input 0. */
    enum tandem_status (*infer)(const struct op_call *call, uint32_t output,
                                struct tandem_tensor_desc *out);
    /* Adds to *ints and *floats the largest lengths of the lists of attributes
     * that follow those of the operator table. The operands of the call are
     * valid. NULL means no lists. */
    void (*lists)(const struct op_call *call, uint32_t *ints, uint32_t *floats);
    /* Corrects the work of a valid call, which counts each operand once and has
     * the cost class of the operator table. NULL means no correction. */
    void (*work)(const struct op_call *call, bool contiguous,
                 struct op_work *work);
    /* Sets attributes and input shapes of an example for a shape that the user
     * chose. Attributes are initially 0 (ints) and 1 (floats), alias -1.
     * Returns NULL, or a text that says which shape the operator needs instead.
     * NULL means that all inputs have the shape. */
    const char *(*example)(const struct operator_info *info, uint32_t rank,
                           const int64_t *shape, struct op_example *out);
};

/* Returns the entry of a class, or NULL if there is no such class. */
const struct op_class *op_class_get(uint32_t op_class);

/* Returns true if an output of the call may be exactly input `input`. */
bool op_input_in_place(const struct op_call *call, uint32_t input);

/* Returns the dtype of a NULL input, which is a scalar: bool, or the dtype of
 * the operands that are not bool. */
uint32_t op_scalar_dtype(const struct op_call *call, uint32_t input);
/* Converts a scalar to f32, i32, i64 or bool as CAST does. Returns the bits of
 * the element. */
uint64_t op_scalar_bits(uint32_t dtype, double value);

/* Checks that the operands' dtypes follow the dtype rule. Returns
 * TANDEM_UNSUPPORTED for a valid dtype that kernels do not compute in. */
enum tandem_status op_check_dtypes(const struct op_call *call);

/* Sets dtype, rank and shape of *out to those of an output of the call. Does
 * not check dtypes. For CAST, the caller sets out->dtype. For COPY, sets the
 * shape of the call's output or, if that is unknown, of the input. */
enum tandem_status op_infer(const struct op_call *call, uint32_t output,
                            struct tandem_tensor_desc *out);

/* Like op_infer, for an operator whose outputs are unknown. */
enum tandem_status infer_output(const struct tandem_op *op,
                                const struct tandem_tensor_desc *const *inputs,
                                uint32_t input_count, uint32_t output,
                                struct tandem_tensor_desc *out);

/* Computes the work of a valid call. */
void op_work_compute(const struct op_call *call, struct op_work *out);

/* Builds an example of the operator. The class defines the meaning of `shape`;
 * most operators have inputs of this shape, and reductions, softmax and norms
 * work along its last axis. Returns NULL, or a text that says which shape the
 * operator needs instead. */
const char *op_example_build(const struct operator_info *info, uint32_t rank,
                             const int64_t *shape, struct op_example *out);

#define OP_CLASS_DECLARE(ID, number, name)                                     \
    extern const struct op_class op_class_##name;
TANDEM_CLASSES(OP_CLASS_DECLARE)
#undef OP_CLASS_DECLARE

#endif
