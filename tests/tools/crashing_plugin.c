/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin whose driver is broken, for tests of cl-probe. It has one device
 * and crashes or hangs as the environment variable CRASHING_PLUGIN says:
 * crash-count, hang-count, crash-open, hang-open, or, in the self-test that
 * tune runs, crash-self-test, hang-self-test, good-self-test. With any other
 * value, open fails.
 */
#include <tandem/backend.h>

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void misbehave(const char *where)
{
    const char *wish = getenv("CRASHING_PLUGIN");
    const char *dash = wish == NULL ? NULL : strchr(wish, '-');

    if (dash == NULL || strcmp(dash + 1, where) != 0 ||
        strncmp(wish, "good", 4) == 0)
        return;
    if (strncmp(wish, "crash", 5) == 0) {
        signal(SIGSEGV, SIG_DFL); /* A sanitizer's handler would exit. */
        raise(SIGSEGV);
    }
    for (;;)
        pause();
}

/* Returns true if the device can be opened for the self-test. */
static bool opens(void)
{
    const char *wish = getenv("CRASHING_PLUGIN");

    return wish != NULL && strstr(wish, "-self-test") != NULL;
}

static const char *last_error(void)
{
    return "this device does not open";
}

static enum tandem_status device_count(uint32_t *out_count)
{
    misbehave("count");
    *out_count = 1;
    return TANDEM_OK;
}

static enum tandem_status device_describe(uint32_t index,
                                          struct tandem_device_info *out_info)
{
    size_t size = out_info->struct_size;

    if (index != 0)
        return TANDEM_INVALID_ARGUMENT;
    memset(out_info, 0, size);
    out_info->struct_size = size;
    out_info->kind = TANDEM_DEVICE_GPU;
    out_info->caps = TANDEM_CAP_CORE_OPERATORS;
    out_info->duplicate_of = -1;
    strcpy(out_info->name, "Crashing device");
    return TANDEM_OK;
}

static struct tandem_device *trying_device;

static enum tandem_status device_open(uint32_t index,
                                      const struct tandem_open_options *options,
                                      struct tandem_device **out_device)
{
    static struct {
        char unused;
    } ordinary, trying;
    bool tries = false;

    (void)index;
    *out_device = NULL;
    misbehave("open");
    if (!opens())
        return TANDEM_NO_DEVICE;
    for (uint32_t i = 0; options != NULL && i < options->count; i++)
        tries |= strcmp(options->keys[i], "self_test_only") == 0;
    trying_device = (struct tandem_device *)&trying;
    *out_device = tries ? trying_device : (struct tandem_device *)&ordinary;
    return TANDEM_OK;
}

static enum tandem_status stream_create(struct tandem_device *device,
                                        uint32_t flags,
                                        struct tandem_stream **out_stream)
{
    static char stream;

    (void)device;
    (void)flags;
    *out_stream = (struct tandem_stream *)(void *)&stream;
    return TANDEM_OK;
}

/*
 * Like the OpenCL plugin, reports that the self-test starts, and then its
 * result.
 */
static enum tandem_status tune(struct tandem_device *device,
                               uint64_t budget_ns, tandem_tuning_result_fn sink,
                               void *user)
{
    (void)budget_ns;
    if (device != trying_device)
        return TANDEM_OK;
    sink(user, "sm90a_self_test", "started");
    misbehave("self-test");
    sink(user, "sm90a_self_test", "passed");
    return TANDEM_OK;
}

/* The functions below are never called. */

static enum tandem_status unexpected_call(void)
{
    return TANDEM_INVALID_ARGUMENT;
}

static void ignore(void)
{
}

#define UNEXPECTED_CALL (void *)unexpected_call
#define IGNORE (void *)ignore

TANDEM_EXPORT const struct tandem_backend *
tandem_backend_query(uint32_t host_abi_major)
{
    static struct tandem_backend backend;

    if (host_abi_major != TANDEM_ABI_MAJOR)
        return NULL;
    backend = (struct tandem_backend){
        .struct_size = sizeof backend,
        .abi_major = TANDEM_ABI_MAJOR,
        .abi_minor = TANDEM_ABI_MINOR,
        .name = "crashing",
        .version = "0",
        .last_error = last_error,
        .device_count = device_count,
        .device_describe = device_describe,
        .open = device_open,
        .close = IGNORE,
        .alloc = UNEXPECTED_CALL,
        .free = IGNORE,
        .upload = UNEXPECTED_CALL,
        .download = UNEXPECTED_CALL,
        .copy = UNEXPECTED_CALL,
        .fill = UNEXPECTED_CALL,
        .memory_stats = UNEXPECTED_CALL,
        .supports = UNEXPECTED_CALL,
        .launch = UNEXPECTED_CALL,
        .gemm = UNEXPECTED_CALL,
        .stream_create = stream_create,
        .tune = tune,
        .stream_destroy = IGNORE,
        .stream_query = UNEXPECTED_CALL,
        .stream_synchronize = UNEXPECTED_CALL,
        .stream_wait_event = UNEXPECTED_CALL,
        .event_record = UNEXPECTED_CALL,
        .event_destroy = IGNORE,
        .event_query = UNEXPECTED_CALL,
        .event_wait = UNEXPECTED_CALL,
        .synchronize = UNEXPECTED_CALL,
    };
    return &backend;
}
