/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the uploads and downloads of backend.h, and chooses their path.
 * Only the thread that uses the stream may call these functions. */
#ifndef TANDEM_OPENCL_TRANSFER_TRANSFER_H
#define TANDEM_OPENCL_TRANSFER_TRANSFER_H

#include "opencl/queue/stream.h"

enum tandem_status transfer_upload(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, const void *source,
                                   uint64_t bytes, uint32_t flags);
enum tandem_status transfer_download(struct tandem_stream *stream,
                                     struct tandem_buffer *buffer,
                                     uint64_t offset, void *target,
                                     uint64_t bytes, uint32_t flags,
                                     uint64_t timeout_ns);

#endif
