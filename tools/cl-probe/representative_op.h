/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that stand for a cost class: the usual one, and where a device does
 * not serve it any other whose costs libtandem takes from the same class.
 * Child process.
 */
#ifndef CL_PROBE_SAMPLE_H
#define CL_PROBE_SAMPLE_H

#include "../common/resident_op.h"

/* Sizes in elements, powers of two; of products the side. */
#define SAMPLE_FIRST (INT64_C(1) << 6)
#define SAMPLE_LAST (INT64_C(1) << 26)
#define SAMPLE_FIRST_SIDE INT64_C(16)
#define SAMPLE_LAST_SIDE INT64_C(1024)

/* Set cost_class, the rest 0; representative_op_next fills info. */
struct representative_op {
    uint32_t cost_class; /* enum tandem_cost_class */
    const struct tandem_op_info *info;
    uint32_t next;
};

/* The name of the class's curve in a profile ("gemm" is none). */
const char *cost_class_curve(uint32_t cost_class);
/* The next operator of the class, the usual one first; false: no more. */
bool representative_op_next(struct representative_op *representative);
/* The least size at which the device serves it; 0: it does at none. */
int64_t
representative_op_is_supported(const struct representative_op *representative,
                               struct device_session *session);
/* As resident_op_create, with plain arguments of so many elements; for
 * TANDEM_COST_STRIDED the first input is a transposed view. */
enum tandem_status
representative_op_create(const struct representative_op *representative,
                         struct device_session *session, int64_t elements,
                         struct resident_op *work);

#endif
