/* SPDX-License-Identifier: Apache-2.0 */
/* Imports host memory as buffers. A driver can use a copy of the memory that it
 * gets with CL_MEM_USE_HOST_PTR, and some devices with unified memory are not
 * coherent. A device must therefore pass a coherence test: host and device must
 * see each other's writes without map or transfer commands. */
#include "opencl/host_import.h"

#include <stdlib.h>

#include "opencl/launch/prepared.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/queue/stream_lifecycle.h"

#define PAGE_BYTES 4096u
/* GPU drivers copy imported memory unless its size is a multiple of this. */
#define SIZE_MULTIPLE 64u

/* Result of the coherence test: a value of device.shares_memory. */
enum coherence { COHERENCE_UNKNOWN, COHERENCE_PASSED, COHERENCE_FAILED };

/* ---- coherence test ---- */

#define TEST_FLOATS (PAGE_BYTES / sizeof(float))
/* Number of kernels in the test. Later kernels find stale cache lines. */
#define KERNELS 3

/* Two pages of host memory and the buffers that were imported from them. */
struct coherence_test {
    struct tandem_stream *stream;
    float *from, *to;
    struct tandem_buffer *from_buffer, *to_buffer;
};

/* The host writes both pages.  Element i of page `from` is first + i. */
static void write_pages(const struct coherence_test *test, float first)
{
    for (size_t i = 0; i < TEST_FLOATS; i++) {
        test->from[i] = first + (float)i;
        test->to[i] = 0;
    }
}

/* Waits for the command whose launch returned `status`. Returns true if the
 * host then reads first + i * step in element i of page `to`. */
static bool page_has(const struct coherence_test *test,
                     enum tandem_status status, float first, float step)
{
    struct tandem_stream *stream = test->stream;
    if (status != TANDEM_OK ||
        stream_synchronize(stream, device_timeout_ns(stream->device)) !=
            TANDEM_OK)
        return false;
    for (size_t i = 0; i < TEST_FLOATS; i++)
        if (test->to[i] != first + step * (float)i)
            return false;
    return true;
}

static bool commands_are_coherent(const struct coherence_test *test)
{
    const float seven = 7;
    write_pages(test, 1);
    if (!page_has(test,
                  buffer_fill(test->stream, test->to_buffer, 0, PAGE_BYTES,
                              &seven, sizeof(seven)),
                  seven, 0))
        return false;
    write_pages(test, 2);
    return page_has(test,
                    buffer_copy(test->stream, test->to_buffer, 0,
                                test->from_buffer, 0, PAGE_BYTES),
                    2, 1);
}

/* Prepares the operator of the test, which starts to compile it.  Returns NULL
 * on failure. */
static struct tandem_prepared *test_operator_new(struct tandem_device *device)
{
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_NEG};
    const struct tandem_operand_desc page = {.dtype = TANDEM_F32,
                                             .rank = 1,
                                             .shape = {TEST_FLOATS},
                                             .strides = {1},
                                             .alignment_bytes = 64};
    const struct tandem_operand_desc *operand = &page;
    struct tandem_prepared *prepared = NULL;
    prepared_create(device, &op, &operand, 1, &operand, 1, 0, NULL, &prepared);
    return prepared;
}

/* Tests kernels, because a driver can treat them differently from commands that
 * copy. */
static bool kernels_are_coherent(const struct coherence_test *test)
{
    const struct tandem_memory memory[] = {{test->from_buffer, 0},
                                           {test->to_buffer, 0}};
    struct tandem_prepared *prepared = test_operator_new(test->stream->device);
    bool coherent = prepared != NULL;
    for (int i = 0; i < KERNELS && coherent; i++) {
        const float first = (float)(i * 4096 + 1);
        write_pages(test, first);
        coherent = page_has(
            test, prepared_launch(test->stream, prepared, memory, 2, NULL, 0),
            -first, -1);
    }
    prepared_release(prepared);
    return coherent;
}

/* The stream owns the memory of the test, because a command that hangs can use
 * the memory for longer than the test takes. */
static bool coherence_test_run(struct tandem_device *device)
{
    struct coherence_test test = {
        .from = aligned_alloc(PAGE_BYTES, 2 * PAGE_BYTES)};
    if (test.from == NULL)
        return false;
    test.to = test.from + TEST_FLOATS;
    bool coherent = buffer_import(device, test.from, PAGE_BYTES,
                                  &test.from_buffer) == TANDEM_OK &&
                    buffer_import(device, test.to, PAGE_BYTES,
                                  &test.to_buffer) == TANDEM_OK &&
                    stream_create(device, 0, &test.stream) == TANDEM_OK &&
                    commands_are_coherent(&test) &&
                    (device->hardware->info.kind == TANDEM_DEVICE_CPU ||
                     kernels_are_coherent(&test));
    if (test.from_buffer != NULL)
        buffer_destroy(test.from_buffer);
    if (test.to_buffer != NULL)
        buffer_destroy(test.to_buffer);
    if (test.stream != NULL) {
        test.stream->host_memory = test.from;
        stream_destroy(test.stream);
    } else {
        free(test.from);
    }
    return coherent;
}

void import_prepare(struct tandem_device *device)
{
    const struct platform_device *hardware = device->hardware;
    if (hardware->info.kind != TANDEM_DEVICE_CPU && hardware->unified &&
        atomic_load(&device->shares_memory) == COHERENCE_UNKNOWN)
        prepared_release(test_operator_new(device));
}

static bool shares_memory(struct tandem_device *device)
{
    int known = atomic_load(&device->shares_memory);
    if (known == COHERENCE_UNKNOWN) {
        known =
            coherence_test_run(device) ? COHERENCE_PASSED : COHERENCE_FAILED;
        atomic_store(&device->shares_memory, known);
    }
    return known == COHERENCE_PASSED;
}

/* ---- release ---- */

static void CL_CALLBACK work_ended(cl_event event, cl_int state, void *user)
{
    (void)event, (void)state;
    import_release_drop(user);
}

/* Lets the driver drop a reference when the stream's commands have ended.
 * Returns false on failure. */
static bool release_after_stream(struct tandem_stream *stream,
                                 struct import_release *release)
{
    cl_event event = NULL;
    if (stream_enqueue_marker(stream, &event) != TANDEM_OK)
        return false;
    import_release_retain(release);
    bool is_set = clFlush(stream->queue) == CL_SUCCESS &&
                  clSetEventCallback(event, CL_COMPLETE, work_ended, release) ==
                      CL_SUCCESS;
    if (!is_set)
        import_release_drop(release);
    clReleaseEvent(event);
    return is_set;
}

void import_free(struct tandem_buffer *buffer)
{
    struct tandem_device *device = buffer->device;
    struct import_release *release = buffer->release;
    pthread_mutex_lock(&device->mutex);
    /* Commands of a destroyed stream may go on. */
    bool is_kept = device->deferred != NULL;
    for (struct tandem_stream *stream = device->streams;
         stream != NULL && !is_kept; stream = stream->next)
        if (atomic_load(&stream->completed_seqno) !=
            atomic_load(&stream->issued_seqno))
            is_kept = !release_after_stream(stream, release);
    pthread_mutex_unlock(&device->mutex);
    if (is_kept)
        import_release_keep(device, release);
    buffer_destroy(buffer);
}

enum tandem_status import_memory(struct tandem_device *device, void *memory,
                                 uint64_t bytes, tandem_release_fn release,
                                 void *user, struct tandem_buffer **out_buffer)
{
    const struct platform_device *hardware = device->hardware;
    bool cpu = hardware->info.kind == TANDEM_DEVICE_CPU;
    if (!device_shares_host_memory(device))
        return last_error_set(TANDEM_UNSUPPORTED,
                              "import_host: %s does not share the host's "
                              "memory",
                              hardware->info.name);
    if (bytes > 0 && !cpu &&
        ((uintptr_t)memory % PAGE_BYTES != 0 || bytes % SIZE_MULTIPLE != 0))
        return last_error_set(TANDEM_UNSUPPORTED,
                              "import_host: memory %p must be aligned to %u "
                              "and its %llu bytes a multiple of %u, otherwise "
                              "%s copies it",
                              memory, PAGE_BYTES, (unsigned long long)bytes,
                              SIZE_MULTIPLE, hardware->info.name);
    if (!shares_memory(device))
        return last_error_set(TANDEM_UNSUPPORTED,
                              "import_host: %s works on a copy of host memory",
                              hardware->info.name);
    return release != NULL
               ? buffer_import_with_release(device, memory, bytes, release,
                                            user, out_buffer)
               : buffer_import(device, memory, bytes, out_buffer);
}
