/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for an event in the driver.
 *
 * A driver can report the failure of a command once, to the thread that waits
 * for its event. Until this thread has recorded the failure, a later wait of
 * another thread can succeed although its data depend on the failed command.
 * Before a wait counts as successful, it therefore lets all waits for earlier
 * commands of the stream end. These end soon, because the commands of a stream
 * complete in order. Any thread may call these functions. */
#ifndef TANDEM_OPENCL_QUEUE_PENDING_WAITS_H
#define TANDEM_OPENCL_QUEUE_PENDING_WAITS_H

#include <stdint.h>

/* The waiting thread's own record; only the functions below use it. */
struct pending_wait {
    struct pending_wait *next, **link;
    uint64_t stream, seqno;
};

/* Registers a wait for command number `seqno` of a stream, until
 * pending_wait_end. */
void pending_wait_begin(struct pending_wait *wait, uint64_t stream,
                        uint64_t seqno);
void pending_wait_end(struct pending_wait *wait);
/* [blocks] Returns when no thread waits for a command of the stream with a
 * number below `seqno`. That command must have completed. */
void pending_waits_settle(uint64_t stream, uint64_t seqno);

#endif
