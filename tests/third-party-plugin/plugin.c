/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the table: handles, memory, streams; see plugin.h. */
#include "plugin.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Small, so that calibrations are fast. */
#define MEMORY_BYTES (UINT64_C(64) << 20)

static pthread_mutex_t mutex =
    PTHREAD_MUTEX_INITIALIZER; /* Protects objects. */
static struct object *objects;
static _Thread_local char message[128];

const char *setting(const char *word)
{
    const char *text = getenv("THIRD_PARTY_PLUGIN");
    const size_t length = strlen(word);

    for (; text != NULL; text = strchr(text, ',')) {
        text += *text == ',';
        if (strncmp(text, word, length) == 0 &&
            strchr("=,", text[length]) != NULL)
            return text + length + (text[length] == '=');
    }
    return NULL;
}

uint64_t setting_number(const char *word, uint64_t otherwise)
{
    const char *text = setting(word);

    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static const char *last_error(void)
{
    return message;
}

enum tandem_status fail(enum tandem_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message),
              setting("terse") != NULL ? "no" : format, arguments);
    va_end(arguments);
    return status;
}

/* ---- handles ---- */

struct object *object_get(const void *handle, enum kind kind)
{
    struct object *object;

    pthread_mutex_lock(&mutex);
    for (object = objects; object != NULL && object != handle;)
        object = object->next;
    pthread_mutex_unlock(&mutex);
    if (object != NULL && object->kind == kind)
        return object;
    fail(TANDEM_INVALID_ARGUMENT, "a handle is NULL, freed or of another kind");
    return NULL;
}

static struct object *object_new(struct object *device, enum kind kind)
{
    struct object *object = calloc(1, sizeof(*object));

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

/* Frees a live object and all objects that belong to it. */
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
        if (object->kind == KIND_BUFFER) {
            object->device->stats.allocated_bytes -= object->bytes;
            object->device->stats.buffer_count--;
        }
        free(object->memory);
        free(object);
    }
    pthread_mutex_unlock(&mutex);
}

/* Returns a live object whose device is not lost. */
static enum tandem_status object_get_usable(const void *handle, enum kind kind,
                                            struct object **out)
{
    *out = object_get(handle, kind);
    if (*out == NULL)
        return TANDEM_INVALID_ARGUMENT;
    if ((*out)->device->lost)
        return fail(TANDEM_DEVICE_LOST, "the device is gone");
    return TANDEM_OK;
}

/* ---- devices ---- */

static uint32_t devices(void)
{
    return (uint32_t)setting_number("devices", 1);
}

static enum tandem_status device_count(uint32_t *out_count)
{
    if (out_count == NULL)
        return fail(TANDEM_INVALID_ARGUMENT, "out_count is NULL");
    *out_count = devices();
    return TANDEM_OK;
}

static void struct_fill(void *out, const void *from, size_t bytes)
{
    const size_t theirs = *(size_t *)out;

    memset(out, 0, theirs);
    memcpy(out, from, theirs < bytes ? theirs : bytes);
    *(size_t *)out = theirs;
}

static enum tandem_status device_describe(uint32_t index,
                                          struct tandem_device_info *out_info)
{
    struct tandem_device_info info = {
        .kind = TANDEM_DEVICE_ACCELERATOR,
        .driver_version = "7",
        .memory_bytes = MEMORY_BYTES,
        .max_alloc_bytes = MEMORY_BYTES / 4,
        .duplicate_of = -1,
    };

    if (out_info == NULL || out_info->struct_size < sizeof(size_t) ||
        index >= devices())
        return fail(TANDEM_INVALID_ARGUMENT, "out_info, its size or index");
    snprintf(info.name, sizeof(info.name), "Foreign %u", index);
    struct_fill(out_info, &info, sizeof(info));
    return TANDEM_OK;
}

static bool options_are_valid(const struct tandem_open_options *options)
{
    if (options == NULL || options->count == 0)
        return options == NULL ||
               options->struct_size >= TANDEM_OPEN_OPTIONS_MIN_SIZE_1_0;
    if (options->struct_size < TANDEM_OPEN_OPTIONS_MIN_SIZE_1_0 ||
        options->keys == NULL || options->values == NULL)
        return false;
    for (uint32_t i = 0; i < options->count; i++)
        if (options->keys[i] == NULL || options->values[i] == NULL)
            return false;
    return true;
}

/* Ignores all keys, because it knows none. */
static enum tandem_status device_open(uint32_t index,
                                      const struct tandem_open_options *options,
                                      struct tandem_device **out_device)
{
    struct object *device;

    if (out_device == NULL)
        return fail(TANDEM_INVALID_ARGUMENT, "out_device is NULL");
    *out_device = NULL;
    if (!options_are_valid(options))
        return fail(TANDEM_INVALID_ARGUMENT, "the options");
    if (index >= devices())
        return fail(TANDEM_NO_DEVICE, "there is no such device");
    device = object_new(NULL, KIND_DEVICE);
    if (device == NULL)
        return TANDEM_OUT_OF_MEMORY;
    device->index = index;
    *out_device = (struct tandem_device *)device;
    return TANDEM_OK;
}

static void device_close(struct tandem_device *device)
{
    objects_free(device);
}

/* ---- memory ---- */

static enum tandem_status memory_stats(struct tandem_device *device,
                                       struct tandem_memory_stats *out_stats)
{
    struct object *owner = object_get(device, KIND_DEVICE);

    if (owner == NULL)
        return TANDEM_INVALID_ARGUMENT;
    if (out_stats == NULL || out_stats->struct_size < sizeof(size_t))
        return fail(TANDEM_INVALID_ARGUMENT, "out_stats or its size");
    pthread_mutex_lock(&mutex);
    struct_fill(out_stats, &owner->stats, sizeof(owner->stats));
    pthread_mutex_unlock(&mutex);
    return TANDEM_OK;
}

static void stats_count(struct tandem_memory_stats *stats, uint64_t bytes)
{
    pthread_mutex_lock(&mutex);
    stats->allocated_bytes += bytes;
    stats->buffer_count++;
    stats->alloc_count++;
    stats->driver_alloc_count++;
    if (stats->allocated_bytes > stats->peak_bytes)
        stats->peak_bytes = stats->allocated_bytes;
    pthread_mutex_unlock(&mutex);
}

static enum tandem_status buffer_alloc(struct tandem_device *device,
                                       uint64_t bytes,
                                       struct tandem_buffer **out_buffer)
{
    struct object *owner, *buffer;
    void *memory = NULL;
    enum tandem_status status;

    if (out_buffer == NULL)
        return fail(TANDEM_INVALID_ARGUMENT, "out_buffer is NULL");
    *out_buffer = NULL;
    status = object_get_usable(device, KIND_DEVICE, &owner);
    if (status != TANDEM_OK)
        return status;
    if (bytes > MEMORY_BYTES ||
        owner->stats.allocated_bytes + bytes > MEMORY_BYTES ||
        posix_memalign(&memory, 64, bytes + 1) != 0)
        return fail(TANDEM_OUT_OF_MEMORY, "no room");
    buffer = object_new(owner, KIND_BUFFER);
    if (buffer == NULL) {
        free(memory);
        return TANDEM_OUT_OF_MEMORY;
    }
    buffer->memory = memory;
    buffer->bytes = bytes;
    stats_count(&owner->stats, bytes);
    *out_buffer = (struct tandem_buffer *)buffer;
    return TANDEM_OK;
}

static void buffer_free(struct tandem_buffer *buffer)
{
    objects_free(buffer);
}

/* Returns the memory of a range in a buffer of the stream's device. */
static enum tandem_status range_get(struct tandem_stream *stream,
                                    struct tandem_buffer *buffer,
                                    uint64_t offset, uint64_t bytes,
                                    unsigned char **out_memory)
{
    struct object *queue, *block;
    enum tandem_status status = object_get_usable(stream, KIND_STREAM, &queue);

    if (status == TANDEM_OK)
        status = object_get_usable(buffer, KIND_BUFFER, &block);
    if (status != TANDEM_OK)
        return status;
    if (queue->device != block->device || offset > block->bytes ||
        bytes > block->bytes - offset)
        return fail(TANDEM_INVALID_ARGUMENT, "the buffer is of another "
                                             "device, or the range leaves it");
    *out_memory = block->memory + offset;
    return TANDEM_OK;
}

static enum tandem_status upload(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 const void *source, uint64_t bytes,
                                 uint32_t flags)
{
    unsigned char *memory;
    enum tandem_status status = range_get(
        stream, buffer, setting("offset") != NULL ? 0 : offset, bytes, &memory);

    if ((flags & ~(uint32_t)TANDEM_TRANSFER_ASYNC) != 0)
        return fail(TANDEM_INVALID_ARGUMENT, "unknown flags");
    if (status != TANDEM_OK || bytes == 0)
        return status;
    if (source == NULL)
        return fail(TANDEM_INVALID_ARGUMENT, "source is NULL");
    memcpy(memory, source, bytes);
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
        range_get(stream, buffer, offset, bytes, &memory);

    if ((flags & ~(uint32_t)TANDEM_TRANSFER_ASYNC) != 0)
        return fail(TANDEM_INVALID_ARGUMENT, "unknown flags");
    (void)timeout_ns;
    if (status != TANDEM_OK || bytes == 0)
        return status;
    if (target == NULL)
        return fail(TANDEM_INVALID_ARGUMENT, "target is NULL");
    memcpy(target, memory, bytes);
    return TANDEM_OK;
}

static enum tandem_status copy(struct tandem_stream *stream,
                               struct tandem_buffer *target,
                               uint64_t target_offset,
                               struct tandem_buffer *source,
                               uint64_t source_offset, uint64_t bytes)
{
    unsigned char *to = NULL, *from = NULL;
    enum tandem_status status =
        range_get(stream, target, target_offset, bytes, &to);

    if (status == TANDEM_OK)
        status = range_get(stream, source, source_offset, bytes, &from);
    if (status != TANDEM_OK)
        return status;
    if (to < from + bytes && from < to + bytes)
        return fail(TANDEM_INVALID_ARGUMENT, "the ranges overlap");
    memcpy(to, from, bytes);
    return TANDEM_OK;
}

static enum tandem_status fill(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               uint64_t bytes, const void *pattern,
                               uint32_t width)
{
    unsigned char *memory;
    enum tandem_status status =
        range_get(stream, buffer, offset, bytes, &memory);

    if (status != TANDEM_OK)
        return status;
    if (pattern == NULL ||
        (width != 1 && width != 2 && width != 4 && width != 8) ||
        offset % width != 0 || bytes % width != 0)
        return fail(TANDEM_INVALID_ARGUMENT, "the pattern");
    for (uint64_t at = 0; at < bytes; at += width)
        memcpy(memory + at, pattern, width);
    return TANDEM_OK;
}

/* ---- operators ---- */

static enum tandem_status
supports(struct tandem_device *device, const struct tandem_op *op,
         const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
         const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    struct object *owner;
    enum tandem_status status = object_get_usable(device, KIND_DEVICE, &owner);

    if (status != TANDEM_OK)
        return status;
    if (op != NULL && op->struct_size >= TANDEM_OP_MIN_SIZE_1_0 &&
        op->id == TANDEM_OP_GEMM)
        return gemm_check(op->gemm, NULL);
    return op_check(op, inputs, input_count, outputs, output_count, NULL);
}

static const char *op_name(uint32_t id)
{
    return id == TANDEM_OP_ADD ? "add" : id == TANDEM_OP_MUL ? "mul" : "relu";
}

/* Fails if THIRD_PARTY_PLUGIN says so. op: the name of the operator. */
static enum tandem_status launch_begin(struct object *device, const char *op)
{
    const char *failing = setting("fail");

    if (device->index == 0 &&
        ++device->launches >= setting_number("lose", UINT64_MAX)) {
        device->lost = true;
        return fail(TANDEM_DEVICE_LOST, "the device is gone");
    }
    if (failing != NULL && strncmp(failing, op, strlen(op)) == 0)
        return fail(TANDEM_FAILED, "the device could not");
    return TANDEM_OK;
}

static enum tandem_status
launch(struct tandem_stream *stream, const struct tandem_op *op,
       const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
       const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    struct object *queue;
    enum tandem_status status = object_get_usable(stream, KIND_STREAM, &queue);

    if (status == TANDEM_OK)
        status = op_check(op, inputs, input_count, outputs, output_count,
                          queue->device);
    if (status == TANDEM_OK)
        status = launch_begin(queue->device, op_name(op->id));
    if (status == TANDEM_OK)
        op_compute(op, inputs, outputs[0]);
    return status;
}

static enum tandem_status gemm(struct tandem_stream *stream,
                               const struct tandem_gemm *product)
{
    struct object *queue;
    enum tandem_status status = object_get_usable(stream, KIND_STREAM, &queue);

    if (status == TANDEM_OK)
        status = gemm_check(product, queue->device);
    if (status == TANDEM_OK)
        status = launch_begin(queue->device, "gemm");
    if (status == TANDEM_OK)
        gemm_compute(product);
    return status;
}

/* ---- streams and events: all work completes at once ---- */

static enum tandem_status stream_create(struct tandem_device *device,
                                        uint32_t flags,
                                        struct tandem_stream **out_stream)
{
    struct object *owner;
    enum tandem_status status;

    if (out_stream == NULL)
        return fail(TANDEM_INVALID_ARGUMENT, "out_stream is NULL");
    *out_stream = NULL;
    if ((flags & ~(uint32_t)TANDEM_STREAM_PROFILING) != 0)
        return fail(TANDEM_INVALID_ARGUMENT, "unknown flags");
    status = object_get_usable(device, KIND_DEVICE, &owner);
    if (status != TANDEM_OK)
        return status;
    *out_stream = (struct tandem_stream *)object_new(owner, KIND_STREAM);
    return *out_stream != NULL ? TANDEM_OK : TANDEM_OUT_OF_MEMORY;
}

static void stream_destroy(struct tandem_stream *stream)
{
    objects_free(stream);
}

static enum tandem_status stream_query(struct tandem_stream *stream)
{
    struct object *queue;

    return object_get_usable(stream, KIND_STREAM, &queue);
}

static enum tandem_status stream_synchronize(struct tandem_stream *stream,
                                             uint64_t timeout_ns)
{
    (void)timeout_ns;
    return stream_query(stream);
}

static enum tandem_status stream_wait_event(struct tandem_stream *stream,
                                            struct tandem_event *event)
{
    struct object *queue, *point;
    enum tandem_status status = object_get_usable(stream, KIND_STREAM, &queue);

    if (status == TANDEM_OK)
        status = object_get_usable(event, KIND_EVENT, &point);
    if (status == TANDEM_OK && queue->device != point->device)
        return fail(TANDEM_INVALID_ARGUMENT, "the event is another device's");
    return status;
}

static enum tandem_status event_record(struct tandem_stream *stream,
                                       struct tandem_event **out_event)
{
    struct object *queue;
    enum tandem_status status;

    if (out_event == NULL)
        return fail(TANDEM_INVALID_ARGUMENT, "out_event is NULL");
    *out_event = NULL;
    status = object_get_usable(stream, KIND_STREAM, &queue);
    if (status != TANDEM_OK)
        return status;
    *out_event = (struct tandem_event *)object_new(queue->device, KIND_EVENT);
    return *out_event != NULL ? TANDEM_OK : TANDEM_OUT_OF_MEMORY;
}

static void event_destroy(struct tandem_event *event)
{
    objects_free(event);
}

static enum tandem_status event_query(struct tandem_event *event)
{
    struct object *point;

    return object_get_usable(event, KIND_EVENT, &point);
}

static enum tandem_status event_wait(struct tandem_event *event,
                                     uint64_t timeout_ns)
{
    (void)timeout_ns;
    return event_query(event);
}

static enum tandem_status device_synchronize(struct tandem_device *device,
                                             uint64_t timeout_ns)
{
    struct object *owner;

    (void)timeout_ns;
    return object_get_usable(device, KIND_DEVICE, &owner);
}

static const struct tandem_backend backend = {
    .struct_size = sizeof(backend),
    .abi_major = TANDEM_ABI_MAJOR,
    .abi_minor = TANDEM_ABI_MINOR,
    .name = "third-party",
    .version = "1",
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
