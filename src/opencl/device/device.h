/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of an opened device: log, health check and fork detection.
 * device_lifecycle.h opens and closes devices.  Thread-safe.
 *
 * Lock order: device.mutex (streams), pool.mutex (memory), programs.mutex
 * (programs), and last the mutex in stream.c that guards error messages.  A
 * thread that holds one of these mutexes must not lock an earlier one.
 */
#ifndef TANDEM_OPENCL_DEVICE_DEVICE_H
#define TANDEM_OPENCL_DEVICE_DEVICE_H

#include <tandem/backend.h>

#include "common/last_error.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/objects.h"

/* Timeout of device_health_check. */
#define HEALTH_CHECK_TIMEOUT_NS UINT64_C(5000000000)

extern struct handle_pool device_handles;

/* Returns TANDEM_OK if `device` can be used, or INVALID_ARGUMENT if it is not a
 * live device.  Returns DEVICE_LOST if the device is lost, or if this process
 * is a fork of the process that opened the device. */
enum tandem_status device_check(const struct tandem_device *device);
/* Runs a test command on the device (a fill of a few bytes) and waits for it.
 * Returns true if the command succeeds within HEALTH_CHECK_TIMEOUT_NS. */
bool device_health_check(struct tandem_device *device);
/* Returns blocking_timeout_ns, but TANDEM_TIMEOUT_INFINITE instead of 0. */
static inline uint64_t device_timeout_ns(const struct tandem_device *device)
{
    return device->blocking_timeout_ns != 0 ? device->blocking_timeout_ns
                                            : TANDEM_TIMEOUT_INFINITE;
}
/* Returns true if the device computes in the host's memory.  The device is then
 * a CPU or an integrated GPU. */
static inline bool device_shares_host_memory(const struct tandem_device *device)
{
    return device->hardware->info.kind == TANDEM_DEVICE_CPU ||
           device->hardware->unified;
}
/* Formats a log line and passes it to the host's log callback, if any. */
void device_log(struct tandem_device *device, enum tandem_log_level level,
                const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Starts fork detection.  Must be called before the first OpenCL call. */
void fork_detection_start(void);
/* Returns true if this process is a fork of a process that had started fork
 * detection.  OpenCL does not work in such a fork. */
bool fork_detected(void);

#endif
