/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers through mapped memory, for devices that share the host's memory:
 * the data is copied only once.  A device is used this way only if it passes a
 * coherence test.  The thread that holds bulk_transfer.mutex.
 */
#ifndef TANDEM_OPENCL_TRANSFER_MAPPED_TRANSFER_H
#define TANDEM_OPENCL_TRANSFER_MAPPED_TRANSFER_H

#include "opencl/queue/stream.h"

/* Returns true if the device passes the test, whose result is stored in
 * *coherence.  *coherence is 0 at first. */
bool mapped_memory_is_coherent(struct tandem_stream *stream,
                               uint32_t *coherence);
/* Returns false if the test has failed. */
bool mapped_memory_may_be_coherent(uint32_t coherence);
/* Transfers like bulk_upload or bulk_download.  The map must complete within
 * limit_ns. */
enum tandem_status mapped_transfer_run(struct tandem_stream *stream,
                                       struct tandem_buffer *buffer,
                                       uint64_t offset, void *host,
                                       uint64_t bytes, bool upload,
                                       uint64_t limit_ns);

#endif
