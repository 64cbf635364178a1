/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that interrupt the host's thread anywhere in the library, with
 * handlers that restart system calls and with handlers that do not; and the
 * thread in which signals are handled.
 */
#include <config.h>

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "process_case.h"

#define ROUNDS 100
#define INTERVAL_US 500

static pthread_t host;
static volatile sig_atomic_t handled, elsewhere;

static void on_signal(int signal)
{
    (void)signal;
    handled++;
    elsewhere += !pthread_equal(pthread_self(), host);
}

static void alarms_start(int flags, int interval_us)
{
    const struct itimerval timer = {{0, interval_us}, {0, interval_us}};
    const struct sigaction action = {.sa_handler = on_signal,
                                     .sa_flags = flags};

    host = pthread_self();
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    MUST(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void step_alarms(void)
{
    alarms_start(step_argument ? SA_RESTART : 0, INTERVAL_US);
}

static void client_work_long(struct client *own)
{
    const int before = handled;

    for (int i = 0; i < ROUNDS || handled == before; i++)
        client_work(own);
}

/* Only this thread may have handled the alarms. */
static void step_no_alarms(void)
{
    alarms_start(0, 0);
    MUST(handled > 0);
    MUST(elsewhere == 0);
}

/* ---- masks ---- */

#define BIT(signal) (UINT64_C(1) << ((signal)-1))
/* The signals that ask a process to end. */
static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
#define ENDS (BIT(SIGHUP) | BIT(SIGINT) | BIT(SIGQUIT) | BIT(SIGTERM))
/* All named signals, except those that a thread causes itself and those that
 * cannot be blocked. */
#define BLOCKABLE                                                              \
    ((BIT(32) - 1) &                                                           \
     ~(BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGSEGV) | \
       BIT(SIGSYS) | BIT(SIGKILL) | BIT(SIGSTOP)))

/* The signals that other threads must not block. */
static uint64_t unblocked = ENDS;

/* The host, and no other thread, handles the signals that ask it to end. */
static void step_handle_ends(void)
{
    const struct sigaction action = {.sa_handler = on_signal};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        MUST(sigaction(ends[i], &action, NULL) == 0);
    unblocked = 0;
}

static void signals_mask(int how, const int *signals, size_t count)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < count; i++)
        sigaddset(&set, signals[i]);
    MUST(pthread_sigmask(how, &set, NULL) == 0);
}

/* The host blocks the signals that ask it to end, to wait for them. */
static void step_block_ends(void)
{
    signals_mask(SIG_BLOCK, ends, sizeof ends / sizeof *ends);
    unblocked = 0;
}

#ifdef __has_feature /* clang */
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__
#endif
#endif
/* Threads that are neither the host's nor ours, and block all signals. */
#ifdef __SANITIZE_THREAD__
#define FOREIGN_THREADS 1
#else
#define FOREIGN_THREADS 0
#endif

/* The other threads must block all blockable signals, except `unblocked`, which
 * they must not block. "masks=driver": a driver's threads may block them. */
static void step_masks(void)
{
    static struct thread threads[MAX_THREADS];
    const uint32_t count = threads_read(threads);
    const uint64_t ignored = step_argument ? unblocked : 0;
    int foreign = unblocked ? FOREIGN_THREADS : 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint64_t blocked = threads[i].blocked & BLOCKABLE;

        if (blocked == BLOCKABLE && foreign-- > 0)
            continue;
        if ((blocked & ~ignored) != (BLOCKABLE & ~unblocked))
            process_fail("thread \"%s\" blocks %#llx", threads[i].name,
                         (unsigned long long)threads[i].blocked);
    }
}

/* This thread blocks the signal. No other thread may handle it. */
static void client_work_blocked(struct client *own)
{
    const int alarm = SIGALRM;

    signals_mask(SIG_BLOCK, &alarm, 1);
    alarms_start(0, INTERVAL_US);
    for (int i = 0; i < ROUNDS; i++)
        client_work(own);
    MUST(handled == 0);
    signals_mask(SIG_UNBLOCK, &alarm, 1);
    while (handled == 0)
        client_work(own);
}

/* ---- timeouts ---- */

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* On a device that hangs, signals neither end nor prolong a wait. */
static void client_timeout(struct client *own)
{
    const uint64_t timeout_ns = 50000000;

    for (int i = 0; i < 3; i++) {
        const uint64_t start = clock_ns();

        MUST(tandem_tensor_sync(own->ty, timeout_ns) == TANDEM_NOT_READY);
        MUST(clock_ns() - start >= timeout_ns);
        MUST(tandem_context_synchronize(own->context, timeout_ns) ==
             TANDEM_NOT_READY);
    }
}

const struct step signal_steps[] = {
    {"alarms", .run = step_alarms},
    {"no-alarms", .run = step_no_alarms},
    {"work-long", .run_client = client_work_long},
    {"work-blocked", .run_client = client_work_blocked},
    {"handle-ends", .run = step_handle_ends},
    {"block-ends", .run = step_block_ends},
    {"masks", .run = step_masks},
    {"timeout", .run_client = client_timeout},
    {NULL},
};
