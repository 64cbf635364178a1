/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promises of Tandem's own plugins beyond tandem/backend.h: they keep the
 * memory limit, the CPU plugin knows its free memory and aligns buffers, and a
 * wait for an event outlives the event. check-messages tests the promises about
 * invalid calls.
 */
#include <config.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tandem/backend.h>

#include "../../tools/common/tensor_call.h"
#include "support/test_list.h"

#define SKIPPED 77
#define MIB (UINT64_C(1) << 20)
/* A timeout of 5 minutes. */
#define TIMEOUT_NS (300ull * 1000u * 1000u * 1000u)
/* Size of the buffer of the bench. */
#define BENCH_BYTES 4096

/* ---- plugins ---- */

struct plugin {
    const char *name;
    bool has_operators;
    const struct tandem_backend *api;
};

/* A device with a stream and a buffer. */
struct bench {
    const struct plugin *plugin;
    const struct tandem_backend *api; /* The plugin's table. */
    struct tandem_device *device;
    struct tandem_stream *stream;
    struct tandem_buffer *buffer;
};

/* The call must return TANDEM_OK; otherwise the test fails with the plugin's
 * message. */
#define OK(bench, call)                                                        \
    do {                                                                       \
        const enum tandem_status status_ = (call);                             \
        ck_assert_msg(status_ == TANDEM_OK, "%s: %s: status %d: %s",           \
                      (bench)->plugin->name, #call, (int)status_,              \
                      (bench)->api->last_error());                             \
    } while (0)
/* Defines a test that runs for each plugin, whose index is `_i`. */
#define PLUGIN_TEST(name) LOOP_TEST(name, plugin_count)

static const struct {
    const char *name;
    bool has_operators;
} candidates[] = {{"cpu", true}, {"example", false}, {"opencl", true}};
#define CANDIDATES (sizeof(candidates) / sizeof(candidates[0]))

static struct plugin plugins[CANDIDATES];
static uint32_t plugin_count; /* The number of plugins that were loaded. */

/* Ends the process if the file is not a plugin. */
static const struct tandem_backend *plugin_load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol =
        library != NULL ? dlsym(library, TANDEM_BACKEND_QUERY_SYMBOL) : NULL;
    tandem_backend_query_fn query;

    if (symbol == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    /* ISO C has no cast from void * to a function pointer. */
    memcpy(&query, &symbol, sizeof(query));
    return query(TANDEM_ABI_MAJOR);
}

/*
 * Loads the plugins that were built and have a device. Returns false, with the
 * reason on stderr, if another plugin was skipped.
 */
static bool plugins_load(void)
{
    for (size_t i = 0; i < CANDIDATES; i++) {
        struct plugin *plugin = &plugins[plugin_count];
        char path[64];
        uint32_t devices;

        snprintf(path, sizeof(path), ".libs/tandem-%s.so", candidates[i].name);
        if (access(path, R_OK) != 0) {
            fprintf(stderr, "%s was not built\n", path);
            continue;
        }
        plugin->name = candidates[i].name;
        plugin->has_operators = candidates[i].has_operators;
        plugin->api = plugin_load(path);
        if (plugin->api->device_count(&devices) != TANDEM_OK) {
            fprintf(stderr, "%s: %s\n", path, plugin->api->last_error());
            continue;
        }
        plugin_count++;
    }
    return plugin_count == CANDIDATES;
}

/* Opens device 0 of the plugin and creates the objects. */
static void bench_open(struct bench *bench, uint32_t plugin)
{
    const struct tandem_backend *api = plugins[plugin].api;

    *bench = (struct bench){.plugin = &plugins[plugin], .api = api};
    OK(bench, api->open(0, NULL, &bench->device));
    OK(bench, api->stream_create(bench->device, 0, &bench->stream));
    OK(bench,
       api->alloc(bench->device, TANDEM_BYTES(BENCH_BYTES), &bench->buffer));
}

static void bench_close(struct bench *bench)
{
    bench->api->close(bench->device);
}

/* ---- memory ---- */

PLUGIN_TEST(the_memory_limit_is_kept)
{
    const struct tandem_backend *api = plugins[_i].api;
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
    const struct plugin *plugin = &plugins[_i];
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

int main(void)
{
    const bool complete = plugins_load();
    Suite *suite = suite_create("plugin");
    TCase *tests = tcase_create("plugin");
    int result;

    tests_add(tests);
    suite_add_tcase(suite, tests);
    result = runner_run(suite, CK_NOFORK);
    return result == EXIT_SUCCESS && !complete ? SKIPPED : result;
}
