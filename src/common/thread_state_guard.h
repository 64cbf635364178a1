/* SPDX-License-Identifier: Apache-2.0 */
/* Sets a safe thread state around calls of foreign code that may start threads,
 * and restores the host's state afterwards. Blocks signals and sets the default
 * floating-point environment, because new threads inherit both, and sets the
 * locale "C" for reading and writing numbers. Fault signals stay unblocked; so
 * do SIGHUP, SIGINT, SIGQUIT and SIGTERM if they have no handler and the host
 * does not block them. A guard takes 2 µs, so use it for slow calls only. The
 * functions may be called from any thread. Do not call the host's callbacks
 * inside a guard. */
#ifndef TANDEM_COMMON_THREAD_STATE_GUARD_H
#define TANDEM_COMMON_THREAD_STATE_GUARD_H

#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct thread_state {
    sigset_t signals;
    fenv_t float_env;
    locale_t locale;
};

void thread_state_guard_enter(struct thread_state *out_host);
/* Restores the state that thread_state_guard_enter saved. */
void thread_state_guard_leave(const struct thread_state *host);

/* Sets only the "C" locale, so that formatted numbers have a decimal point.
 * Returns the host's locale for locale_guard_leave. */
locale_t locale_guard_enter(void);
void locale_guard_leave(locale_t host);

/* Starts a thread inside a guard. The thread's name has at most 15 characters,
 * and stack_bytes replaces the host's default stack size. Returns false if the
 * thread cannot be created. */
bool guarded_thread_start(pthread_t *out_thread, const char *name,
                          size_t stack_bytes, void *(*run)(void *),
                          void *argument);

#endif
