/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a context: enumerated at first need, opened when first chosen
 * and excluded from the choice when they fail.  The context's mutex must be
 * held for all functions. */
#ifndef TANDEM_HOST_DEVICE_DEVICE_H
#define TANDEM_HOST_DEVICE_DEVICE_H

#include "host/context/context.h"
#include "host/profile/cost_model.h"
#include "host/loader/loader.h"

/* The bit for host memory in masks of memory locations.  It also stands for all
 * devices that always compute in host memory; bit d stands for device d. */
#define HOST_BIT TANDEM_RESIDENT_HOST

enum device_state {
    DEVICE_NEW = 0,
    DEVICE_OPEN,
    DEVICE_FAILED, /* the device could not be opened */
    DEVICE_LOST    /* the device was lost */
};

struct device {
    struct tandem_context *context;
    const struct tandem_backend *vtable;
    const struct backend *backend;
    uint32_t id;    /* number in the context */
    uint32_t index; /* number in the backend */
    uint32_t bit;   /* location of its data: 1 << id, or HOST_BIT */
    enum device_state state;
    uint32_t oom_open_failures; /* opens that ran out of memory */
    bool is_zero_copy;          /* it always computes in host memory */
    bool jit_compiles;          /* the plugin compiles kernels at run time */
    bool async;     /* work may still run, or fail, after its launch returned */
    bool duplicate; /* another device is the same, usable hardware */
    bool calibrated;
    struct tandem_device *handle;
    struct tandem_stream *stream;

    bool stream_owned; /* a thread owns the stream; see device_wait.h */
    bool hung;         /* lost, and its work may never complete */
    bool lost_with_pending_work;
    bool busy;                      /* work was enqueued since the last wait */
    double predicted_busy_until_ns; /* on the clock predicted_now_ns */

    /* Launches are numbered from 1.  Those up to `confirmed` are complete.
     * Those in (unconfirmed_after, unconfirmed_until] may have failed, and the
     * plugin may refuse to read the buffers that they wrote. */
    uint64_t last_launch, confirmed, unconfirmed_after, unconfirmed_until;

    struct cost_model cost;
    char *profile_path;     /* file that cost was read from, or NULL */
    char *ignored_profiles; /* why other profiles were not used, or NULL */
    char *tuning;           /* tuning section of the profile (JSON), or NULL */
    struct tandem_device_info info;
    char label[BACKEND_NAME_BYTES + 12]; /* for example, "opencl:0" */
};

/* Enumerates the devices of the first backend_count backends.  If memory runs
 * out, returns TANDEM_OUT_OF_MEMORY, and the next call continues from there. */
enum tandem_status devices_enumerate(struct tandem_context *context,
                                     uint32_t backend_count);
/* Finds a device by its number; enumerates all backends if necessary. */
enum tandem_status device_get(struct tandem_context *context, uint32_t id,
                              struct device **out_device);

/* Opens the device if it is not open.  A device that fails to open is excluded
 * from then on.  Running out of memory excludes it only after several opens. */
enum tandem_status device_open(struct device *device);
/* Closes and frees the device, which may be NULL.  Leaks the plugin's objects
 * if the device hangs, because closing them would block. */
void device_destroy(struct device *device);

/* Handles the failure of a plugin call that has no timeout; what names the call
 * for the message.  TANDEM_DEVICE_LOST marks the device as lost, and
 * TANDEM_NOT_READY as hung.  Sets the message.  Returns status, or
 * TANDEM_DEVICE_LOST for a device that hangs. */
enum tandem_status device_call_failed(struct device *device,
                                      enum tandem_status status,
                                      const char *what);
/* Sets the message and returns TANDEM_DEVICE_LOST for a device that is lost. */
enum tandem_status device_lost_error(const struct device *device);
/* Marks the device as lost and excludes it from the choice. */
void device_mark_lost(struct device *device);
/* Marks the device as lost because its work does not end.  It is then never
 * waited for.  Returns TANDEM_DEVICE_LOST with the message set. */
enum tandem_status device_mark_hung(struct device *device);
/* Records that any launch since the last successful wait may have failed. */
void device_mark_launches_unconfirmed(struct device *device);
/* Records an asynchronous error for tandem_context_synchronize. */
void device_store_async_error(struct device *device, enum tandem_status status);
/* Records that all of the device's work was completed successfully. */
void device_mark_idle(struct device *device);

#endif
