/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the tests of the OpenCL plugin share; see support.h. */
#include <config.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define PLUGIN ".libs/tandem-opencl.so"

const struct tandem_backend *backend;
struct tandem_device *device;
struct tandem_stream *stream;

const struct tandem_backend *plugin_load(void)
{
    void *library = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    /* ISO C has no cast from the void * of dlsym to a function pointer. */
    tandem_backend_query_fn query;
    void *symbol = dlsym(library, TANDEM_BACKEND_QUERY_SYMBOL);
    memcpy(&query, &symbol, sizeof(query));
    backend = symbol != NULL ? query(TANDEM_ABI_MAJOR) : NULL;
    return backend;
}

int plugin_start(void)
{
    uint32_t count;

    if (plugin_load() == NULL)
        return 1;
    if (backend->device_count(&count) == TANDEM_OK)
        return 0;
    fprintf(stderr, "%s\n", backend->last_error());
    return SKIPPED;
}

void expect_ok(enum tandem_status status, const char *what)
{
    ck_assert_msg(status == TANDEM_OK, "%s: %d, %s", what, (int)status,
                  backend->last_error());
}

void device_open(const char *const *pairs, tandem_log_fn log)
{
    const char *keys[8], *values[8];
    struct tandem_open_options options = {.struct_size = sizeof(options),
                                          .keys = keys,
                                          .values = values,
                                          .log = log};

    for (; pairs[2 * options.count] != NULL; options.count++) {
        keys[options.count] = pairs[2 * options.count];
        values[options.count] = pairs[2 * options.count + 1];
    }
    OK(backend->open(0, &options, &device));
    stream = stream_new();
}

void device_open_with(const char *key, const char *value)
{
    const char *const pairs[] = {key, value, NULL};

    device_open(pairs, NULL);
}

void device_close(void)
{
    if (device != NULL)
        backend->close(device);
    device = NULL;
    stream = NULL;
}

struct tandem_stream *stream_new(void)
{
    struct tandem_stream *out;

    OK(backend->stream_create(device, 0, &out));
    return out;
}

struct tandem_buffer *buffer_new(uint64_t bytes)
{
    struct tandem_buffer *out;

    OK(backend->alloc(device, TANDEM_BYTES(bytes), &out));
    return out;
}

void buffer_write(struct tandem_buffer *buffer, const void *data,
                  uint64_t bytes)
{
    OK(backend->upload(stream, buffer, 0, data, bytes, 0));
}

void buffer_read(struct tandem_buffer *buffer, void *data, uint64_t bytes)
{
    OK(backend->download(stream, buffer, 0, data, bytes, 0,
                         TANDEM_TIMEOUT_INFINITE));
}

void stream_wait(struct tandem_stream *waited)
{
    OK(backend->stream_synchronize(waited, TANDEM_TIMEOUT_INFINITE));
}

struct tandem_memory_stats memory_stats(void)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};

    OK(backend->memory_stats(device, &stats));
    return stats;
}

struct tandem_gemm gemm_of(int64_t m, int64_t n, int64_t k,
                           struct tandem_buffer *a, struct tandem_buffer *b,
                           struct tandem_buffer *c)
{
    return (struct tandem_gemm){.struct_size = sizeof(struct tandem_gemm),
                                .dtype = TANDEM_F32,
                                .m = m,
                                .n = n,
                                .k = k,
                                .batch = 1,
                                .alpha = 1,
                                .a = {a, 0, k, 0},
                                .b = {b, 0, n, 0},
                                .c = {c, 0, n, 0}};
}

pid_t process_start(const char *self, const char *what)
{
    pid_t child = fork();
    if (child == 0) {
        execl(self, self, what, (char *)NULL);
        _exit(99);
    }
    ck_assert(child > 0);
    return child;
}

int process_end(pid_t child)
{
    int status = 0;
    ck_assert(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
