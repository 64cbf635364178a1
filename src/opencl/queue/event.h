/* SPDX-License-Identifier: Apache-2.0 */
/* Events mark positions in streams.  Any thread may call these functions. */
#ifndef TANDEM_OPENCL_QUEUE_EVENT_H
#define TANDEM_OPENCL_QUEUE_EVENT_H

#include "opencl/queue/stream.h"

enum tandem_status event_record(struct tandem_stream *stream,
                                struct tandem_event **out_event);
void event_destroy(struct tandem_event *event);
/* Returns TANDEM_OK for a live event of a device that is not lost. */
enum tandem_status event_check(const struct tandem_event *event);
enum tandem_status event_wait(struct tandem_event *event, uint64_t timeout_ns);
/* Like event_wait, without event_check. */
enum tandem_status event_wait_live(struct tandem_event *event,
                                   uint64_t timeout_ns);
/* Makes `stream` wait for the event.  The calling thread does not wait. */
enum tandem_status event_enqueue_wait(struct tandem_stream *stream,
                                      struct tandem_event *event);
enum tandem_status event_elapsed_ns(struct tandem_event *start,
                                    struct tandem_event *end, uint64_t *out_ns);
/* Frees all events of a device that is being closed. */
void events_finish(struct tandem_device *device);

#endif
