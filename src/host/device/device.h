/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of a context: found at first need, opened when first chosen,
 * left out when they fail.  All functions: locked.
 */
#ifndef TANDEM_HOST_DEVICE_DEVICE_H
#define TANDEM_HOST_DEVICE_DEVICE_H

#include "host/context/context.h"
#include "host/profile/cost_model.h"
#include "host/loader/loader.h"

/* Where data is: bit d for device d, or this one for host memory, which
 * devices that compute in host memory share. */
#define HOST_BIT TANDEM_RESIDENT_HOST

enum device_state {
    DEVICE_NEW = 0,
    DEVICE_OPEN,
    DEVICE_FAILED, /* could not be opened */
    DEVICE_GONE    /* lost */
};

struct device {
    struct tandem_context *context;
    const struct tandem_backend *table;
    const struct backend *backend;
    uint32_t id;    /* in the context */
    uint32_t index; /* in the backend */
    uint32_t bit;   /* where its data is */
    enum device_state state;
    uint32_t starved; /* attempts to open it that ran out of memory */
    bool shares_host; /* computes in host memory, always */
    bool compiles;
    /* Work may be under way after launch returned, or may have failed. */
    bool async;
    bool duplicate; /* of one that serves: not chosen */
    bool calibrated;
    struct tandem_device *handle;
    struct tandem_stream *stream;

    bool held; /* a thread waits on its stream; see device_wait.h */
    bool hung; /* lost, and what it works on may never end */
    bool adrift; /* lost with work under way, of whose end nobody tells */
    bool busy; /* enqueued to since the last wait */
    double busy_until_ns; /* of the context's clock */

    /* Launches are numbered from 1.  Up to clean, all are done; those in
     * (doubted_from, doubted] may have failed, so that what they wrote may be
     * poisoned in the plugin. */
    uint64_t sequence, clean, doubted_from, doubted;

    struct cost_model cost;
    char *profile; /* the file that cost was read from, or NULL */
    char *refused; /* why others, that were found, are not used, or NULL */
    char *tuning; /* the plugin's section of the profile, JSON text, or NULL */
    struct tandem_device_info info;
    char label[BACKEND_NAME_BYTES + 12]; /* "opencl:0" */
};

/* Finds the devices of all backends (of the first count ones).  Where memory
 * runs out, TANDEM_OUT_OF_MEMORY, and the next call goes on. */
enum tandem_status devices_enumerate(struct tandem_context *context,
                                     uint32_t backend_count);
/* A device by its number, enumerating first. */
enum tandem_status device_get(struct tandem_context *context, uint32_t id,
                              struct device **out_device);

/* Opens it if it is not open.  On failure it is left out from then on, but for
 * want of memory only when it happened again and again. */
enum tandem_status device_open(struct device *device);
/* Closes it.  Left as it is where it hangs: its driver is still at it. */
void device_finish(struct device *device);

/* A call of the plugin that has no timeout failed: sets the message, and where
 * the status says so, leaves the device out from now on; as one that hangs
 * where it is TANDEM_NOT_READY.  Returns status, or TANDEM_DEVICE_LOST. */
enum tandem_status device_failed(struct device *device,
                                 enum tandem_status status, const char *what);
/* It is lost: left out from now on. */
void device_lose(struct device *device);
/* Its work does not end: it is lost, and no call that waits for it is made any
 * more.  TANDEM_DEVICE_LOST, with the message set. */
enum tandem_status device_hang(struct device *device);
/* Any launch since the last good wait may be the one that failed. */
void device_mark_launches_unconfirmed(struct device *device);
/* Keeps the error of earlier work for tandem_context_synchronize. */
void device_store_async_error(struct device *device, enum tandem_status status);
/* After a successful wait. */
void device_waited(struct device *device);

#endif
