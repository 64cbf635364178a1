/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state in which a thread of the host calls code that is not ours and may
 * start threads: signals blocked and the floating-point environment the
 * default one, because new threads inherit both, and the locale "C", because
 * numbers are written and read.  Signals of faults stay open, and so do SIGHUP,
 * SIGINT, SIGQUIT and SIGTERM if they have no handler and the host does not
 * block them.  For slow calls: takes 2 µs.  Any thread; not around the
 * host's callbacks.
 */
#ifndef TANDEM_COMMON_THREAD_STATE_GUARD_H
#define TANDEM_COMMON_THREAD_STATE_GUARD_H

#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct shelter {
    sigset_t signals;
    fenv_t float_env;
    locale_t locale;
};

void thread_state_guard_enter(struct shelter *out_host);
/* Brings back what was found. */
void shelter_leave(const struct shelter *host);

/* The locale alone, for formatting: numbers have a point. */
locale_t shelter_locale(void);
void shelter_locale_leave(locale_t host);

/* Starts a thread of our own: sheltered, with a name of at most 15 characters,
 * and a stack that suits it whatever the host's default is.  False where there
 * is no room for one. */
bool shelter_thread(pthread_t *out_thread, const char *name,
                    size_t stack_bytes, void *(*run)(void *), void *argument);

#endif
