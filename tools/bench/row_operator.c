/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the operator of a row; see bench.h. */
#include <config.h>

#include "bench.h"
#include "layer_case.h"

#include <stdlib.h>
#include <string.h>

bool bench_on(const struct bench *bench, const char *backend)
{
    return bench->session.backend != NULL &&
           strcmp(bench->session.backend->name, backend) == 0;
}

/* Sets the reduced axes from "axis=N" or "all" in the detail. */
static void take_axes(const struct row *row, struct op_case *c)
{
    if (c->info->op_class != TANDEM_CLASS_REDUCE &&
        c->info->op_class != TANDEM_CLASS_ARG_REDUCE)
        return;
    if (strncmp(row->detail, "axis=", 5) == 0)
        op_case_reduce_axes(c, 1u << (atoi(row->detail + 5) % 8));
    else if (row_has(row, "all"))
        op_case_reduce_axes(c, (1u << row->rank) - 1);
}

bool bench_case(struct bench *bench, const struct row *row, struct op_case *c)
{
    char error[OPCASE_ERROR_BYTES];

    if (tandem_op_by_name(row->op) == NULL) {
        bench_unavailable(bench, "Tandem %s has no operator \"%s\"",
                          tandem_version(), row->op);
        return false;
    }
    if (!op_case_build(c, row->op, row->rank, row->shape, error)) {
        bench_unavailable(bench, "%s", error);
        return false;
    }
    take_axes(row, c);
    layer_case_apply(row, c);
    return true;
}

/* Uploads the integers of seed_index to each integer input.  Sets *out_host to
 * true if host memory is exhausted, which is not an error of the plugin. */
static enum tandem_status seed_indices(struct resident_op *work, bool *out_host)
{
    struct device_session *session = work->session;
    enum tandem_status status = TANDEM_OK;

    for (uint32_t i = 0; i < work->c.inputs && status == TANDEM_OK; i++) {
        const struct tandem_tensor_desc *in = &work->c.in[i];
        uint64_t count = (uint64_t)desc_elements(in);
        int32_t *indices;

        if (in->dtype != TANDEM_I32)
            continue;
        indices = malloc(count * sizeof *indices);
        *out_host = indices == NULL;
        if (indices == NULL)
            return TANDEM_OUT_OF_MEMORY;
        for (uint64_t j = 0; j < count; j++)
            indices[j] = seed_index(j, work->c.index_limit);
        status = session->backend->upload(session->stream, in->buffer, 0,
                                          indices, count * sizeof *indices, 0);
        free(indices);
    }
    return status;
}

bool bench_resident_op(struct bench *bench, struct resident_op *work)
{
    enum tandem_status status;
    bool host = false;

    memset(work, 0, sizeof *work);
    if (!bench_case(bench, bench->row, &work->c))
        return false;
    status = resident_op_begin(work, &bench->session);
    if (status == TANDEM_OK) {
        status = seed_indices(work, &host);
        if (status == TANDEM_OK)
            return true;
        resident_op_destroy(work);
    }
    const char *error = host ? "no host memory for indices"
                             : bench->session.backend->last_error();
    if (status == TANDEM_UNSUPPORTED || status == TANDEM_OUT_OF_MEMORY)
        bench_unavailable(bench, "%s", error);
    else
        bench_fail(bench, "%s", error);
    return false;
}

double resident_op_run(void *work, uint64_t count)
{
    uint64_t ns;

    if (resident_op_stream(work, count, &ns) != TANDEM_OK)
        return -1;
    return (double)ns / (double)count;
}
