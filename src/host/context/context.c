/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the clocks, log, settings and plugin load messages of a context;
 * see context.h.  context_lifecycle.c creates and destroys contexts.
 */
#include <config.h>

#include "host/context/context.h"
#include "common/atfork.h"
#include "common/last_error.h"
#include "common/thread_local.h"
#include "common/thread_state_guard.h"
#include "host/context/directories.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

struct handle_pool context_pool =
    HANDLE_POOL(struct tandem_context, 0x54434f4e);
volatile uint32_t fork_generation = 1;

static void child_started(void)
{
    fork_generation = fork_generation + 1;
}

bool fork_watch(void)
{
    static struct atfork once = ATFORK;

    return atfork_once(&once, NULL, NULL, child_started);
}

enum tandem_status context_check(const struct tandem_context *context)
{
    if (!handle_live(&context_pool, context))
        return argument_error("context: %s",
                              context == NULL ? "NULL"
                                              : "destroyed or invalid handle");
    if (context->generation != fork_generation)
        return last_error_set(
            TANDEM_DEVICE_LOST,
            "context: created before a fork; create one in this process");
    return TANDEM_OK;
}

uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_deadline(uint64_t timeout_ns)
{
    uint64_t deadline;

    if (timeout_ns == TANDEM_TIMEOUT_INFINITE ||
        __builtin_add_overflow(clock_ns(), timeout_ns, &deadline))
        return TANDEM_TIMEOUT_INFINITE;
    return deadline;
}

uint64_t clock_left(uint64_t deadline_ns)
{
    uint64_t now;

    if (deadline_ns == TANDEM_TIMEOUT_INFINITE)
        return TANDEM_TIMEOUT_INFINITE;
    now = clock_ns();
    return deadline_ns > now ? deadline_ns - now : 0;
}

/* ---- threads ---- */

uint32_t thread_number(void)
{
    static _Atomic uint32_t last;
    static THREAD_LOCAL uint32_t number;

    if (number == 0)
        number = ++last;
    return number;
}

void context_note_thread(struct tandem_context *context)
{
    const uint32_t number = thread_number();
    uint32_t first = context->first_thread;

    if (first == number || context->is_shared ||
        (first == 0 && atomic_compare_exchange_strong(&context->first_thread,
                                                      &first, number)))
        return;
    context->is_shared = true;
}

void virtual_clock_add(struct tandem_context *context, double ns)
{
    double now = context->predicted_now_ns;

    while (!atomic_compare_exchange_weak(&context->predicted_now_ns, &now,
                                         now + ns))
        continue;
}

void virtual_clock_raise(struct tandem_context *context, double ns)
{
    double now = context->predicted_now_ns;

    while (now < ns &&
           !atomic_compare_exchange_weak(&context->predicted_now_ns, &now, ns))
        continue;
}

/* ---- messages ---- */

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

void context_add_load_error(struct tandem_context *context,
                            enum tandem_log_level level, const char *format,
                            ...)
{
    char line[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    log_message(&context->log, level, "%s", line);
    pthread_mutex_lock(&context->mutex);
    strings_append(&context->load_errors, &context->load_error_count, line);
    pthread_mutex_unlock(&context->mutex);
}

const char *tandem_context_load_error(struct tandem_context *context,
                                      uint32_t index)
{
    const char *problem;

    if (context_check(context) != TANDEM_OK)
        return NULL;
    pthread_mutex_lock(&context->mutex);
    problem =
        index < context->load_error_count ? context->load_errors[index] : NULL;
    pthread_mutex_unlock(&context->mutex);
    return problem;
}

enum tandem_status tandem_context_set_timing(struct tandem_context *context,
                                             uint32_t enable)
{
    enum tandem_status status = context_check(context);

    if (status != TANDEM_OK)
        return status;
    if (enable > 1)
        return argument_error("enable: %u is invalid; expected 0 or 1", enable);
    context->time_operators = enable == 1;
    return TANDEM_OK;
}

enum tandem_status tandem_context_set_observer(struct tandem_context *context,
                                               tandem_observer_fn observer,
                                               void *user)
{
    enum tandem_status status = context_check(context);

    if (status != TANDEM_OK)
        return status;
    pthread_mutex_lock(&context->mutex);
    context->observer = observer;
    context->observer_user = user;
    context->is_observed = observer != NULL;
    pthread_mutex_unlock(&context->mutex);
    return TANDEM_OK;
}
