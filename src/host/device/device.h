/* SPDX-License-Identifier: Apache-2.0 */
/* Enumerates devices when they are first needed, and opens a device when it is
 * first chosen.  A device that failed is never chosen again.  Any thread may
 * call these functions. */
#ifndef TANDEM_HOST_DEVICE_DEVICE_H
#define TANDEM_HOST_DEVICE_DEVICE_H

#include "host/context/context.h"
#include "host/profile/cost_curves.h"
#include "host/loader/plugin_reply.h"

/* In a mask of memory locations, bit d stands for the memory of device d, and
 * HOST_BIT stands for host memory.  A device that always computes in host
 * memory uses HOST_BIT instead of bit d. */
#define HOST_BIT TANDEM_RESIDENT_HOST

enum device_state {
    DEVICE_NEW = 0,
    DEVICE_OPEN,
    DEVICE_FAILED, /* the device could not be opened */
    DEVICE_LOST    /* the device failed or hangs; it stays unusable */
};

/* A device that computes before its launches return has several streams, so
 * that several threads can compute; another device has one. */
#define MAX_DEVICE_STREAMS 64u /* a power of 2 */

/* A stream of a device.  One thread uses it at a time (stream.h). */
struct device_stream {
    _Alignas(64) atomic_bool is_used;
    struct tandem_stream *handle; /* NULL before the first use */
};

struct device {
    struct tandem_context *context;
    const struct tandem_backend *vtable;
    uint32_t id;    /* device number: index in context->devices */
    uint32_t index; /* index among the devices of the same backend */
    uint32_t bit;   /* mask bit of the device's memory: 1 << id or HOST_BIT */
    bool is_zero_copy;     /* the device always computes in host memory */
    bool jit_compiles;     /* the plugin compiles kernels at run time */
    bool async;            /* work can run and fail after a launch returns */
    atomic_bool duplicate; /* same hardware as another usable device */

    pthread_mutex_t open_mutex;
    _Atomic enum device_state state;
    enum tandem_status open_status; /* why a DEVICE_FAILED device failed, */
    char open_error[512];           /* and the message of that error */
    uint32_t oom_open_failures; /* failed attempts to open for lack of memory */
    struct tandem_device *handle;

    struct device_stream streams[MAX_DEVICE_STREAMS];
    uint32_t stream_count; /* 1 or MAX_DEVICE_STREAMS */
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a stream was released, or the device is lost */
    _Atomic uint32_t waiting_threads; /* for `changed` */

    atomic_bool hung; /* the device is lost and may never finish its work */
    atomic_bool lost_with_pending_work;

    /* The user of the stream of a device that is `async` sets these fields;
     * they do not change in others. */
    atomic_bool busy; /* work was enqueued after the last wait */
    _Atomic double predicted_busy_until_ns; /* virtual end of queued work */
    /* Launches on this device are numbered from 1.  Launches up to `confirmed`
     * are complete.  Launches from unconfirmed_after + 1 to unconfirmed_until
     * may have failed; the plugin may refuse to read the buffers that they
     * wrote. */
    _Atomic uint64_t last_launch, confirmed, unconfirmed_after,
        unconfirmed_until;

    struct cost_model cost;
    char *profile_path;     /* file from which `cost` was read, or NULL */
    char *ignored_profiles; /* reasons why profiles were ignored, or NULL */
    char *tuning;           /* tuning section of the profile (JSON), or NULL */
    struct tandem_device_info info;
    char label[BACKEND_NAME_BYTES + 12]; /* for example, "opencl:0" */
};

/* Enumerates the devices of the first backend_count backends.  If it returns
 * TANDEM_OUT_OF_MEMORY, the next call resumes at the same device. */
enum tandem_status devices_enumerate(struct tandem_context *context,
                                     uint32_t backend_count);
/* Finds a device by its number.  Enumerates all devices if necessary. */
enum tandem_status device_get(struct tandem_context *context, uint32_t id,
                              struct device **out_device);

/* Opens the device if it is not open.  A device that fails to open is not tried
 * again: later calls return the same error.  However, the first
 * MAX_OOM_OPEN_FAILURES - 1 failures for lack of memory do not have this
 * effect.  Other devices run the operators of a device that failed, unless the
 * plugin rejects the program's options. */
enum tandem_status device_open(struct device *device);
/* Returns true if the plugin has rejected the options of the program, so that
 * device_open returns TANDEM_INVALID_ARGUMENT. */
bool device_rejects_options(const struct device *device);
/* Creates a stream of the open device. */
enum tandem_status device_stream_create(struct device *device,
                                        struct tandem_stream **out_stream);
/* Closes and frees the device, which may be NULL.  If the device is hung, leaks
 * the plugin's handles, because closing them would block. */
void device_destroy(struct device *device);

/* Sets the error message for a failed plugin call that has no timeout.  `what`
 * names the call.  If `status` is TANDEM_DEVICE_LOST, marks the device as lost.
 * If `status` is TANDEM_NOT_READY, marks the device as hung and returns
 * TANDEM_DEVICE_LOST.  Otherwise returns `status`. */
enum tandem_status device_call_failed(struct device *device,
                                      enum tandem_status status,
                                      const char *what);
/* Sets the error message for a lost device and returns TANDEM_DEVICE_LOST. */
enum tandem_status device_lost_error(const struct device *device);
/* Marks the device as lost, so that it is never chosen again. */
void device_mark_lost(struct device *device);
/* Marks the device as lost and hung, so that later calls do not wait for it.
 * Sets the error message and returns TANDEM_DEVICE_LOST. */
enum tandem_status device_mark_hung(struct device *device);
/* Records that all launches after the last successful wait may have failed. */
void device_mark_launches_unconfirmed(struct device *device);
/* Stores an error of earlier work for tandem_context_synchronize to report. */
void device_store_async_error(struct device *device, enum tandem_status status);
/* Records that all work of the device completed successfully.  The caller uses
 * its stream. */
void device_mark_idle(struct device *device);

#endif
