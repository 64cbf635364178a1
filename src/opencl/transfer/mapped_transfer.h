/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers by a map, on devices that share the host's memory: what is copied
 * is copied once.  Some devices say that they share it and are not coherent,
 * so one is believed only after a round trip.  Under haul.busy.
 */
#ifndef TANDEM_OPENCL_TRANSFER_MAPPED_TRANSFER_H
#define TANDEM_OPENCL_TRANSFER_MAPPED_TRANSFER_H

#include "opencl/queue/stream.h"

/* *maps, 0 at first, remembers it. */
bool mapped_right(struct tandem_stream *stream, uint32_t *maps);
/* Whether it is, or has not been asked for. */
bool mapped_hopeful(uint32_t maps);
/* As bulk_upload and haul_download, but that the map has limit_ns. */
enum tandem_status mapped_haul(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               void *host, uint64_t bytes, bool up,
                               uint64_t limit_ns);

#endif
