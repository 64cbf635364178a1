/* SPDX-License-Identifier: Apache-2.0 */
/* Checks plugin vtables and fills in missing entries; see plugin_reply.h. */
#include <config.h>

#include "host/loader/plugin_reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const void *extension_none(const char *name)
{
    (void)name;
    return NULL;
}

static enum tandem_status host_alloc_fallback(struct tandem_device *device,
                                              uint64_t bytes, void **out_memory)
{
    const uint64_t rounded = (bytes + 4095) / 4096 * 4096;

    (void)device;
    *out_memory = NULL;
    if (rounded < bytes || rounded > SIZE_MAX ||
        posix_memalign(out_memory, 4096, rounded > 0 ? rounded : 4096) != 0)
        return TANDEM_OUT_OF_MEMORY;
    return TANDEM_OK;
}

static void host_free_fallback(struct tandem_device *device, void *memory)
{
    (void)device;
    free(memory);
}

static enum tandem_status import_unsupported(struct tandem_device *device,
                                             void *memory, uint64_t bytes,
                                             tandem_release_fn release,
                                             void *user,
                                             struct tandem_buffer **out_buffer)
{
    (void)device, (void)memory, (void)bytes, (void)release, (void)user;
    *out_buffer = NULL;
    return TANDEM_UNSUPPORTED;
}

static enum tandem_status map_unsupported(struct tandem_stream *stream,
                                          struct tandem_buffer *buffer,
                                          uint64_t offset, uint64_t bytes,
                                          uint32_t flags, uint64_t timeout_ns,
                                          void **out_memory)
{
    (void)stream, (void)buffer, (void)offset, (void)bytes, (void)flags;
    (void)timeout_ns;
    *out_memory = NULL;
    return TANDEM_UNSUPPORTED;
}

static enum tandem_status unmap_unsupported(struct tandem_stream *stream,
                                            struct tandem_buffer *buffer,
                                            void *memory)
{
    (void)stream, (void)buffer, (void)memory;
    return TANDEM_UNSUPPORTED;
}

static enum tandem_status seal_nothing(struct tandem_buffer *buffer)
{
    (void)buffer;
    return TANDEM_OK;
}

static enum tandem_status trim_nothing(struct tandem_device *device,
                                       uint64_t keep_bytes)
{
    (void)device, (void)keep_bytes;
    return TANDEM_OK;
}

static enum tandem_status callback_unsupported(struct tandem_event *event,
                                               tandem_event_fn fn, void *user)
{
    (void)event, (void)fn, (void)user;
    return TANDEM_UNSUPPORTED;
}

static enum tandem_status elapsed_unsupported(struct tandem_event *start,
                                              struct tandem_event *end,
                                              uint64_t *out_ns)
{
    (void)start, (void)end;
    *out_ns = 0;
    return TANDEM_UNSUPPORTED;
}

#define REQUIRED_ENTRIES(X)                                                    \
    X(last_error)                                                              \
    X(device_count)                                                            \
    X(device_describe)                                                         \
    X(open)                                                                    \
    X(close)                                                                   \
    X(alloc) X(free) X(upload) X(download) X(copy) X(fill) X(memory_stats)     \
        X(prepare) X(prepared_wait) X(prepared_release) X(launch) X(gemm)      \
            X(stream_create) X(stream_destroy) X(stream_synchronize)           \
                X(stream_wait_event) X(event_record) X(event_destroy)          \
                    X(event_wait)

static const char *required_entry_missing(const struct tandem_backend *vtable)
{
#define CHECK(entry)                                                           \
    if (vtable->entry == NULL)                                                 \
        return "its vtable lacks the required entry " #entry;
    REQUIRED_ENTRIES(CHECK)
#undef CHECK
    if ((vtable->host_alloc == NULL) != (vtable->host_free == NULL))
        return "its vtable has only one of host_alloc and host_free";
    if ((vtable->map == NULL) != (vtable->unmap == NULL))
        return "its vtable has only one of map and unmap";
    return NULL;
}

static void fallbacks_fill(struct tandem_backend *vtable)
{
#define FALLBACK(entry, function)                                              \
    if (vtable->entry == NULL)                                                 \
    vtable->entry = function
    FALLBACK(extension, extension_none);
    FALLBACK(host_alloc, host_alloc_fallback);
    FALLBACK(host_free, host_free_fallback);
    FALLBACK(import_host, import_unsupported);
    FALLBACK(map, map_unsupported);
    FALLBACK(unmap, unmap_unsupported);
    FALLBACK(buffer_seal, seal_nothing);
    FALLBACK(trim, trim_nothing);
    FALLBACK(event_callback, callback_unsupported);
    FALLBACK(event_elapsed_ns, elapsed_unsupported);
#undef FALLBACK
}

static bool name_is_valid(const char *name)
{
    const size_t length =
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");

    return length > 0 && length < BACKEND_NAME_BYTES && name[length] == '\0';
}

const char *backend_vtable_normalize(const struct tandem_backend *vtable,
                                     struct tandem_backend *out, char *why)
{
    size_t bytes;
    const char *missing;

    memset(out, 0, sizeof(*out));
    if (vtable == NULL) {
        snprintf(why, SECURE_WHY_BYTES,
                 "it does not support version %u of the ABI", TANDEM_ABI_MAJOR);
        return why;
    }
    bytes = vtable->struct_size;
    if (bytes < offsetof(struct tandem_backend, last_error)) {
        snprintf(why, SECURE_WHY_BYTES, "its vtable is truncated to %zu bytes",
                 bytes);
        return why;
    }
    if (vtable->abi_major != TANDEM_ABI_MAJOR) {
        snprintf(why, SECURE_WHY_BYTES,
                 "its vtable is for version %u of the ABI; expected %u",
                 vtable->abi_major, TANDEM_ABI_MAJOR);
        return why;
    }
    /* If the vtable ends in the middle of a pointer, the pointer is NULL. */
    memcpy(out, vtable,
           bytes < sizeof(*out) ? bytes / sizeof(void *) * sizeof(void *)
                                : sizeof(*out));
    out->struct_size = sizeof(*out);
    if (out->name == NULL || !name_is_valid(out->name))
        return "its name is missing, too long, or not from a-z, 0-9, _ and -";
    if (out->version == NULL || out->version[0] == '\0')
        return "it has no version";
    missing = required_entry_missing(out);
    if (missing == NULL)
        fallbacks_fill(out);
    return missing;
}
