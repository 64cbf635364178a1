/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewrites the PTX that NVIDIA's compiler makes from cl/nvidia/gemm_wgmma.cl.
 * The new PTX has the target sm_90a instead of sm_90, and contains the
 * instructions that the source has in comments.  Pure function; any thread.
 */
#ifndef TANDEM_OPENCL_PROGRAM_NVIDIA_PTX_REWRITE_H
#define TANDEM_OPENCL_PROGRAM_NVIDIA_PTX_REWRITE_H

#include <stddef.h>

/* Increase it when the rewriting changes, so that stored self-test results and
 * cached programs become invalid. */
#define PTX_REWRITE_REVISION "1"

/* More than any of the plugin's programs needs. */
#define MAX_PTX_BYTES ((size_t)4 << 20)

/* Returns the new text, which the caller frees.  out_bytes does not count its
 * final NUL.  `text` may end with NULs.  Returns NULL and sets *out_why if the
 * text is not as expected, or if host memory is exhausted. */
char *ptx_rewrite_sm90a(const char *text, size_t bytes, size_t *out_bytes,
                        const char **out_why);

#endif
