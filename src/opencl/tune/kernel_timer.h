/* SPDX-License-Identifier: Apache-2.0 */
/* Times work on a separate stream until a deadline. A timer has scratch memory,
 * which is filled with random numbers, and belongs to one thread. */
#ifndef TANDEM_OPENCL_TUNE_KERNEL_TIMER_H
#define TANDEM_OPENCL_TUNE_KERNEL_TIMER_H

#include "opencl/queue/stream.h"

struct kernel_timer {
    struct tandem_device *device;
    struct tandem_stream *stream;
    struct tandem_buffer *memory;
    uint64_t bytes;       /* size of `memory` */
    uint64_t deadline_ns; /* monotonic_ns() */
    /* If one launch takes more than twice this time, its time is the result and
     * no samples are taken. 0 means no limit. */
    double cutoff_ns;
    uint64_t build_ns_left; /* see kernel_timer_build */
    uint32_t aborted;       /* measurements aborted because of preemption */
};

/* Enqueues the work once. */
typedef enum tandem_status (*kernel_timer_launch_fn)(struct kernel_timer *timer,
                                                     void *work);

/* Creates a timer with `bytes` of scratch memory, or with less if memory is
 * short. Call kernel_timer_finish() even if this function fails. */
enum tandem_status kernel_timer_init(struct kernel_timer *timer,
                                     struct tandem_device *device,
                                     uint64_t bytes, uint64_t budget_ns);
void kernel_timer_finish(struct kernel_timer *timer);
/* Returns the time until the deadline, or 0 if the deadline has passed. */
uint64_t kernel_timer_remaining_ns(const struct kernel_timer *timer);
/* Launches work for the first time, which builds its kernels, and waits for it.
 * Postpones the deadline by the time that this takes, because a driver with an
 * empty cache may need longer to build a kernel than the measurements take. The
 * sum of all such times is limited. */
enum tandem_status kernel_timer_build(struct kernel_timer *timer,
                                      kernel_timer_launch_fn launch,
                                      void *work);
/* Measures the time per launch as the lower quartile of several samples,
 * because other load can only make a sample longer. Ignores the first launch,
 * which may include compilation, and samples during which the thread was
 * preempted. Returns TANDEM_FAILED if nearly all samples were preempted, or if
 * the deadline passed before the first sample. */
enum tandem_status kernel_timer_measure(struct kernel_timer *timer,
                                        kernel_timer_launch_fn launch,
                                        void *work, double *out_ns);
/* Returns true if tuning can continue after an operation returned `status`. */
bool tuning_can_continue(enum tandem_status status);

#endif
