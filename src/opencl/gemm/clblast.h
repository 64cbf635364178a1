/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMM by CLBlast. CLBlast's program cache belongs to the process, is keyed by
 * context and device, and has its own mutexes (seen in its source; not
 * documented). Any thread.
 */
#ifndef TANDEM_OPENCL_GEMM_CLBLAST_H
#define TANDEM_OPENCL_GEMM_CLBLAST_H

#include "opencl/queue/stream.h"

/* Up to this k, CLBlast is called once. For a larger k it is called several
 * times, possibly with a larger k per call. */
#define CLBLAST_MAX_UNSPLIT_K 512

/* Returns true if the operands have the alignment of CLBlast's vector loads.
 * Imported memory may not have it. */
bool clblast_supports_alignment(struct tandem_device *device,
                                const struct tandem_gemm *gemm);
/* Returns the variant key of what CLBlast compiles for `gemm`: CLBLAST_KEY or
 * CLBLAST_BATCHED_KEY. */
uint64_t clblast_variant_key(const struct tandem_gemm *gemm);
/* Enqueues c = alpha a b + beta c. `gemm` must not be empty, and
 * clblast_supports_gemm() must be true. */
enum tandem_status clblast_gemm_launch(struct tandem_stream *stream,
                                       const struct tandem_gemm *gemm);
/* Makes CLBlast compile its kernels by small GEMMs on scratch memory. */
enum tandem_status clblast_warm(struct tandem_device *device, bool batched);
/* Compares GEMMs by CLBlast's direct and indirect kernels with double
 * precision (clblast_self_test.c). CLBlast uses the indirect kernel if
 * m n k is at least min_indirect cubed. Returns TANDEM_FAILED if an element is
 * wrong. */
enum tandem_status clblast_self_test_run(struct tandem_device *device,
                                         bool batched, uint32_t min_indirect);
/* Fills `out` with pseudo-random numbers in [-1, 1). */
void clblast_self_test_fill(float *out, size_t count, uint32_t seed);
/* Empties CLBlast's program cache. No device may be open. */
void clblast_clear_cache(void);

#endif
