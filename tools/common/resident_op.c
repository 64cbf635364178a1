/* SPDX-License-Identifier: Apache-2.0 */
/* Launches and times operators; see resident_op.h. */
#include <config.h>

#include "resident_op.h"

#include "clock.h"
#include "statistics.h"

#include <string.h>

/* All plugins align buffers to 64 bytes. */
#define OPERAND_ALIGNMENT 64u

/* Describes the operands that have no buffers yet, or those that have. */
static void operands_describe(struct resident_op *work)
{
    tensor_call_init(&work->call, work->in, work->c.inputs, work->out,
                     work->c.outputs, OPERAND_ALIGNMENT);
}

enum tandem_status resident_op_prepare(struct resident_op *work)
{
    if (work->prepared != NULL)
        return TANDEM_OK;
    return tensor_call_prepare(&work->call, work->session->backend,
                               work->session->device, &work->c.op, 0,
                               &work->prepared);
}

void resident_op_update(struct resident_op *work)
{
    work->session->backend->prepared_release(work->prepared);
    work->prepared = NULL;
    operands_describe(work);
}

enum tandem_status resident_op_query_ready(struct resident_op *work)
{
    enum tandem_status status = resident_op_prepare(work);

    return status == TANDEM_OK
               ? work->session->backend->prepared_wait(work->prepared, 0)
               : status;
}

enum tandem_status resident_op_describe(struct resident_op *work,
                                        struct device_session *session)
{
    work->session = session;
    work->buffer_count = 0;
    work->prepared = NULL;
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++) {
        work->in[i] = &work->c.in[i];
        work->out[i] = &work->c.out[i];
    }
    operands_describe(work);
    /* There are no buffers that could be compared. */
    for (uint32_t i = 0; i < work->c.outputs; i++)
        work->call.descs[work->c.inputs + i].same_as_input =
            work->c.alias[i] >= 0 ? (uint32_t)work->c.alias[i] + 1 : 0;
    return tensor_call_prepare(&work->call, session->backend, session->device,
                               &work->c.op, TANDEM_PREPARE_QUERY, NULL);
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
    else
        operands_describe(work);
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
    work->session->backend->prepared_release(work->prepared);
    work->prepared = NULL;
}

enum tandem_status resident_op_launch(struct resident_op *work)
{
    const struct device_session *session = work->session;
    enum tandem_status status = resident_op_prepare(work);

    if (status != TANDEM_OK)
        return status;
    return session->backend->launch(session->stream, work->prepared,
                                    work->call.memory,
                                    work->c.inputs + work->c.outputs, NULL, 0);
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
        out->spread =
            (quantile(samples, batch, 0.75) - quantile(samples, batch, 0.25)) /
            out->ns;
    return status;
}
