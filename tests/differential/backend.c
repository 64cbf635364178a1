/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins under test; see backend.h. */
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

/* The arguments of a call. */
struct call_arguments {
    struct tandem_op op;
    struct tandem_gemm gemm;
    struct tandem_buffer *buffers[PROBLEM_OPERANDS]; /* Indexed by storage. */
    struct tandem_tensor_desc descs[PROBLEM_OPERANDS];
    /* One more entry than operands, because a wrong count may be passed. */
    const struct tandem_tensor_desc *ins[PROBLEM_OPERANDS + 1];
    const struct tandem_tensor_desc *outs[PROBLEM_OPERANDS + 1];
    uint32_t in_count, out_count;
};

static void tensors_bind(struct call_arguments *call_arguments,
                         const struct problem *p)
{
    for (uint32_t i = 0; i < p->inputs + p->outputs; i++) {
        struct tandem_tensor_desc *desc = &call_arguments->descs[i];
        bool there = p->operands[i].present && !(p->missing >> i & 1u);

        *desc = p->operands[i].desc;
        desc->buffer = p->without_buffer >> i & 1u
                           ? NULL
                           : call_arguments->buffers[p->storage[i]];
        if (i < p->inputs)
            call_arguments->ins[i] = there ? desc : NULL;
        else
            call_arguments->outs[i - p->inputs] = there ? desc : NULL;
    }
    for (uint32_t i = p->inputs; i <= PROBLEM_OPERANDS; i++)
        call_arguments->ins[i] = &call_arguments->descs[0];
    for (uint32_t i = p->outputs; i <= PROBLEM_OPERANDS; i++)
        call_arguments->outs[i] = &call_arguments->descs[p->inputs];
    call_arguments->in_count = p->passed_inputs;
    call_arguments->out_count = p->passed_outputs;
}

static void call_arguments_bind(struct call_arguments *call_arguments,
                                const struct problem *p)
{
    call_arguments->op =
        (struct tandem_op){.struct_size = p->struct_size,
                           .id = p->row->id,
                           .int_count = p->int_count,
                           .float_count = p->float_count,
                           .ints = p->int_count ? p->ints : NULL,
                           .floats = p->float_count ? p->floats : NULL};
    tensors_bind(call_arguments, p);
    if (p->row->op_class != TANDEM_CLASS_GEMM)
        return;
    call_arguments->gemm = p->gemm;
    call_arguments->gemm.a.buffer = call_arguments->descs[0].buffer;
    call_arguments->gemm.b.buffer = call_arguments->descs[1].buffer;
    call_arguments->gemm.bias = call_arguments->descs[2].buffer;
    call_arguments->gemm.c.buffer = call_arguments->descs[3].buffer;
    call_arguments->op.gemm = &call_arguments->gemm;
    call_arguments->in_count = call_arguments->out_count = 0;
}

static bool failed(struct call_outcome *call_outcome,
                   const struct backend *backend, enum tandem_status status,
                   const char *what)
{
    if (status == TANDEM_OK)
        return false;
    if (call_outcome->failure[0] == '\0')
        snprintf(call_outcome->failure, sizeof(call_outcome->failure), "%s: %s",
                 what, backend->api.last_error());
    return true;
}

static bool buffers_make(struct call_outcome *call_outcome,
                         struct call_arguments *call_arguments,
                         const struct backend *backend, const struct problem *p)
{
    for (uint32_t i = 0; i < p->inputs + p->outputs; i++) {
        const struct operand *operand = &p->operands[i];

        if (!operand->present || p->storage[i] != i)
            continue;
        if (failed(call_outcome, backend,
                   backend->api.alloc(backend->device, operand->bytes,
                                      &call_arguments->buffers[i]),
                   "alloc") ||
            failed(call_outcome, backend,
                   backend->api.upload(backend->stream,
                                       call_arguments->buffers[i], 0,
                                       operand->image, operand->bytes, 0),
                   "upload"))
            return false;
    }
    return true;
}

static void call_make(struct call_outcome *call_outcome,
                      const struct call_arguments *call_arguments,
                      const struct backend *backend, bool gemm)
{
    call_outcome->supports = backend->api.supports(
        backend->device, &call_arguments->op, gemm ? NULL : call_arguments->ins,
        call_arguments->in_count, gemm ? NULL : call_arguments->outs,
        call_arguments->out_count);
    if (gemm)
        call_outcome->launch =
            backend->api.gemm(backend->stream, &call_arguments->gemm);
    else
        call_outcome->launch = backend->api.launch(
            backend->stream, &call_arguments->op, call_arguments->ins,
            call_arguments->in_count, call_arguments->outs,
            call_arguments->out_count);
    if (call_outcome->launch != TANDEM_OK)
        snprintf(call_outcome->message, sizeof(call_outcome->message), "%s",
                 backend->api.last_error());
}

static void buffers_read(struct call_outcome *call_outcome,
                         const struct call_arguments *call_arguments,
                         const struct backend *backend, const struct problem *p)
{
    for (uint32_t i = 0; i < p->inputs + p->outputs; i++) {
        uint64_t bytes = p->operands[i].bytes;

        if (!p->operands[i].present || p->storage[i] != i)
            continue;
        call_outcome->after[i] = must_allocate(bytes);
        if (failed(call_outcome, backend,
                   backend->api.download(
                       backend->stream, call_arguments->buffers[i], 0,
                       call_outcome->after[i], bytes, 0, TIMEOUT_NS),
                   "download"))
            return;
    }
}

void call_outcome_run(struct call_outcome *call_outcome,
                      const struct backend *backend,
                      const struct problem *problem)
{
    struct call_arguments call_arguments = {.in_count = 0};

    memset(call_outcome, 0, sizeof(*call_outcome));
    if (buffers_make(call_outcome, &call_arguments, backend, problem)) {
        call_arguments_bind(&call_arguments, problem);
        call_make(call_outcome, &call_arguments, backend,
                  problem->row->op_class == TANDEM_CLASS_GEMM);
        buffers_read(call_outcome, &call_arguments, backend, problem);
    }
    failed(call_outcome, backend,
           backend->api.stream_synchronize(backend->stream, TIMEOUT_NS),
           "stream_synchronize");
    for (uint32_t i = 0; i < PROBLEM_OPERANDS; i++)
        backend->api.free(call_arguments.buffers[i]);
}

void call_outcome_finish(struct call_outcome *call_outcome)
{
    for (uint32_t i = 0; i < PROBLEM_OPERANDS; i++) {
        free(call_outcome->after[i]);
        call_outcome->after[i] = NULL;
    }
}
