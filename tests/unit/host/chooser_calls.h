/* SPDX-License-Identifier: Apache-2.0 */
/* Operator calls and scripted costs for the tests of the chooser. */
#ifndef TESTS_UNIT_HOST_CHOOSER_CALLS_H
#define TESTS_UNIT_HOST_CHOOSER_CALLS_H

#include "support.h"

#define ROOM 65536
extern float pool[4][ROOM];

/* An operator of a cost class over n elements, which accesses bytes_each n +
 * bytes_more bytes. */
struct op_case {
    struct tandem_op op;
    struct tandem_tensor *inputs[3], *outputs[2];
    uint32_t input_count, output_count;
    double bytes;
};

#define CLASSES 8
extern const struct class_case {
    uint32_t cost_class, op;
    int bytes_each, bytes_more;
} classes[CLASSES];

/* Creates the call on memory of `pool`. */
struct op_case op_case(struct tandem_context *context,
                       const struct class_case *of, int64_t n);
struct tandem_explanation explain(struct tandem_context *context,
                                  const struct op_case *call);
void run(struct tandem_context *context, const struct op_case *call);
/* Fails the test if the values differ by more than rounding. */
void near(double value, double expected);

/* Creates a context with these scripted costs of the CPU and the GPU. */
struct tandem_context *context_with_costs(const struct script *cpu,
                                          const struct script *gpu);

#endif
