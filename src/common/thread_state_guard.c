/* SPDX-License-Identifier: Apache-2.0 */
/* Leaving the host's threads as they were; see thread_state_guard.h. */
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

/* A signal that a thread's own fault raises must stay open: blocked, it kills
 * the process without asking the host's handler, or the driver's.  SIGSYS is
 * how a sandbox answers a system call.
 * A signal that asks the process to end stays open if no handler could run in
 * the wrong thread: a driver's or a CBLAS's threads never end, and may be the
 * only ones left. */
static void signals_block(sigset_t *out_before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE,
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
    /* Signals that the host has blocked stay blocked. */
    pthread_sigmask(SIG_BLOCK, &all, out_before);
}

locale_t shelter_locale(void)
{
    /* The C library's own object: neither allocated nor freed. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return plain != (locale_t)0 ? uselocale(plain) : (locale_t)0;
}

void shelter_locale_leave(locale_t host)
{
    if (host != (locale_t)0)
        uselocale(host);
}

void thread_state_guard_enter(struct shelter *out_host)
{
    signals_block(&out_host->signals);
    fegetenv(&out_host->float_env);
    fesetenv(FE_DFL_ENV);
    out_host->locale = shelter_locale();
}

void shelter_leave(const struct shelter *host)
{
    shelter_locale_leave(host->locale);
    fesetenv(&host->float_env);
    pthread_sigmask(SIG_SETMASK, &host->signals, NULL);
}

bool shelter_thread(pthread_t *out_thread, const char *name,
                    size_t stack_bytes, void *(*run)(void *), void *argument)
{
    struct shelter host;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    thread_state_guard_enter(&host);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    bool started =
        pthread_create(out_thread, &attributes, run, argument) == 0;
    if (started)
        pthread_setname_np(*out_thread, name);
    shelter_leave(&host);
    pthread_attr_destroy(&attributes);
    return started;
}
