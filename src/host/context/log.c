/* SPDX-License-Identifier: Apache-2.0 */
/* Formats and filters log messages; see log.h. */
#include <config.h>

#include "host/context/log.h"
#include "common/thread_state_guard.h"

#include <stdarg.h>
#include <stdio.h>

void log_message(const struct log *log, enum tandem_log_level level,
                 const char *format, ...)
{
    char line[1024];
    locale_t locale;
    va_list arguments;

    if (log->function == NULL || (uint32_t)level > log->level)
        return;
    locale = locale_guard_enter();
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    locale_guard_leave(locale);
    for (char *c = line; *c != '\0'; c++) {
        if (*c == '\n')
            *c = ' ';
    }
    log->function(log->user, level, line);
}

void log_from_plugin(void *user, enum tandem_log_level level,
                     const char *message)
{
    log_message(user, level, "%s", message != NULL ? message : "");
}
