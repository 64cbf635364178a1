/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers through the stream's ring of pinned memory (queue/pinned_ring.h).
 * Large transfers are divided into commands: several threads copy the data of
 * some commands while the device transfers the data of others. Only the thread
 * that uses the stream may call these functions. */
#ifndef TANDEM_OPENCL_TRANSFER_RING_TRANSFER_H
#define TANDEM_OPENCL_TRANSFER_RING_TRANSFER_H

#include "opencl/queue/buffer_commands.h"

/* Copies the data to the ring and enqueues its transfer.  Waits only if the
 * ring is full, for up to blocking_timeout_ms each time; after that, returns
 * NOT_READY.  Poisons the buffer if the upload fails after a part of it was
 * enqueued.  Returns UNSUPPORTED if there is no memory for the ring. */
enum tandem_status ring_upload(const struct transfer *request);
/* Downloads after all earlier commands of the stream.  Returns NOT_READY if
 * timeout_ns passes first.  A failed download can have written a part of the
 * caller's memory, but nothing writes to it afterwards.  Returns UNSUPPORTED if
 * there is no memory for the ring. */
enum tandem_status ring_download(const struct transfer *request,
                                 uint64_t timeout_ns);

#endif
