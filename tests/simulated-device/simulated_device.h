/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that the simulated GPU exports for tests, which find them with
 * dlsym in the loaded tandem-simulated.so. Any thread may call them.
 *
 * The backend name of the plugin is "simulated". Environment variables or keys
 * of open script its behaviour:
 *
 *   TANDEM_SIM_DEVICES
 *       The number of devices (default 1).
 *   TANDEM_SIM_READY, simulated.ready
 *       The result of query_ready: "always" (default), "never", or the number
 *       of polls after prepare until an operator is ready.
 *   TANDEM_SIM_DECLINE, simulated.decline
 *       Unsupported operators, separated by commas. The environment variable
 *       also removes TANDEM_CAP_CORE_OPERATORS.
 *   TANDEM_SIM_ELAPSED, simulated.elapsed_ns
 *       event_elapsed_ns for each command between the events (default 1000).
 *   TANDEM_SIM_FAULT, test.fault
 *       As in backend.h.
 *   simulated.fault_device
 *       The only device that fails.
 *   TANDEM_SIM_HANG, simulated.hang
 *       The N-th launch (from 1) of the device hangs.
 *   simulated.hang_device
 *       The only device that hangs.
 *   TANDEM_SIM_DUPLICATES
 *       "2:0,3:1" means that device 2 is device 0 of another driver, ...
 *   TANDEM_SIM_DRIVER
 *       The version of the driver (default "1").
 *   TANDEM_SIM_OPEN
 *       The numeric status that open returns; "STATUS:DEVICE" for one device.
 *
 * Commands do not run when they are enqueued. A wait runs the commands that it
 * waits for. A query, or a wait with timeout 0, returns the state and then runs
 * one command. A wait that never ends by script returns TANDEM_NOT_READY at
 * once, or loses the device if the wait had no timeout, like a driver's
 * watchdog.
 *
 * A launch that hangs really blocks each wait for it or for later commands
 * until its timeout or until tandem_sim_release; also stream_destroy and close.
 */
#ifndef TANDEM_TESTS_SIM_H
#define TANDEM_TESTS_SIM_H

#include <tandem/backend.h>

struct sim_counters {
    uint64_t opens, closes;
    uint64_t allocs, frees, alloc_bytes;
    uint64_t uploads, upload_bytes;
    uint64_t downloads, download_bytes;
    uint64_t copies, fills, seals;
    uint64_t launches, gemms; /* Enqueued. */
    uint64_t executed;        /* Launches and GEMMs that ran. */
    uint64_t waits;           /* Blocking calls, without polls. */
    uint64_t polls;           /* Queries, and waits with timeout 0. */
    uint64_t prepares, readies;
    /* Launches of operators that were not ready. */
    uint64_t blocking_compiles;
    uint64_t streams, events; /* Created. */
    uint64_t streams_destroyed, events_destroyed;
};

/*
 * Fills the counters of one device since the process started, whichever
 * context opened it; UINT32_MAX sums over all devices.
 */
TANDEM_EXPORT void tandem_sim_counters(uint32_t device,
                                       struct sim_counters *out_counters);
typedef void (*sim_counters_fn)(uint32_t, struct sim_counters *);

/* Completes all launches that hang, and lets no later launch hang. */
TANDEM_EXPORT void tandem_sim_release(void);
typedef void (*sim_release_fn)(void);

#endif
