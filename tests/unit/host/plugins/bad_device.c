/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin with a valid function table whose devices misbehave as
 * TANDEM_TEST_PLUGIN says: "many" (reports 4294967295 devices), "nodescribe"
 * (and fails to describe them), "garbage" (describes them with invalid data),
 * "noerror" (has no error messages), "open=STATUS" (fails to open and returns
 * an invalid pointer), "opennull" (returns NULL), "stream=STATUS" (fails to
 * create streams), "status" (returns undefined status codes), "deaf" (waits
 * never return, whatever their timeout, after a log message).
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tandem/backend.h>

#include "../required_entries.h"

#define NOTHING ((void *)(uintptr_t)0xdead0000)
#define NO_STATUS ((enum tandem_status)12345)

/* All objects that the plugin opens or creates point to this memory. */
static char object[64] __attribute__((aligned(64)));
static tandem_log_fn log_line;
static void *log_user;

static const char *script(void)
{
    const char *text = secure_getenv("TANDEM_TEST_PLUGIN");

    return text != NULL ? text : "";
}

static bool scripted(const char *word)
{
    return strcmp(script(), word) == 0;
}

static enum tandem_status script_status(const char *word)
{
    const size_t length = strlen(word);

    return strncmp(script(), word, length) == 0
               ? (enum tandem_status)atoi(script() + length)
               : TANDEM_OK;
}

static const char *last_error(void)
{
    return scripted("noerror") ? NULL : "as scripted";
}

static enum tandem_status device_count(uint32_t *out_count)
{
    *out_count = scripted("many") || scripted("nodescribe") ? UINT32_MAX : 1;
    return TANDEM_OK;
}

static enum tandem_status device_describe(uint32_t index,
                                          struct tandem_device_info *out_info)
{
    const size_t bytes = out_info->struct_size;

    if (scripted("nodescribe") || scripted("noerror"))
        return TANDEM_FAILED;
    if (scripted("garbage")) {
        memset(out_info, 0xff, bytes);
        out_info->caps = TANDEM_CAP_ASYNC | TANDEM_CAP_CORE_OPERATORS;
        out_info->duplicate_of = 1000000;
        return TANDEM_OK;
    }
    memset(out_info, 0, bytes);
    out_info->struct_size = bytes;
    out_info->kind = TANDEM_DEVICE_GPU;
    out_info->caps = TANDEM_CAP_ASYNC | TANDEM_CAP_CORE_OPERATORS;
    out_info->duplicate_of = -1;
    snprintf(out_info->name, sizeof out_info->name, "Bad %u", index);
    return TANDEM_OK;
}

static enum tandem_status device_open(uint32_t index,
                                      const struct tandem_open_options *options,
                                      struct tandem_device **out_device)
{
    const enum tandem_status status = script_status("open=");

    (void)index;
    log_line = options->log;
    log_user = options->log_user;
    *out_device = (struct tandem_device *)(void *)object;
    if (status != TANDEM_OK)
        *out_device = NOTHING;
    if (scripted("opennull"))
        *out_device = NULL;
    return status;
}

static void device_close(struct tandem_device *device)
{
    if ((void *)device != object)
        abort();
}

static enum tandem_status alloc(struct tandem_device *device, uint64_t bytes,
                                struct tandem_buffer **out_buffer)
{
    (void)device, (void)bytes;
    *out_buffer = (struct tandem_buffer *)(void *)object;
    return TANDEM_OK;
}

static enum tandem_status stream_create(struct tandem_device *device,
                                        uint32_t flags,
                                        struct tandem_stream **out_stream)
{
    const enum tandem_status status = script_status("stream=");

    (void)device, (void)flags;
    *out_stream = status != TANDEM_OK
                      ? NOTHING
                      : (struct tandem_stream *)(void *)object;
    return status;
}

static enum tandem_status answer(void)
{
    return scripted("status") ? NO_STATUS : TANDEM_OK;
}

static enum tandem_status upload(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 const void *source, uint64_t bytes,
                                 uint32_t flags)
{
    (void)stream, (void)buffer, (void)offset, (void)source, (void)bytes;
    (void)flags;
    return answer();
}

static enum tandem_status
serve(struct tandem_device *device, const struct tandem_op *op,
      const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
      const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    (void)device, (void)op, (void)inputs, (void)input_count, (void)outputs;
    (void)output_count;
    return TANDEM_OK;
}

static enum tandem_status
launch(struct tandem_stream *stream, const struct tandem_op *op,
       const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
       const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    (void)stream, (void)op, (void)inputs, (void)input_count, (void)outputs;
    (void)output_count;
    return answer();
}

static enum tandem_status wait_never(void)
{
    if (!scripted("deaf"))
        return answer();
    log_line(log_user, TANDEM_LOG_WARNING, "waits for ever");
    for (;;)
        pause();
}

static enum tandem_status download(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, void *target,
                                   uint64_t bytes, uint32_t flags,
                                   uint64_t timeout_ns)
{
    (void)stream, (void)buffer, (void)offset, (void)target, (void)bytes;
    (void)flags, (void)timeout_ns;
    return wait_never();
}

static enum tandem_status stream_query(struct tandem_stream *stream)
{
    (void)stream;
    return scripted("deaf") ? TANDEM_NOT_READY : answer();
}

static enum tandem_status stream_wait(struct tandem_stream *stream,
                                      uint64_t timeout_ns)
{
    (void)stream, (void)timeout_ns;
    return wait_never();
}

static enum tandem_status event_record(struct tandem_stream *stream,
                                       struct tandem_event **out_event)
{
    (void)stream;
    *out_event = (struct tandem_event *)(void *)object;
    return TANDEM_OK;
}

static enum tandem_status event_wait(struct tandem_event *event,
                                     uint64_t timeout_ns)
{
    (void)event, (void)timeout_ns;
    return wait_never();
}

static void nothing(void)
{
}

static struct tandem_backend backend;

#define ENTRY_SET(entry)                                                     \
    backend.entry = (__typeof__(backend.entry))nothing;

const struct tandem_backend *tandem_backend_query(uint32_t host_abi_major)
{
    REQUIRED_ENTRIES(ENTRY_SET)
    backend.struct_size = sizeof backend;
    backend.abi_major = host_abi_major;
    backend.abi_minor = TANDEM_ABI_MINOR;
    backend.name = "bad";
    backend.version = "1";
    backend.last_error = last_error;
    backend.device_count = device_count;
    backend.device_describe = device_describe;
    backend.open = device_open;
    backend.close = device_close;
    backend.alloc = alloc;
    backend.upload = upload;
    backend.download = download;
    backend.supports = serve;
    backend.launch = launch;
    backend.stream_create = stream_create;
    backend.stream_query = stream_query;
    backend.stream_synchronize = stream_wait;
    backend.event_record = event_record;
    backend.event_wait = event_wait;
    return &backend;
}
