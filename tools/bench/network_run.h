/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a network on a device with libtandem (host.h).  Results that are no
 * longer needed share memory with later results.  Single-threaded.
 */
#ifndef TANDEM_BENCH_NETWORK_RUN_H
#define TANDEM_BENCH_NETWORK_RUN_H

#include "bench.h"
#include "network.h"

/* Sets `out` to the content of an array before the network runs: f32, or i64
 * for indices.  It is equal in every run. */
void network_content_write(const struct network *network, uint32_t array,
                           void *out);

struct network_run {
    const struct network *network; /* borrowed */
    struct tandem_context *context;
    uint32_t device;
    struct tandem_tensor *arrays[MAX_NETWORK_ARRAYS]; /* inputs and weights */
    struct tandem_tensor *slots[MAX_NETWORK_ARRAYS];  /* shared by results */
    struct tandem_tensor *inputs[MAX_NETWORK_CALLS][MAX_CALL_INPUTS];
    struct tandem_tensor *outputs[MAX_NETWORK_CALLS];
};

/* Creates the tensors.  The caller calls network_run_close, also if this
 * fails. */
enum tandem_status network_run_open(struct network_run *run,
                                    const struct network *network,
                                    struct tandem_context *context,
                                    uint32_t device);
void network_run_close(struct network_run *run);

/* A bench_fn: runs the network `count` times with one wait at the end.  The
 * first run uploads the inputs and weights, which then stay on the device. */
double network_run_stream(void *network_run, uint64_t count);

/* [blocks] Runs the network and sets `out` to its output. */
enum tandem_status network_run_output(struct network_run *run, float *out);

#endif
