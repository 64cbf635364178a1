/* SPDX-License-Identifier: Apache-2.0 */
/* The entry gemm of backend.h for all plugins: a struct tandem_gemm becomes the
 * operator GEMM, which is prepared and launched.  A device keeps the prepared
 * operators of its recent calls.  Any thread may call these functions. */
#ifndef TANDEM_COMMON_GEMM_CALLS_H
#define TANDEM_COMMON_GEMM_CALLS_H

#include <pthread.h>

#include "common/argument_check.h"

#define GEMM_CALLS 64u

/* The entries of backend.h that a plugin implements. */
struct gemm_call_functions {
    enum tandem_status (*prepare)(
        struct tandem_device *device, const struct tandem_op *op,
        const struct tandem_operand_desc *const *inputs, uint32_t input_count,
        const struct tandem_operand_desc *const *outputs, uint32_t output_count,
        uint32_t flags, struct tandem_prepared_info *out_info,
        struct tandem_prepared **out_prepared);
    enum tandem_status (*launch)(struct tandem_stream *stream,
                                 struct tandem_prepared *prepared,
                                 const struct tandem_memory *memory,
                                 uint32_t count, const double *scalars,
                                 uint32_t scalar_count);
    void (*release)(struct tandem_prepared *prepared);
};

struct gemm_call_entry;
struct gemm_calls {
    const struct gemm_call_functions *functions;
    pthread_mutex_t mutex;
    struct gemm_call_entry *entries[GEMM_CALLS]; /* by the hash of the call */
};

/* Returns false if there is no memory for the mutex. */
bool gemm_calls_init(struct gemm_calls *calls,
                     const struct gemm_call_functions *functions);
/* Releases the prepared operators.  No other call with `calls` is in progress.
 */
void gemm_calls_finish(struct gemm_calls *calls);

/* Implements the entry gemm.  The stream is live.  `span` is that of check_gemm
 * and has the device as its argument. */
enum tandem_status gemm_call_launch(struct gemm_calls *calls,
                                    struct tandem_device *device,
                                    struct tandem_stream *stream,
                                    const struct tandem_gemm *gemm,
                                    address_range_fn span);

#endif
