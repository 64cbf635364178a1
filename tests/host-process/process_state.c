/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the state of a process that belongs to its host; see process_state.h.
 */
#include <config.h>

#include <check.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process_state.h"

extern char **environ;

static int lines_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *environment_read(void)
{
    size_t count = 0, bytes = 1;
    char **lines, *text, *end;

    while (environ[count])
        bytes += strlen(environ[count++]) + 1;
    lines = calloc(count + 1, sizeof *lines);
    text = end = calloc(1, bytes);
    ck_assert(lines && text);
    memcpy(lines, environ, count * sizeof *lines);
    qsort(lines, count, sizeof *lines, lines_compare);
    for (size_t i = 0; i < count; i++)
        end += sprintf(end, "%s\n", lines[i]);
    free(lines);
    return text;
}

void process_read(struct process *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 1; i < PROCESS_SIGNALS; i++)
        sigaction(i, NULL, &out->actions[i]);
    pthread_sigmask(SIG_SETMASK, NULL, &out->blocked);
    out->environment = environment_read();
    ck_assert_ptr_nonnull(getcwd(out->directory, sizeof out->directory));
    snprintf(out->locale, sizeof out->locale, "%s", setlocale(LC_ALL, NULL));
    out->thread_locale = uselocale((locale_t)0);
    out->umask = umask(022);
    umask(out->umask);
    out->timer_slack = prctl(PR_GET_TIMERSLACK);
}

void process_free(struct process *process)
{
    free(process->environment);
}

/* The C library does not change the unused end of a mask. */
static bool masks_differ(const sigset_t *a, const sigset_t *b)
{
    for (int i = 1; i < PROCESS_SIGNALS; i++) {
        if (sigismember(a, i) != sigismember(b, i))
            return true;
    }
    return false;
}

static bool actions_differ(const struct sigaction *a,
                           const struct sigaction *b)
{
    return a->sa_handler != b->sa_handler || a->sa_flags != b->sa_flags ||
           masks_differ(&a->sa_mask, &b->sa_mask);
}

/* Appends the names in the lines of text that other does not contain. */
static void names_append(const char *text, const char *other, char *out,
                         size_t bytes)
{
    for (size_t length; *text != '\0'; text += length) {
        char line[8192];

        length = strcspn(text, "\n") + 1;
        snprintf(line, sizeof line, "\n%.*s", (int)length, text);
        /* The first line of other has no newline before it. */
        if (strncmp(other, line + 1, length) == 0 || strstr(other, line))
            continue;
        snprintf(out + strlen(out), bytes - strlen(out), " %.*s",
                 (int)strcspn(text, "=\n"), text);
    }
}

void process_changes(const struct process *before, const struct process *after,
                     char *out, size_t bytes)
{
    out[0] = '\0';
    for (int i = 1; i < PROCESS_SIGNALS; i++) {
        if (actions_differ(&before->actions[i], &after->actions[i]))
            snprintf(out + strlen(out), bytes - strlen(out), " %d", i);
    }
    names_append(before->environment, after->environment, out, bytes);
    names_append(after->environment, before->environment, out, bytes);
}

void process_compare(const struct process *before, const struct process *after)
{
    for (int i = 1; i < PROCESS_SIGNALS; i++)
        ck_assert_msg(sigismember(&before->blocked, i) ==
                          sigismember(&after->blocked, i),
                      "signal %d is blocked where it was not, or not where it "
                      "was",
                      i);
    ck_assert_str_eq(before->directory, after->directory);
    ck_assert_str_eq(before->locale, after->locale);
    ck_assert_msg(before->thread_locale == after->thread_locale,
                  "the thread has another locale");
    ck_assert_uint_eq(before->umask, after->umask);
    ck_assert_int_eq(before->timer_slack, after->timer_slack);
}

/* ---- threads ---- */

static uint64_t blocked_of(pid_t id)
{
    char path[64], line[256];
    unsigned long long mask = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)id);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "SigBlk: %llx", &mask) == 1)
            break;
    }
    if (file)
        fclose(file);
    return mask;
}

static void name_of(pid_t id, char *out, size_t bytes)
{
    char path[64];
    FILE *file;

    out[0] = '\0';
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)id);
    file = fopen(path, "r");
    if (file && fgets(out, (int)bytes, file))
        out[strcspn(out, "\n")] = '\0';
    if (file)
        fclose(file);
}

uint32_t process_threads(struct process_thread *out)
{
    DIR *directory = opendir("/proc/self/task");
    struct dirent *entry;
    uint32_t count = 0;

    ck_assert_ptr_nonnull(directory);
    while ((entry = readdir(directory)) && count < PROCESS_THREADS) {
        struct process_thread *thread = &out[count];

        thread->id = (pid_t)atoi(entry->d_name);
        if (!isdigit((unsigned char)entry->d_name[0]) ||
            thread->id == gettid())
            continue;
        name_of(thread->id, thread->name, sizeof thread->name);
        thread->blocked = blocked_of(thread->id);
        /* A thread that ended meanwhile does not count. */
        if (sched_getaffinity(thread->id, sizeof thread->processors,
                              &thread->processors) == 0)
            count++;
    }
    closedir(directory);
    return count;
}

void threads_blocked(const struct process_thread *threads, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (int n = 1; n < 32; n++) {
            const bool fault = n == SIGSEGV || n == SIGBUS || n == SIGFPE ||
                               n == SIGILL || n == SIGTRAP || n == SIGSYS;

            const bool end = n == SIGHUP || n == SIGINT || n == SIGQUIT ||
                             n == SIGTERM;

            if (fault || end || n == SIGKILL || n == SIGSTOP)
                continue;
            ck_assert_msg(threads[i].blocked >> (n - 1) & 1,
                          "thread %d, \"%s\", does not block signal %d",
                          (int)threads[i].id, threads[i].name, n);
        }
    }
}

/* ---- files ---- */

void process_files(struct process_files *out)
{
    DIR *directory = opendir("/proc/self/fd");
    struct dirent *entry;

    memset(out, 0, sizeof *out);
    ck_assert_ptr_nonnull(directory);
    while ((entry = readdir(directory)) && out->count < PROCESS_FILES) {
        char target[96] = "";
        const int file = atoi(entry->d_name);
        const int flags = fcntl(file, F_GETFD);

        if (!isdigit((unsigned char)entry->d_name[0]) ||
            file == dirfd(directory) || flags < 0)
            continue;
        if (readlinkat(dirfd(directory), entry->d_name, target,
                       sizeof target - 1) < 0)
            target[0] = '\0';
        snprintf(out->names[out->count++], sizeof out->names[0], "%d %s%s",
                 file, target, flags & FD_CLOEXEC ? "" : " (inherited)");
        out->left_open += file > 2 && !(flags & FD_CLOEXEC);
    }
    closedir(directory);
}
