/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin under test with a device and a stream, and the function that
 * launches one call on it. Call it from one thread.
 */
#ifndef TANDEM_DIFFERENTIAL_BACKEND_H
#define TANDEM_DIFFERENTIAL_BACKEND_H

#include "random_call.h"

#define BACKEND_OPTIONS 16u

struct backend_options {
    uint32_t count; /* Pairs of key and value for open. */
    const char *keys[BACKEND_OPTIONS];
    const char *values[BACKEND_OPTIONS];
};

struct backend {
    const char *path;
    struct tandem_backend api;
    struct tandem_device_info info;
    struct tandem_device *device;
    struct tandem_stream *stream;
};

enum backend_state { BACKEND_OPEN, BACKEND_NO_PLUGIN, BACKEND_NO_DEVICE };

/* Opens device 0. On failure prints the reason on stderr. */
enum backend_state backend_open(struct backend *backend, const char *path,
                                const struct backend_options *options);
void backend_close(struct backend *backend);

/* The outcome of a problem on a backend. */
struct call_outcome {
    enum tandem_status supports, launch;
    char message[256]; /* The message of launch, if it failed. */
    /* The content of each whole buffer, indexed by storage. */
    unsigned char *after[PROBLEM_OPERANDS];
    char failure[256]; /* Another function that failed, or "". */
};

void call_outcome_run(struct call_outcome *call_outcome,
                      const struct backend *backend,
                      const struct problem *problem);
void call_outcome_finish(struct call_outcome *call_outcome);

#endif
