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

const char *status_name(enum tandem_status status)
{
    switch (status) {
    case TANDEM_OK:
        return "ok";
    case TANDEM_INVALID_ARGUMENT:
        return "invalid argument";
    case TANDEM_UNSUPPORTED:
        return "unsupported";
    case TANDEM_NO_DEVICE:
        return "no device";
    case TANDEM_OUT_OF_MEMORY:
        return "out of memory";
    case TANDEM_NOT_READY:
        return "not ready";
    case TANDEM_DEVICE_LOST:
        return "device lost";
    case TANDEM_FAILED:
        return "failed";
    default:
        return "unknown status";
    }
}
