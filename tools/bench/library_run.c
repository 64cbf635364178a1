/* SPDX-License-Identifier: Apache-2.0 */
/* Runs operators through the library; see library_run.h. */
#include <config.h>

#include "library_run.h"

#include <stdlib.h>
#include <string.h>

static enum tandem_status library_run_once(struct library_run *t)
{
    struct tandem_context *context = t->bench->context;
    bool linear = row_has(t->row, "relu");
    const struct tandem_matmul_options options = {
        .struct_size = sizeof options,
        .alpha = 1,
        .bias = t->bias,
        .activation = linear ? TANDEM_OP_RELU : TANDEM_OP_INVALID,
        .device = t->device,
    };

    if (t->c.op.id == TANDEM_OP_GEMM)
        return tandem_matmul(context, &options, t->in[0], t->in[1], t->out[0]);
    if (t->device == TANDEM_ANY_DEVICE)
        return tandem_run(context, &t->c.op, t->in, t->c.inputs, t->out,
                          t->c.outputs, NULL);
    return tandem_run(context, &t->c.op, t->in, t->c.inputs, t->out,
                      t->c.outputs, TANDEM_RUN_ON(t->device));
}

static bool run_from_host(void *argument)
{
    struct library_run *t = argument;
    enum tandem_status status = TANDEM_OK;

    for (uint32_t j = 0; j < t->c.inputs && status == TANDEM_OK; j++)
        status = tandem_tensor_host_written(t->in[j]);
    if (status == TANDEM_OK && t->bias != NULL)
        status = tandem_tensor_host_written(t->bias);
    if (status == TANDEM_OK)
        status = library_run_once(t);
    return status == TANDEM_OK &&
           tandem_tensor_sync(t->out[0], TANDEM_TIMEOUT_INFINITE) == TANDEM_OK;
}
BENCH_FN(library_run_host_to_host, run_from_host, NULL);

static bool run_resident(void *library_run)
{
    return library_run_once(library_run) == TANDEM_OK;
}

static bool run_wait(void *library_run)
{
    struct library_run *t = library_run;

    return tandem_context_synchronize(t->bench->context,
                                      TANDEM_TIMEOUT_INFINITE) == TANDEM_OK;
}
BENCH_FN(library_run_resident, run_resident, run_wait);

/* ---- opening ---- */

/* Wraps new host memory with the values of seed_value or seed_index.  Writes
 * every page, so that no page fault is timed. */
static struct tandem_tensor *operand(struct library_run *t,
                                     const struct tandem_tensor_desc *desc,
                                     void **out_memory)
{
    uint64_t bytes = (uint64_t)desc_bytes(desc);
    struct tandem_tensor *tensor = NULL;

    *out_memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (*out_memory == NULL)
        return NULL;
    for (uint64_t i = 0; i < bytes / 4; i++)
        if (desc->dtype == TANDEM_F32)
            ((float *)*out_memory)[i] = seed_value(i);
        else
            ((int32_t *)*out_memory)[i] =
                t->c.index_limit > 0 ? seed_index(i, t->c.index_limit) : 0;
    tandem_tensor_wrap(t->bench->context, *out_memory, desc->dtype, desc->rank,
                       desc->shape, NULL, 0, &tensor);
    return tensor;
}

static bool operands_open(struct library_run *t)
{
    for (uint32_t i = 0; i < t->c.inputs; i++) {
        t->host_in[i] = t->in[i] = operand(t, &t->c.in[i], &t->memory[i]);
        if (t->in[i] == NULL)
            return false;
    }
    for (uint32_t i = 0; i < t->c.outputs; i++) {
        t->out[i] =
            operand(t, &t->c.out[i], &t->memory[TANDEM_MAX_OPERANDS + i]);
        if (t->out[i] == NULL)
            return false;
    }
    /* The bias is the first row of b. */
    if (t->c.op.id == TANDEM_OP_GEMM && row_has(t->row, "bias"))
        return tandem_tensor_wrap(t->bench->context, t->memory[1], TANDEM_F32,
                                  1, &t->c.n, NULL, 0, &t->bias) == TANDEM_OK;
    return true;
}

bool library_run_open(struct library_run *t, struct bench *bench,
                      const struct row *row, uint32_t device)
{
    memset(t, 0, sizeof *t);
    t->bench = bench;
    t->row = row;
    t->device = device;
    if (!bench_case(bench, row, &t->c))
        return false;
    if (operands_open(t))
        return true;
    bench_fail(bench, "no memory for it: %s", tandem_last_error());
    return false;
}

enum tandem_status library_run_place(struct library_run *t, uint32_t device)
{
    const struct tandem_op copy = {.struct_size = sizeof copy,
                                   .id = TANDEM_OP_COPY};
    struct tandem_context *context = t->bench->context;
    enum tandem_status status = TANDEM_OK;

    for (uint32_t i = 0; i < t->c.inputs && status == TANDEM_OK; i++) {
        const struct tandem_tensor_desc *desc = &t->c.in[i];

        if (device == TANDEM_ANY_DEVICE) {
            status = tandem_tensor_host_written(t->host_in[i]);
            continue;
        }
        if (t->in[i] == t->host_in[i])
            status = tandem_tensor_create(context, desc->dtype, desc->rank,
                                          desc->shape, &t->in[i]);
        if (status == TANDEM_OK)
            status = tandem_run(context, &copy, &t->host_in[i], 1, &t->in[i], 1,
                                TANDEM_RUN_ON(device));
    }
    return status == TANDEM_OK
               ? tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE)
               : status;
}

void library_run_close(struct library_run *t)
{
    if (t->bench == NULL)
        return;
    run_wait(t);
    tandem_tensor_destroy(t->bias);
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++) {
        if (t->in[i] != t->host_in[i])
            tandem_tensor_destroy(t->in[i]);
        tandem_tensor_destroy(t->host_in[i]);
        tandem_tensor_destroy(t->out[i]);
    }
    run_wait(t);
    for (uint32_t i = 0; i < 2 * TANDEM_MAX_OPERANDS; i++)
        free(t->memory[i]);
    memset(t, 0, sizeof *t);
}

/* ---- checking ---- */

static bool output_read(void *argument, uint32_t output, uint64_t first,
                        uint64_t count, double *out)
{
    const struct library_run *t = argument;
    const void *memory = t->memory[TANDEM_MAX_OPERANDS + output];
    bool is_i64 = t->c.out[output].dtype == TANDEM_I64;

    for (uint64_t i = first; i < first + count; i++) {
        double value = is_i64 ? (double)((const int64_t *)memory)[i]
                              : (double)((const float *)memory)[i];

        /* check_outputs expects the GEMM alone.  All values are positive, so
         * relu does not change them. */
        if (t->bias != NULL)
            value -= (double)seed_value(i % (uint64_t)t->c.n);
        *out++ = value;
    }
    return true;
}

bool library_run_check(struct library_run *t)
{
    memset(t->memory[TANDEM_MAX_OPERANDS], 0, (size_t)desc_bytes(&t->c.out[0]));
    if (tandem_tensor_host_written(t->out[0]) == TANDEM_OK && run_from_host(t))
        return check_outputs(t->bench, &t->c, output_read, t);
    bench_fail(t->bench, "%s", tandem_last_error());
    return false;
}
