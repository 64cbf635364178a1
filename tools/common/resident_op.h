/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator on resident data of one lane, to be launched again and again,
 * and how long that takes.  A work belongs to its lane's thread.
 */
#ifndef TOOLS_WORK_H
#define TOOLS_WORK_H

#include "device_session.h"
#include "op_case.h"

#define WORK_BUFFERS (2 * TANDEM_MAX_OPERANDS)

/* Points into itself: never copy one. */
struct resident_op {
    struct device_session *session;
    struct op_case c;
    struct tandem_gemm gemm;
    const struct tandem_tensor_desc *in[TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *out[TANDEM_MAX_OPERANDS];
    struct tandem_buffer *buffers[WORK_BUFFERS];
    uint32_t buffer_count;
    uint64_t setup_ns; /* what making the buffers took */
};

/* TANDEM_UNSUPPORTED, before any memory is taken, where the device does not
 * serve it.  On failure nothing is left. */
enum tandem_status resident_op_create(struct resident_op *work,
                                      struct device_session *session,
                                      const char *name, uint32_t rank,
                                      const int64_t *shape);
/* Likewise where the caller built work->c in place. */
enum tandem_status resident_op_begin(struct resident_op *work,
                                     struct device_session *session);
/* Without memory: for resident_op_prepare and resident_op_query_ready alone,
 * needs no resident_op_destroy.  TANDEM_UNSUPPORTED where the device does not
 * serve it. */
enum tandem_status resident_op_describe(struct resident_op *work,
                                        struct device_session *session);
/* Has the device compile what the work needs, in the background; whether that
 * is there: TANDEM_NOT_READY, or how a compile failed. */
enum tandem_status resident_op_prepare(const struct resident_op *work);
enum tandem_status resident_op_query_ready(const struct resident_op *work);
/* Waits for the lane's work. */
void resident_op_destroy(struct resident_op *work);
enum tandem_status resident_op_launch(struct resident_op *work);
/* Launches count times and waits; what that took. */
enum tandem_status resident_op_stream(struct resident_op *work, uint64_t count,
                                      uint64_t *out_ns);

struct timing_plan {
    uint64_t batch_ns;  /* launches between two waits, together */
    uint32_t batches;   /* median of so many, at most TIMING_BATCHES */
    uint64_t max_count; /* launches between two waits, at most */
};
#define TIMING_BATCHES 33

struct timing {
    double ns;          /* of one launch in a stream: the median */
    uint64_t first_ns;  /* the first launch and its wait: compiles included */
    uint64_t second_ns; /* the second and its wait */
    uint64_t count;     /* launches of each batch */
};

enum tandem_status resident_op_time(struct resident_op *work,
                                    const struct timing_plan *plan,
                                    struct timing *out);

#endif
