/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin's objects: device, stream, event, buffer, and the functions on
 * devices.  Each is a handle of a static pool.
 *
 * Locks, never two at once except in this order: device.mutex (its streams),
 * pool.mutex (its memory), programs.mutex (its programs); and last stream.c's
 * mutex of messages.
 */
#ifndef TANDEM_OPENCL_DEVICE_DEVICE_H
#define TANDEM_OPENCL_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <tandem/backend.h>

#include "common/handle_pool.h"
#include "common/last_error.h"
#include "opencl/device/cl_api.h"
#include "opencl/program/program_cache.h"
#include "opencl/transfer/bulk_transfer.h"
#include "opencl/memory/buffer.h"
#include "opencl/program/nvidia/sm90a_self_test_result.h"
#include "opencl/gemm/clblast_overrides.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/program/kernel_variants.h"
#include "opencl/gemm/gemm_selector.h"

/* What the driver does while a thread waits in it. */
enum waits { WAITS_UNKNOWN, DRIVER_WAIT_BLOCKING, WAITS_BUSY };

/* A device that has not filled a few bytes for so long is lost. */
#define DEVICE_ANSWER_NS UINT64_C(5000000000)
/* The open key blocking_timeout_ms, unless given. */
#define DEVICE_STUCK_MS 300000u

struct tandem_device {
    struct handle handle;
    const struct platform_device *hardware;
    cl_context context; /* shared with other opens of the hardware */
    cl_command_queue utility; /* for what belongs to no stream */
    tandem_log_fn log;
    void *log_user;
    struct cache cache;
    atomic_bool lost;
    atomic_bool stuck; /* work did not end: its objects are never released */
    /* Nobody knows whether work has ended: the host's memory that it may use
     * is given back once somebody does; see deferred_release.h. */
    atomic_bool adrift;
    /* A build that lasts so long, or work that a call without a timeout of its
     * own waits for; 0: no limit. */
    uint64_t stuck_ns;
    atomic_int shares_memory; /* host_import.c: unknown, yes, no */
    _Atomic uint32_t waits;   /* wait.c: enum waits */
    bool has_device_scope_visibility; /* as in struct request */
    pthread_mutex_t mutex; /* streams, next_stream_id */
    struct tandem_stream *streams;
    uint64_t next_stream_id;
    struct pool pool;
    struct haul haul;
    struct programs programs;
    struct routes routes; /* of matrix products */
    enum verdict verdict; /* the profile's, of patched programs */
    bool tries;           /* the open key "try": none is used but by tune */
    struct parameters parameters; /* CLBlast's, from the profile */
};

enum tandem_status device_open(uint32_t index,
                               const struct tandem_open_options *options,
                               struct tandem_device **out_device);
void device_close(struct tandem_device *device);
/* The last of close: by it, or by a build that close did not wait for. */
void device_finish(struct tandem_device *device);

/* TANDEM_OK, INVALID_ARGUMENT for what is not a live device, DEVICE_LOST. */
enum tandem_status device_check(const struct tandem_device *device);
/* Whether the device still does what it is told: a fill of a few bytes, for
 * which it is given a few seconds. */
bool device_health_check(struct tandem_device *device);
/* Whether the queue's work has ended, well or not, within the limit; else
 * NOT_READY, or DEVICE_LOST where the driver does not say.  No message: it asks
 * the driver for its word alone, as what is lost or has failed needs it. */
enum tandem_status device_drained(cl_command_queue queue, uint64_t limit_ns);
/* stuck_ns as a timeout. */
static inline uint64_t device_limit(const struct tandem_device *device)
{
    return device->stuck_ns != 0 ? device->stuck_ns : TANDEM_TIMEOUT_INFINITE;
}
/* A formatted line to the host's log callback, if there is one. */
void device_log(struct tandem_device *device, enum tandem_log_level level,
                const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Called before OpenCL is touched the first time: forks are noted from then
 * on. */
void fork_detection_start(void);
/* Whether this process is a fork's child that inherited OpenCL in use. */
bool device_forked(void);

#endif
