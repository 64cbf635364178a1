/* SPDX-License-Identifier: Apache-2.0 */
/* Computes GEMMs with CLBlast. Any thread may call these functions, because
 * CLBlast's program cache has its own mutexes. The cache belongs to the process
 * and is keyed by context and device (undocumented; see CLBlast's source). */
#ifndef TANDEM_OPENCL_LAUNCH_CLBLAST_H
#define TANDEM_OPENCL_LAUNCH_CLBLAST_H

#include "opencl/queue/stream.h"

/* Returns true if the operands have the alignment that CLBlast's vector loads
 * need. Imported memory can have a smaller alignment. */
bool clblast_supports_alignment(const struct tandem_gemm *gemm);
/* Enqueues c = alpha * a * b + beta * c with CLBlast. `gemm` must not be empty,
 * and clblast_supports_gemm() must return true for it. */
enum tandem_status clblast_gemm_launch(struct tandem_stream *stream,
                                       const struct tandem_gemm *gemm);
/* Runs a GEMM on scratch memory, so that CLBlast compiles its kernels. */
enum tandem_status clblast_warm(struct tandem_device *device);
/* Empties CLBlast's program cache. There must be no open device. */
void clblast_clear_cache(void);

#endif
