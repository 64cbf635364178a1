/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products by CLBlast.  Its program cache is process-wide, keyed by
 * context and device, and guarded by its own mutexes: seen in its source, not
 * promised in its documentation.
 */
#ifndef TANDEM_OPENCL_GEMM_H
#define TANDEM_OPENCL_GEMM_H

#include "opencl/stream.h"

/* backend.h's gemm; the stream is live. */
enum tandem_status gemm_launch(struct tandem_stream *stream,
                               const struct tandem_gemm *gemm);
/* UNSUPPORTED with a message, or OK; gemm was checked. */
enum tandem_status gemm_supports(const struct tandem_device *device,
                                 const struct tandem_gemm *gemm);
enum tandem_status gemm_prepare(struct tandem_device *device,
                                const struct tandem_gemm *gemm);
enum tandem_status gemm_ready(struct tandem_device *device,
                              const struct tandem_gemm *gemm);
/* Runs small products on scratch memory, so that CLBlast has compiled. */
enum tandem_status gemm_warm(struct tandem_device *device, bool batched);
/* Empties CLBlast's cache.  With no device open. */
void gemm_forget(void);

#endif
