/* SPDX-License-Identifier: Apache-2.0 */
/* Backend table and entry point of the CPU plugin.  Callable by any thread. */
#include "config.h"

#include "common/last_error.h"
#include "cpu/gemm/blas_guard.h"
#include "cpu/objects.h"

static const struct tandem_backend backend = {
    .struct_size = sizeof backend,
    .abi_major = TANDEM_ABI_MAJOR,
    .abi_minor = TANDEM_ABI_MINOR,
    .name = "cpu",
    .version = CPU_VERSION,
    .last_error = last_error_get,
    .device_count = device_count,
    .device_describe = device_describe,
    .open = device_open,
    .close = device_close,
    .alloc = memory_alloc,
    .free = memory_free,
    .upload = transfer_upload,
    .download = transfer_download,
    .copy = transfer_copy,
    .fill = transfer_fill,
    .host_alloc = memory_host_alloc,
    .host_free = memory_host_free,
    .import_host = memory_import_host,
    .map = transfer_map,
    .unmap = transfer_unmap,
    .memory_stats = memory_stats,
    .trim = memory_trim,
    .supports = launch_supports,
    .launch = launch_run,
    .gemm = gemm_run,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .stream_wait_event = stream_wait_event,
    .event_record = event_record,
    .event_destroy = event_destroy,
    .event_query = event_query,
    .event_wait = event_wait,
    .event_elapsed_ns = event_elapsed_ns,
    .synchronize = device_synchronize,
};

const struct tandem_backend *tandem_backend_query(uint32_t host_abi_major)
{
    /* OpenBLAS was loaded with this plugin, so install the fork handlers now.
     * If memory is exhausted, device_open retries and reports the failure. */
    blas_fork_guard_install();
    return host_abi_major == TANDEM_ABI_MAJOR ? &backend : NULL;
}
