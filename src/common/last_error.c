/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the calling thread's last error message; see last_error.h. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "common/last_error.h"
#include "common/thread_local.h"
#include "common/thread_state_guard.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The calling thread's buffer of LAST_ERROR_BYTES, or NULL before its first
 * message. It is freed when the thread ends. */
static THREAD_LOCAL char *buffer;
/* The last message: `buffer`, a static text, or NULL. */
static THREAD_LOCAL const char *message;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

static void buffer_free(void *made)
{
    free(made);
    buffer = NULL;
    message = NULL;
}

static void key_make(void)
{
    key_made = pthread_key_create(&key, buffer_free) == 0;
}

static void buffer_allocate(void)
{
    pthread_once(&once, key_make);
    if (key_made)
        buffer = malloc(LAST_ERROR_BYTES);
    if (buffer != NULL && pthread_setspecific(key, buffer) != 0) {
        free(buffer);
        buffer = NULL;
    }
}

enum tandem_status last_error_set(enum tandem_status status, const char *format,
                                  ...)
{
    locale_t host;
    va_list arguments;

    if (buffer == NULL)
        buffer_allocate();
    if (buffer == NULL) {
        message = "no memory for the message of this error";
        return status;
    }
    host = locale_guard_enter();
    va_start(arguments, format);
    vsnprintf(buffer, LAST_ERROR_BYTES, format, arguments);
    va_end(arguments);
    locale_guard_leave(host);
    message = buffer;
    return status;
}

const char *last_error_get(void)
{
    return message != NULL ? message : "";
}

enum tandem_status last_error_prefix(enum tandem_status status,
                                     const char *prefix)
{
    char reason[256];

    snprintf(reason, sizeof reason, "%.255s", last_error_get());
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
