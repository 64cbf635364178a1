/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage: late-dlopen LIBTANDEM DEVICE
 *
 * Loads the library with dlopen, uses it, closes it with or without its
 * context, does the same again, and exits.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/host.h>

#define N 256

struct library {
    void *object;
    __typeof__(tandem_context_create) *context_create;
    __typeof__(tandem_context_destroy) *context_destroy;
    __typeof__(tandem_device_find) *device_find;
    __typeof__(tandem_tensor_wrap) *tensor_wrap;
    __typeof__(tandem_tensor_destroy) *tensor_destroy;
    __typeof__(tandem_tensor_sync) *tensor_sync;
    __typeof__(tandem_run_on) *run_on;
    __typeof__(tandem_last_error) *last_error;
};

static struct library library;

#define MUST(condition)                                                      \
    do {                                                                     \
        if (!(condition)) {                                                  \
            fprintf(stderr, "late: line %d: %s: %s\n", __LINE__, #condition, \
                    library.last_error ? library.last_error() : "");         \
            _Exit(3);                                                        \
        }                                                                    \
    } while (0)

static void symbol_find(const char *name, void *out)
{
    void *symbol = dlsym(library.object, name);

    MUST(symbol != NULL);
    memcpy(out, &symbol, sizeof symbol);
}

static void library_open(const char *path)
{
    library.object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library.object)
        fprintf(stderr, "late: %s\n", dlerror());
    MUST(library.object != NULL);
    symbol_find("tandem_context_create", &library.context_create);
    symbol_find("tandem_context_destroy", &library.context_destroy);
    symbol_find("tandem_device_find", &library.device_find);
    symbol_find("tandem_tensor_wrap", &library.tensor_wrap);
    symbol_find("tandem_tensor_destroy", &library.tensor_destroy);
    symbol_find("tandem_tensor_sync", &library.tensor_sync);
    symbol_find("tandem_run_on", &library.run_on);
    symbol_find("tandem_last_error", &library.last_error);
}

/* Uses the library in a context, which stays open if close is false. */
static void library_use(const char *name, int close)
{
    static float x[N], y[N];
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_NEG};
    const int64_t n = N;
    struct tandem_context *context;
    struct tandem_tensor *tx, *ty;
    uint32_t device;

    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = 0;
    }
    MUST(library.context_create(NULL, &context) == TANDEM_OK);
    MUST(library.device_find(context, name, &device) == TANDEM_OK);
    MUST(library.tensor_wrap(context, x, TANDEM_F32, 1, &n, NULL, 0, &tx) ==
         TANDEM_OK);
    MUST(library.tensor_wrap(context, y, TANDEM_F32, 1, &n, NULL, 0, &ty) ==
         TANDEM_OK);
    MUST(library.run_on(context, device, &op, &tx, 1, &ty, 1) == TANDEM_OK);
    MUST(library.tensor_sync(ty, TANDEM_TIMEOUT_INFINITE) == TANDEM_OK);
    for (int i = 0; i < N; i++)
        MUST(y[i] == -x[i]);
    MUST(library.run_on(context, device, &op, &tx, 1, &ty, 1) == TANDEM_OK);
    if (close)
        library.context_destroy(context);
}

static void *thread_use(void *name)
{
    library_use(name, 1);
    return NULL;
}

int main(int count, char **words)
{
    pthread_t thread;

    if (count != 3)
        return 2;
    for (int i = 0; i < 4; i++) {
        library_open(words[1]);
        library_use(words[2], i % 2);
        /* A thread that used the library ends after the library was closed. */
        MUST(pthread_create(&thread, NULL, thread_use, words[2]) == 0);
        MUST(pthread_join(thread, NULL) == 0);
        MUST(dlclose(library.object) == 0);
    }
    return 0;
}
