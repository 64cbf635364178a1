/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX for sm_90, as NVIDIA's compiler makes it of cl/nvidia/gemm_wgmma.cl, to
 * PTX for sm_90a, with the instructions that stand in comments there.  A pure
 * function; any thread.
 */
#ifndef TANDEM_OPENCL_PROGRAM_NVIDIA_PTX_REWRITE_H
#define TANDEM_OPENCL_PROGRAM_NVIDIA_PTX_REWRITE_H

#include <stddef.h>

/* To be raised where another text comes of the same one: verdicts and cached
 * programs of the former are of no use then. */
#define PTX_REWRITE_REVISION "1"

/* No program of ours is nearly as long. */
#define MAX_PTX_BYTES ((size_t)4 << 20)

/* text: bytes of it, of which the last ones may be 0.  The new text, ended by a
 * 0 that out_bytes does not count, which the caller frees; or NULL, with
 * out_why, where text is not what was expected, in any way, or memory is
 * short. */
char *ptx_rewrite_sm90a(const char *text, size_t bytes, size_t *out_bytes,
                        const char **out_why);

#endif
