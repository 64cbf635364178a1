/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device and a stream for measurements.  Calls go to the plugin's vtable
 * directly, not through the host library.  A session is used by one thread.
 */
#ifndef TOOLS_DEVICE_SESSION_H
#define TOOLS_DEVICE_SESSION_H

#include <tandem/host.h>

struct device_session {
    const struct tandem_backend *backend;
    struct tandem_device *device; /* owned by the context */
    struct tandem_stream *stream;
    struct tandem_device_info info;
    uint32_t index; /* of the device in the context */
};

/* Opens the device if it is not open, and creates a stream.  The caller calls
 * device_session_close before it destroys the context. */
enum tandem_status device_session_open(struct device_session *session,
                                       struct tandem_context *context,
                                       uint32_t device);
void device_session_close(struct device_session *session);
/* [blocks] Waits until all work in the session's stream has finished. */
enum tandem_status device_session_synchronize(struct device_session *session);

/* Returns SEED_COUNT pseudo-random numbers in [0.5, 1.5).  Not thread-safe. */
#define SEED_COUNT (1u << 18)
const float *seed_floats(void);

/* Allocates a buffer of `bytes` bytes and fills it with pseudo-random numbers:
 * i32 in [0, limit) if limit > 0, else those of seed_floats, repeated. */
enum tandem_status device_session_buffer(struct device_session *session,
                                         uint64_t bytes, int64_t limit,
                                         struct tandem_buffer **out);

/* Writes the name that selects the device on the command line, such as "cpu",
 * "opencl" or "opencl:1". */
#define DEVICE_NAME_BYTES 48
enum tandem_status device_name(struct tandem_context *context, uint32_t device,
                               char out[DEVICE_NAME_BYTES]);

#endif
