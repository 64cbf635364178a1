/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The example plugin, a small complete backend to copy for new plugins. Memory,
 * transfers, streams and events use host memory; operators.c computes four
 * operators. To make a backend from it, use your device's memory, implement
 * operators in operators.c, and set the capabilities. It shows that:
 *
 *   - the table needs only its required entries; the host fills in the rest;
 *   - every failure returns a status and sets the calling thread's message;
 *   - outputs are NULL or 0 unless the call succeeds;
 *   - a handle is looked up in the list of live objects before it is used, so
 *     a freed handle, or one of another kind or device, is rejected.
 *
 * All work is finished when its call returns, so no call waits and a stream
 * never has a pending error. Any thread may call the plugin, but two threads
 * must not use the same stream at the same time.
 */
#include "example/example.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/last_error.h"
#include "common/struct_size.h"

/* Small, so that a calibration is fast. */
#define MEMORY_BYTES ((uint64_t)64 << 20)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards objects */
static struct object *objects;

/* ---- devices ------------------------------------------------------------ */

static enum tandem_status device_count(uint32_t *out_count)
{
    if (out_count == NULL)
        return argument_error("device_count: out_count is NULL");
    *out_count = 1;
    return TANDEM_OK;
}

static enum tandem_status device_describe(uint32_t index,
                                          struct tandem_device_info *out_info)
{
    struct tandem_device_info info = {
        .kind = TANDEM_DEVICE_ACCELERATOR,
        .caps = 0, /* no capabilities, so the host asks `prepare` */
        .name = "Example device",
        .vendor = "Tandem",
        .platform = "example",
        .driver_version = "0.1.0",
        .memory_bytes = MEMORY_BYTES,
        .max_alloc_bytes = MEMORY_BYTES,
        .compute_units = 1,
        .max_work_group_size = 1,
        .duplicate_of = -1,
    };
    enum tandem_status status = out_struct_check(
        "device_describe: out_info", "tandem_device_info", out_info);
    if (status != TANDEM_OK)
        return status;
    if (index != 0)
        return argument_error(
            "device_describe: there is no device %u; there is 1",
            (unsigned)index);
    struct_size_fill(out_info, &info, sizeof info);
    return TANDEM_OK;
}

/* ---- handles ------------------------------------------------------------ */

/* A list of objects is simple but slow; a hash table with one lock per bucket
 * scales better. */
struct object *object_get(const void *handle, enum kind kind)
{
    static const char *const names[] = {"device", "stream", "event", "buffer",
                                        "prepared operator"};
    pthread_mutex_lock(&mutex);
    struct object *object = objects;
    while (object != NULL && object != handle)
        object = object->next;
    pthread_mutex_unlock(&mutex);
    if (object != NULL && object->kind == kind)
        return object;
    argument_error("the %s is %s", names[kind],
                   handle == NULL ? "NULL" : "not one, or was freed");
    return NULL;
}

/* Like object_get, for calls that need a device that works. */
static enum tandem_status object_use(const void *handle, enum kind kind,
                                     struct object **out_object)
{
    *out_object = object_get(handle, kind);
    if (*out_object == NULL)
        return TANDEM_INVALID_ARGUMENT;
    if ((*out_object)->device->lost)
        return last_error_set(TANDEM_DEVICE_LOST, "the device is gone");
    return TANDEM_OK;
}

/* Returns a new object of the device, or a new device if device is NULL. If
 * memory is exhausted, returns NULL and sets the message. */
static void *object_new(struct object *device, enum kind kind)
{
    struct object *object = calloc(1, sizeof *object);
    if (object == NULL) {
        memory_error("no memory for a handle");
        return NULL;
    }
    object->kind = kind;
    object->device = device != NULL ? device : object;
    pthread_mutex_lock(&mutex);
    object->next = objects;
    objects = object;
    pthread_mutex_unlock(&mutex);
    return object;
}

/* Frees the object and, if it is a device, all objects of the device. Does
 * nothing if handle is not live. */
static void objects_free(const void *handle)
{
    pthread_mutex_lock(&mutex);
    for (struct object **link = &objects; *link != NULL;) {
        struct object *object = *link;
        if (object != handle && object->device != handle) {
            link = &object->next;
            continue;
        }
        *link = object->next;
        if (object->kind == BUFFER) {
            object->device->stats.allocated_bytes -= object->bytes;
            object->device->stats.buffer_count--;
        }
        free(object->memory);
        free(object->call);
        free(object);
    }
    pthread_mutex_unlock(&mutex);
}

/* Reads memory_limit_bytes, the only option that this plugin knows. */
static enum tandem_status
options_read(const struct tandem_open_options *options, uint64_t *out_cap_bytes)
{
    *out_cap_bytes = 0;
    enum tandem_status status = open_options_check(options);
    if (options == NULL || status != TANDEM_OK)
        return status;
    for (uint32_t i = 0; i < options->count; i++)
        if (strcmp(options->keys[i], "memory_limit_bytes") == 0)
            *out_cap_bytes = strtoull(options->values[i], NULL, 10);
    return TANDEM_OK;
}

static enum tandem_status device_open(uint32_t index,
                                      const struct tandem_open_options *options,
                                      struct tandem_device **out_device)
{
    uint64_t limit_bytes;
    if (out_device == NULL)
        return argument_error("open: out_device is NULL");
    *out_device = NULL;
    enum tandem_status status = options_read(options, &limit_bytes);
    if (status != TANDEM_OK)
        return status;
    if (index != 0)
        return last_error_set(TANDEM_NO_DEVICE,
                              "open: there is no device %u; there is 1",
                              (unsigned)index);
    struct object *device = object_new(NULL, DEVICE);
    if (device == NULL)
        return TANDEM_OUT_OF_MEMORY;
    device->stats.limit_bytes = limit_bytes;
    *out_device = (struct tandem_device *)device;
    return TANDEM_OK;
}

static void device_close(struct tandem_device *device)
{
    objects_free(device);
}

/* ---- memory ------------------------------------------------------------- */

static enum tandem_status memory_stats(struct tandem_device *device,
                                       struct tandem_memory_stats *out_stats)
{
    struct object *owner = object_get(device, DEVICE);
    if (owner == NULL)
        return TANDEM_INVALID_ARGUMENT;
    enum tandem_status status = out_struct_check(
        "memory_stats: out_stats", "tandem_memory_stats", out_stats);
    if (status != TANDEM_OK)
        return status;
    pthread_mutex_lock(&mutex);
    struct_size_fill(out_stats, &owner->stats, sizeof owner->stats);
    pthread_mutex_unlock(&mutex);
    return TANDEM_OK;
}

/* Alignment of every buffer, in bytes. */
#define ALIGNMENT 64u

static enum tandem_status
buffer_alloc(struct tandem_device *device,
             const struct tandem_alloc_options *options,
             struct tandem_buffer **out_buffer)
{
    void *memory = NULL;
    if (out_buffer == NULL)
        return argument_error("alloc: out_buffer is NULL");
    *out_buffer = NULL;
    struct object *owner;
    enum tandem_status status = object_use(device, DEVICE, &owner);
    if (status == TANDEM_OK)
        status = alloc_options_check(options);
    if (status != TANDEM_OK)
        return status;
    if (options->alignment > ALIGNMENT)
        return alloc_alignment_unsupported(options, ALIGNMENT);
    const uint64_t bytes = options->bytes;
    pthread_mutex_lock(&mutex);
    struct tandem_memory_stats *stats = &owner->stats;
    uint64_t cap = stats->limit_bytes != 0 ? stats->limit_bytes : MEMORY_BYTES;
    uint64_t room = cap - stats->allocated_bytes;
    pthread_mutex_unlock(&mutex);
    if (bytes > room ||
        posix_memalign(&memory, ALIGNMENT, bytes == 0 ? 1 : (size_t)bytes) != 0)
        return memory_error("alloc: no room for %llu bytes",
                            (unsigned long long)bytes);
    struct object *buffer = object_new(owner, BUFFER);
    if (buffer == NULL) {
        free(memory);
        return TANDEM_OUT_OF_MEMORY;
    }
    buffer->memory = memory;
    buffer->bytes = bytes;
    pthread_mutex_lock(&mutex);
    stats->allocated_bytes += bytes;
    stats->buffer_count++;
    stats->alloc_count++;
    stats->driver_alloc_count++;
    if (stats->allocated_bytes > stats->peak_bytes)
        stats->peak_bytes = stats->allocated_bytes;
    pthread_mutex_unlock(&mutex);
    *out_buffer = (struct tandem_buffer *)buffer;
    return TANDEM_OK;
}

static void buffer_free(struct tandem_buffer *buffer)
{
    objects_free(buffer);
}

/* Checks a transfer: stream and buffer must be live and belong to the same
 * device, the range must be inside the buffer, and flags must be valid. On
 * success, *out_memory points to the first byte of the range. */
static enum tandem_status range_get(const char *what,
                                    const struct tandem_stream *stream,
                                    const struct tandem_buffer *buffer,
                                    uint64_t offset, uint64_t bytes,
                                    uint32_t flags, unsigned char **out_memory)
{
    struct object *queue;
    enum tandem_status status = object_use(stream, STREAM, &queue);
    if (status != TANDEM_OK)
        return status;
    const struct object *block = object_get(buffer, BUFFER);
    if (block == NULL || queue->device != block->device)
        return argument_error("%s: the buffer is %s", what,
                              buffer == NULL ? "NULL"
                              : block == NULL
                                  ? "not one, or was freed"
                                  : "of another device than the stream");
    if (offset > block->bytes || bytes > block->bytes - offset)
        return argument_error(
            "%s: %llu bytes at %llu reach outside a buffer of %llu", what,
            (unsigned long long)bytes, (unsigned long long)offset,
            (unsigned long long)block->bytes);
    *out_memory = block->memory + offset;
    return check_flags(what, flags, TANDEM_TRANSFER_ASYNC);
}

/* Copies the data before it returns, even for TANDEM_TRANSFER_ASYNC. */
static enum tandem_status upload(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 const void *source, uint64_t bytes,
                                 uint32_t flags)
{
    unsigned char *memory;
    enum tandem_status status =
        range_get("upload", stream, buffer, offset, bytes, flags, &memory);
    if (status != TANDEM_OK || bytes == 0)
        return status;
    if (source == NULL)
        return argument_error("upload: source is NULL");
    memcpy(memory, source, (size_t)bytes);
    return TANDEM_OK;
}

static enum tandem_status download(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, void *target,
                                   uint64_t bytes, uint32_t flags,
                                   uint64_t timeout_ns)
{
    unsigned char *memory;
    enum tandem_status status =
        range_get("download", stream, buffer, offset, bytes, flags, &memory);
    (void)timeout_ns;
    if (status != TANDEM_OK || bytes == 0)
        return status;
    if (target == NULL)
        return argument_error("download: target is NULL");
    memcpy(target, memory, (size_t)bytes);
    return TANDEM_OK;
}

static enum tandem_status copy(struct tandem_stream *stream,
                               struct tandem_buffer *target,
                               uint64_t target_offset,
                               struct tandem_buffer *source,
                               uint64_t source_offset, uint64_t bytes)
{
    unsigned char *to, *from;
    enum tandem_status status =
        range_get("copy to", stream, target, target_offset, bytes, 0, &to);
    if (status == TANDEM_OK)
        status = range_get("copy from", stream, source, source_offset, bytes, 0,
                           &from);
    if (status != TANDEM_OK)
        return status;
    if (to < from + bytes && from < to + bytes)
        return argument_error("copy: %llu bytes from %llu to %llu overlap",
                              (unsigned long long)bytes,
                              (unsigned long long)source_offset,
                              (unsigned long long)target_offset);
    memcpy(to, from, (size_t)bytes);
    return TANDEM_OK;
}

static enum tandem_status fill(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               uint64_t bytes, const void *pattern,
                               uint32_t pattern_bytes)
{
    unsigned char *memory;
    enum tandem_status status =
        range_get("fill", stream, buffer, offset, bytes, 0, &memory);
    if (status != TANDEM_OK)
        return status;
    if (pattern == NULL ||
        (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 &&
         pattern_bytes != 8) ||
        offset % pattern_bytes != 0 || bytes % pattern_bytes != 0)
        return argument_error(
            "fill: pattern is NULL or not of 1, 2, 4 or 8 bytes (%u), "
            "or offset %llu or size %llu is no multiple of it",
            (unsigned)pattern_bytes, (unsigned long long)offset,
            (unsigned long long)bytes);
    for (uint64_t at = 0; at < bytes; at += pattern_bytes)
        memcpy(memory + at, pattern, pattern_bytes);
    return TANDEM_OK;
}

/* ---- operators ---------------------------------------------------------- */

static enum tandem_status gemm(struct tandem_stream *stream,
                               const struct tandem_gemm *product)
{
    struct object *queue;
    enum tandem_status status = object_use(stream, STREAM, &queue);
    if (status == TANDEM_OK)
        status = gemm_check(product, queue->device);
    if (status == TANDEM_OK)
        gemm_compute(product);
    return status;
}

/* ---- prepared operators ------------------------------------------------- */

static enum tandem_status
prepare(struct tandem_device *device, const struct tandem_op *op,
        const struct tandem_operand_desc *const *inputs, uint32_t input_count,
        const struct tandem_operand_desc *const *outputs, uint32_t output_count,
        uint32_t flags, struct tandem_prepared_info *out_info,
        struct tandem_prepared **out_prepared)
{
    const struct tandem_prepared_info info = {.struct_size = sizeof info,
                                              .is_ready = 1};
    struct object *owner, *prepared;
    struct prepared_call *call = NULL;
    if (out_prepared != NULL)
        *out_prepared = NULL;
    enum tandem_status status = object_use(device, DEVICE, &owner);
    if (status == TANDEM_OK)
        status = prepare_arguments_check(flags, out_info, out_prepared);
    if (status == TANDEM_OK)
        status =
            op_prepare(op, inputs, input_count, outputs, output_count, &call);
    if (status == TANDEM_OK && out_info != NULL)
        struct_size_fill(out_info, &info, sizeof info);
    if (status != TANDEM_OK || (flags & TANDEM_PREPARE_QUERY) != 0) {
        free(call);
        return status;
    }
    prepared = object_new(owner, PREPARED);
    if (prepared == NULL) {
        free(call);
        return TANDEM_OUT_OF_MEMORY;
    }
    prepared->call = call;
    *out_prepared = (struct tandem_prepared *)prepared;
    return TANDEM_OK;
}

static enum tandem_status prepared_wait(struct tandem_prepared *prepared,
                                        uint64_t timeout_ns)
{
    struct object *object;
    (void)timeout_ns; /* nothing is compiled */
    return object_use(prepared, PREPARED, &object);
}

static void prepared_release(struct tandem_prepared *prepared)
{
    objects_free(prepared);
}

static enum tandem_status prepared_launch(struct tandem_stream *stream,
                                          struct tandem_prepared *prepared,
                                          const struct tandem_memory *memory,
                                          uint32_t count, const double *scalars,
                                          uint32_t scalar_count)
{
    struct object *queue, *object;
    enum tandem_status status = object_use(stream, STREAM, &queue);
    if (status == TANDEM_OK)
        status = object_use(prepared, PREPARED, &object);
    if (status == TANDEM_OK && object->device != queue->device)
        status = prepared_other_device();
    return status == TANDEM_OK ? op_launch(queue->device, object->call, memory,
                                           count, scalars, scalar_count)
                               : status;
}

/* ---- streams and events ------------------------------------------------- */

/* Checks a handle. There is no work to wait for. */
static enum tandem_status live(const void *handle, enum kind kind)
{
    struct object *object;
    return object_use(handle, kind, &object);
}

static enum tandem_status stream_create(struct tandem_device *device,
                                        uint32_t flags,
                                        struct tandem_stream **out_stream)
{
    if (out_stream == NULL)
        return argument_error("stream_create: out_stream is NULL");
    *out_stream = NULL;
    struct object *owner;
    enum tandem_status status = object_use(device, DEVICE, &owner);
    if (status != TANDEM_OK)
        return status;
    /* Profiling streams are accepted, but no times are measured. */
    status = check_flags("stream_create", flags, TANDEM_STREAM_PROFILING);
    if (status != TANDEM_OK)
        return status;
    *out_stream = object_new(owner, STREAM);
    return *out_stream != NULL ? TANDEM_OK : TANDEM_OUT_OF_MEMORY;
}

static void stream_destroy(struct tandem_stream *stream)
{
    objects_free(stream);
}

static enum tandem_status stream_synchronize(struct tandem_stream *stream,
                                             uint64_t timeout_ns)
{
    (void)timeout_ns;
    return live(stream, STREAM);
}

static enum tandem_status stream_wait_event(struct tandem_stream *stream,
                                            struct tandem_event *event)
{
    const struct object *queue = object_get(stream, STREAM);
    const struct object *point = queue ? object_get(event, EVENT) : NULL;
    if (point == NULL)
        return TANDEM_INVALID_ARGUMENT;
    if (queue->device != point->device)
        return argument_error(
            "stream_wait_event: the event is of another device");
    return TANDEM_OK;
}

static enum tandem_status event_record(struct tandem_stream *stream,
                                       struct tandem_event **out_event)
{
    if (out_event == NULL)
        return argument_error("event_record: out_event is NULL");
    *out_event = NULL;
    struct object *queue;
    enum tandem_status status = object_use(stream, STREAM, &queue);
    if (status != TANDEM_OK)
        return status;
    *out_event = object_new(queue->device, EVENT);
    return *out_event != NULL ? TANDEM_OK : TANDEM_OUT_OF_MEMORY;
}

static void event_destroy(struct tandem_event *event)
{
    objects_free(event);
}

static enum tandem_status event_wait(struct tandem_event *event,
                                     uint64_t timeout_ns)
{
    (void)timeout_ns;
    return live(event, EVENT);
}

/* ---- the table ---------------------------------------------------------- */

static const struct tandem_backend backend = {
    .struct_size = sizeof backend,
    .abi_major = TANDEM_ABI_MAJOR,
    .abi_minor = TANDEM_ABI_MINOR,
    .name = "example",
    .version = "0.1.0",
    .last_error = last_error_get,
    .device_count = device_count,
    .device_describe = device_describe,
    .open = device_open,
    .close = device_close,
    .alloc = buffer_alloc,
    .free = buffer_free,
    .upload = upload,
    .download = download,
    .copy = copy,
    .fill = fill,
    .memory_stats = memory_stats,
    .gemm = gemm,
    .prepare = prepare,
    .prepared_wait = prepared_wait,
    .prepared_release = prepared_release,
    .launch = prepared_launch,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_wait_event = stream_wait_event,
    .event_record = event_record,
    .event_destroy = event_destroy,
    .event_wait = event_wait,
};

const struct tandem_backend *tandem_backend_query(uint32_t host_abi_major)
{
    return host_abi_major == TANDEM_ABI_MAJOR ? &backend : NULL;
}
