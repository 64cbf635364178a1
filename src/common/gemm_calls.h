/* SPDX-License-Identifier: Apache-2.0 */
/* The entry gemm of backend.h for all plugins: a struct tandem_gemm becomes the
 * operator GEMM, which is prepared and launched.  A device keeps the prepared
 * operators of its recent calls.  Any thread may call these functions. */
#ifndef TANDEM_COMMON_GEMM_CALLS_H
#define TANDEM_COMMON_GEMM_CALLS_H

#include <pthread.h>

#include "common/argument_check.h"
#include "common/prepared_call.h"

#define GEMM_CALLS 64u

/* Functions of the plugin. */
struct gemm_call_functions {
    prepare_fn *prepare;
    launch_fn *launch;
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
