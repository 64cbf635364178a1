/* SPDX-License-Identifier: Apache-2.0 */
/* Attention.  launch.c allocates the workspace.  Callable from any thread. */
#ifndef TANDEM_CPU_ATTENTION_ATTENTION_H
#define TANDEM_CPU_ATTENTION_ATTENTION_H

#include <stdatomic.h>

#include "common/op_attention.h"
#include "cpu/objects.h"

struct attention_job {
    struct attention attention;
    uint32_t op; /* enum tandem_op_id */
    const struct kernels *kernels;
    struct pool *pool;
    const float *q, *k, *v;
    const void *mask;
    float *out;
    int64_t query_rows, query_blocks; /* maximum queries of a block; blocks */
    /* Sizes of a slot of the workspace and of its parts, in floats. */
    int64_t query_floats, key_floats, value_floats, score_floats, sum_floats;
    int64_t slot_floats, threads;
    float *slots;
    atomic_uchar *slot_taken; /* for each slot, 1 if it is in use */
};

/* Describes a checked call.  Returns the size of the workspace in bytes, or 0
 * if the output is empty.  The caller owns the workspace. */
uint64_t attention_prepare(struct attention_job *job, const struct work *work);
void attention_run(struct attention_job *job, void *workspace);

#endif
