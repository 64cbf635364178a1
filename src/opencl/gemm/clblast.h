/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products by CLBlast.  Its program cache is process-wide, keyed by
 * context and device, and guarded by its own mutexes: seen in its source, not
 * promised in its documentation.
 */
#ifndef TANDEM_OPENCL_GEMM_CLBLAST_H
#define TANDEM_OPENCL_GEMM_CLBLAST_H

#include "opencl/queue/stream.h"

/* Up to this k CLBlast is called once.  A longer k is cut into slabs, which may
 * be longer than this. */
#define CLBLAST_MAX_UNSPLIT_K 512

/* Before any other call of CLBlast's. */
void clblast_init_once(cl_command_queue *queue);
/* Whether the memory of gemm's matrices lies as CLBlast's vectors need it:
 * imported memory may lie anywhere. */
bool clblast_supports_alignment(struct tandem_device *device,
                                const struct tandem_gemm *gemm);
/* CLBLAST_KEY or CLBLAST_BATCHED_KEY: what CLBlast compiles for gemm. */
uint64_t clblast_variant_key(const struct tandem_gemm *gemm);
/* Enqueues alpha a b + beta c; nothing of gemm is empty, and it is one of
 * clblast_supports_gemm's. */
enum tandem_status clblast_gemm_launch(struct tandem_stream *stream,
                                       const struct tandem_gemm *gemm);
/* Runs small products on scratch memory, so that CLBlast has compiled. */
enum tandem_status clblast_warm(struct tandem_device *device, bool batched);
/* clblast_self_test.c: some products by both of its kernels, the second one
 * from least_indirect cubed on, compared with the same in double.  FAILED, with
 * a message, where they differ. */
enum tandem_status clblast_self_test_run(struct tandem_device *device,
                                         bool batched, uint32_t least_indirect);
/* Fills `out` with pseudo-random numbers in [-1, 1). */
void clblast_self_test_fill(float *out, size_t count, uint32_t seed);
/* Empties CLBlast's cache.  With no device open. */
void clblast_clear_cache(void);

#endif
