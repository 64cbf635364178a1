/* SPDX-License-Identifier: Apache-2.0 */
/* Saves and restores the host's thread state; see thread_state_guard.h. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "common/thread_state_guard.h"

static bool has_handler(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) != 0 ||
           (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

/* Blocks all signals except faults and requests to end. A blocked fault would
 * kill the process without running the host's or the driver's handler. SIGSYS
 * counts as a fault, because sandboxes use it to intercept system calls.
 * Signals that ask the process to end stay unblocked, because threads of a
 * driver or CBLAS may be the only ones left to receive them. If such a signal
 * has a handler, it is blocked: the handler could run in the wrong thread. */
static void signals_block(sigset_t *out_before)
{
    static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE,
                                 SIGILL,  SIGTRAP, SIGSYS};
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (!has_handler(ends[i]))
            sigdelset(&all, ends[i]);
    }
    /* SIG_BLOCK keeps signals blocked that the host has blocked. */
    pthread_sigmask(SIG_BLOCK, &all, out_before);
}

locale_t locale_guard_enter(void)
{
    /* This locale object belongs to the C library and needs no freelocale. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return plain != (locale_t)0 ? uselocale(plain) : (locale_t)0;
}

void locale_guard_leave(locale_t host)
{
    if (host != (locale_t)0)
        uselocale(host);
}

void thread_state_guard_enter(struct thread_state *out_host)
{
    signals_block(&out_host->signals);
    fegetenv(&out_host->float_env);
    fesetenv(FE_DFL_ENV);
    out_host->locale = locale_guard_enter();
}

void thread_state_guard_leave(const struct thread_state *host)
{
    locale_guard_leave(host->locale);
    fesetenv(&host->float_env);
    pthread_sigmask(SIG_SETMASK, &host->signals, NULL);
}

bool guarded_thread_start(pthread_t *out_thread, const char *name,
                          size_t stack_bytes, void *(*run)(void *),
                          void *argument)
{
    struct thread_state host;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    thread_state_guard_enter(&host);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    bool started = pthread_create(out_thread, &attributes, run, argument) == 0;
    if (started)
        pthread_setname_np(*out_thread, name);
    thread_state_guard_leave(&host);
    pthread_attr_destroy(&attributes);
    return started;
}
