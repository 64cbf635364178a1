/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the calling thread's last error message; see last_error.h. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "common/last_error.h"
#include "common/thread_state_guard.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[512];

enum tandem_status last_error_set(enum tandem_status status, const char *format,
                                  ...)
{
    locale_t host = locale_guard_enter();
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    locale_guard_leave(host);
    return status;
}

const char *last_error_get(void)
{
    return message;
}

enum tandem_status last_error_prefix(enum tandem_status status,
                                     const char *prefix)
{
    char reason[256];
    snprintf(reason, sizeof reason, "%.255s", message);
    return last_error_set(status, "%s: %s", prefix, reason);
}

const char *status_name(enum tandem_status status)
{
    static const char *const names[] = {
        [TANDEM_OK] = "ok",
        [TANDEM_INVALID_ARGUMENT] = "invalid argument",
        [TANDEM_UNSUPPORTED] = "unsupported",
        [TANDEM_NO_DEVICE] = "no device",
        [TANDEM_OUT_OF_MEMORY] = "out of memory",
        [TANDEM_NOT_READY] = "not ready",
        [TANDEM_DEVICE_LOST] = "device lost",
        [TANDEM_FAILED] = "failed",
    };
    return (unsigned)status < sizeof names / sizeof *names ? names[status]
                                                           : "unknown status";
}
