/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the lock, clock, log, settings and plugin load messages of a
 * context; see context.h.  context_lifecycle.c creates and destroys contexts.
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

/* Minimum time to wait for a context's mutex, even if the timeout is 0.  A call
 * holds the mutex longer only while it waits for a device or a compiler. */
#define MIN_LOCK_WAIT_NS UINT64_C(5000000)

/* The address of this thread-local variable identifies the calling thread. */
static THREAD_LOCAL char this_thread;

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

/* Sets the default floating-point environment and records whether more than one
 * thread uses the context.  Called right after the mutex was locked. */
static void lock_acquired(struct tandem_context *context)
{
    context->float_env = float_env_enter();
    if (context->first_thread == NULL)
        context->first_thread = &this_thread;
    else if (context->first_thread != &this_thread)
        context->is_shared = true;
}

void context_lock(struct tandem_context *context)
{
    pthread_mutex_lock(&context->mutex);
    lock_acquired(context);
}

bool context_lock_until(struct tandem_context *context, uint64_t deadline_ns)
{
    struct timespec until;
    uint64_t left;

    if (pthread_mutex_trylock(&context->mutex) == 0) {
        lock_acquired(context);
        return true;
    }
    left = clock_left(deadline_ns);
    if (left < MIN_LOCK_WAIT_NS)
        left = MIN_LOCK_WAIT_NS;
    if (left > UINT64_C(1000000000000000000)) {
        context_lock(context);
        return true;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    left += (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(left / 1000000000u);
    until.tv_nsec = (long)(left % 1000000000u);
    if (pthread_mutex_timedlock(&context->mutex, &until) != 0) {
        last_error_set(TANDEM_NOT_READY, "context: another thread compiles or "
                                         "starts a device; try again later");
        return false;
    }
    lock_acquired(context);
    return true;
}

void context_unlock(struct tandem_context *context)
{
    const struct float_env host = context->float_env;

    pthread_mutex_unlock(&context->mutex);
    float_env_leave(host);
}

bool context_wait_released(struct tandem_context *context, uint64_t deadline_ns)
{
    const struct float_env host = context->float_env;
    struct timespec until;
    int result;

    context->unlock_epoch++;
    if (deadline_ns == TANDEM_TIMEOUT_INFINITE) {
        result = pthread_cond_wait(&context->stream_released, &context->mutex);
    } else {
        until.tv_sec = (time_t)(deadline_ns / 1000000000u);
        until.tv_nsec = (long)(deadline_ns % 1000000000u);
        result = pthread_cond_timedwait(&context->stream_released,
                                        &context->mutex, &until);
    }
    context->float_env = host;
    return result == 0;
}

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
    strings_append(&context->load_errors, &context->load_error_count, line);
}

const char *tandem_context_load_error(struct tandem_context *context,
                                      uint32_t index)
{
    const char *problem;

    if (context_check(context) != TANDEM_OK)
        return NULL;
    context_lock(context);
    problem =
        index < context->load_error_count ? context->load_errors[index] : NULL;
    context_unlock(context);
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
    context_lock(context);
    context->time_operators = enable == 1;
    context_unlock(context);
    return TANDEM_OK;
}

enum tandem_status tandem_context_set_observer(struct tandem_context *context,
                                               tandem_observer_fn observer,
                                               void *user)
{
    enum tandem_status status = context_check(context);

    if (status != TANDEM_OK)
        return status;
    context_lock(context);
    context->observer = observer;
    context->observer_user = user;
    context_unlock(context);
    return TANDEM_OK;
}
