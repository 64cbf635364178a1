/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One launch under test: the operator with its attributes and operands. The
 * launch runs twice over differently filled outputs, and each element is
 * compared with the reference.
 */
#ifndef TANDEM_CONFORMANCE_LAUNCH_CHECK_H
#define TANDEM_CONFORMANCE_LAUNCH_CHECK_H

#include "operand.h"
#include "reference.h"
#include "suite.h"
#include "operator_list.h"

struct call {
    const struct op_row *row;
    int64_t ints[TANDEM_MAX_RANK];
    double floats[TANDEM_MAX_OPERANDS];
    uint32_t int_count, float_count;
    struct operand inputs[TANDEM_MAX_OPERANDS];
    struct operand outputs[TANDEM_MAX_OPERANDS];
    /* Output k is input alias[k], or has its own tensor (-1). */
    int32_t alias[TANDEM_MAX_OPERANDS];
    /*
     * An unsupported operator is a failure if the device has the capabilities.
     */
    bool required;
};

void call_init(struct call *call, const struct op_row *row);
void call_finish(struct call *call);

/* Runs the call and fails the case if a result is wrong. */
void call_run(struct suite *suite, struct call *call);

/*
 * Computes the shape to which the inputs of an element-wise call broadcast,
 * and the dtype of its output.
 */
uint32_t call_out_dtype(const struct op_row *row);

/* Allocates a buffer of the operand's size and uploads its image. */
enum tandem_status operand_upload(struct suite *suite,
                                  const struct operand *operand,
                                  struct tandem_buffer **out_buffer);

#endif
