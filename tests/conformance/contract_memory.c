/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contract cases: buffers, statistics, the memory limit, trim, memory that
 * host and device share.
 */
#include "contract.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024u * 1024u)

static void case_alloc(struct suite *suite)
{
    static const uint64_t sizes[] = {0,  1,    3,        63,       64,
                                     65, 4095, MIB + 1u, 8u * MIB, 0};
    struct tandem_buffer *buffers[COUNT_OF(sizes)];
    unsigned char written[64], read[64];

    for (uint32_t i = 0; i < COUNT_OF(sizes); i++) {
        uint64_t bytes = sizes[i] < 64 ? sizes[i] : 64;

        memset(written, (int)(i + 1), sizeof(written));
        if (!expect(suite,
                    suite->api.alloc(suite->device, TANDEM_BYTES(sizes[i]),
                                     &buffers[i]),
                    TANDEM_OK, "alloc of %" PRIu64 " bytes", sizes[i]))
            continue;
        CALL_OK(upload, suite->stream, buffers[i], sizes[i] - bytes, written,
                bytes, 0);
        CALL_OK(upload, suite->stream, buffers[i], 0, written, bytes, 0);
    }
    for (uint32_t i = 0; i < COUNT_OF(sizes); i++) {
        uint64_t bytes = sizes[i] < 64 ? sizes[i] : 64;

        memset(written, (int)(i + 1), sizeof(written));
        if (buffers[i] == NULL)
            continue;
        CALL_OK(download, suite->stream, buffers[i], sizes[i] - bytes, read,
                bytes, 0, SUITE_TIMEOUT_NS);
        EXPECT(suite, memcmp(read, written, bytes) == 0);
        suite->api.free(buffers[i]);
    }
    suite->api.free(NULL);
}

static void case_too_much(struct suite *suite)
{
    static const uint64_t sizes[] = {UINT64_C(1) << 62, UINT64_MAX};
    struct tandem_buffer *buffer;

    for (uint32_t i = 0; i < COUNT_OF(sizes); i++) {
        buffer = (struct tandem_buffer *)(void *)suite;
        expect_error(
            suite,
            suite->api.alloc(suite->device, TANDEM_BYTES(sizes[i]), &buffer),
            TANDEM_OUT_OF_MEMORY,
            i == 0 ? "alloc of 4 EiB" : "alloc of 2^64 - 1 bytes");
        EXPECT(suite, buffer == NULL);
    }
    if (CALL_OK(alloc, suite->device, TANDEM_BYTES(4096), &buffer))
        suite->api.free(buffer);
}

static void case_stats(struct suite *suite)
{
    struct tandem_memory_stats before, during, after;
    struct tandem_buffer *buffer;

    before = stats_read(suite, NULL);
    if (CALL_OK(alloc, suite->device, TANDEM_BYTES(3u * MIB), &buffer)) {
        during = stats_read(suite, NULL);
        EXPECT(suite,
               during.allocated_bytes >= before.allocated_bytes + 3u * MIB);
        EXPECT(suite, during.buffer_count == before.buffer_count + 1);
        EXPECT(suite, during.alloc_count == before.alloc_count + 1);
        EXPECT(suite, during.driver_alloc_count <= during.alloc_count);
        EXPECT(suite, during.peak_bytes >=
                          during.allocated_bytes + during.cached_bytes);
        EXPECT(suite, suite->info.memory_bytes == 0 ||
                          during.free_bytes <= suite->info.memory_bytes);
        suite->api.free(buffer);
        stream_finish(suite, NULL);
        after = stats_read(suite, NULL);
        EXPECT(suite, after.allocated_bytes == before.allocated_bytes);
        EXPECT(suite, after.buffer_count == before.buffer_count);
        EXPECT(suite, after.peak_bytes >= during.peak_bytes);
    }
}

/* Allocates with an alignment, which may be unsupported above 64. */
static void aligned_alloc_check(struct suite *suite, uint64_t bytes,
                                uint32_t alignment)
{
    const struct tandem_alloc_options options = {
        .struct_size = sizeof(options), .bytes = bytes, .alignment = alignment};
    struct tandem_buffer *buffer = NULL;
    enum tandem_status status =
        suite->api.alloc(suite->device, &options, &buffer);

    if (status == TANDEM_UNSUPPORTED && alignment > 64)
        return;
    if (!expect(suite, status, TANDEM_OK, "alloc, aligned to %u", alignment))
        return;
    suite->api.free(buffer);
}

static void case_alloc_options(struct suite *suite)
{
    struct tandem_alloc_options options = {.bytes = 64};
    struct tandem_buffer *buffer = NULL;

    for (uint64_t bytes = 0; bytes < 20000; bytes = 3 * bytes + 1)
        for (uint32_t alignment = 1; alignment <= 65536; alignment *= 2)
            aligned_alloc_check(suite, bytes, alignment);
    aligned_alloc_check(suite, 64, 0);
    expect_error(suite, suite->api.alloc(suite->device, NULL, &buffer),
                 TANDEM_INVALID_ARGUMENT, "alloc without options");
    expect_error(suite, suite->api.alloc(suite->device, &options, &buffer),
                 TANDEM_INVALID_ARGUMENT, "a struct_size of 0");
    options.struct_size = TANDEM_ALLOC_OPTIONS_MIN_SIZE_1_0 - 1;
    expect_error(suite, suite->api.alloc(suite->device, &options, &buffer),
                 TANDEM_INVALID_ARGUMENT, "a struct_size that is too small");
    options.struct_size = sizeof(options);
    options.alignment = 48;
    expect_error(suite, suite->api.alloc(suite->device, &options, &buffer),
                 TANDEM_INVALID_ARGUMENT, "an alignment of 48");
    EXPECT(suite, buffer == NULL);
}

static bool work_once(struct suite *suite)
{
    struct vector *a = vector_new(suite, NULL, NULL, 1000, 0.0f, 1.0f);
    struct vector *b = vector_new(suite, NULL, NULL, 1000, 7.0f, 0.0f);

    if (a == NULL || b == NULL ||
        !EXPECT_OK(suite, launch_add(suite, NULL, b, a, 1.0)))
        return false;
    vector_free(suite, a);
    vector_free(suite, b);
    return true;
}

static bool work_many(struct suite *suite, int count)
{
    for (int i = 0; i < count; i++)
        if (!work_once(suite) || (i % 64 == 63 && !stream_finish(suite, NULL)))
            return false;
    return stream_finish(suite, NULL);
}

static void case_growth(struct suite *suite)
{
    struct tandem_memory_stats before, after;
    int count = suite->options->full ? 20000 : 1000;

    if (!work_many(suite, 200))
        return;
    before = stats_read(suite, NULL);
    if (!work_many(suite, count))
        return;
    after = stats_read(suite, NULL);
    EXPECT(suite, after.allocated_bytes == before.allocated_bytes);
    EXPECT(suite, after.buffer_count == before.buffer_count);
    EXPECT(suite, after.cached_kernel_count == before.cached_kernel_count);
    EXPECT(suite, after.cached_bytes <= before.cached_bytes + MIB);
}

static void case_cap(struct suite *suite)
{
    struct tandem_device *device =
        device_new(suite, "memory_limit_bytes", "16777216");
    struct tandem_buffer *buffers[8] = {NULL}, *more = NULL;
    struct tandem_memory_stats stats;
    enum tandem_status status = TANDEM_OK;
    uint32_t count = 0;

    if (device == NULL)
        return;
    stats = stats_read(suite, device);
    if (stats.limit_bytes == 0) {
        case_skip(suite, "the cap is ignored, as it may be");
        return;
    }
    EXPECT(suite, stats.limit_bytes == 16u * MIB);
    expect(suite, suite->api.alloc(device, TANDEM_BYTES(17u * MIB), &more),
           TANDEM_OUT_OF_MEMORY, "alloc of 17 MiB under a cap of 16");
    EXPECT(suite, more == NULL);
    while (count < 8 && status == TANDEM_OK) {
        status =
            suite->api.alloc(device, TANDEM_BYTES(3u * MIB), &buffers[count]);
        count += status == TANDEM_OK;
    }
    expect(suite, status, TANDEM_OUT_OF_MEMORY,
           "eight buffers of 3 MiB under a cap of 16");
    EXPECT(suite, count >= 3 && count <= 5);
    stats = stats_read(suite, device);
    EXPECT(suite, stats.allocated_bytes + stats.cached_bytes <= 16u * MIB);
    while (count > 0)
        suite->api.free(buffers[--count]);
    /* The device must release cached blocks for another size. */
    if (CALL_OK(alloc, device, TANDEM_BYTES(12u * MIB), &more))
        suite->api.free(more);
}

static void case_trim(struct suite *suite)
{
    struct tandem_memory_stats stats;
    struct tandem_buffer *buffer;
    struct vector *kept;

    if (!HAS_FUNCTION(trim))
        return;
    kept = vector_new(suite, NULL, NULL, 5000, 1.0f, 2.0f);
    if (kept == NULL ||
        !CALL_OK(alloc, suite->device, TANDEM_BYTES(2u * MIB), &buffer))
        return;
    suite->api.free(buffer);
    stream_finish(suite, NULL);
    CALL_OK(trim, suite->device, 0);
    stats = stats_read(suite, NULL);
    EXPECT(suite, stats.cached_bytes == 0);
    EXPECT(suite, stats.allocated_bytes >= 20000);
    expect_vector(suite, NULL, kept, 1.0f, 2.0f, "what was kept");
}

static void case_host_alloc(struct suite *suite)
{
    static const uint64_t sizes[] = {1, 4096, 100001};

    if (!HAS_FUNCTION(host_alloc))
        return;
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t bytes = sizes[i];
        void *memory = NULL;
        struct tandem_buffer *buffer = NULL;

        if (!CALL_OK(host_alloc, suite->device, bytes, &memory))
            continue;
        EXPECT(suite, ((uintptr_t)memory & 4095u) == 0);
        memset(memory, 0x3c, bytes);
        CALL_OK(alloc, suite->device, TANDEM_BYTES(bytes), &buffer);
        CALL_OK(upload, suite->stream, buffer, 0, memory, bytes,
                TANDEM_TRANSFER_ASYNC);
        stream_finish(suite, NULL);
        memset(memory, 0, bytes);
        CALL_OK(download, suite->stream, buffer, 0, memory, bytes, 0,
                SUITE_TIMEOUT_NS);
        EXPECT(suite, ((unsigned char *)memory)[0] == 0x3c &&
                          ((unsigned char *)memory)[bytes - 1] == 0x3c);
        suite->api.free(buffer);
        suite->api.host_free(suite->device, memory);
    }
    suite->api.host_free(suite->device, NULL);
}

/* The host and the device read what the other one wrote. */
static void import_use(struct suite *suite, float *memory,
                       struct tandem_buffer *buffer)
{
    struct vector vector = {.buffer = buffer, .elements = 4096};

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4096; i++)
            memory[i] = (float)(i + round);
        if (!EXPECT_OK(suite, launch_add(suite, NULL, &vector, &vector, 2.0)) ||
            !stream_finish(suite, NULL))
            return;
        for (int i = 0; i < 4096; i++)
            if (memory[i] != (float)(i + round + 2)) {
                case_fail(suite, "round %d: element %d is %.9g, expected %d",
                          round, i, (double)memory[i], i + round + 2);
                return;
            }
    }
}

/* Imports 4096 floats.  Returns NULL if the plugin does not support that, which
 * it must if `required`. */
static struct tandem_buffer *import_floats(struct suite *suite, float *memory,
                                           bool required)
{
    struct tandem_buffer *buffer = NULL;
    enum tandem_status status = suite->api.import_host(
        suite->device, memory, 4096 * sizeof(float), NULL, NULL, &buffer);

    if (status == TANDEM_UNSUPPORTED) {
        EXPECT(suite, !required);
        EXPECT(suite, buffer == NULL);
        case_skip(suite, "import_host: %s", plugin_message(suite));
    } else {
        expect(suite, status, TANDEM_OK, "import_host");
    }
    return buffer;
}

/* Returns true if the plugin has import_host; otherwise skips the case. */
static bool has_import(struct suite *suite)
{
    if (HAS_FUNCTION(import_host))
        return true;
    EXPECT(suite, !suite_has_capability(suite, TANDEM_CAP_ZERO_COPY_IMPORT));
    return false;
}

static void case_import(struct suite *suite)
{
    float *memory = aligned_alloc(4096, 4096 * sizeof(float));
    struct tandem_buffer *buffer = NULL;

    if (has_import(suite))
        buffer = import_floats(
            suite, memory,
            suite_has_capability(suite, TANDEM_CAP_ZERO_COPY_IMPORT));
    if (buffer != NULL) {
        import_use(suite, memory, buffer);
        suite->api.free(buffer);
        /* free does not change the memory. */
        EXPECT(suite, memory[1] == 5.0f);
    }
    free(memory);
}

/* Imports 0 bytes at NULL and elsewhere, and uses the buffers. */
static void case_import_empty(struct suite *suite)
{
    static char bytes[8];
    void *const places[] = {NULL, bytes, bytes + 1};

    for (uint32_t i = 0; i < 3 && has_import(suite); i++) {
        struct vector empty = {.buffer = NULL};
        enum tandem_status status = suite->api.import_host(
            suite->device, places[i], 0, NULL, NULL, &empty.buffer);

        if (status == TANDEM_UNSUPPORTED) {
            EXPECT(suite, empty.buffer == NULL);
            case_skip(suite, "import_host: %s", plugin_message(suite));
            continue;
        }
        if (!expect(suite, status, TANDEM_OK, "import_host"))
            continue;
        CALL_OK(upload, suite->stream, empty.buffer, 0, bytes, 0, 0);
        if (require_add(suite, NULL))
            EXPECT_OK(suite, launch_add(suite, NULL, &empty, &empty, 2.0));
        stream_finish(suite, NULL);
        suite->api.free(empty.buffer);
    }
}

static void case_import_unaligned(struct suite *suite)
{
    float *memory = must_allocate(4200 * sizeof(float));
    struct tandem_buffer *buffer = NULL;

    if (has_import(suite))
        buffer = import_floats(suite, memory + 3, false);
    if (buffer != NULL) {
        import_use(suite, memory + 3, buffer);
        suite->api.free(buffer);
    }
    free(memory);
}

/* Maps 0 bytes at different offsets. */
static void map_nothing(struct suite *suite, struct vector *vector,
                        uint32_t flags)
{
    for (uint64_t at = 0; at <= 4000; at += 2000) {
        void *memory = NULL;

        if (CALL_OK(map, suite->stream, vector->buffer, at, 0, flags,
                    SUITE_TIMEOUT_NS, &memory) &&
            EXPECT(suite, memory != NULL))
            CALL_OK(unmap, suite->stream, vector->buffer, memory);
    }
}

static void map_use(struct suite *suite, struct vector *vector)
{
    uint32_t flags = TANDEM_MAP_READ | TANDEM_MAP_WRITE;
    void *memory = NULL, *second;
    enum tandem_status status;

    EXPECT_OK(suite, launch_add(suite, NULL, vector, vector, 10.0));
    status = suite->api.map(suite->stream, vector->buffer, 400, 800, flags,
                            SUITE_TIMEOUT_NS, &memory);
    if (status == TANDEM_UNSUPPORTED) {
        case_skip(suite, "map: %s", plugin_message(suite));
        return;
    }
    if (!expect(suite, status, TANDEM_OK, "map"))
        return;
    for (int i = 0; i < 200; i++)
        if (((float *)memory)[i] != (float)(100 + i + 10)) {
            case_fail(suite, "mapped element %d is %.9g, expected %d", i,
                      (double)((float *)memory)[i], 100 + i + 10);
            break;
        }
    for (int i = 0; i < 200; i++)
        ((float *)memory)[i] -= 10.0f;
    expect(suite,
           suite->api.map(suite->stream, vector->buffer, 2000, 40,
                          TANDEM_MAP_READ, SUITE_TIMEOUT_NS, &second),
           TANDEM_INVALID_ARGUMENT, "a second map");
    CALL_OK(unmap, suite->stream, vector->buffer, memory);
    expect(suite, suite->api.unmap(suite->stream, vector->buffer, memory),
           TANDEM_INVALID_ARGUMENT, "a second unmap");
    map_nothing(suite, vector, flags);
    EXPECT_OK(suite, launch_add(suite, NULL, vector, vector, -10.0));
    if (!EXPECT_OK(suite, vector_download(suite, NULL, vector)))
        return;
    for (int i = 0; i < 1000; i++) {
        float want = (float)(i >= 100 && i < 300 ? i - 10 : i);

        if (vector->values[i] != want) {
            case_fail(suite, "element %d is %.9g, expected %.9g", i,
                      (double)vector->values[i], (double)want);
            break;
        }
    }
}

static void case_map(struct suite *suite)
{
    struct vector *vector;

    if (!HAS_FUNCTION(map))
        return;
    vector = vector_new(suite, NULL, NULL, 1000, 0.0f, 1.0f);
    if (vector != NULL)
        map_use(suite, vector);
}

static void case_map_busy(struct suite *suite)
{
    struct vector *vector;
    void *memory = NULL;
    enum tandem_status status;

    if (!HAS_FUNCTION(map))
        return;
    vector = vector_new(suite, NULL, NULL, 1000, 0.0f, 1.0f);
    if (vector == NULL)
        return;
    status = suite->api.map(suite->stream, vector->buffer, 0, 4000,
                            TANDEM_MAP_READ, SUITE_TIMEOUT_NS, &memory);
    if (status == TANDEM_OK) {
        expect(suite, launch_add(suite, NULL, vector, vector, 1.0),
               TANDEM_INVALID_ARGUMENT, "launch on a mapped buffer");
        CALL_OK(unmap, suite->stream, vector->buffer, memory);
        EXPECT_OK(suite, launch_add(suite, NULL, vector, vector, 1.0));
        expect_vector(suite, NULL, vector, 1.0f, 1.0f, "after unmap");
    } else {
        expect(suite, status, TANDEM_UNSUPPORTED, "map");
        case_skip(suite, "map: %s", plugin_message(suite));
    }
}

/* Frees a buffer that work uses, and allocates it for another stream. */
static void case_free_busy(struct suite *suite)
{
    struct tandem_stream *other = stream_new(suite, NULL, 0);
    int64_t n = 300000;

    if (other == NULL)
        return;
    for (int round = 0; round < 8 && !suite->case_failed; round++) {
        float base = (float)round;
        struct vector *a = vector_new(suite, NULL, NULL, n, base, 1.0f);
        struct vector *b = vector_new(suite, NULL, NULL, n, 0.0f, 0.0f), *c;

        for (int i = 0; i < 5 && a != NULL && b != NULL; i++)
            EXPECT_OK(suite, launch_add(suite, NULL, b, a, (double)i));
        if (a != NULL)
            vector_free(suite, a);
        c = vector_new(suite, NULL, other, n, -1.0f, 0.0f);
        if (b == NULL || c == NULL)
            return;
        EXPECT_OK(suite, launch_add(suite, other, c, c, -1.0));
        expect_vector(suite, NULL, b, base + 4.0f, 1.0f,
                      "the result of work on a freed buffer");
        expect_vector(suite, other, c, -2.0f, 0.0f, "the new buffer");
        vector_free(suite, b);
        vector_free(suite, c);
    }
}

void contract_memory(struct suite *suite)
{
    static const struct contract_case cases[] = {
        {"buffers of many sizes are apart", case_alloc, false},
        {"too much is out of memory, nothing more", case_too_much, false},
        {"statistics count what is held", case_stats, false},
        {"the alignment of a buffer", case_alloc_options, false},
        {"nothing grows over many operations", case_growth, true},
        {"memory_limit_bytes is kept", case_cap, false},
        {"trim empties the cache, not more", case_trim, false},
        {"host_alloc: aligned, transfers both ways", case_host_alloc, false},
        {"import_host shares the caller's memory", case_import, true},
        {"import_host of memory anywhere", case_import_unaligned, true},
        {"import_host of 0 bytes", case_import_empty, false},
        {"map reads and writes the buffer", case_map, true},
        {"device work on a mapped buffer is refused", case_map_busy, true},
        {"freed while in use, reused elsewhere", case_free_busy, true},
    };

    contract_cases_run(suite, "memory", cases, COUNT_OF(cases));
    contract_import_release(suite);
    contract_sealed_buffer(suite);
}
