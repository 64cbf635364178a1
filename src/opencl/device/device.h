/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opened device and its functions.  Devices are handles from a static
 * pool.
 *
 * Lock order: device.mutex (streams), pool.mutex (memory), programs.mutex
 * (programs), and last the mutex for messages in stream.c.  A thread that holds
 * one of them may only lock a later one.
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

/* How the driver waits: unknown yet, blocking, or spinning (WAITS_BUSY). */
enum waits { WAITS_UNKNOWN, DRIVER_WAIT_BLOCKING, WAITS_BUSY };

/* Timeout of device_health_check. */
#define DEVICE_ANSWER_NS UINT64_C(5000000000)
/* Default of the open key blocking_timeout_ms. */
#define DEVICE_STUCK_MS 300000u

struct tandem_device {
    struct handle handle;
    const struct platform_device *hardware;
    cl_context context; /* shared with other opens of this hardware */
    cl_command_queue utility; /* for commands that belong to no stream */
    tandem_log_fn log;
    void *log_user;
    struct cache cache;
    atomic_bool lost;
    atomic_bool stuck; /* work did not end: OpenCL objects are never released */
    /* Set if the driver cannot tell whether work has ended.  Host memory that
     * the work may use is then released later; see deferred_release.h. */
    atomic_bool defers_release;
    /* Time limit for builds, and for work in calls that have no timeout
     * parameter.  0 means no limit. */
    uint64_t stuck_ns;
    atomic_int shares_memory; /* result of the test in host_import.c */
    _Atomic uint32_t waits;   /* enum waits, set by event_wait.c */
    bool has_device_scope_visibility; /* see struct request in plan.h */
    pthread_mutex_t mutex; /* guards streams and next_stream_id */
    struct tandem_stream *streams;
    uint64_t next_stream_id;
    struct pool pool;
    struct haul haul;
    struct programs programs;
    struct routes routes; /* GEMM kernel selection */
    enum verdict verdict; /* sm_90a self-test result from the profile */
    bool tries;           /* open key "try": tune runs the sm_90a self-test */
    struct parameters parameters; /* CLBlast parameters from the profile */
};

enum tandem_status device_open(uint32_t index,
                               const struct tandem_open_options *options,
                               struct tandem_device **out_device);
void device_close(struct tandem_device *device);
/* Frees the device.  Called by device_close, or by the last build thread if
 * device_close did not wait for its build. */
void device_finish(struct tandem_device *device);

/* Returns TANDEM_OK, INVALID_ARGUMENT if `device` is not a live device, or
 * DEVICE_LOST if it is lost or this process is a fork of the one that opened
 * it. */
enum tandem_status device_check(const struct tandem_device *device);
/* Returns true if the device completes a fill of a few bytes within
 * DEVICE_ANSWER_NS.  Blocks until then. */
bool device_health_check(struct tandem_device *device);
/* Waits until the commands of the queue have ended, successfully or not.
 * Returns NOT_READY after limit_ns, or DEVICE_LOST if a driver call fails.
 * Sets no error message and works on lost devices, because callers use it
 * while they handle an error. */
enum tandem_status device_drained(cl_command_queue queue, uint64_t limit_ns);
/* Returns stuck_ns as a timeout. */
static inline uint64_t device_limit(const struct tandem_device *device)
{
    return device->stuck_ns != 0 ? device->stuck_ns : TANDEM_TIMEOUT_INFINITE;
}
/* Formats a line and passes it to the host's log callback, if there is one. */
void device_log(struct tandem_device *device, enum tandem_log_level level,
                const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Starts fork detection.  Must be called before the first OpenCL call. */
void fork_detection_start(void);
/* Returns true if this process was forked after fork detection started, so that
 * OpenCL does not work in it. */
bool device_forked(void);

#endif
