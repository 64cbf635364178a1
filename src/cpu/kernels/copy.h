/* SPDX-License-Identifier: Apache-2.0 */
/* Strided copies of elements of 1, 2, 4 and 8 bytes.  Any thread may call these
 * functions. */
#ifndef TANDEM_CPU_KERNELS_COPY_H
#define TANDEM_CPU_KERNELS_COPY_H

#include "cpu/kernels/elementwise.h"

/* A planned copy. */
struct copy {
    struct rows rows; /* target and source, with the same element size */
    pool_fn task;
    int64_t row_tiles; /* number of tiles along axis rank - 2; 0: no tiles */
};

/* Plans a copy, without the addresses. */
void copy_plan(struct copy *out, const struct tandem_tensor_desc *to,
               const struct tandem_tensor_desc *from);
/* Copies between the addresses of the elements (0, ..., 0).  `op` names the
 * work for the thread pool. */
void copy_execute(const struct copy *plan, struct tandem_device *device,
                  uint32_t op, unsigned char *to, unsigned char *from);

#endif
