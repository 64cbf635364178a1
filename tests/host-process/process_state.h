/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a process belongs to its host, read off so that it can be compared:
 * signal handlers, environment, directory, locale, threads, files.  One
 * thread.
 */
#ifndef TANDEM_TESTS_MANNERS_PROCESS_H
#define TANDEM_TESTS_MANNERS_PROCESS_H

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
    sigset_t blocked; /* in the calling thread */
    char *environment; /* sorted lines */
    char directory[4096];
    char locale[512];
    locale_t thread_locale;
    mode_t umask;
    int timer_slack; /* of this thread */
};

void process_read(struct process *out);
void process_free(struct process *process);
/* Asserts that nothing changed but what process_changes lists. */
void process_compare(const struct process *before,
                     const struct process *after);
/* The signals whose handler changed and the variables that did, by number and
 * name, in one line: "" where none did. */
void process_changes(const struct process *before, const struct process *after,
                     char *out, size_t bytes);

struct process_thread {
    pid_t id;
    char name[16];
    uint64_t blocked; /* bit n - 1: signal n */
    cpu_set_t processors;
};
/* Every thread but the calling one. */
uint32_t process_threads(struct process_thread *out);
/* Asserts that each of these blocks every signal that neither comes from a
 * fault of its own nor asks the process to end. */
void threads_blocked(const struct process_thread *threads, uint32_t count);

/* Open descriptors, and which of them an exec would close. */
struct process_files {
    uint32_t count, left_open; /* left_open: beyond 2 and without FD_CLOEXEC */
    char names[PROCESS_FILES][128];
};
void process_files(struct process_files *out);

#endif
