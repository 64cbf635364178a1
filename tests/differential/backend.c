/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins under test.  See backend.h. */
#include "backend.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_NS (300ull * 1000u * 1000u * 1000u)

static bool plugin_load(struct backend *backend)
{
    const struct tandem_backend *table;
    tandem_backend_query_fn query;
    char path[4096];
    void *plugin;

    snprintf(path, sizeof(path), "%s%s",
             strchr(backend->path, '/') == NULL ? "./" : "", backend->path);
    plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) {
        fprintf(stderr, "differential: %s\n", dlerror());
        return false;
    }
    *(void **)&query = dlsym(plugin, TANDEM_BACKEND_QUERY_SYMBOL);
    table = query != NULL ? query(TANDEM_ABI_MAJOR) : NULL;
    if (table == NULL) {
        fprintf(stderr, "differential: %s is no Tandem backend of ABI %u\n",
                backend->path, TANDEM_ABI_MAJOR);
        return false;
    }
    memcpy(&backend->api, table,
           table->struct_size < sizeof(backend->api) ? table->struct_size
                                                     : sizeof(backend->api));
    return true;
}

enum backend_state backend_open(struct backend *backend, const char *path,
                                const struct backend_options *options)
{
    struct tandem_open_options open = {.struct_size = sizeof(open),
                                       .count = options->count,
                                       .keys = options->keys,
                                       .values = options->values};
    enum tandem_status status;
    uint32_t count = 0;

    memset(backend, 0, sizeof(*backend));
    backend->path = path;
    if (!plugin_load(backend))
        return BACKEND_NO_PLUGIN;
    status = backend->api.device_count(&count);
    backend->info.struct_size = sizeof(backend->info);
    if (status == TANDEM_OK)
        status = backend->api.device_describe(0, &backend->info);
    if (status == TANDEM_OK)
        status = backend->api.open(0, &open, &backend->device);
    if (status == TANDEM_OK)
        status =
            backend->api.stream_create(backend->device, 0, &backend->stream);
    if (status == TANDEM_OK)
        return BACKEND_OPEN;
    fprintf(stderr, "differential: %s: %s\n", path, backend->api.last_error());
    return status == TANDEM_NO_DEVICE ? BACKEND_NO_DEVICE : BACKEND_NO_PLUGIN;
}

void backend_close(struct backend *backend)
{
    if (backend->stream != NULL)
        backend->api.stream_destroy(backend->stream);
    if (backend->device != NULL)
        backend->api.close(backend->device);
}

/* A call as it is passed. */
struct passed {
    struct tandem_op op;
    struct tandem_gemm gemm;
    struct tandem_buffer *buffers[PROBLEM_OPERANDS]; /* by home */
    struct tandem_tensor_desc descs[PROBLEM_OPERANDS];
    /* One more than there are, as a wrong count may say. */
    const struct tandem_tensor_desc *ins[PROBLEM_OPERANDS + 1];
    const struct tandem_tensor_desc *outs[PROBLEM_OPERANDS + 1];
    uint32_t in_count, out_count;
};

static void tensors_bind(struct passed *passed, const struct problem *p)
{
    for (uint32_t i = 0; i < p->inputs + p->outputs; i++) {
        struct tandem_tensor_desc *desc = &passed->descs[i];
        bool there = p->operands[i].present && !(p->missing >> i & 1u);

        *desc = p->operands[i].desc;
        desc->buffer =
            p->unbound >> i & 1u ? NULL : passed->buffers[p->home[i]];
        if (i < p->inputs)
            passed->ins[i] = there ? desc : NULL;
        else
            passed->outs[i - p->inputs] = there ? desc : NULL;
    }
    for (uint32_t i = p->inputs; i <= PROBLEM_OPERANDS; i++)
        passed->ins[i] = &passed->descs[0];
    for (uint32_t i = p->outputs; i <= PROBLEM_OPERANDS; i++)
        passed->outs[i] = &passed->descs[p->inputs];
    passed->in_count = p->passed_inputs;
    passed->out_count = p->passed_outputs;
}

static void passed_bind(struct passed *passed, const struct problem *p)
{
    passed->op =
        (struct tandem_op){.struct_size = p->struct_size,
                           .id = p->row->id,
                           .int_count = p->int_count,
                           .float_count = p->float_count,
                           .ints = p->int_count ? p->ints : NULL,
                           .floats = p->float_count ? p->floats : NULL};
    tensors_bind(passed, p);
    if (p->row->op_class != TANDEM_CLASS_GEMM)
        return;
    passed->gemm = p->gemm;
    passed->gemm.a.buffer = passed->descs[0].buffer;
    passed->gemm.b.buffer = passed->descs[1].buffer;
    passed->gemm.bias = passed->descs[2].buffer;
    passed->gemm.c.buffer = passed->descs[3].buffer;
    passed->op.gemm = &passed->gemm;
    passed->in_count = passed->out_count = 0;
}

static bool failed(struct attempt *attempt, const struct backend *backend,
                   enum tandem_status status, const char *what)
{
    if (status == TANDEM_OK)
        return false;
    if (attempt->failure[0] == '\0')
        snprintf(attempt->failure, sizeof(attempt->failure), "%s: %s", what,
                 backend->api.last_error());
    return true;
}

static bool buffers_make(struct attempt *attempt, struct passed *passed,
                         const struct backend *backend, const struct problem *p)
{
    for (uint32_t i = 0; i < p->inputs + p->outputs; i++) {
        const struct operand *operand = &p->operands[i];

        if (!operand->present || p->home[i] != i)
            continue;
        if (failed(attempt, backend,
                   backend->api.alloc(backend->device, operand->bytes,
                                      &passed->buffers[i]),
                   "alloc") ||
            failed(attempt, backend,
                   backend->api.upload(backend->stream, passed->buffers[i], 0,
                                       operand->image, operand->bytes, 0),
                   "upload"))
            return false;
    }
    return true;
}

static void call_make(struct attempt *attempt, const struct passed *passed,
                      const struct backend *backend, bool gemm)
{
    attempt->supports = backend->api.supports(
        backend->device, &passed->op, gemm ? NULL : passed->ins,
        passed->in_count, gemm ? NULL : passed->outs, passed->out_count);
    if (gemm)
        attempt->launch = backend->api.gemm(backend->stream, &passed->gemm);
    else
        attempt->launch = backend->api.launch(backend->stream, &passed->op,
                                              passed->ins, passed->in_count,
                                              passed->outs, passed->out_count);
    if (attempt->launch != TANDEM_OK)
        snprintf(attempt->message, sizeof(attempt->message), "%s",
                 backend->api.last_error());
}

static void buffers_read(struct attempt *attempt, const struct passed *passed,
                         const struct backend *backend, const struct problem *p)
{
    for (uint32_t i = 0; i < p->inputs + p->outputs; i++) {
        uint64_t bytes = p->operands[i].bytes;

        if (!p->operands[i].present || p->home[i] != i)
            continue;
        attempt->after[i] = must_allocate(bytes);
        if (failed(attempt, backend,
                   backend->api.download(backend->stream, passed->buffers[i], 0,
                                         attempt->after[i], bytes, 0,
                                         TIMEOUT_NS),
                   "download"))
            return;
    }
}

void attempt_run(struct attempt *attempt, const struct backend *backend,
                 const struct problem *problem)
{
    struct passed passed = {.in_count = 0};

    memset(attempt, 0, sizeof(*attempt));
    if (buffers_make(attempt, &passed, backend, problem)) {
        passed_bind(&passed, problem);
        call_make(attempt, &passed, backend,
                  problem->row->op_class == TANDEM_CLASS_GEMM);
        buffers_read(attempt, &passed, backend, problem);
    }
    failed(attempt, backend,
           backend->api.stream_synchronize(backend->stream, TIMEOUT_NS),
           "stream_synchronize");
    for (uint32_t i = 0; i < PROBLEM_OPERANDS; i++)
        backend->api.free(passed.buffers[i]);
}

void attempt_finish(struct attempt *attempt)
{
    for (uint32_t i = 0; i < PROBLEM_OPERANDS; i++) {
        free(attempt->after[i]);
        attempt->after[i] = NULL;
    }
}
