/* SPDX-License-Identifier: Apache-2.0 */
/* Launches and times operators; see resident_op.h. */
#include <config.h>

#include "resident_op.h"

#include "clock.h"
#include "statistics.h"

#include <string.h>

static struct tandem_matrix matrix_of(const struct tandem_tensor_desc *desc)
{
    uint32_t rank = desc->rank;
    struct tandem_matrix matrix = {desc->buffer, 0, desc->shape[rank - 1], 0};

    if (matrix.ld < 1)
        matrix.ld = 1;
    if (rank == 3)
        matrix.batch_stride = desc->shape[1] * desc->shape[2];
    return matrix;
}

static void set_gemm(struct resident_op *work)
{
    struct op_case *c = &work->c;

    if (c->op.id != TANDEM_OP_GEMM)
        return;
    work->gemm = (struct tandem_gemm){
        .struct_size = sizeof work->gemm,
        .dtype = TANDEM_F32,
        .m = c->m,
        .n = c->n,
        .k = c->k,
        .batch = c->batch,
        .alpha = 1,
        .a = matrix_of(&c->in[0]),
        .b = matrix_of(&c->in[1]),
        .c = matrix_of(&c->out[0]),
    };
    c->op.gemm = &work->gemm;
}

/* Type of the vtable functions `supports`, `prepare` and `query_ready`. */
typedef enum tandem_status (*query_fn)(
    struct tandem_device *device, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count);

static enum tandem_status resident_op_ask(const struct resident_op *work,
                                          query_fn query)
{
    const struct op_case *c = &work->c;

    if (c->op.gemm != NULL)
        return query(work->session->device, &c->op, NULL, 0, NULL, 0);
    return query(work->session->device, &c->op, work->in, c->inputs, work->out,
                 c->outputs);
}

enum tandem_status resident_op_prepare(const struct resident_op *work)
{
    return resident_op_ask(work, work->session->backend->prepare);
}

enum tandem_status resident_op_query_ready(const struct resident_op *work)
{
    return resident_op_ask(work, work->session->backend->query_ready);
}

enum tandem_status resident_op_describe(struct resident_op *work,
                                        struct device_session *session)
{
    work->session = session;
    work->buffer_count = 0;
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++) {
        work->in[i] = &work->c.in[i];
        work->out[i] = &work->c.out[i];
    }
    set_gemm(work);
    return resident_op_ask(work, session->backend->supports);
}

static enum tandem_status operand_alloc(struct resident_op *work,
                                        struct tandem_tensor_desc *desc,
                                        int64_t limit)
{
    uint32_t dtype = desc->dtype;
    enum tandem_status status;

    if (dtype == TANDEM_BOOL)
        limit = 1; /* zero bytes */
    else if (dtype == TANDEM_F32)
        limit = 0;
    else if (limit == 0)
        limit = 1;
    status = device_session_buffer(work->session, (uint64_t)desc_bytes(desc),
                                   limit, &desc->buffer);
    if (status == TANDEM_OK)
        work->buffers[work->buffer_count++] = desc->buffer;
    return status;
}

static enum tandem_status operands_alloc(struct resident_op *work)
{
    struct op_case *c = &work->c;
    enum tandem_status status = TANDEM_OK;

    for (uint32_t i = 0; i < c->inputs && status == TANDEM_OK; i++)
        status = operand_alloc(work, &c->in[i], c->index_limit);
    for (uint32_t i = 0; i < c->outputs && status == TANDEM_OK; i++) {
        if (c->alias[i] >= 0)
            c->out[i].buffer = c->in[c->alias[i]].buffer;
        else
            status = operand_alloc(work, &c->out[i], 0);
    }
    return status == TANDEM_OK ? device_session_synchronize(work->session)
                               : status;
}

enum tandem_status resident_op_begin(struct resident_op *work,
                                     struct device_session *session)
{
    uint64_t start = clock_now_ns();
    enum tandem_status status;

    status = resident_op_describe(work, session);
    if (status == TANDEM_OK)
        status = operands_alloc(work);
    if (status != TANDEM_OK)
        resident_op_destroy(work);
    set_gemm(work);
    work->setup_ns = clock_now_ns() - start;
    return status;
}

enum tandem_status resident_op_create(struct resident_op *work,
                                      struct device_session *session,
                                      const char *name, uint32_t rank,
                                      const int64_t *shape)
{
    char error[OPCASE_ERROR_BYTES];

    memset(work, 0, sizeof *work);
    if (!op_case_build(&work->c, name, rank, shape, error))
        return TANDEM_INVALID_ARGUMENT;
    return resident_op_begin(work, session);
}

void resident_op_destroy(struct resident_op *work)
{
    if (work->buffer_count > 0)
        device_session_synchronize(work->session);
    for (uint32_t i = 0; i < work->buffer_count; i++)
        work->session->backend->free(work->buffers[i]);
    work->buffer_count = 0;
}

enum tandem_status resident_op_launch(struct resident_op *work)
{
    struct op_case *c = &work->c;
    struct device_session *session = work->session;

    if (c->op.gemm != NULL)
        return session->backend->gemm(session->stream, &work->gemm);
    return session->backend->launch(session->stream, &c->op, work->in,
                                    c->inputs, work->out, c->outputs);
}

enum tandem_status resident_op_stream(struct resident_op *work, uint64_t count,
                                      uint64_t *out_ns)
{
    uint64_t start = clock_now_ns();
    enum tandem_status status = TANDEM_OK;

    for (uint64_t i = 0; i < count && status == TANDEM_OK; i++)
        status = resident_op_launch(work);
    if (status == TANDEM_OK)
        status = device_session_synchronize(work->session);
    *out_ns = clock_now_ns() - start;
    return status;
}

/* Sets out->count to the number of launches that take about plan->batch_ns.
 * Tries four times as many launches until they take a quarter of batch_ns. */
static enum tandem_status find_count(struct resident_op *work,
                                     const struct timing_plan *plan,
                                     struct timing *out)
{
    uint64_t count = 1, ns = out->second_ns;
    enum tandem_status status = TANDEM_OK;

    while (status == TANDEM_OK && ns < plan->batch_ns / 4 &&
           count < plan->max_count) {
        count *= 4;
        status = resident_op_stream(work, count, &ns);
    }
    count = count * plan->batch_ns / (ns > 0 ? ns : 1);
    count = count < 1 ? 1 : count;
    out->count = count > plan->max_count ? plan->max_count : count;
    return status;
}

enum tandem_status resident_op_time(struct resident_op *work,
                                    const struct timing_plan *plan,
                                    struct timing *out)
{
    double samples[TIMING_BATCHES];
    enum tandem_status status;
    uint32_t batch;

    memset(out, 0, sizeof *out);
    status = resident_op_stream(work, 1, &out->first_ns);
    if (status == TANDEM_OK)
        status = resident_op_stream(work, 1, &out->second_ns);
    if (status == TANDEM_OK)
        status = find_count(work, plan, out);
    for (batch = 0;
         batch < plan->batches && batch < TIMING_BATCHES && status == TANDEM_OK;
         batch++) {
        uint64_t ns;

        status = resident_op_stream(work, out->count, &ns);
        samples[batch] = (double)ns / (double)out->count;
    }
    out->ns = quantile(samples, batch, 0.5);
    if (out->ns > 0)
        out->spread = (quantile(samples, batch, 0.75) -
                       quantile(samples, batch, 0.25)) /
                      out->ns;
    return status;
}
