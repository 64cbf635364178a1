/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin under test with a device and a stream of it, and one call of launch
 * on them.  One thread.
 */
#ifndef TANDEM_DIFFERENTIAL_BACKEND_H
#define TANDEM_DIFFERENTIAL_BACKEND_H

#include "random_call.h"

#define BACKEND_OPTIONS 16u

struct backend_options {
    uint32_t count; /* key=value for open */
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

/* Opens device 0; says on stderr why not. */
enum backend_state backend_open(struct backend *backend, const char *path,
                                const struct backend_options *options);
void backend_close(struct backend *backend);

/* What became of a problem on a backend. */
struct attempt {
    enum tandem_status supports, launch;
    char message[256];                      /* of launch, where refused */
    unsigned char *after[PROBLEM_OPERANDS]; /* by home: the whole buffer */
    char failure[256]; /* what failed beside these two, "" */
};

void attempt_run(struct attempt *attempt, const struct backend *backend,
                 const struct problem *problem);
void attempt_finish(struct attempt *attempt);

#endif
