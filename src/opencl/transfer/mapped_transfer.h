/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers through mapped buffers, for devices that share the host's memory.
 * The data is copied only once.  A device is used this way only if it passes a
 * test of the coherence of mapped buffers.  Only the thread that holds
 * bulk_transfer.mutex may call these functions. */
#ifndef TANDEM_OPENCL_TRANSFER_MAPPED_TRANSFER_H
#define TANDEM_OPENCL_TRANSFER_MAPPED_TRANSFER_H

#include "opencl/queue/stream.h"

/* Returns true if the device passes the coherence test. If *coherence is 0,
 * runs the test and stores its result in *coherence. */
bool mapped_memory_is_coherent(struct tandem_stream *stream,
                               uint32_t *coherence);
/* Returns true if the coherence test has passed or has not run yet. */
bool mapped_memory_may_be_coherent(uint32_t coherence);
/* Transfers like bulk_upload or bulk_download. limit_ns is the timeout of the
 * driver's command that maps the buffer. */
enum tandem_status mapped_transfer_run(struct tandem_stream *stream,
                                       struct tandem_buffer *buffer,
                                       uint64_t offset, void *host,
                                       uint64_t bytes, bool upload,
                                       uint64_t limit_ns);

#endif
