/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One device with a stream of its own, driven below the library through the
 * plugin's table.  A lane belongs to one thread.
 */
#ifndef TOOLS_LANE_H
#define TOOLS_LANE_H

#include <tandem/host.h>

struct device_session {
    const struct tandem_backend *backend;
    struct tandem_device *device; /* the context's */
    struct tandem_stream *stream;
    struct tandem_device_info info;
    uint32_t index; /* in the context */
};

/* Opens the device if it is not open, and makes a stream.  Ends with
 * device_session_close, before the context is destroyed. */
enum tandem_status device_session_open(struct device_session *session,
                                       struct tandem_context *context,
                                       uint32_t device);
void device_session_close(struct device_session *session);
/* Waits for the lane's work. */
enum tandem_status device_session_synchronize(struct device_session *session);

/* A buffer of bytes bytes that look random: as floats from [0.5, 1.5), or as
 * i32 in [0, limit) where limit > 0. */
enum tandem_status device_session_buffer(struct device_session *session,
                                         uint64_t bytes, int64_t limit,
                                         struct tandem_buffer **out);

/* The device's name on the command line: "cpu", "opencl", "opencl:1". */
#define DEVICE_NAME_BYTES 48
enum tandem_status device_name(struct tandem_context *context, uint32_t device,
                               char out[DEVICE_NAME_BYTES]);

#endif
