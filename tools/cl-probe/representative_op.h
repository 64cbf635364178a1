/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the operator whose time is measured for a cost class: the usual one
 * or, if the device does not support it, another operator of the class. Child
 * process only.
 */
#ifndef CL_PROBE_REPRESENTATIVE_OP_H
#define CL_PROBE_REPRESENTATIVE_OP_H

#include "../common/resident_op.h"

/* Smallest and largest size, in elements, and for GEMM side of a square matrix.
 * All are powers of two. */
#define SAMPLE_FIRST (INT64_C(1) << 6)
#define SAMPLE_LAST (INT64_C(1) << 26)
#define SAMPLE_FIRST_SIDE INT64_C(16)
#define SAMPLE_LAST_SIDE INT64_C(1024)

/* The caller sets cost_class, and the other fields to 0. representative_op_next
 * sets `info`. */
struct representative_op {
    uint32_t cost_class; /* enum tandem_cost_class */
    const struct tandem_op_info *info;
    uint32_t next;
};

/* Returns the name of the class's curve in a profile. */
const char *cost_class_curve(uint32_t cost_class);
/* Selects the next operator of the class, the usual one first.  Returns false
 * if there is none left. */
bool representative_op_next(struct representative_op *representative);
/* Returns true if the time of the operator depends on the length of rows. */
bool representative_op_has_rows(const struct representative_op *representative);
/* Sets `shape` to the shape of the operator's operands of `elements` elements;
 * a GEMM has sides of `elements`.  Returns the rank. */
uint32_t representative_op_shape(const struct representative_op *representative,
                                 int64_t elements, int64_t shape[3]);
/* Returns the smallest size at which the device supports the operator, or 0. */
int64_t
representative_op_is_supported(const struct representative_op *representative,
                               struct device_session *session);
/* Like resident_op_create, with operands of `elements` elements.  For
 * TANDEM_COST_STRIDED the first input is a transposed view. */
enum tandem_status
representative_op_create(const struct representative_op *representative,
                         struct device_session *session, int64_t elements,
                         struct resident_op *work);
/* Creates a small call of the first representative operator that the device
 * supports, whose launch time is the scalar "launch" of a profile.  Returns
 * TANDEM_UNSUPPORTED if the device supports none. */
enum tandem_status
representative_op_create_smallest(struct device_session *session,
                                  struct resident_op *work);

#endif
