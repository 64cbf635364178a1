/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated GPU's extra export: what it was asked to do.  For tests, which
 * look the function up by dlsym in the loaded tandem-simulated.so.  Any thread.
 *
 * The plugin has the backend name "simulated" and is scripted from outside:
 *
 *   environment           key of open       meaning
 *   TANDEM_SIM_DEVICES                      number of devices (default 1)
 *   TANDEM_SIM_READY      simulated.ready         ready(): "always" (default),
 *                                           "never", or a number: that many
 *                                           polls after prepare(), for each
 *                                           operator id
 *   TANDEM_SIM_DECLINE    simulated.decline       operators not served, by
 * commas; from the environment it takes TANDEM_CAP_CORE_OPERATORS away too
 *   TANDEM_SIM_ELAPSED    simulated.elapsed_ns    event_elapsed_ns per command
 * between the events (default 1000) TANDEM_SIM_FAULT      test.fault        as
 * in backend.h simulated.fault_device  the only device that fails
 * TANDEM_SIM_HANG simulated.hang          the N-th launch (from 1) of the
 * device never ends simulated.hang_device   the only device that hangs
 *   TANDEM_SIM_DUPLICATES                   "2:0,3:1": device 2 is device 0
 *                                           seen through another driver, ...
 *   TANDEM_SIM_DRIVER                       its version (default "1")
 *   TANDEM_SIM_OPEN                         numeric status that open returns;
 *                                           "STATUS:DEVICE" of one device
 *
 * Nothing runs when it is enqueued.  A wait runs what it waits for; a query,
 * or a wait with timeout 0, tells the state and then runs one command.  A
 * wait that a script says never ends returns TANDEM_NOT_READY at once, or
 * loses the device where it had no timeout, as a driver's watchdog does.
 *
 * A launch that never ends is another matter: whoever waits for it, or for what
 * was enqueued after it, waits in earnest, until his timeout or
 * tandem_sim_release; so do stream_destroy and close.
 */
#ifndef TANDEM_TESTS_SIM_H
#define TANDEM_TESTS_SIM_H

#include <tandem/backend.h>

struct sim_counters {
    uint64_t opens, closes;
    uint64_t allocs, frees, alloc_bytes;
    uint64_t uploads, upload_bytes;
    uint64_t downloads, download_bytes;
    uint64_t copies, fills;
    uint64_t launches, gemms; /* enqueued */
    uint64_t executed;        /* launches and products that ran */
    uint64_t waits;           /* blocking calls, polls not counted */
    uint64_t polls;           /* queries, and waits with timeout 0 */
    uint64_t prepares, readies;
    uint64_t blocking_compiles; /* launches of what was not ready */
    uint64_t streams, events;   /* created */
    uint64_t streams_destroyed, events_destroyed;
};

/* Fills the counters of one device since the process began, whoever opened
 * it; UINT32_MAX: of all devices. */
TANDEM_EXPORT void tandem_sim_counters(uint32_t device,
                                       struct sim_counters *out_counters);
typedef void (*sim_counters_fn)(uint32_t, struct sim_counters *);

/* Ends every launch that never ends, for good. */
TANDEM_EXPORT void tandem_sim_release(void);
typedef void (*sim_release_fn)(void);

#endif
