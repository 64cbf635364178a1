/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times work on a stream of its own, in scratch memory full of random numbers,
 * until a budget is used up.  A meter belongs to one thread.
 */
#ifndef TANDEM_OPENCL_TUNE_KERNEL_TIMER_H
#define TANDEM_OPENCL_TUNE_KERNEL_TIMER_H

#include "opencl/queue/stream.h"

struct meter {
    struct tandem_device *device;
    struct tandem_stream *stream;
    struct tandem_buffer *memory;
    uint64_t bytes; /* of memory */
    uint64_t deadline_ns;
    double enough_ns; /* what takes longer is timed once; 0: none is */
    uint32_t spoilt;  /* measurements that something else kept from an end */
};

/* Enqueues the work once. */
typedef enum tandem_status (*meter_fn)(struct meter *meter, void *work);

/* Takes bytes, or less where there are not so many.  Ended by meter_end, which
 * gives all of it back, also after a failure. */
enum tandem_status meter_start(struct meter *meter,
                               struct tandem_device *device, uint64_t bytes,
                               uint64_t deadline_ns);
void meter_end(struct meter *meter);
/* ns until the deadline; 0 past it. */
uint64_t meter_left_ns(const struct meter *meter);
/* The time of launching the work once in a stream of launches: the lower
 * quartile of several, as whatever else the machine does only adds to it.  The
 * first launch, which may compile, is not in it, nor are launches while which
 * others got this thread's processor.  TANDEM_FAILED: they nearly always do, or
 * the time was up before there was a measurement. */
enum tandem_status kernel_timer_measure(struct meter *meter, meter_fn launch,
                                        void *work, double *out_ns);
/* Whether a failure of one kind of work leaves the device well. */
bool meter_goes_on(enum tandem_status status);

#endif
