/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that interrupt the host's thread anywhere in the library, with
 * handlers that restart system calls and with handlers that do not; and the
 * thread in which signals are handled.
 */
#include <config.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "lifecycle_program.h"

#define ROUNDS 100
#define INTERVAL_US 500

static pthread_t host;
static volatile sig_atomic_t handled, elsewhere;

static void on_alarm(int signal)
{
    (void)signal;
    handled++;
    elsewhere += !pthread_equal(pthread_self(), host);
}

static void alarms(int flags, int interval_us)
{
    const struct itimerval timer = {{0, interval_us}, {0, interval_us}};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags};

    host = pthread_self();
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    MUST(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

/*
 * Signals arrive from the start of the library on, while it starts its
 * threads, reads its files and loads its plugins.
 */
static int interrupted(const char *device, int flags)
{
    struct lifecycle_test test;
    const int before = handled;

    alarms(flags, INTERVAL_US);
    lifecycle_test_begin(&test, device);
    for (int i = 0; i < ROUNDS || handled == before; i++)
        lifecycle_test_work(&test);
    lifecycle_test_end(&test);
    alarms(flags, 0);
    MUST(elsewhere == 0);
    return 0;
}

static int signals(const char *device)
{
    return interrupted(device, 0);
}

static int signals_restart(const char *device)
{
    return interrupted(device, SA_RESTART);
}

/* ---- masks ---- */

/* Signals that a thread causes itself, and signals that cannot be blocked. */
static const int unblocked[] = {SIGILL,  SIGTRAP, SIGBUS, SIGFPE,
                                SIGSEGV, SIGSYS,  SIGKILL, SIGSTOP};

/* Returns the mask of all other named signals. */
static uint64_t blockable(void)
{
    uint64_t mask = (UINT64_C(1) << 31) - 1;

    for (size_t i = 0; i < sizeof unblocked / sizeof *unblocked; i++)
        mask &= ~(UINT64_C(1) << (unblocked[i] - 1));
    return mask;
}

static uint64_t blocked_of(const char *thread)
{
    char path[64], line[256];
    unsigned long long mask = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%.20s/status", thread);
    file = fopen(path, "re");
    if (!file)
        return 0; /* The thread ended. */
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "SigBlk: %llx", &mask) == 1)
            break;
    fclose(file);
    return mask;
}

/* The signals that ask a process to end. */
static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

static uint64_t ends_mask(void)
{
    uint64_t mask = 0;

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        mask |= UINT64_C(1) << (ends[i] - 1);
    return mask;
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

/*
 * Returns the number of our threads. Each must block all signals that can be
 * blocked, except those in `open`, which it must not block.
 */
static int helpers_check(uint64_t open)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    uint64_t blocked;
    int count = 0, foreign = open != 0 ? FOREIGN_THREADS : 0;

    MUST(tasks != NULL);
    while ((entry = readdir(tasks))) {
        if (entry->d_name[0] == '.' ||
            strtol(entry->d_name, NULL, 10) == syscall(SYS_gettid))
            continue;
        blocked = blocked_of(entry->d_name);
        if (blocked == 0)
            continue; /* The thread ended. */
        if (foreign > 0 && (blocked & blockable()) == blockable()) {
            foreign--;
            continue;
        }
        MUST((blocked & blockable()) == (blockable() & ~open));
        count++;
    }
    closedir(tasks);
    return count;
}

/* Starts all possible worker threads and checks their signal masks. */
static void helpers_start(struct lifecycle_test *test, const char *device,
                          uint64_t open)
{
    const int64_t n = 1 << 22;
    float *data = calloc((size_t)n, sizeof *data);
    struct tandem_tensor *big = NULL;

    MUST(data != NULL);
    lifecycle_test_begin(test, device);
    lifecycle_test_work(test);
    OK(tandem_tensor_wrap(test->context, data, TANDEM_F32, 1, &n, NULL, 0,
                          &big));
    for (int i = 0; i < 8; i++) /* Large enough for all worker threads. */
        OK(tandem_unary(test->context, TANDEM_OP_EXP, big, big));
    OK(tandem_tensor_sync(big, TANDEM_TIMEOUT_INFINITE));
    dprintf(STDOUT_FILENO, "%d helpers\n", helpers_check(open));
    tandem_tensor_destroy(big);
    free(data);
}

/* The host's thread blocks the signal. No worker thread may handle it. */
static int helpers_block(const char *device)
{
    struct lifecycle_test test;
    sigset_t alarm;

    helpers_start(&test, device, ends_mask());
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    MUST(pthread_sigmask(SIG_BLOCK, &alarm, NULL) == 0);
    alarms(0, INTERVAL_US);
    for (int i = 0; i < ROUNDS; i++)
        lifecycle_test_work(&test);
    MUST(handled == 0);
    MUST(pthread_sigmask(SIG_UNBLOCK, &alarm, NULL) == 0);
    while (handled == 0)
        lifecycle_test_work(&test);
    MUST(elsewhere == 0);
    alarms(0, 0);
    lifecycle_test_end(&test);
    return 0;
}

/* The host, and no worker thread, handles the signals that ask it to end. */
static int helpers_block_handled(const char *device)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct lifecycle_test test;

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        MUST(sigaction(ends[i], &action, NULL) == 0);
    helpers_start(&test, device, 0);
    lifecycle_test_end(&test);
    return 0;
}

/* The host blocks the signals that ask it to end, to wait for them. */
static int helpers_block_inherited(const char *device)
{
    struct lifecycle_test test;
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaddset(&set, ends[i]);
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    helpers_start(&test, device, 0);
    lifecycle_test_end(&test);
    return 0;
}

/* ---- timeouts ---- */

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* On a device that hangs, signals neither end nor prolong a wait. */
static int timeout(const char *device)
{
    const uint64_t timeout_ns = 50000000;
    struct lifecycle_test test;

    lifecycle_test_begin(&test, device);
    lifecycle_test_start(&test);
    for (int flags = 0; flags < 2; flags++) {
        alarms(flags ? SA_RESTART : 0, INTERVAL_US);
        for (int i = 0; i < 3; i++) {
            const uint64_t start = clock_ns();

            MUST(tandem_tensor_sync(test.ty, timeout_ns) == TANDEM_NOT_READY);
            MUST(clock_ns() - start >= timeout_ns);
            MUST(tandem_context_synchronize(test.context, timeout_ns) ==
                 TANDEM_NOT_READY);
        }
        MUST(handled > 0);
    }
    return 0;
}

const struct lifecycle_mode signal_modes[] = {
    {"signals", signals},
    {"signals-restart", signals_restart},
    {"helpers-block", helpers_block},
    {"helpers-block-handled", helpers_block_handled},
    {"helpers-block-inherited", helpers_block_inherited},
    {"timeout", timeout},
    {NULL, NULL},
};
