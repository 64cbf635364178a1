/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers through mapped buffers, for devices that share the host's memory.
 * The data is copied only once.  The device must first pass a test that checks
 * whether mapped buffers are coherent.  Only the thread that holds
 * bulk_transfer.mutex may call these functions. */
#ifndef TANDEM_OPENCL_TRANSFER_MAPPED_TRANSFER_H
#define TANDEM_OPENCL_TRANSFER_MAPPED_TRANSFER_H

#include "opencl/queue/stream.h"

/* Returns true if the device passes the coherence test. Runs the test if its
 * result is unknown, and stores the result in *coherence. */
bool mapped_memory_is_coherent(struct tandem_stream *stream,
                               enum coherence *coherence);
/* Runs a transfer like bulk_transfer_run. Returns NOT_READY if deadline_ns
 * passes before the driver has mapped the buffer. */
enum tandem_status mapped_transfer_run(const struct transfer *transfer,
                                       uint64_t deadline_ns);

#endif
