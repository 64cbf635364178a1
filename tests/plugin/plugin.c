/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the plugins under test; see plugin.h. */
#include "plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    bool has_operators;
} candidates[] = {{"cpu", true}, {"example", false}, {"opencl", true}};
#define CANDIDATES (sizeof(candidates) / sizeof(candidates[0]))

static struct plugin plugins[CANDIDATES];
uint32_t plugin_count;

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

bool plugins_load(void)
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

const struct plugin *plugin_at(uint32_t index)
{
    return &plugins[index];
}

void bench_open(struct bench *bench, uint32_t plugin)
{
    const struct tandem_backend *api = plugins[plugin].api;

    *bench = (struct bench){.plugin = &plugins[plugin], .api = api};
    OK(bench, api->open(0, NULL, &bench->device));
    OK(bench, api->open(0, NULL, &bench->other));
    OK(bench, api->stream_create(bench->device, 0, &bench->stream));
    OK(bench, api->stream_create(bench->other, 0, &bench->other_stream));
    OK(bench,
       api->alloc(bench->device, TANDEM_BYTES(BENCH_BYTES), &bench->buffer));
    OK(bench, api->alloc(bench->other, TANDEM_BYTES(BENCH_BYTES),
                         &bench->other_device_object));
    OK(bench,
       api->alloc(bench->device, TANDEM_BYTES(BENCH_BYTES), &bench->freed));
    api->free(bench->freed);
}

void bench_close(struct bench *bench)
{
    bench->api->close(bench->device);
    bench->api->close(bench->other);
}

void message_check(struct messages *messages, const struct bench *bench,
                   enum tandem_status status, const char *function,
                   const char *call)
{
    const uint32_t count = messages->count++;
    char *message;

    ck_assert_uint_lt(count, MAX_MESSAGES);
    messages->statuses[count] = status;
    messages->functions[count] = function;
    snprintf(messages->calls[count], sizeof(messages->calls[0]), "%s", call);
    message = messages->messages[count];
    snprintf(message, sizeof(messages->messages[0]), "%s",
             bench->api->last_error());
    ck_assert_msg(message[0] != '\0', "%s: %s, %s: no message",
                  bench->plugin->name, function, call);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_msg(strcmp(messages->functions[i], function) != 0 ||
                          strcmp(messages->messages[i], message) != 0,
                      "%s: %s, %s: the message is also that of \"%s\": %s",
                      bench->plugin->name, function, call, messages->calls[i],
                      message);
}

void invalid_calls_run(uint32_t plugin, invalid_calls_fn calls,
                       struct messages *messages)
{
    struct bench bench;

    bench_open(&bench, plugin);
    messages->count = 0;
    calls(&bench, messages);
    bench_close(&bench);
}

/* Returns the index of the plugin, or plugin_count. */
static uint32_t plugin_find(const char *name)
{
    uint32_t i = 0;

    while (i < plugin_count && strcmp(plugins[i].name, name) != 0)
        i++;
    return i;
}

void messages_compare(invalid_calls_fn calls)
{
    static struct messages cpu, opencl;
    const uint32_t cpu_index = plugin_find("cpu");
    const uint32_t opencl_index = plugin_find("opencl");
    uint32_t compared = 0;

    if (cpu_index == plugin_count || opencl_index == plugin_count)
        return;
    invalid_calls_run(cpu_index, calls, &cpu);
    invalid_calls_run(opencl_index, calls, &opencl);
    for (uint32_t i = 0; i < cpu.count; i++)
        for (uint32_t j = 0; j < opencl.count; j++) {
            if (strcmp(cpu.functions[i], opencl.functions[j]) != 0 ||
                strcmp(cpu.calls[i], opencl.calls[j]) != 0)
                continue;
            ck_assert_msg(cpu.statuses[i] == opencl.statuses[j] &&
                              strcmp(cpu.messages[i], opencl.messages[j]) == 0,
                          "%s, %s:\ncpu: status %d: %s\nopencl: status %d: %s",
                          cpu.functions[i], cpu.calls[i], (int)cpu.statuses[i],
                          cpu.messages[i], (int)opencl.statuses[j],
                          opencl.messages[j]);
            compared++;
        }
    ck_assert_uint_gt(compared, 0);
}
