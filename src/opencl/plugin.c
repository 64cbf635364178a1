/* SPDX-License-Identifier: Apache-2.0 */
/* The function table of the plugin.  Each entry checks handles and pointers,
 * then calls the implementation.  An entry in which a driver may start threads
 * runs inside a thread_state_guard.  backend.h says which thread may call each
 * entry. */
#include <stdlib.h>

#include "common/argument_check.h"
#include "common/thread_state_guard.h"
#include "common/struct_size.h"
#include "config.h"
#include "opencl/device/device.h"
#include "opencl/device_lifecycle.h"
#include "opencl/transfer/host_import.h"
#include "opencl/operator_entries.h"
#include "opencl/memory/pinned_memory.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/queue/event.h"
#include "opencl/queue/stream_lifecycle.h"
#include "opencl/transfer/transfer.h"
#include "opencl/tune/tune.h"

static enum tandem_status null_argument(const char *what)
{
    return last_error_set(TANDEM_INVALID_ARGUMENT, "%s is NULL", what);
}

/* ---- devices ---- */

static enum tandem_status entry_count(uint32_t *out_count)
{
    if (out_count == NULL)
        return null_argument("device_count: out_count");
    *out_count = 0;
    struct thread_state host;
    thread_state_guard_enter(&host);
    enum tandem_status status = opencl_device_count(out_count);
    thread_state_guard_leave(&host);
    return status;
}

static enum tandem_status entry_describe(uint32_t index,
                                         struct tandem_device_info *out_info)
{
    if (out_info == NULL)
        return null_argument("device_describe: out_info");
    enum tandem_status status =
        struct_size_check("device_describe: out_info", "tandem_device_info",
                          out_info->struct_size, sizeof(size_t));
    if (status != TANDEM_OK)
        return status;
    struct thread_state host;
    thread_state_guard_enter(&host);
    const struct platform_device *device = opencl_device_get(index);
    thread_state_guard_leave(&host);
    if (device == NULL)
        return TANDEM_NO_DEVICE;
    struct_size_fill(out_info, &device->info, sizeof(device->info));
    return TANDEM_OK;
}

static enum tandem_status entry_open(uint32_t index,
                                     const struct tandem_open_options *options,
                                     struct tandem_device **out_device)
{
    if (out_device == NULL)
        return null_argument("open: out_device");
    struct thread_state host;
    thread_state_guard_enter(&host);
    enum tandem_status status = device_open(index, options, out_device);
    thread_state_guard_leave(&host);
    return status;
}

static enum tandem_status entry_tune(struct tandem_device *device,
                                     uint64_t budget_ns,
                                     tandem_tuning_result_fn sink, void *user)
{
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    return sink != NULL ? tune_device(device, budget_ns, sink, user)
                        : null_argument("tune: sink");
}

/* ---- memory ---- */

static enum tandem_status entry_alloc(struct tandem_device *device,
                                      uint64_t bytes,
                                      struct tandem_buffer **out_buffer)
{
    if (out_buffer == NULL)
        return null_argument("alloc: out_buffer");
    *out_buffer = NULL;
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    return buffer_create(device, bytes, false, out_buffer);
}

static void entry_free(struct tandem_buffer *buffer)
{
    if (buffer_is_live(buffer) && !fork_detected())
        buffer_destroy(buffer);
}

static enum tandem_status entry_upload(struct tandem_stream *stream,
                                       struct tandem_buffer *buffer,
                                       uint64_t offset, const void *source,
                                       uint64_t bytes, uint32_t flags)
{
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    return transfer_upload(stream, buffer, offset, source, bytes, flags);
}

/* A blocking download reports the sticky error of the stream, but does not
 * clear the error. */
static enum tandem_status entry_download(struct tandem_stream *stream,
                                         struct tandem_buffer *buffer,
                                         uint64_t offset, void *target,
                                         uint64_t bytes, uint32_t flags,
                                         uint64_t timeout_ns)
{
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    return transfer_download(stream, buffer, offset, target, bytes, flags,
                             timeout_ns);
}

static enum tandem_status entry_copy(struct tandem_stream *stream,
                                     struct tandem_buffer *target,
                                     uint64_t target_offset,
                                     struct tandem_buffer *source,
                                     uint64_t source_offset, uint64_t bytes)
{
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    return buffer_copy(stream, target, target_offset, source, source_offset,
                       bytes);
}

static enum tandem_status entry_fill(struct tandem_stream *stream,
                                     struct tandem_buffer *buffer,
                                     uint64_t offset, uint64_t bytes,
                                     const void *pattern,
                                     uint32_t pattern_bytes)
{
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    return buffer_fill(stream, buffer, offset, bytes, pattern, pattern_bytes);
}

static enum tandem_status entry_host_alloc(struct tandem_device *device,
                                           uint64_t bytes, void **out_memory)
{
    if (out_memory == NULL)
        return null_argument("host_alloc: out_memory");
    *out_memory = NULL;
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    return pinned_alloc(device, bytes, device_timeout_ns(device), out_memory);
}

static void entry_host_free(struct tandem_device *device, void *memory)
{
    enum tandem_status status = device_check(device);
    if (memory != NULL && (status == TANDEM_OK ||
                           (status == TANDEM_DEVICE_LOST && !fork_detected())))
        pinned_free(device, memory);
}

static enum tandem_status entry_import(struct tandem_device *device,
                                       void *memory, uint64_t bytes,
                                       struct tandem_buffer **out_buffer)
{
    if (out_buffer == NULL)
        return null_argument("import_host: out_buffer");
    *out_buffer = NULL;
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    if (memory == NULL && bytes > 0)
        return null_argument("import_host: memory");
    struct thread_state host;
    thread_state_guard_enter(&host);
    status = import_memory(device, memory, bytes, out_buffer);
    thread_state_guard_leave(&host);
    return status;
}

static enum tandem_status entry_map(struct tandem_stream *stream,
                                    struct tandem_buffer *buffer,
                                    uint64_t offset, uint64_t bytes,
                                    uint32_t flags, uint64_t timeout_ns,
                                    void **out_memory)
{
    if (out_memory == NULL)
        return null_argument("map: out_memory");
    *out_memory = NULL;
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    return buffer_map(stream, buffer, offset, bytes, flags, timeout_ns,
                      out_memory);
}

static enum tandem_status entry_unmap(struct tandem_stream *stream,
                                      struct tandem_buffer *buffer,
                                      void *memory)
{
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    return buffer_unmap(stream, buffer, memory);
}

static enum tandem_status entry_stats(struct tandem_device *device,
                                      struct tandem_memory_stats *out_stats)
{
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    if (out_stats == NULL)
        return null_argument("memory_stats: out_stats");
    status = struct_size_check("memory_stats: out_stats", "tandem_memory_stats",
                               out_stats->struct_size, sizeof(size_t));
    if (status != TANDEM_OK)
        return status;
    struct tandem_memory_stats stats;
    pool_stats(device, &stats);
    stats.cached_kernel_count = programs_built_count(&device->programs);
    struct_size_fill(out_stats, &stats, sizeof(stats));
    return TANDEM_OK;
}

static enum tandem_status entry_trim(struct tandem_device *device,
                                     uint64_t keep_bytes)
{
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    pool_trim(device, keep_bytes);
    /* keep_bytes does not count staging memory, because it is host memory. */
    if (keep_bytes == 0) {
        streams_trim(device);
        bulk_transfer_trim(device);
    }
    return TANDEM_OK;
}

/* ---- streams and events ---- */

static enum tandem_status entry_stream_create(struct tandem_device *device,
                                              uint32_t flags,
                                              struct tandem_stream **out_stream)
{
    if (out_stream == NULL)
        return null_argument("stream_create: out_stream");
    *out_stream = NULL;
    enum tandem_status status = device_check(device);
    if (status == TANDEM_OK)
        status = check_flags("stream_create", flags, TANDEM_STREAM_PROFILING);
    if (status != TANDEM_OK)
        return status;
    struct thread_state host;
    thread_state_guard_enter(&host);
    status = stream_create(device, flags, out_stream);
    thread_state_guard_leave(&host);
    return status;
}

static void entry_stream_destroy(struct tandem_stream *stream)
{
    if (stream_is_live(stream) && !fork_detected())
        stream_destroy(stream);
}

static enum tandem_status entry_event_record(struct tandem_stream *stream,
                                             struct tandem_event **out_event)
{
    return out_event != NULL ? event_record(stream, out_event)
                             : null_argument("event_record: out_event");
}

static enum tandem_status entry_event_query(struct tandem_event *event)
{
    return event_wait(event, 0);
}

static enum tandem_status entry_elapsed(struct tandem_event *start,
                                        struct tandem_event *end,
                                        uint64_t *out_ns)
{
    return out_ns != NULL ? event_elapsed_ns(start, end, out_ns)
                          : null_argument("event_elapsed_ns: out_ns");
}

static enum tandem_status entry_synchronize(struct tandem_device *device,
                                            uint64_t timeout_ns)
{
    enum tandem_status status = device_check(device);
    return status == TANDEM_OK ? streams_synchronize(device, timeout_ns)
                               : status;
}

static const struct tandem_backend backend = {
    .struct_size = sizeof(struct tandem_backend),
    .abi_major = TANDEM_ABI_MAJOR,
    .abi_minor = TANDEM_ABI_MINOR,
    .name = "opencl",
    .version = PACKAGE_VERSION,
    .last_error = last_error_get,
    .device_count = entry_count,
    .device_describe = entry_describe,
    .open = entry_open,
    .close = device_close,
    .tune = entry_tune,
    .alloc = entry_alloc,
    .free = entry_free,
    .upload = entry_upload,
    .download = entry_download,
    .copy = entry_copy,
    .fill = entry_fill,
    .host_alloc = entry_host_alloc,
    .host_free = entry_host_free,
    .import_host = entry_import,
    .map = entry_map,
    .unmap = entry_unmap,
    .memory_stats = entry_stats,
    .trim = entry_trim,
    .supports = operator_supports,
    .prepare = operator_prepare,
    .query_ready = operator_ready,
    .launch = operator_launch,
    .gemm = operator_gemm,
    .stream_create = entry_stream_create,
    .stream_destroy = entry_stream_destroy,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .stream_wait_event = event_enqueue_wait,
    .event_record = entry_event_record,
    .event_destroy = event_destroy,
    .event_query = entry_event_query,
    .event_wait = event_wait,
    .event_elapsed_ns = entry_elapsed,
    .synchronize = entry_synchronize};

const struct tandem_backend *tandem_backend_query(uint32_t host_abi_major)
{
    return host_abi_major == TANDEM_ABI_MAJOR ? &backend : NULL;
}
