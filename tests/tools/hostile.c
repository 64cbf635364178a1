/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin whose driver is broken, for tests of cl-probe: it has one device
 * and crashes or hangs where the environment variable HOSTILE says:
 * crash-count, hang-count, crash-open, hang-open; anything else: open fails.
 */
#include <tandem/backend.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void misbehave(const char *where)
{
    const char *wish = getenv("HOSTILE");
    const char *dash = wish == NULL ? NULL : strchr(wish, '-');

    if (dash == NULL || strcmp(dash + 1, where) != 0)
        return;
    if (strncmp(wish, "crash", 5) == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would exit */
        raise(SIGSEGV);
    }
    for (;;)
        pause();
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
    strcpy(out_info->name, "Hostile device");
    return TANDEM_OK;
}

static enum tandem_status device_open(uint32_t index,
                                      const struct tandem_open_options *options,
                                      struct tandem_device **out_device)
{
    (void)index;
    (void)options;
    *out_device = NULL;
    misbehave("open");
    return TANDEM_NO_DEVICE;
}

/* Nothing below is reached: no device opens. */

static enum tandem_status refuse(void)
{
    return TANDEM_INVALID_ARGUMENT;
}

static void ignore(void)
{
}

#define REFUSE (void *)refuse
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
        .name = "hostile",
        .version = "0",
        .last_error = last_error,
        .device_count = device_count,
        .device_describe = device_describe,
        .open = device_open,
        .close = IGNORE,
        .alloc = REFUSE,
        .free = IGNORE,
        .upload = REFUSE,
        .download = REFUSE,
        .copy = REFUSE,
        .fill = REFUSE,
        .memory_stats = REFUSE,
        .supports = REFUSE,
        .launch = REFUSE,
        .gemm = REFUSE,
        .stream_create = REFUSE,
        .stream_destroy = IGNORE,
        .stream_query = REFUSE,
        .stream_synchronize = REFUSE,
        .stream_wait_event = REFUSE,
        .event_record = REFUSE,
        .event_destroy = IGNORE,
        .event_query = REFUSE,
        .event_wait = REFUSE,
        .synchronize = REFUSE,
    };
    return &backend;
}
