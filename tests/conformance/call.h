/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call under test: an operator, its attributes and operands, and the status
 * that it must return. A case builds a call and ends it with call_end, which
 * makes the call on the plugin and checks everything that it returns and
 * writes:
 *
 *     struct call *call = call_begin(suite, row, "padded [%d]", n);
 *
 *     if (call == NULL)
 *         return;
 *     operand_fill_normal(call_operand(call, 0, TANDEM_F32, &shape, PADDED),
 *                         call->random, 1, 0);
 *     call_operand(call, 1, TANDEM_F32, &shape, PADDED);
 *     call_end(suite, call);
 *
 * One call exists at a time, on the main thread.
 */
#ifndef TANDEM_CONFORMANCE_CALL_H
#define TANDEM_CONFORMANCE_CALL_H

#include "operand.h"
#include "operator_list.h"
#include "suite.h"

/* The status that launch must return. */
enum expected_status {
    /* TANDEM_OK; or TANDEM_UNSUPPORTED if the device may decline it. */
    EXPECT_OK_IF_SUPPORTED,
    EXPECT_INVALID_ARGUMENT,
    EXPECT_UNSUPPORTED, /* For a dtype of a later version. */
    EXPECT_INVALID_OR_UNSUPPORTED,
    /*
     * TANDEM_OK or TANDEM_INVALID_ARGUMENT, for operands that do not overlap
     * in a way that the plugin need not find out.
     */
    EXPECT_OK_OR_INVALID
};

#define CALL_OPERANDS (TANDEM_MAX_OPERANDS + 1)

struct call {
    const struct op_row *row;
    struct random *random; /* The source of shapes, strides and values. */
    uint32_t flags;        /* of struct tandem_op */
    int64_t ints[TANDEM_MAX_ATTRIBUTES];
    double floats[TANDEM_MAX_ATTRIBUTES];
    uint32_t int_count, float_count;
    /* Inputs, then outputs. For GEMM a, b, bias, then c. */
    uint32_t inputs, outputs;
    struct operand operands[CALL_OPERANDS];
    /* The operand whose buffer operand i uses: i, or an earlier one. */
    uint32_t storage[CALL_OPERANDS];
    struct tandem_gemm gemm; /* Its buffers are NULL. */
    bool output_is_read;     /* GEMM with beta: c is not poisoned. */
    /* Devices with these capabilities must support the call. 0: no device. */
    uint32_t required_caps;
    /*
     * Values have any magnitude, so the reference marks elements whose partial
     * results may leave the range of f32.
     */
    bool any_magnitude;

    /* ---- set by random calls only ---- */

    enum expected_status expected_status;
    /* A description of the mistake or the special property, or "". */
    const char *what;
    uint32_t passed_inputs, passed_outputs; /* The counts that are passed. */
    uint32_t missing;        /* Mask of operands whose descriptor is NULL. */
    uint32_t without_buffer; /* Mask of operands whose buffer is NULL. */
    /* Only launch detects the mistake; prepare knows no buffers. */
    bool only_launch_detects;
    size_t struct_size; /* The struct_size of the op. */
};

/* Makes an empty call of the operator with attributes of 0. */
void call_init(struct call *call, const struct op_row *row,
               struct random *random);
void call_finish(struct call *call);
bool call_is_gemm(const struct call *call);

/* Begins a case. Returns NULL if the case must not run. */
struct call *call_begin(struct suite *suite, const struct op_row *row,
                        const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Makes the call, checks it and ends the case. */
void call_end(struct suite *suite, struct call *call);

/* Initializes operand number `place`. Returns the operand. */
struct operand *call_operand(struct call *call, uint32_t place, uint32_t dtype,
                             const struct shape *shape,
                             enum operand_layout layout);
/* Makes an input NULL, with this value as the next float attribute. */
void call_scalar(struct call *call, uint32_t place, uint32_t dtype,
                 double value);
/* Makes output k exactly the input. */
void call_in_place(struct call *call, uint32_t k, uint32_t input);

/*
 * Makes the call twice over outputs filled with different bytes, and fails the
 * case if anything is wrong.
 */
void call_run(struct suite *suite, struct call *call);
/*
 * Makes the call once on the plugin and, if there is one, on the other plugin,
 * and compares their statuses. Returns the status on the plugin.
 */
enum tandem_status call_run_once(struct suite *suite, struct call *call);
/* Writes one line with the operator, its attributes and its operands. */
void call_text(const struct call *call, char *text, size_t size);

#endif
