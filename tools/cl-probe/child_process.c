/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child processes; see child_process.h.  A child writes one JSON object per
 * line to the pipe: {"fraction", "step"}, {"partial"}, {"result"} or {"error"}.
 */
#include <config.h>

#include "child_process.h"

#include "../common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Time limit for closing the devices after the answer. */
#define CLOSING_S 10u

struct child_link {
    FILE *out;
};

/* The parent's data about a child. */
struct child {
    pid_t pid;
    int fd;
    uint64_t deadline_ns;
    char *text; /* received bytes of an incomplete line */
    size_t used, room;
    char step[64];
    struct progress *progress;
    struct child_outcome *outcome;
    bool answered;
};

/* ---- the child's side ---- */

static void link_send(struct child_link *link, json_t *message)
{
    json_dumpf(message, link->out, JSON_COMPACT);
    fputc('\n', link->out);
    fflush(link->out);
    json_decref(message);
}

void child_progress(struct child_link *link, double fraction, const char *step)
{
    link_send(link,
              json_pack("{s:f, s:s}", "fraction", fraction, "step", step));
}

void child_answer(struct child_link *link, json_t *result)
{
    link_send(link, json_pack("{s:o}", "result", result));
}

void child_partial(struct child_link *link, json_t *result)
{
    link_send(link, json_pack("{s:O}", "partial", result));
}

/* Returns the text as JSON.  If it is not valid UTF-8, replaces its non-ASCII
 * bytes by '?'. */
static json_t *text_json(char *text)
{
    json_t *json = json_string(text);

    if (json != NULL)
        return json;
    for (char *at = text; *at != '\0'; at++)
        if ((unsigned char)*at > 127)
            *at = '?';
    return json_string(text);
}

void child_fail(struct child_link *link, const char *format, ...)
{
    char text[480];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    link_send(link, json_pack("{s:o}", "error", text_json(text)));
}

json_t *child_text(const char *format, ...)
{
    char text[4608];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text_json(text);
}

/* Prepares the child process.  It gets its own process group, so that compilers
 * started by a driver can be killed with it, writes no core file, and is killed
 * when the parent dies. */
static void child_begin(pid_t parent)
{
    struct rlimit none = {0, 0};

    setpgid(0, 0);
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    /* Output that the parent buffered must not be written twice. */
    __fpurge(stdout);
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

_Noreturn static void child_main(child_fn body, void *argument, int fd,
                                 pid_t parent)
{
    struct child_link link = {fdopen(fd, "w")};

    child_begin(parent);
    if (link.out == NULL)
        _exit(1);
    body(argument, &link);
    fflush(NULL);
    /* Exit without running the exit handlers of drivers. */
    _exit(0);
}

/* ---- the parent's side ---- */

static void take_message(struct child *child, json_t *message)
{
    json_t *result = json_object_get(message, "result");
    json_t *partial = json_object_get(message, "partial");
    const char *error = json_string_value(json_object_get(message, "error"));
    const char *step = json_string_value(json_object_get(message, "step"));
    double fraction = json_number_value(json_object_get(message, "fraction"));

    if (step != NULL) {
        snprintf(child->step, sizeof child->step, "%s", step);
        if (child->progress != NULL)
            progress_show(child->progress, fraction, step);
    }
    if (partial != NULL) {
        json_decref(child->outcome->partial);
        child->outcome->partial = json_incref(partial);
    }
    if ((result == NULL && error == NULL) || child->answered)
        return;
    child->answered = true;
    child->deadline_ns = clock_now_ns() + CLOSING_S * NS_PER_S;
    child->outcome->result = json_incref(result);
    child->outcome->end = result != NULL ? CHILD_ANSWERED : CHILD_FAILED;
    if (error != NULL)
        snprintf(child->outcome->message, sizeof child->outcome->message, "%s",
                 error);
}

static void take_lines(struct child *child)
{
    char *line = child->text, *end;

    while ((
        end = memchr(line, '\n', child->used - (size_t)(line - child->text)))) {
        json_t *message = json_loadb(line, (size_t)(end - line), 0, NULL);

        if (message != NULL)
            take_message(child, message);
        json_decref(message);
        line = end + 1;
    }
    child->used -= (size_t)(line - child->text);
    memmove(child->text, line, child->used);
}

/* Reads from the pipe and handles complete lines.  Returns false at its end. */
static bool child_read(struct child *child)
{
    ssize_t got;

    if (child->used + 4096 > child->room) {
        child->room = 2 * child->room + 8192;
        child->text = realloc(child->text, child->room);
        if (child->text == NULL)
            abort();
    }
    got = read(child->fd, child->text + child->used, child->room - child->used);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    child->used += (size_t)got;
    take_lines(child);
    return got > 0;
}

/* Reads until the pipe ends, then returns true, or until the deadline, then
 * returns false. */
static bool child_listen(struct child *child)
{
    for (;;) {
        struct pollfd wait = {child->fd, POLLIN, 0};
        uint64_t now = clock_now_ns();
        int left_ms;

        if (now >= child->deadline_ns)
            return false;
        if (child->progress != NULL)
            progress_tick(child->progress);
        left_ms = (int)((child->deadline_ns - now) / NS_PER_MS) + 1;
        if (poll(&wait, 1, left_ms < 1000 ? left_ms : 1000) > 0 &&
            !child_read(child))
            return true;
    }
}

/* Waits until the child exits.  Returns false at the deadline, which also
 * applies to a child that closed its pipe but does not exit. */
static bool child_reap(struct child *child, int *out_state)
{
    const struct timespec pause = {0, 2000000};

    while (clock_now_ns() < child->deadline_ns) {
        pid_t got = waitpid(child->pid, out_state, WNOHANG);

        if (got == child->pid)
            return true;
        if (got < 0 && errno != EINTR)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static void child_kill(struct child *child, int *out_state)
{
    kill(-child->pid, SIGKILL);
    kill(child->pid, SIGKILL);
    while (waitpid(child->pid, out_state, 0) < 0 && errno == EINTR)
        continue;
}

static void child_judge(struct child *child, bool in_time, int state,
                        unsigned limit_s)
{
    struct child_outcome *out = child->outcome;
    const char *where = child->step[0] != '\0' ? child->step : "starting";
    char what[sizeof out->what];

    if (!in_time)
        snprintf(what, sizeof what, "did not end within %u s",
                 child->answered ? CLOSING_S : limit_s);
    else if (WIFSIGNALED(state))
        snprintf(what, sizeof what, "crashed: %s", strsignal(WTERMSIG(state)));
    else if (!child->answered)
        snprintf(what, sizeof what, "ended without an answer (exit status %d)",
                 WEXITSTATUS(state));
    else
        return;
    if (child->answered && out->end == CHILD_FAILED)
        return;
    if (child->answered) {
        snprintf(out->message, sizeof out->message,
                 "while closing, its process %s", what);
        return;
    }
    out->end = in_time ? CHILD_CRASHED : CHILD_TIMED_OUT;
    memcpy(out->what, what, sizeof what);
    snprintf(out->message, sizeof out->message, "its process %s (while: %s)",
             what, where);
}

static void child_follow(struct child *child, unsigned limit_s)
{
    bool in_time;
    int state = 0;

    child->deadline_ns = clock_now_ns() + limit_s * NS_PER_S;
    in_time = child_listen(child) && child_reap(child, &state);
    if (!in_time)
        child_kill(child, &state);
    child_judge(child, in_time, state, limit_s);
    close(child->fd);
    free(child->text);
}

void child_run(child_fn body, void *argument, unsigned limit_s,
               struct progress *progress, struct child_outcome *out)
{
    struct child child = {.progress = progress, .outcome = out};
    pid_t parent = getpid();
    int ends[2];

    memset(out, 0, sizeof *out);
    out->end = CHILD_FAILED;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        snprintf(out->message, sizeof out->message, "pipe: %s",
                 strerror(errno));
        return;
    }
    fflush(NULL);
    child.pid = fork();
    if (child.pid == 0) {
        close(ends[0]);
        child_main(body, argument, ends[1], parent);
    }
    close(ends[1]);
    if (child.pid < 0) {
        snprintf(out->message, sizeof out->message, "fork: %s",
                 strerror(errno));
        close(ends[0]);
        return;
    }
    child.fd = ends[0];
    child_follow(&child, limit_s);
}

void child_outcome_destroy(struct child_outcome *outcome)
{
    json_decref(outcome->result);
    json_decref(outcome->partial);
    outcome->result = outcome->partial = NULL;
}
