/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contract cases: upload, download, copy and fill.
 */
#include "contract.h"

#include "operand.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GROUP "transfer"
#define MOST (9u * 1024u * 1024u)

static const struct extent {
    uint64_t offset, bytes;
} extents[] = {{0, 1},       {1, 1},        {3, 5},
               {0, 64},      {7, 4097},     {4096, 65536},
               {1, 1000003}, {0, 4u << 20}, {13, 8u << 20}};
#define EXTENTS (sizeof(extents) / sizeof(extents[0]))

static void bytes_fill(unsigned char *bytes, uint64_t count, uint64_t seed)
{
    for (uint64_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)((i * 31u + seed * 7u) ^ (i >> 8));
}

struct bench {
    struct tandem_buffer *buffer;
    /* The expected content of the buffer, and a work area. */
    unsigned char *model, *scratch;
};

static bool bench_new(struct suite *suite, struct bench *bench)
{
    bench->buffer = NULL;
    bench->model = must_allocate(MOST);
    bench->scratch = must_allocate(MOST);
    bytes_fill(bench->model, MOST, 0);
    return EXPECT_OK(suite,
                     suite->api.alloc(suite->device, MOST, &bench->buffer)) &&
           EXPECT_OK(suite, suite->api.upload(suite->stream, bench->buffer, 0,
                                              bench->model, MOST, 0));
}

static void bench_free(struct suite *suite, struct bench *bench)
{
    suite->api.free(bench->buffer);
    free(bench->model);
    free(bench->scratch);
}

static void bench_check(struct suite *suite, struct bench *bench,
                        const char *what)
{
    memset(bench->scratch, 0xa5, MOST);
    if (EXPECT_OK(suite, suite->api.download(suite->stream, bench->buffer, 0,
                                             bench->scratch, MOST, 0,
                                             SUITE_TIMEOUT_NS)) &&
        memcmp(bench->scratch, bench->model, MOST) != 0) {
        uint64_t at = 0;

        while (bench->scratch[at] == bench->model[at])
            at++;
        case_fail(suite, "%s: byte %" PRIu64 " is %#x, expected %#x", what, at,
                  bench->scratch[at], bench->model[at]);
    }
}

/* The source is overwritten as soon as upload has returned. */
static void case_upload(struct suite *suite)
{
    struct bench bench;
    unsigned char *source = must_allocate(MOST);

    if (case_begin(suite, GROUP,
                   "upload is done with its source when it "
                   "returns")) {
        bool good = bench_new(suite, &bench);

        for (uint32_t i = 0; good && i < EXTENTS; i++) {
            const struct extent *e = &extents[i];

            bytes_fill(source, e->bytes, i + 1);
            memcpy(bench.model + e->offset, source, e->bytes);
            EXPECT_OK(suite, suite->api.upload(suite->stream, bench.buffer,
                                               e->offset, source, e->bytes, 0));
            memset(source, 0xee, e->bytes);
        }
        if (good)
            bench_check(suite, &bench, "after uploads");
        bench_free(suite, &bench);
        case_end(suite);
    }
    free(source);
}

static void case_download(struct suite *suite)
{
    struct bench bench;

    if (!case_begin(suite, GROUP, "download of any range writes that range"))
        return;
    if (bench_new(suite, &bench))
        for (uint32_t i = 0; i < EXTENTS; i++) {
            const struct extent *e = &extents[i];

            memset(bench.scratch, 0xa5, MOST);
            EXPECT_OK(suite,
                      suite->api.download(suite->stream, bench.buffer,
                                          e->offset, bench.scratch + 64,
                                          e->bytes, 0, SUITE_TIMEOUT_NS));
            EXPECT(suite, memcmp(bench.scratch + 64, bench.model + e->offset,
                                 e->bytes) == 0);
            EXPECT(suite, bench.scratch[63] == 0xa5 &&
                              bench.scratch[64 + e->bytes] == 0xa5);
        }
    bench_free(suite, &bench);
    case_end(suite);
}

static void case_async(struct suite *suite)
{
    struct bench bench;
    unsigned char *sources[EXTENTS], *targets[EXTENTS];

    if (!case_begin(suite, GROUP, "asynchronous transfers are in order"))
        return;
    bool good = bench_new(suite, &bench);

    for (uint32_t i = 0; i < EXTENTS; i++) {
        const struct extent *e = &extents[i];

        sources[i] = must_allocate(e->bytes);
        targets[i] = must_allocate(e->bytes);
        bytes_fill(sources[i], e->bytes, i + 40);
        if (!good)
            continue;
        EXPECT_OK(suite, suite->api.upload(suite->stream, bench.buffer,
                                           e->offset, sources[i], e->bytes,
                                           TANDEM_TRANSFER_ASYNC));
        EXPECT_OK(suite, suite->api.download(suite->stream, bench.buffer,
                                             e->offset, targets[i], e->bytes,
                                             TANDEM_TRANSFER_ASYNC, 0));
        memcpy(bench.model + e->offset, sources[i], e->bytes);
    }
    stream_finish(suite, NULL);
    for (uint32_t i = 0; i < EXTENTS; i++) {
        if (good && memcmp(sources[i], targets[i], extents[i].bytes) != 0)
            case_fail(suite,
                      "download %u does not hold what was uploaded "
                      "just before",
                      i);
        free(sources[i]);
        free(targets[i]);
    }
    if (good)
        bench_check(suite, &bench, "after asynchronous uploads");
    bench_free(suite, &bench);
    case_end(suite);
}

static void case_copy(struct suite *suite)
{
    struct bench from, to;

    if (!case_begin(suite, GROUP, "copy between buffers and within one"))
        return;
    bool both = bench_new(suite, &from);

    both = bench_new(suite, &to) && both;
    if (both) {
        bytes_fill(from.model, MOST, 99);
        EXPECT_OK(suite, suite->api.upload(suite->stream, from.buffer, 0,
                                           from.model, MOST, 0));
        for (uint32_t i = 0; i < EXTENTS; i++) {
            const struct extent *e = &extents[i];
            uint64_t other = (i * 17u) % 64u;

            EXPECT_OK(suite, suite->api.copy(suite->stream, to.buffer, other,
                                             from.buffer, e->offset, e->bytes));
            memcpy(to.model + other, from.model + e->offset, e->bytes);
        }
        EXPECT_OK(suite, suite->api.copy(suite->stream, to.buffer, 100,
                                         to.buffer, 8u << 20, 77777));
        memcpy(to.model + 100, to.model + (8u << 20), 77777);
        EXPECT_OK(suite, suite->api.copy(suite->stream, to.buffer, 4096,
                                         to.buffer, 0, 4096)); /* Adjacent. */
        memcpy(to.model + 4096, to.model, 4096);
        bench_check(suite, &to, "the target");
        bench_check(suite, &from, "the source");
    }
    bench_free(suite, &from);
    bench_free(suite, &to);
    case_end(suite);
}

static void case_fill(struct suite *suite)
{
    static const uint32_t widths[] = {1, 2, 4, 8};
    static const struct extent units[] = {{0, 1},   {1, 1},     {3, 7},
                                          {5, 100}, {64, 4096}, {1, 100001}};
    unsigned char patterns[4][sizeof(units) / sizeof(units[0])][8];
    struct bench bench;

    if (!case_begin(suite, GROUP, "fill repeats patterns of 1, 2, 4 and 8"))
        return;
    if (bench_new(suite, &bench))
        for (uint32_t w = 0; w < 4; w++)
            for (uint32_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
                unsigned char *pattern = patterns[w][i];
                uint64_t offset = units[i].offset * widths[w];
                uint64_t bytes = units[i].bytes * widths[w];

                bytes_fill(pattern, sizeof(patterns[w][i]), 5 + w * 10 + i);
                EXPECT_OK(suite,
                          suite->api.fill(suite->stream, bench.buffer, offset,
                                          bytes, pattern, widths[w]));
                for (uint64_t b = 0; b < bytes; b++)
                    bench.model[offset + b] = pattern[b % widths[w]];
            }
    bench_check(suite, &bench, "after fills");
    bench_free(suite, &bench);
    case_end(suite);
}

static void case_nothing(struct suite *suite)
{
    const struct tandem_backend *api = &suite->api;
    struct bench bench;
    unsigned char byte = 1;

    if (!case_begin(suite, GROUP, "uploads of nothing do nothing"))
        return;
    if (bench_new(suite, &bench)) {
        struct tandem_stream *s = suite->stream;
        struct tandem_buffer *b = bench.buffer;

        EXPECT_OK(suite, api->upload(s, b, 0, &byte, 0, 0));
        EXPECT_OK(suite, api->upload(s, b, MOST, &byte, 0, 0));
        EXPECT(suite, byte == 1);
        bench_check(suite, &bench, "after nothing");
    }
    bench_free(suite, &bench);
    case_end(suite);
}

/* Transfers and launches of one stream execute in the order of the calls. */
static void case_order(struct suite *suite)
{
    struct vector a, b;
    float pattern = 5.0f;

    if (!case_begin(suite, GROUP, "transfers and launches keep their order"))
        return;
    if (require_add(suite, NULL)) {
        int64_t n = 100003;
        uint64_t bytes = (uint64_t)n * sizeof(float);

        if (vector_new(suite, NULL, NULL, &a, n, 0.0f, 0.0f) &&
            vector_new(suite, NULL, NULL, &b, n, 0.0f, 0.0f)) {
            EXPECT_OK(suite, suite->api.fill(suite->stream, a.buffer, 0, bytes,
                                             &pattern, 4));
            EXPECT_OK(suite, launch_add(suite, NULL, &b, &a, 1.0)); /* 6 */
            EXPECT_OK(suite, suite->api.copy(suite->stream, a.buffer, 0,
                                             b.buffer, 0, bytes));
            EXPECT_OK(suite, launch_add(suite, NULL, &a, &a, 1.0)); /* 7 */
            pattern = 0.0f;
            EXPECT_OK(suite, suite->api.fill(suite->stream, b.buffer, 0, bytes,
                                             &pattern, 4));
            expect_vector(suite, NULL, &a, 7.0f, 0.0f, "a");
            expect_vector(suite, NULL, &b, 0.0f, 0.0f, "b");
        }
        vector_free(suite, &a);
        vector_free(suite, &b);
    }
    case_end(suite);
}

void contract_transfer(struct suite *suite)
{
    case_upload(suite);
    case_download(suite);
    case_async(suite);
    case_copy(suite);
    case_fill(suite);
    case_nothing(suite);
    case_order(suite);
}
