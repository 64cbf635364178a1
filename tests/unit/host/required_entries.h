/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The required and the optional entries of struct tandem_backend, as marked in
 * backend.h.
 */
#ifndef TANDEM_TESTS_HOST_REQUIRED_H
#define TANDEM_TESTS_HOST_REQUIRED_H

#define REQUIRED_ENTRIES(X)                                                    \
    X(last_error)                                                              \
    X(device_count)                                                            \
    X(device_describe)                                                         \
    X(open)                                                                    \
    X(close)                                                                   \
    X(alloc)                                                                   \
    X(free)                                                                    \
    X(upload)                                                                  \
    X(download) X(copy) X(fill) X(memory_stats) X(prepare) X(prepared_wait)    \
        X(prepared_release) X(launch) X(gemm) X(stream_create)                 \
            X(stream_destroy) X(stream_synchronize) X(stream_wait_event)       \
                X(event_record) X(event_destroy) X(event_wait)

#define OPTIONAL_ENTRIES(X)                                                    \
    X(extension)                                                               \
    X(host_alloc)                                                              \
    X(host_free)                                                               \
    X(import_host)                                                             \
    X(map) X(unmap) X(buffer_seal) X(trim) X(event_callback) X(event_elapsed_ns)

#endif
