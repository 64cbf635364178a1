/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that a device is to compile ahead of time, named by operators and
 * shapes.  Child process; one thread.
 */
#ifndef CL_PROBE_KERNELS_H
#define CL_PROBE_KERNELS_H

#include "../common/resident_op.h"

#include <jansson.h>

/* The last three, and TRANSPOSED, are of products. */
enum kernel_form {
    KERNEL_PLAIN = 0,
    KERNEL_REPEATED = 1,   /* the last input is the same for each row */
    KERNEL_TRANSPOSED = 2, /* b is [n][k] */
    KERNEL_BIAS = 4,       /* one of each column is added */
    KERNEL_RELU = 8,       /* what is done last */
    KERNEL_GELU = 16
};

struct kernel_item;

struct kernel_list {
    struct device_session *session; /* borrowed */
    struct kernel_item **items;
    size_t count, done;
    json_t *failures; /* owned; texts of the first */
};

void kernels_start(struct kernel_list *list, struct device_session *session);
void kernels_finish(struct kernel_list *list);

/* Has the kernels compiled in the background; forms: bits.  What the operator
 * cannot take, or the device does not serve, is left out.  false: no memory. */
bool kernels_add(struct kernel_list *list, const char *op, const char *shape,
                 uint32_t forms);
/* Until all are there or have failed.  told (or NULL) is called when some have
 * come, with the fraction and the operator that is waited for.  false: the
 * device was lost. */
bool kernels_await(struct kernel_list *list,
                   void (*told)(void *user, double fraction, const char *name),
                   void *user);

#endif
