/* SPDX-License-Identifier: Apache-2.0 */
/* Passes sufficiently severe log messages to the caller's callback.  The
 * functions may be called from any thread. */
#ifndef TANDEM_HOST_CONTEXT_LOG_H
#define TANDEM_HOST_CONTEXT_LOG_H

#include "host/exported_api.h"

struct log {
    tandem_log_fn function; /* callback; NULL discards all messages */
    void *user;
    uint32_t level; /* least severe tandem_log_level to report */
};

void log_message(const struct log *log, enum tandem_log_level level,
                 const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Log callback that plugins call with `user`, a pointer to a struct log. */
void log_from_plugin(void *user, enum tandem_log_level level,
                     const char *message);

#endif
