/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promises of Tandem's own plugins beyond tandem/backend.h: they keep the
 * memory limit, transfers of 0 bytes do nothing, fill has read its pattern
 * when it returns, a wait for an event outlives the event, and an event
 * outlives its stream. invalid_calls.c and invalid_memory.c test the promises
 * about invalid calls. The conformance suite does not require any of this of a
 * plugin.
 */
#include <config.h>

#include "plugin.h"

#include <stdlib.h>
#include <string.h>

#define SKIPPED 77
#define MIB (UINT64_C(1) << 20)

PLUGIN_TEST(the_memory_limit_is_kept)
{
    const struct tandem_backend *api = plugin_at((uint32_t)_i)->api;
    const char *key = "memory_limit_bytes", *value = "16777216";
    const struct tandem_open_options options = {.struct_size = sizeof(options),
                                                .count = 1,
                                                .keys = &key,
                                                .values = &value};
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};
    struct tandem_device *device;
    struct tandem_buffer *buffer;

    ck_assert_int_eq(api->open(0, &options, &device), TANDEM_OK);
    ck_assert_int_eq(api->memory_stats(device, &stats), TANDEM_OK);
    ck_assert_uint_eq(stats.limit_bytes, 16 * MIB);
    ck_assert_int_eq(api->alloc(device, TANDEM_BYTES(17 * MIB), &buffer),
                     TANDEM_OUT_OF_MEMORY);
    api->close(device);
}

/* The CPU plugin knows the free memory: less than the machine has, and more
 * than a few pages. */
PLUGIN_TEST(the_cpu_has_free_memory)
{
    const struct plugin *plugin = plugin_at((uint32_t)_i);
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};
    struct tandem_device_info info = {.struct_size = sizeof(info)};
    struct tandem_device *device;

    if (strcmp(plugin->name, "cpu") != 0)
        return;
    ck_assert_int_eq(plugin->api->device_describe(0, &info), TANDEM_OK);
    ck_assert_int_eq(plugin->api->open(0, NULL, &device), TANDEM_OK);
    ck_assert_int_eq(plugin->api->memory_stats(device, &stats), TANDEM_OK);
    ck_assert_uint_gt(stats.free_bytes, MIB);
    ck_assert_uint_lt(stats.free_bytes, info.memory_bytes);
    plugin->api->close(device);
}

/* The CPU plugin offers alignments up to a page.  It maps its own memory. */
PLUGIN_TEST(cpu_buffers_are_aligned)
{
    struct bench bench;

    bench_open(&bench, (uint32_t)_i);
    for (uint32_t alignment = 1;
         alignment <= 4096 && strcmp(bench.plugin->name, "cpu") == 0;
         alignment *= 2)
        for (uint64_t bytes = 1; bytes < 20000; bytes = 3 * bytes + 1) {
            const struct tandem_alloc_options options = {
                .struct_size = sizeof(options),
                .bytes = bytes,
                .alignment = alignment};
            struct tandem_buffer *buffer;
            void *memory;

            OK(&bench, bench.api->alloc(bench.device, &options, &buffer));
            OK(&bench, bench.api->map(bench.stream, buffer, 0, bytes,
                                      TANDEM_MAP_READ, TIMEOUT_NS, &memory));
            ck_assert_uint_eq((uintptr_t)memory % alignment, 0);
            OK(&bench, bench.api->unmap(bench.stream, buffer, memory));
            bench.api->free(buffer);
        }
    bench_close(&bench);
}

/* ---- transfers ---- */

static void contents_check(const struct bench *bench,
                           const unsigned char *expected)
{
    unsigned char contents[BENCH_BYTES];

    OK(bench, bench->api->download(bench->stream, bench->buffer, 0, contents,
                                   BENCH_BYTES, 0, TIMEOUT_NS));
    ck_assert_mem_eq(contents, expected, BENCH_BYTES);
}

PLUGIN_TEST(transfers_of_0_bytes_do_nothing)
{
    unsigned char contents[BENCH_BYTES], byte = 1;
    struct bench bench;

    bench_open(&bench, (uint32_t)_i);
    const struct tandem_backend *api = bench.api;
    struct tandem_stream *s = bench.stream;
    struct tandem_buffer *b = bench.buffer;

    memset(contents, 7, sizeof(contents));
    OK(&bench, api->upload(s, b, 0, contents, BENCH_BYTES, 0));
    OK(&bench, api->download(s, b, 5, &byte, 0, 0, TIMEOUT_NS));
    OK(&bench, api->download(s, b, BENCH_BYTES, &byte, 0, 0, TIMEOUT_NS));
    OK(&bench, api->copy(s, b, 10, b, 10, 0));
    OK(&bench, api->fill(s, b, 8, 0, &byte, 1));
    ck_assert_uint_eq(byte, 1);
    contents_check(&bench, contents);
    bench_close(&bench);
}

/* Fills ranges with patterns of every width and overwrites each pattern as soon
 * as fill has returned. */
PLUGIN_TEST(fill_has_read_its_pattern)
{
    static const uint32_t widths[] = {1, 2, 4, 8};
    unsigned char contents[BENCH_BYTES], pattern[8];
    struct bench bench;

    bench_open(&bench, (uint32_t)_i);
    for (uint32_t round = 0; round < 16; round++) {
        const uint32_t width = widths[round % 4];
        const uint64_t offset = round * 256;

        for (uint32_t i = 0; i < 8; i++)
            pattern[i] = (unsigned char)(round * 16 + i + 1);
        for (uint32_t i = 0; i < 256; i++)
            contents[offset + i] = pattern[i % width];
        OK(&bench, bench.api->fill(bench.stream, bench.buffer, offset, 256,
                                   pattern, width));
        memset(pattern, 0, sizeof(pattern));
    }
    contents_check(&bench, contents);
    bench_close(&bench);
}

/* ---- events ---- */

#define ELEMENTS 20011
#define ROUNDS 10
#define LAUNCHES 5

static struct tandem_buffer *zeros_new(const struct bench *bench)
{
    const unsigned char zero = 0;
    struct tandem_buffer *buffer;

    OK(bench,
       bench->api->alloc(bench->device, TANDEM_BYTES(ELEMENTS * sizeof(float)),
                         &buffer));
    OK(bench, bench->api->fill(bench->stream, buffer, 0,
                               ELEMENTS * sizeof(float), &zero, 1));
    OK(bench, bench->api->stream_synchronize(bench->stream, TIMEOUT_NS));
    return buffer;
}

/* Enqueues element = element op value, where op is add or mul. */
static void launch(const struct bench *bench, struct tandem_stream *stream,
                   struct tandem_buffer *buffer, uint32_t id, double value)
{
    const struct tandem_tensor_desc desc = {.buffer = buffer,
                                            .dtype = TANDEM_F32,
                                            .rank = 1,
                                            .shape = {ELEMENTS},
                                            .strides = {1}};
    const struct tandem_tensor_desc *ins[] = {&desc, NULL}, *outs[] = {&desc};
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = id,
                                 .float_count = 1,
                                 .floats = &value};

    OK(bench, tensors_launch(bench->api, bench->device, stream, &op, ins, 2,
                             outs, 1, 64));
}

/* Enqueues LAUNCHES launches that add 1 to each element. */
static void increment(const struct bench *bench, struct tandem_stream *stream,
                      struct tandem_buffer *buffer)
{
    for (int i = 0; i < LAUNCHES; i++)
        launch(bench, stream, buffer, TANDEM_OP_ADD, 1);
}

static void elements_check(const struct bench *bench,
                           struct tandem_stream *stream,
                           struct tandem_buffer *buffer, float expected)
{
    static float elements[ELEMENTS];

    OK(bench, bench->api->download(stream, buffer, 0, elements,
                                   sizeof(elements), 0, TIMEOUT_NS));
    for (int i = 0; i < ELEMENTS; i++)
        if (elements[i] != expected)
            ck_abort_msg("%s: element %d is %.9g, not %.9g",
                         bench->plugin->name, i, (double)elements[i],
                         (double)expected);
}

/* Makes later work of `to` wait for an event of `from`, and destroys the event
 * at once. */
static void wait_for_stream(const struct bench *bench, struct tandem_stream *to,
                            struct tandem_stream *from)
{
    struct tandem_event *event;

    OK(bench, bench->api->event_record(from, &event));
    OK(bench, bench->api->stream_wait_event(to, event));
    bench->api->event_destroy(event);
}

/*
 * Two streams alternate on one buffer: one adds LAUNCHES, the other doubles.
 * The result depends on the order.
 */
PLUGIN_TEST(a_wait_outlives_its_event)
{
    struct tandem_stream *adds, *doubles;
    struct tandem_buffer *buffer;
    struct bench bench;
    float expected = 0;

    bench_open(&bench, (uint32_t)_i);
    if (!bench.plugin->has_operators)
        goto out;
    OK(&bench, bench.api->stream_create(bench.device, 0, &adds));
    OK(&bench, bench.api->stream_create(bench.device, 0, &doubles));
    buffer = zeros_new(&bench);
    for (int i = 0; i < ROUNDS; i++) {
        increment(&bench, adds, buffer);
        wait_for_stream(&bench, doubles, adds);
        launch(&bench, doubles, buffer, TANDEM_OP_MUL, 2);
        wait_for_stream(&bench, adds, doubles);
        expected = 2 * (expected + LAUNCHES);
    }
    elements_check(&bench, adds, buffer, expected);
out:
    bench_close(&bench);
}

PLUGIN_TEST(an_event_outlives_its_stream)
{
    struct tandem_stream *stream;
    struct tandem_event *event;
    struct tandem_buffer *buffer;
    struct bench bench;

    bench_open(&bench, (uint32_t)_i);
    if (!bench.plugin->has_operators)
        goto out;
    OK(&bench, bench.api->stream_create(bench.device, 0, &stream));
    buffer = zeros_new(&bench);
    increment(&bench, stream, buffer);
    OK(&bench, bench.api->event_record(stream, &event));
    bench.api->stream_destroy(stream);
    OK(&bench, bench.api->event_wait(event, TIMEOUT_NS));
    bench.api->event_destroy(event);
    elements_check(&bench, bench.stream, buffer, LAUNCHES);
out:
    bench_close(&bench);
}

int main(void)
{
    const bool complete = plugins_load();
    Suite *suite = suite_create("plugin");
    TCase *tests = tcase_create("plugin");
    int result;

    tests_add(tests);
    invalid_calls_add(tests);
    invalid_memory_add(tests);
    suite_add_tcase(suite, tests);
    result = runner_run(suite, CK_NOFORK);
    return result == EXIT_SUCCESS && !complete ? SKIPPED : result;
}
