/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites the PTX that NVIDIA's compiler makes from cl/nvidia/gemm_wgmma.cl.
 * The target becomes sm_90a instead of sm_90, and marked comments of the source
 * become instructions.  Any thread may call this pure function. */
#ifndef TANDEM_OPENCL_PROGRAM_NVIDIA_PTX_REWRITE_H
#define TANDEM_OPENCL_PROGRAM_NVIDIA_PTX_REWRITE_H

#include <stddef.h>

/* Revision of the rewriting.  Increase the number if the rewritten PTX changes,
 * so that stored self-test results and cached programs become invalid. */
#define PTX_REWRITE_REVISION "1"

/* Maximum size of a PTX text.  The PTX of every kernel in cl/ is smaller. */
#define MAX_PTX_BYTES ((size_t)4 << 20)

/* Returns the rewritten PTX, which the caller frees.  *out_bytes does not count
 * the final NUL of the PTX.  `text` can end with NULs.  Returns NULL and sets
 * *out_why if `text` cannot be rewritten, or if host memory is exhausted. */
char *ptx_rewrite_sm90a(const char *text, size_t bytes, size_t *out_bytes,
                        const char **out_why);

#endif
