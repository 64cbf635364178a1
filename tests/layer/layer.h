/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the counting OpenCL layer saw.  The layer is loaded by the ICD loader
 * where OPENCL_LAYERS names it; tests find layer_counts_read in it by dlsym.
 */
#ifndef TANDEM_TESTS_LAYER_H
#define TANDEM_TESTS_LAYER_H

#include <stdint.h>

enum layer_object {
    LAYER_CONTEXT,
    LAYER_QUEUE,
    LAYER_MEMORY,
    LAYER_PROGRAM,
    LAYER_KERNEL,
    LAYER_EVENT,
    LAYER_SAMPLER,
    LAYER_OBJECTS
};

struct layer_counts {
    uint64_t created[LAYER_OBJECTS];
    uint64_t retained[LAYER_OBJECTS];
    uint64_t released[LAYER_OBJECTS];
    /* Calls that succeeded. */
    uint64_t kernels; /* enqueued */
    uint64_t reads, writes, copies, fills, maps, unmaps;
    uint64_t markers; /* and barriers */
    uint64_t waits;   /* clFinish, clWaitForEvents, blocking transfers */
    uint64_t builds;
};

/* Since the process began.  Any thread. */
__attribute__((visibility("default"))) void
layer_counts_read(struct layer_counts *out_counts);
typedef void (*layer_counts_fn)(struct layer_counts *);

#endif
