/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin that tests script: its words, and the functions that it exports
 * for tests, which find them with dlsym. Any thread may call the functions.
 *
 * The plugin passes calls to another plugin, whose results it returns.
 * tandem-simulated.so is a GPU named "simulated" that computes with the CPU
 * plugin. tandem-scripted.so is the example plugin, a third-party plugin with
 * four operators named "example".
 *
 * Commands do not run when they are enqueued. A wait runs the commands that it
 * waits for. A query, or a wait with timeout 0, returns the state and then runs
 * one command. A wait that never ends by script returns TANDEM_NOT_READY at
 * once, or loses the device if the wait had no timeout, like a driver's
 * watchdog. The option test.fault of open is that of extensions.h.
 *
 * The environment variable TANDEM_TEST_PLUGIN contains words with commas
 * between them, and lists in them have plus signs:
 *
 *   name=TEXT      has this name; empty: no text
 *   null, major, newer, size=N, noname, missing=ENTRY, count=STATUS, good
 *                  the table is invalid in this way, or of a later minor
 *                  version, and there is no device
 *   devices=N      has this number of identical devices
 *   many, nodescribe, garbage, noerror
 *                  reports 4294967295 devices, fails to describe them too,
 *                  describes them with invalid data, has no error messages
 *   driver=TEXT    the version of the driver
 *   duplicates=2:0+3:1
 *                  device 2 is device 0 of another driver, and 3 is 1
 *   self-test      is a GPU, whose tune reports the start and the result of a
 *                  self-test if the device was opened for that
 *   unified        shares the host's memory
 *   crash=PLACE, hang=PLACE
 *                  crashes or hangs in device_count (PLACE count), in open, in
 *                  the self-test, or in launches of an operator (PLACE gemm)
 *   open=STATUS[:DEVICE], opennull, stream=STATUS
 *                  fails to open one device or all, or to create a stream
 *   status, deaf   transfers, launches and waits return an undefined status,
 *                  waits never return
 *   ready=N|never  operators are ready after N polls of a prepared operator
 *   only=OP+OP, decline=OP+OP
 *                  supports only these operators, or all but these
 *   even, large, dense, side=N
 *                  does not support a shape with an odd extent, shapes of fewer
 *                  than 4096 elements, tensors that are not contiguous, GEMMs
 *                  with a larger extent
 *   order          gemm returns TANDEM_UNSUPPORTED for invalid shapes
 *   terse          all messages are the same
 *   slow=US        each GEMM takes this many microseconds longer
 *   lose=N         the N-th launch (from 1) on device 0 loses the device
 *   stall=N        waits for the N-th launch (from 1) on device 0, or for later
 *                  commands, block until their timeout, or until
 *                  tandem_sim_release is called; also stream_destroy and close
 *   block=ENTRY    this entry blocks on device 0 until tandem_sim_release is
 *                  called
 *   fail=OP        each launch of this operator fails
 *   abort=OP       a launch of this operator ends the process
 *   orphan=OP      a launch of this operator starts a process, which keeps the
 *                  output open for 60 s and then says that it ends, prints its
 *                  id and ends its own process
 *   wrong          add multiplies
 *   offset         ignores the offset of an upload
 *   overwrite      writes the byte before the output of relu
 *   status-order   returns TANDEM_UNSUPPORTED for buffers of other devices
 */
#ifndef TANDEM_TESTS_SIM_H
#define TANDEM_TESTS_SIM_H

#include <tandem/backend.h>

struct sim_counters {
    uint64_t opens, closes;
    uint64_t allocs, frees;
    uint64_t uploads, upload_bytes;
    uint64_t downloads, download_bytes;
    uint64_t seals;
    uint64_t launches, gemms; /* Enqueued. */
    uint64_t executed;        /* Launches and GEMMs that ran. */
    uint64_t waits;           /* Blocking calls, without polls. */
    uint64_t prepares;
    /* Launches of operators that were not ready. */
    uint64_t blocking_compiles;
    uint64_t streams, events; /* Created. */
    uint64_t streams_destroyed, events_destroyed;
    uint64_t blocked; /* Calls that block, as scripted, on device 0. */
};

/*
 * Fills the counters of one device since the process started, whichever
 * context opened it; UINT32_MAX sums over all devices.
 */
TANDEM_EXPORT void tandem_sim_counters(uint32_t device,
                                       struct sim_counters *out_counters);
typedef void (*sim_counters_fn)(uint32_t, struct sim_counters *);

/* Completes all launches that stall, and lets no later launch stall. */
TANDEM_EXPORT void tandem_sim_release(void);
typedef void (*sim_release_fn)(void);

#endif
