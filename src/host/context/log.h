/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: passes messages at or above a level to the caller's callback.  Any
 * thread.
 */
#ifndef TANDEM_HOST_CONTEXT_LOG_H
#define TANDEM_HOST_CONTEXT_LOG_H

#include "host/exported_api.h"

struct log {
    tandem_log_fn function; /* NULL: messages go nowhere */
    void *user;
    uint32_t level; /* the largest enum tandem_log_level that is passed on */
};

void log_message(const struct log *log, enum tandem_log_level level,
                 const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A tandem_log_fn for plugins; user is a struct log. */
void log_from_plugin(void *user, enum tandem_log_level level,
                     const char *message);

/* "error", "warning", "info", "debug" or "none"; anything else, and NULL:
 * TANDEM_LOG_WARNING. */
uint32_t log_level_parse(const char *text);

#endif
