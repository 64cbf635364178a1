/* SPDX-License-Identifier: Apache-2.0 */
/* The function table of the plugin.  Each entry checks handles and pointers,
 * then calls the implementation.  An entry in which a driver may start threads
 * runs inside a thread_state_guard.  backend.h says which thread may call each
 * entry. */
#include <stdlib.h>
#include <string.h>

#include "common/argument_check.h"
#include "opencl/program/kernel_variants.h"
#include "common/gemm_operator.h"
#include "common/last_error.h"
#include "common/thread_state_guard.h"
#include "common/struct_size.h"
#include "config.h"
#include "opencl/device/device.h"
#include "opencl/device_lifecycle.h"
#include "opencl/host_import.h"
#include "opencl/interop.h"
#include "opencl/memory/pinned_memory.h"
#include "opencl/launch/prepared.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/queue/event.h"
#include "opencl/queue/event_callback.h"
#include "opencl/launch/kernel_launch.h"
#include "opencl/queue/stream_lifecycle.h"
#include "opencl/transfer/transfer.h"
#include "opencl/tune/tune.h"

/* ---- devices ---- */

static enum tandem_status entry_count(uint32_t *out_count)
{
    if (out_count == NULL)
        return argument_error("device_count: out_count is NULL");
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
    enum tandem_status status = out_struct_check(
        "device_describe: out_info", "tandem_device_info", out_info);
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
        return argument_error("open: out_device is NULL");
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
                        : argument_error("tune: sink is NULL");
}

static const void *entry_extension(const char *name)
{
    static const struct tandem_tune_extension tune = {sizeof(tune), entry_tune};
    if (name == NULL)
        return NULL;
    if (strcmp(name, TANDEM_EXTENSION_TUNE) == 0)
        return &tune;
    if (strcmp(name, TANDEM_EXTENSION_OPENCL_INTEROP) == 0)
        return &interop_extension;
    return strcmp(name, TANDEM_EXTENSION_TEST) == 0 ? &test_extension : NULL;
}

/* ---- memory ---- */

/* Alignment of every buffer, in bytes. */
#define LEAST_ALIGNMENT 64u

static enum tandem_status
entry_alloc(struct tandem_device *device,
            const struct tandem_alloc_options *options,
            struct tandem_buffer **out_buffer)
{
    if (out_buffer == NULL)
        return argument_error("alloc: out_buffer is NULL");
    *out_buffer = NULL;
    enum tandem_status status = device_check(device);
    if (status == TANDEM_OK)
        status = alloc_options_check(options);
    if (status != TANDEM_OK)
        return status;
    /* A buffer is a memory object, so it has the driver's alignment. */
    uint32_t most = options->alignment > LEAST_ALIGNMENT
                        ? device_base_alignment(device->hardware)
                        : LEAST_ALIGNMENT;
    if (options->alignment > most)
        return alloc_alignment_unsupported(options, most);
    return buffer_create(device, options->bytes, false, out_buffer);
}

static void entry_free(struct tandem_buffer *buffer)
{
    if (!buffer_is_live(buffer) || fork_detected())
        return;
    if (buffer->release != NULL)
        import_free(buffer);
    else
        buffer_destroy(buffer);
}

static enum tandem_status entry_host_alloc(struct tandem_device *device,
                                           uint64_t bytes, void **out_memory)
{
    if (out_memory == NULL)
        return argument_error("host_alloc: out_memory is NULL");
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
                                       tandem_release_fn release, void *user,
                                       struct tandem_buffer **out_buffer)
{
    if (out_buffer == NULL)
        return argument_error("import_host: out_buffer is NULL");
    *out_buffer = NULL;
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    if (memory == NULL && bytes > 0)
        return argument_error(
            "import_host: memory is NULL, but the size is %llu bytes",
            (unsigned long long)bytes);
    struct thread_state host;
    thread_state_guard_enter(&host);
    status = import_memory(device, memory, bytes, release, user, out_buffer);
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
        return argument_error("map: out_memory is NULL");
    *out_memory = NULL;
    return buffer_map(stream, buffer, offset, bytes, flags, timeout_ns,
                      out_memory);
}

static enum tandem_status entry_stats(struct tandem_device *device,
                                      struct tandem_memory_stats *out_stats)
{
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    status = out_struct_check("memory_stats: out_stats", "tandem_memory_stats",
                              out_stats);
    if (status != TANDEM_OK)
        return status;
    struct tandem_memory_stats stats;
    pool_stats(device, &stats);
    stats.cached_kernel_count = programs_built_count(&device->programs);
    stats.free_bytes = device_free_bytes(device->hardware);
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
    /* Pinned memory is host memory, which keep_bytes does not count. */
    if (keep_bytes == 0)
        streams_trim(device);
    return TANDEM_OK;
}

/* ---- operators ---- */

static enum tandem_status entry_prepare(
    struct tandem_device *device, const struct tandem_op *op,
    const struct tandem_operand_desc *const *inputs, uint32_t input_count,
    const struct tandem_operand_desc *const *outputs, uint32_t output_count,
    uint32_t flags, struct tandem_prepared_info *out_info,
    struct tandem_prepared **out_prepared)
{
    if ((flags & TANDEM_PREPARE_QUERY) == 0 &&
        device_check(device) == TANDEM_OK)
        import_prepare(device);
    return prepared_create(device, op, inputs, input_count, outputs,
                           output_count, flags, out_info, out_prepared);
}

static enum tandem_status entry_gemm(struct tandem_stream *stream,
                                     const struct tandem_gemm *gemm)
{
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    return gemm_call_launch(&stream->device->gemm_calls, stream->device, stream,
                            gemm, buffer_address_range);
}

/* ---- streams and events ---- */

static enum tandem_status entry_stream_create(struct tandem_device *device,
                                              uint32_t flags,
                                              struct tandem_stream **out_stream)
{
    if (out_stream == NULL)
        return argument_error("stream_create: out_stream is NULL");
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
    return out_event != NULL
               ? event_record(stream, out_event)
               : argument_error("event_record: out_event is NULL");
}

static enum tandem_status entry_elapsed(struct tandem_event *start,
                                        struct tandem_event *end,
                                        uint64_t *out_ns)
{
    return out_ns != NULL ? event_elapsed_ns(start, end, out_ns)
                          : argument_error("event_elapsed_ns: out_ns is NULL");
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
    .extension = entry_extension,
    .alloc = entry_alloc,
    .free = entry_free,
    .upload = transfer_upload,
    .download = transfer_download,
    .copy = buffer_copy,
    .fill = buffer_fill,
    .host_alloc = entry_host_alloc,
    .host_free = entry_host_free,
    .import_host = entry_import,
    .map = entry_map,
    .unmap = buffer_unmap,
    .buffer_seal = buffer_seal,
    .memory_stats = entry_stats,
    .trim = entry_trim,
    .gemm = entry_gemm,
    .stream_create = entry_stream_create,
    .stream_destroy = entry_stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_wait_event = event_enqueue_wait,
    .event_record = entry_event_record,
    .event_destroy = event_destroy,
    .event_wait = event_wait,
    .event_callback = event_callback,
    .event_elapsed_ns = entry_elapsed,
    .prepare = entry_prepare,
    .prepared_wait = prepared_wait,
    .prepared_release = prepared_release,
    .launch = prepared_launch};

const struct tandem_backend *tandem_backend_query(uint32_t host_abi_major)
{
    return host_abi_major == TANDEM_ABI_MAJOR ? &backend : NULL;
}
