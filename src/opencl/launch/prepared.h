/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared operators: the entries prepare to prepared_launch of backend.h.
 * Any thread may call them. */
#ifndef TANDEM_OPENCL_PREPARED_H
#define TANDEM_OPENCL_PREPARED_H

#include "common/gemm_calls.h"
#include "opencl/objects.h"

prepare_fn prepared_create;
enum tandem_status prepared_wait(struct tandem_prepared *prepared,
                                 uint64_t timeout_ns);
void prepared_release(struct tandem_prepared *prepared);
launch_fn prepared_launch;

/* For the entry gemm (common/gemm_calls.h). */
extern const struct gemm_call_functions gemm_functions;

#endif
