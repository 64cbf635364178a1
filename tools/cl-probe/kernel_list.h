/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of operators and shapes whose kernels a device compiles in advance.
 * Child process only; single-threaded.
 */
#ifndef CL_PROBE_KERNEL_LIST_H
#define CL_PROBE_KERNEL_LIST_H

#include "../common/resident_op.h"

#include <jansson.h>

/* Variants of an operator.  TRANSPOSED, BIAS, RELU and GELU apply to GEMM. */
enum kernel_form {
    KERNEL_PLAIN = 0,
    KERNEL_REPEATED = 1,   /* the last input is one row, repeated */
    KERNEL_TRANSPOSED = 2, /* b is [n][k] */
    KERNEL_BIAS = 4,       /* with a bias per column */
    KERNEL_RELU = 8,       /* with the activation relu */
    KERNEL_GELU = 16       /* with the activation gelu */
};

struct kernel_item;

struct kernel_list {
    struct device_session *session; /* borrowed */
    struct kernel_item **items;
    size_t count, done;
    json_t *failures; /* owned; the first error messages */
};

void kernels_start(struct kernel_list *list, struct device_session *session);
void kernels_finish(struct kernel_list *list);

/* Starts to compile the operator's kernels in the background.  `forms` combines
 * bits of enum kernel_form.  Ignores shapes and forms that the operator or the
 * device does not support.  Aborts if memory is exhausted. */
void kernels_add(struct kernel_list *list, const char *op, const char *shape,
                 uint32_t forms);
/* [blocks] Waits until all kernels are compiled or failed.  Calls `told`, if
 * not NULL, with the compiled fraction and the next operator to be compiled.
 * Returns false if the device was lost. */
bool kernels_await(struct kernel_list *list,
                   void (*told)(void *user, double fraction, const char *name),
                   void *user);

#endif
