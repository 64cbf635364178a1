/* SPDX-License-Identifier: Apache-2.0 */
/* Contract cases: upload, download, copy and fill. */
#include "contract.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST (9u * 1024u * 1024u)

static const struct extent {
    uint64_t offset, bytes;
} extents[] = {{0, 1},       {1, 1},        {3, 5},
               {0, 64},      {7, 4097},     {4096, 65536},
               {1, 1000003}, {0, 4u << 20}, {13, 8u << 20}};
#define EXTENTS COUNT_OF(extents)

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
    return CALL_OK(alloc, suite->device, TANDEM_BYTES(MOST), &bench->buffer) &&
           CALL_OK(upload, suite->stream, bench->buffer, 0, bench->model, MOST,
                   0);
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
    if (CALL_OK(download, suite->stream, bench->buffer, 0, bench->scratch, MOST,
                0, SUITE_TIMEOUT_NS) &&
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

    if (bench_new(suite, &bench)) {
        for (uint32_t i = 0; i < EXTENTS; i++) {
            const struct extent *e = &extents[i];

            bytes_fill(source, e->bytes, i + 1);
            memcpy(bench.model + e->offset, source, e->bytes);
            CALL_OK(upload, suite->stream, bench.buffer, e->offset, source,
                    e->bytes, 0);
            memset(source, 0xee, e->bytes);
        }
        bench_check(suite, &bench, "after uploads");
    }
    bench_free(suite, &bench);
    free(source);
}

static void case_download(struct suite *suite)
{
    struct bench bench;

    if (bench_new(suite, &bench))
        for (uint32_t i = 0; i < EXTENTS; i++) {
            const struct extent *e = &extents[i];

            memset(bench.scratch, 0xa5, MOST);
            CALL_OK(download, suite->stream, bench.buffer, e->offset,
                    bench.scratch + 64, e->bytes, 0, SUITE_TIMEOUT_NS);
            EXPECT(suite, memcmp(bench.scratch + 64, bench.model + e->offset,
                                 e->bytes) == 0);
            EXPECT(suite, bench.scratch[63] == 0xa5 &&
                              bench.scratch[64 + e->bytes] == 0xa5);
        }
    bench_free(suite, &bench);
}

static void case_async(struct suite *suite)
{
    struct bench bench;
    unsigned char *sources[EXTENTS], *targets[EXTENTS];
    bool good = bench_new(suite, &bench);

    for (uint32_t i = 0; i < EXTENTS; i++) {
        const struct extent *e = &extents[i];

        sources[i] = must_allocate(e->bytes);
        targets[i] = must_allocate(e->bytes);
        bytes_fill(sources[i], e->bytes, i + 40);
        if (!good)
            continue;
        CALL_OK(upload, suite->stream, bench.buffer, e->offset, sources[i],
                e->bytes, TANDEM_TRANSFER_ASYNC);
        CALL_OK(download, suite->stream, bench.buffer, e->offset, targets[i],
                e->bytes, TANDEM_TRANSFER_ASYNC, 0);
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
}

static void case_copy(struct suite *suite)
{
    struct bench from, to;
    bool both = bench_new(suite, &from);

    both = bench_new(suite, &to) && both;
    if (both) {
        bytes_fill(from.model, MOST, 99);
        CALL_OK(upload, suite->stream, from.buffer, 0, from.model, MOST, 0);
        for (uint32_t i = 0; i < EXTENTS; i++) {
            const struct extent *e = &extents[i];
            uint64_t other = (i * 17u) % 64u;

            CALL_OK(copy, suite->stream, to.buffer, other, from.buffer,
                    e->offset, e->bytes);
            memcpy(to.model + other, from.model + e->offset, e->bytes);
        }
        CALL_OK(copy, suite->stream, to.buffer, 100, to.buffer, 8u << 20,
                77777);
        memcpy(to.model + 100, to.model + (8u << 20), 77777);
        CALL_OK(copy, suite->stream, to.buffer, 4096, to.buffer, 0,
                4096); /* Adjacent. */
        memcpy(to.model + 4096, to.model, 4096);
        bench_check(suite, &to, "the target");
        bench_check(suite, &from, "the source");
    }
    bench_free(suite, &from);
    bench_free(suite, &to);
}

static void case_fill(struct suite *suite)
{
    static const uint32_t widths[] = {1, 2, 4, 8};
    static const struct extent units[] = {{0, 1},   {1, 1},     {3, 7},
                                          {5, 100}, {64, 4096}, {1, 100001}};
    unsigned char patterns[4][COUNT_OF(units)][8];
    struct bench bench;

    if (bench_new(suite, &bench))
        for (uint32_t w = 0; w < 4; w++)
            for (uint32_t i = 0; i < COUNT_OF(units); i++) {
                unsigned char *pattern = patterns[w][i];
                uint64_t offset = units[i].offset * widths[w];
                uint64_t bytes = units[i].bytes * widths[w];

                bytes_fill(pattern, sizeof(patterns[w][i]), 5 + w * 10 + i);
                CALL_OK(fill, suite->stream, bench.buffer, offset, bytes,
                        pattern, widths[w]);
                for (uint64_t b = 0; b < bytes; b++)
                    bench.model[offset + b] = pattern[b % widths[w]];
                /* fill has read the pattern. */
                memset(pattern, 0, sizeof(patterns[w][i]));
            }
    bench_check(suite, &bench, "after fills");
    bench_free(suite, &bench);
}

static void case_nothing(struct suite *suite)
{
    struct bench bench;
    unsigned char byte = 1;

    if (bench_new(suite, &bench)) {
        struct tandem_stream *s = suite->stream;
        struct tandem_buffer *b = bench.buffer;

        CALL_OK(upload, s, b, 0, &byte, 0, 0);
        CALL_OK(upload, s, b, MOST, &byte, 0, 0);
        CALL_OK(download, s, b, 5, &byte, 0, 0, SUITE_TIMEOUT_NS);
        CALL_OK(download, s, b, MOST, &byte, 0, 0, SUITE_TIMEOUT_NS);
        CALL_OK(copy, s, b, 10, b, 10, 0);
        CALL_OK(fill, s, b, 8, 0, &byte, 1);
        EXPECT(suite, byte == 1);
        bench_check(suite, &bench, "after nothing");
    }
    bench_free(suite, &bench);
}

/* Transfers and launches of one stream execute in the order of the calls. */
static void case_order(struct suite *suite)
{
    int64_t n = 100003;
    uint64_t bytes = (uint64_t)n * sizeof(float);
    struct vector *a = vector_new(suite, NULL, NULL, n, 0.0f, 0.0f);
    struct vector *b = vector_new(suite, NULL, NULL, n, 0.0f, 0.0f);
    float pattern = 5.0f;

    if (a == NULL || b == NULL)
        return;
    CALL_OK(fill, suite->stream, a->buffer, 0, bytes, &pattern, 4);
    EXPECT_OK(suite, launch_add(suite, NULL, b, a, 1.0)); /* 6 */
    CALL_OK(copy, suite->stream, a->buffer, 0, b->buffer, 0, bytes);
    EXPECT_OK(suite, launch_add(suite, NULL, a, a, 1.0)); /* 7 */
    pattern = 0.0f;
    CALL_OK(fill, suite->stream, b->buffer, 0, bytes, &pattern, 4);
    expect_vector(suite, NULL, a, 7.0f, 0.0f, "a");
    expect_vector(suite, NULL, b, 0.0f, 0.0f, "b");
}

void contract_transfer(struct suite *suite)
{
    static const struct contract_case cases[] = {
        {"upload is done with its source when it returns", case_upload, false},
        {"download of any range writes that range", case_download, false},
        {"asynchronous transfers are in order", case_async, false},
        {"copy between buffers and within one", case_copy, false},
        {"fill repeats patterns of 1, 2, 4 and 8", case_fill, false},
        {"transfers of nothing do nothing", case_nothing, false},
        {"transfers and launches keep their order", case_order, true},
    };

    contract_cases_run(suite, "transfer", cases, COUNT_OF(cases));
}
