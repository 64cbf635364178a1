/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The null plugin: the smallest complete backend, as a template for new ones.
 * Memory, transfers, streams and events work and use host memory. No operators
 * are implemented. To make a backend from it, use your device's memory,
 * implement operators in supports and launch, and set the capabilities.
 *
 * The plugin needs only one Tandem header, tandem/backend.h. It shows that:
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
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/backend.h>

/* With -DWITH_CHECKS, supports and launch check each call against backend.h.
 * docs/writing-a-plugin.md lists the files of src/common that this needs. */
#ifdef WITH_CHECKS
#include "common/argument_check.h"
#include "common/last_error.h"
#endif

#define MEMORY_BYTES ((uint64_t)1 << 32)

/* Object to which a handle points. In backend.h, struct tandem_device and the
 * other handle types are opaque, so a handle can point to any struct. */
enum kind { DEVICE, STREAM, EVENT, BUFFER };
struct object {
    enum kind kind;
    struct object *next;
    struct object *device;
    unsigned char *memory; /* memory of a BUFFER, freed with the object */
    uint64_t bytes;
    struct tandem_memory_stats stats; /* statistics of a DEVICE */
};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards objects */
static struct object *objects;

/* ---- errors ------------------------------------------------------------- */

static _Thread_local char message[256];

static const char *last_error(void)
{
#ifdef WITH_CHECKS
    return last_error_get();
#else
    return message;
#endif
}

/* Sets the calling thread's message and returns status. */
__attribute__((format(printf, 2, 3))) static enum tandem_status
fail(enum tandem_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
#ifdef WITH_CHECKS
    last_error_set(status, "%s", message);
#endif
    return status;
}

/* ---- devices ------------------------------------------------------------ */

static enum tandem_status device_count(uint32_t *out_count)
{
    if (out_count == NULL)
        return fail(TANDEM_INVALID_ARGUMENT, "device_count: out_count is NULL");
    *out_count = 1;
    return TANDEM_OK;
}

/* Checks a struct that the plugin will fill. A struct_size of 0 means that the
 * caller forgot to set it. */
static enum tandem_status struct_check(const void *out, const char *what)
{
    if (out == NULL)
        return fail(TANDEM_INVALID_ARGUMENT, "%s is NULL", what);
    if (*(const size_t *)out < sizeof(size_t))
        return fail(TANDEM_INVALID_ARGUMENT,
                    "%s->struct_size is %zu: set it to sizeof *%s", what,
                    *(const size_t *)out, what);
    return TANDEM_OK;
}

/* Fills a caller's struct, which may be shorter or longer than the plugin's.
 * Leaves bytes beyond struct_size unchanged. Unknown fields become 0. */
static void struct_fill(void *out, const void *from, size_t bytes)
{
    size_t theirs = *(size_t *)out;
    memset(out, 0, theirs);
    memcpy(out, from, theirs < bytes ? theirs : bytes);
    *(size_t *)out = theirs;
}

static enum tandem_status device_describe(uint32_t index,
                                          struct tandem_device_info *out_info)
{
    struct tandem_device_info info = {
        .kind = TANDEM_DEVICE_CPU,
        .caps = 0, /* no capabilities, so the host calls `supports` */
        .name = "null device",
        .vendor = "Tandem",
        .platform = "null",
        .driver_version = "0.1.0",
        .memory_bytes = MEMORY_BYTES,
        .max_alloc_bytes = MEMORY_BYTES,
        .compute_units = 1,
        .max_work_group_size = 1,
        .duplicate_of = -1,
    };
    if (struct_check(out_info, "out_info") != TANDEM_OK)
        return TANDEM_INVALID_ARGUMENT;
    if (index != 0)
        return fail(TANDEM_INVALID_ARGUMENT,
                    "device_describe: there is no device %u; there is 1",
                    (unsigned)index);
    struct_fill(out_info, &info, sizeof info);
    return TANDEM_OK;
}

/* ---- handles ------------------------------------------------------------ */

/* Returns the object of a handle if the object is live and of this kind. For
 * any other pointer, returns NULL and sets the message. A list of objects is
 * simple but slow; a hash table with one lock per bucket scales better. */
static struct object *object_get(const void *handle, enum kind kind)
{
    static const char *const names[] = {"device", "stream", "event", "buffer"};
    pthread_mutex_lock(&mutex);
    struct object *object = objects;
    while (object != NULL && object != handle)
        object = object->next;
    pthread_mutex_unlock(&mutex);
    if (object != NULL && object->kind == kind)
        return object;
    fail(TANDEM_INVALID_ARGUMENT, "the %s is %s", names[kind],
         handle == NULL ? "NULL" : "not one, or was freed");
    return NULL;
}

/* Returns a new object of the device, or a new device if device is NULL. If
 * memory is exhausted, returns NULL and sets the message. */
static void *object_new(struct object *device, enum kind kind)
{
    struct object *object = calloc(1, sizeof *object);
    if (object == NULL) {
        fail(TANDEM_OUT_OF_MEMORY, "no memory for a handle");
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
        free(object);
    }
    pthread_mutex_unlock(&mutex);
}

/* Reads memory_limit_bytes, the only option that this plugin knows. */
static enum tandem_status
options_read(const struct tandem_open_options *options, uint64_t *out_cap_bytes)
{
    *out_cap_bytes = 0;
    if (options == NULL)
        return TANDEM_OK;
    if (options->struct_size < TANDEM_OPEN_OPTIONS_MIN_SIZE_1_0)
        return fail(TANDEM_INVALID_ARGUMENT,
                    "open: options.struct_size is %zu: set it to "
                    "sizeof(struct tandem_open_options)",
                    options->struct_size);
    if (options->count > 0 &&
        (options->keys == NULL || options->values == NULL))
        return fail(TANDEM_INVALID_ARGUMENT,
                    "open: keys or values of the options is NULL");
    for (uint32_t i = 0; i < options->count; i++) {
        if (options->keys[i] == NULL || options->values[i] == NULL)
            return fail(TANDEM_INVALID_ARGUMENT,
                        "open: key or value %u is NULL", (unsigned)i);
        if (strcmp(options->keys[i], "memory_limit_bytes") == 0)
            *out_cap_bytes = strtoull(options->values[i], NULL, 10);
    }
    return TANDEM_OK;
}

static enum tandem_status device_open(uint32_t index,
                                      const struct tandem_open_options *options,
                                      struct tandem_device **out_device)
{
    uint64_t limit_bytes;
    if (out_device == NULL)
        return fail(TANDEM_INVALID_ARGUMENT, "open: out_device is NULL");
    *out_device = NULL;
    enum tandem_status status = options_read(options, &limit_bytes);
    if (status != TANDEM_OK)
        return status;
    if (index != 0)
        return fail(TANDEM_NO_DEVICE, "open: there is no device %u; there is 1",
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
    if (struct_check(out_stats, "out_stats") != TANDEM_OK)
        return TANDEM_INVALID_ARGUMENT;
    pthread_mutex_lock(&mutex);
    struct_fill(out_stats, &owner->stats, sizeof owner->stats);
    pthread_mutex_unlock(&mutex);
    return TANDEM_OK;
}

static enum tandem_status buffer_alloc(struct tandem_device *device,
                                       uint64_t bytes,
                                       struct tandem_buffer **out_buffer)
{
    void *memory = NULL;
    if (out_buffer == NULL)
        return fail(TANDEM_INVALID_ARGUMENT, "alloc: out_buffer is NULL");
    *out_buffer = NULL;
    struct object *owner = object_get(device, DEVICE);
    if (owner == NULL)
        return TANDEM_INVALID_ARGUMENT;
    pthread_mutex_lock(&mutex);
    struct tandem_memory_stats *stats = &owner->stats;
    uint64_t cap = stats->limit_bytes != 0 ? stats->limit_bytes : MEMORY_BYTES;
    uint64_t room = cap - stats->allocated_bytes;
    pthread_mutex_unlock(&mutex);
    if (bytes > room ||
        posix_memalign(&memory, 64, bytes == 0 ? 1 : (size_t)bytes) != 0)
        return fail(TANDEM_OUT_OF_MEMORY, "alloc: no room for %llu bytes",
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

static enum tandem_status flags_check(const char *what, uint32_t flags,
                                      uint32_t known)
{
    if ((flags & ~known) == 0)
        return TANDEM_OK;
    return fail(TANDEM_INVALID_ARGUMENT, "%s: flags 0x%x has unknown bits",
                what, (unsigned)flags);
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
    const struct object *queue = object_get(stream, STREAM);
    const struct object *block = queue ? object_get(buffer, BUFFER) : NULL;
    if (queue == NULL)
        return TANDEM_INVALID_ARGUMENT;
    if (block == NULL || queue->device != block->device)
        return fail(TANDEM_INVALID_ARGUMENT, "%s: the buffer is %s", what,
                    buffer == NULL  ? "NULL"
                    : block == NULL ? "not one, or was freed"
                                    : "of another device than the stream");
    if (offset > block->bytes || bytes > block->bytes - offset)
        return fail(TANDEM_INVALID_ARGUMENT,
                    "%s: %llu bytes at %llu reach outside a buffer of %llu",
                    what, (unsigned long long)bytes, (unsigned long long)offset,
                    (unsigned long long)block->bytes);
    *out_memory = block->memory + offset;
    return flags_check(what, flags, TANDEM_TRANSFER_ASYNC);
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
        return fail(TANDEM_INVALID_ARGUMENT, "upload: source is NULL");
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
        return fail(TANDEM_INVALID_ARGUMENT, "download: target is NULL");
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
        return fail(TANDEM_INVALID_ARGUMENT,
                    "copy: %llu bytes from %llu to %llu overlap",
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
        return fail(TANDEM_INVALID_ARGUMENT,
                    "fill: pattern is NULL or not of 1, 2, 4 or 8 bytes (%u), "
                    "or offset %llu or size %llu is no multiple of it",
                    (unsigned)pattern_bytes, (unsigned long long)offset,
                    (unsigned long long)bytes);
    for (uint64_t at = 0; at < bytes; at += pattern_bytes)
        memcpy(memory + at, pattern, pattern_bytes);
    return TANDEM_OK;
}

/* ---- operators ---------------------------------------------------------- */

/* Returns true if the id is in the operator table of backend.h. */
static bool op_known(uint32_t id)
{
    switch (id) {
#define KNOWN(ID, number, ...) case number:
        TANDEM_OPERATORS(KNOWN)
#undef KNOWN
        return true;
    default:
        return false;
    }
}

/* Start your backend here: return TANDEM_OK for each call that launch accepts.
 * check_op in src/common/argument_check.h checks attributes, dtypes, shapes and
 * aliasing for you. */
static enum tandem_status
supports(struct tandem_device *device, const struct tandem_op *op,
         const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
         const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    if (object_get(device, DEVICE) == NULL)
        return TANDEM_INVALID_ARGUMENT;
    if (op == NULL || op->struct_size < TANDEM_OP_MIN_SIZE_1_0 ||
        !op_known(op->id) || (input_count > 0 && inputs == NULL) ||
        (output_count > 0 && outputs == NULL))
        return fail(TANDEM_INVALID_ARGUMENT,
                    "the operator is NULL or unknown, its struct_size is not "
                    "set to sizeof(struct tandem_op), or its operands are "
                    "NULL");
#ifdef WITH_CHECKS
    /* The first NULL turns off the checks of buffers. In launch, replace it
     * with a function that returns a buffer's address range. */
    enum tandem_status status =
        check_op(op, inputs, input_count, outputs, output_count, NULL, NULL);
    if (status != TANDEM_OK)
        return status;
#endif
    return fail(TANDEM_UNSUPPORTED,
                "operator number %u: the null plugin serves none",
                (unsigned)op->id);
}

/* Element (0, ..., 0) of a tensor is at its buffer's memory + byte_offset. */
static enum tandem_status
launch(struct tandem_stream *stream, const struct tandem_op *op,
       const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
       const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    struct object *queue = object_get(stream, STREAM);
    if (queue == NULL)
        return TANDEM_INVALID_ARGUMENT;
    return supports((struct tandem_device *)queue->device, op, inputs,
                    input_count, outputs, output_count);
}

static enum tandem_status gemm(struct tandem_stream *stream,
                               const struct tandem_gemm *product)
{
    if (object_get(stream, STREAM) == NULL)
        return TANDEM_INVALID_ARGUMENT;
    if (product == NULL || product->struct_size < TANDEM_GEMM_MIN_SIZE_1_0)
        return fail(TANDEM_INVALID_ARGUMENT,
                    "gemm: the product is NULL, or its struct_size is not set "
                    "to sizeof(struct tandem_gemm)");
    return fail(TANDEM_UNSUPPORTED, "gemm: the null plugin serves none");
}

/* ---- streams and events ------------------------------------------------- */

/* Returns TANDEM_OK if the object is live. There is no work to wait for. */
static enum tandem_status live(const void *handle, enum kind kind)
{
    return object_get(handle, kind) != NULL ? TANDEM_OK
                                            : TANDEM_INVALID_ARGUMENT;
}

static enum tandem_status stream_create(struct tandem_device *device,
                                        uint32_t flags,
                                        struct tandem_stream **out_stream)
{
    if (out_stream == NULL)
        return fail(TANDEM_INVALID_ARGUMENT,
                    "stream_create: out_stream is NULL");
    *out_stream = NULL;
    struct object *owner = object_get(device, DEVICE);
    if (owner == NULL)
        return TANDEM_INVALID_ARGUMENT;
    /* Profiling streams are accepted, but no times are measured. */
    enum tandem_status status =
        flags_check("stream_create", flags, TANDEM_STREAM_PROFILING);
    if (status != TANDEM_OK)
        return status;
    *out_stream = object_new(owner, STREAM);
    return *out_stream != NULL ? TANDEM_OK : TANDEM_OUT_OF_MEMORY;
}

static void stream_destroy(struct tandem_stream *stream)
{
    objects_free(stream);
}

static enum tandem_status stream_query(struct tandem_stream *stream)
{
    return live(stream, STREAM);
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
        return fail(TANDEM_INVALID_ARGUMENT,
                    "stream_wait_event: the event is of another device");
    return TANDEM_OK;
}

static enum tandem_status event_record(struct tandem_stream *stream,
                                       struct tandem_event **out_event)
{
    if (out_event == NULL)
        return fail(TANDEM_INVALID_ARGUMENT, "event_record: out_event is NULL");
    *out_event = NULL;
    struct object *queue = object_get(stream, STREAM);
    if (queue == NULL)
        return TANDEM_INVALID_ARGUMENT;
    *out_event = object_new(queue->device, EVENT);
    return *out_event != NULL ? TANDEM_OK : TANDEM_OUT_OF_MEMORY;
}

static void event_destroy(struct tandem_event *event)
{
    objects_free(event);
}

static enum tandem_status event_query(struct tandem_event *event)
{
    return live(event, EVENT);
}

static enum tandem_status event_wait(struct tandem_event *event,
                                     uint64_t timeout_ns)
{
    (void)timeout_ns;
    return live(event, EVENT);
}

static enum tandem_status device_synchronize(struct tandem_device *device,
                                             uint64_t timeout_ns)
{
    (void)timeout_ns;
    return live(device, DEVICE);
}

/* ---- the table ---------------------------------------------------------- */

static const struct tandem_backend backend = {
    .struct_size = sizeof backend,
    .abi_major = TANDEM_ABI_MAJOR,
    .abi_minor = TANDEM_ABI_MINOR,
    .name = "null",
    .version = "0.1.0",
    .last_error = last_error,
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
    .supports = supports,
    .launch = launch,
    .gemm = gemm,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .stream_wait_event = stream_wait_event,
    .event_record = event_record,
    .event_destroy = event_destroy,
    .event_query = event_query,
    .event_wait = event_wait,
    .synchronize = device_synchronize,
};

const struct tandem_backend *tandem_backend_query(uint32_t host_abi_major)
{
    return host_abi_major == TANDEM_ABI_MAJOR ? &backend : NULL;
}
