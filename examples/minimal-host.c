/* SPDX-License-Identifier: Apache-2.0 */
/*
 * minimal-host PLUGIN.so - a host without libtandem: tandem/backend.h and
 * dlopen are all it takes to compute with a backend plugin.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <tandem/backend.h>

static const struct tandem_backend *backend;
static struct tandem_device *device;

/* Ends the program if a call of the plugin failed. The device is closed first,
 * because its driver may still compile or compute in other threads. */
static void need(enum tandem_status status, const char *what)
{
    if (status == TANDEM_OK)
        return;
    fprintf(stderr, "%s: status %d: %s\n", what, (int)status,
            backend->last_error());
    if (device != NULL)
        backend->close(device);
    exit(1);
}

static void plugin_load(const char *path)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = object ? dlsym(object, TANDEM_BACKEND_QUERY_SYMBOL) : NULL;
    tandem_backend_query_fn query;

    if (symbol == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    *(void **)&query = symbol; /* as POSIX asks for functions of dlsym */
    backend = query(TANDEM_ABI_MAJOR);
    if (backend == NULL || backend->abi_major != TANDEM_ABI_MAJOR) {
        fprintf(stderr, "%s: not for plugin ABI %u\n", path, TANDEM_ABI_MAJOR);
        exit(1);
    }
}

/* Prepares an operator on vectors of 4 elements. */
static struct tandem_prepared *prepare(uint32_t id, uint32_t input_count)
{
    const struct tandem_op op = {.struct_size = sizeof(op), .id = id};
    const struct tandem_operand_desc vector = {
        .dtype = TANDEM_F32, .rank = 1, .shape = {4}, .strides = {1}};
    const struct tandem_operand_desc *inputs[2] = {&vector, &vector};
    const struct tandem_operand_desc *output = &vector;
    struct tandem_prepared *prepared;

    need(backend->prepare(device, &op, inputs, input_count, &output, 1, 0, NULL,
                          &prepared),
         "prepare");
    return prepared;
}

/* y = relu(x + x), without a wait between the two operators. */
static void elementwise_run(struct tandem_stream *stream)
{
    const float x[4] = {-1.0f, 0.5f, 2.0f, -3.0f};
    float y[4];
    struct tandem_buffer *a, *b, *c;
    struct tandem_prepared *add = prepare(TANDEM_OP_ADD, 2);
    struct tandem_prepared *relu = prepare(TANDEM_OP_RELU, 1);

    need(backend->alloc(device, TANDEM_BYTES(sizeof(x)), &a), "alloc");
    need(backend->alloc(device, TANDEM_BYTES(sizeof(x)), &b), "alloc");
    need(backend->alloc(device, TANDEM_BYTES(sizeof(y)), &c), "alloc");
    need(backend->upload(stream, a, 0, x, sizeof(x), 0), "upload");
    need(backend->launch(stream, add,
                         (struct tandem_memory[]){{a, 0}, {a, 0}, {b, 0}}, 3,
                         NULL, 0),
         "launch add");
    need(backend->launch(stream, relu, (struct tandem_memory[]){{b, 0}, {c, 0}},
                         2, NULL, 0),
         "launch relu");
    need(backend->download(stream, c, 0, y, sizeof(y), 0,
                           TANDEM_TIMEOUT_INFINITE),
         "download");
    printf("relu(x + x) = %g %g %g %g\n", (double)y[0], (double)y[1],
           (double)y[2], (double)y[3]);
    backend->prepared_release(add);
    backend->prepared_release(relu);
    backend->free(a);
    backend->free(b);
    backend->free(c);
}

/* c = a b for two matrices of 2 x 2. */
static void gemm_run(struct tandem_stream *stream)
{
    const float a[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    const float b[4] = {5.0f, 6.0f, 7.0f, 8.0f};
    float c[4];
    struct tandem_gemm gemm = {.struct_size = sizeof(gemm),
                               .dtype = TANDEM_F32,
                               .m = 2,
                               .n = 2,
                               .k = 2,
                               .batch = 1,
                               .alpha = 1.0,
                               .a.ld = 2,
                               .b.ld = 2,
                               .c.ld = 2};

    need(backend->alloc(device, TANDEM_BYTES(sizeof(a)), &gemm.a.buffer),
         "alloc");
    need(backend->alloc(device, TANDEM_BYTES(sizeof(b)), &gemm.b.buffer),
         "alloc");
    need(backend->alloc(device, TANDEM_BYTES(sizeof(c)), &gemm.c.buffer),
         "alloc");
    need(backend->upload(stream, gemm.a.buffer, 0, a, sizeof(a), 0), "upload");
    need(backend->upload(stream, gemm.b.buffer, 0, b, sizeof(b), 0), "upload");
    need(backend->gemm(stream, &gemm), "gemm");
    need(backend->download(stream, gemm.c.buffer, 0, c, sizeof(c), 0,
                           TANDEM_TIMEOUT_INFINITE),
         "download");
    printf("a b = %g %g / %g %g\n", (double)c[0], (double)c[1], (double)c[2],
           (double)c[3]);
    backend->free(gemm.a.buffer);
    backend->free(gemm.b.buffer);
    backend->free(gemm.c.buffer);
}

int main(int argc, char **argv)
{
    struct tandem_device_info info = {.struct_size = sizeof(info)};
    struct tandem_stream *stream;
    uint32_t count;

    if (argc != 2) {
        fprintf(stderr, "usage: %s PLUGIN.so\n", argv[0]);
        return 2;
    }
    plugin_load(argv[1]);
    need(backend->device_count(&count), "device_count");
    need(backend->device_describe(0, &info), "device_describe");
    need(backend->open(0, NULL, &device), "open");
    need(backend->stream_create(device, 0, &stream), "stream_create");
    printf("%s: %s\n", backend->name, info.name);
    elementwise_run(stream);
    gemm_run(stream);
    backend->stream_destroy(stream);
    backend->close(device);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("standard output");
        return 1;
    }
    return 0;
}
