/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated GPU as a backend plugin: its function table and its query
 * function. The loader supplies fallbacks for the missing optional entries.
 */
#include "common/last_error.h"
#include "internal.h"

#include <tandem/extensions.h>

#include <string.h>

static const void *extension(const char *name)
{
    static const char *const keys[] = {"test.fault", NULL};
    static const struct tandem_test_extension test = {sizeof test, keys};

    return name != NULL && strcmp(name, TANDEM_EXTENSION_TEST) == 0 ? &test
                                                                    : NULL;
}

static const struct tandem_backend backend = {
    .struct_size = sizeof backend,
    .abi_major = TANDEM_ABI_MAJOR,
    .abi_minor = TANDEM_ABI_MINOR,
    .name = "simulated",
    .version = "0.1.0",
    .last_error = last_error_get,
    .device_count = device_count,
    .device_describe = device_describe,
    .open = device_open,
    .close = device_close,
    .extension = extension,
    .alloc = buffer_alloc,
    .free = buffer_free,
    .upload = transfer_upload,
    .download = transfer_download,
    .copy = transfer_copy,
    .fill = transfer_fill,
    .import_host = buffer_import,
    .buffer_seal = buffer_seal,
    .memory_stats = device_memory_stats,
    .gemm = operator_gemm,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_wait_event = stream_wait_event,
    .event_record = event_record,
    .event_destroy = event_destroy,
    .event_wait = event_wait,
    .event_elapsed_ns = event_elapsed_ns,
    .prepare = sim_prepare,
    .prepared_wait = sim_prepared_wait,
    .prepared_release = sim_prepared_release,
    .launch = sim_prepared_launch,
};

const struct tandem_backend *tandem_backend_query(uint32_t host_abi_major)
{
    return host_abi_major == TANDEM_ABI_MAJOR ? &backend : NULL;
}
