/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the state of a process that belongs to its host, to compare it later:
 * signal handlers, environment, directory, locale, threads, files. Call it
 * from one thread.
 */
#ifndef TANDEM_TESTS_PROCESS_STATE_H
#define TANDEM_TESTS_PROCESS_STATE_H

#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_SIGNALS 65
#define PROCESS_THREADS 512
#define PROCESS_FILES 512

struct process {
    struct sigaction actions[PROCESS_SIGNALS];
    sigset_t blocked;  /* In the calling thread. */
    char *environment; /* Sorted lines. */
    char directory[4096];
    char locale[512];
    locale_t thread_locale;
    mode_t umask;
    int timer_slack; /* Timer slack of the calling thread. */
};

void process_read(struct process *out);
void process_free(struct process *process);
/* Asserts that only the changes happened that process_changes lists. */
void process_compare(const struct process *before,
                     const struct process *after);
/*
 * Lists the signals whose handler changed and the changed environment
 * variables, by number and name, in one line; "" if nothing changed.
 */
void process_changes(const struct process *before, const struct process *after,
                     char *out, size_t bytes);

struct process_thread {
    pid_t id;
    char name[16];
    uint64_t blocked; /* Bit n - 1 is set if signal n is blocked. */
    cpu_set_t processors;
};
/* Lists all threads except the calling one. */
uint32_t process_threads(struct process_thread *out);
/*
 * Asserts that each thread blocks all signals, except those that its own
 * faults cause and those that ask the process to end.
 */
void threads_blocked(const struct process_thread *threads, uint32_t count);

/*
 * The number of open descriptors, and of those that remain open after an exec.
 */
struct process_files {
    /* left_open: descriptors above 2 without FD_CLOEXEC. */
    uint32_t count, left_open;
    char names[PROCESS_FILES][128];
};
void process_files(struct process_files *out);

#endif
