/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches and times an operator whose operands stay in device memory.  An
 * object is used by the thread of its device session.
 */
#ifndef TOOLS_RESIDENT_OP_H
#define TOOLS_RESIDENT_OP_H

#include "common/tensor_desc.h"
#include "device_session.h"
#include "op_case.h"
#include "tensor_call.h"

#define WORK_BUFFERS (2 * TANDEM_MAX_OPERANDS)

/* Must not be copied, because it contains pointers into itself. */
struct resident_op {
    struct device_session *session;
    struct op_case c;
    const struct tandem_tensor_desc *in[TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *out[TANDEM_MAX_OPERANDS];
    struct tandem_buffer *buffers[WORK_BUFFERS];
    uint32_t buffer_count;
    struct tensor_call call;
    struct tandem_prepared *prepared; /* NULL before the first launch */
    uint64_t setup_ns;                /* time to create and fill the buffers */
};

/* Builds the operator's case (op_case.h) and its buffers.  Returns
 * TANDEM_UNSUPPORTED, before it allocates memory, if the device does not
 * support the operator.  A failed call leaves nothing to destroy. */
enum tandem_status resident_op_create(struct resident_op *work,
                                      struct device_session *session,
                                      const char *name, uint32_t rank,
                                      const int64_t *shape);
/* Like resident_op_create, for a case that the caller built in work->c. */
enum tandem_status resident_op_begin(struct resident_op *work,
                                     struct device_session *session);
/* Like resident_op_begin, without buffers.  The object may only be passed to
 * resident_op_prepare, resident_op_query_ready and resident_op_destroy. */
enum tandem_status resident_op_describe(struct resident_op *work,
                                        struct device_session *session);
/* resident_op_prepare makes the device compile the operator's kernels in the
 * background.  resident_op_query_ready returns TANDEM_NOT_READY while they
 * compile, then TANDEM_OK or the error of the compilation. */
enum tandem_status resident_op_prepare(struct resident_op *work);
enum tandem_status resident_op_query_ready(struct resident_op *work);
/* Applies changes of work->c that were made after resident_op_begin. */
void resident_op_update(struct resident_op *work);
/* [blocks] Waits for the session's stream, then frees the buffers. */
void resident_op_destroy(struct resident_op *work);
enum tandem_status resident_op_launch(struct resident_op *work);
/* [blocks] Launches the operator `count` times and waits.  Sets *out_ns to the
 * time of all launches together. */
enum tandem_status resident_op_stream(struct resident_op *work, uint64_t count,
                                      uint64_t *out_ns);

struct timing_plan {
    uint64_t batch_ns;  /* wanted time of the launches between two waits */
    uint32_t batches;   /* number of such batches, at most TIMING_BATCHES */
    uint64_t max_count; /* maximum number of launches in a batch */
};
#define TIMING_BATCHES 33

struct timing {
    double ns;          /* time of one launch: the median over the batches */
    double spread;      /* interquartile range of the batches / median */
    uint64_t first_ns;  /* first launch and wait, with compilation */
    uint64_t second_ns; /* second launch and wait */
    uint64_t count;     /* launches of each batch */
};

enum tandem_status resident_op_time(struct resident_op *work,
                                    const struct timing_plan *plan,
                                    struct timing *out);

#endif
