/* SPDX-License-Identifier: Apache-2.0 */
/* Worker processes and their output; see workers.h. */
#include "config.h"

#include "workers.h"
#include "operand.h"

#include "../../tools/common/program_output.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Begins a line from a worker that is not output. */
#define RECORD '\x1e'
#define MIN_CASES_PER_WORKER 8u
/* Workers claim a quarter of an equal share of the cases that are left, within
 * these limits: many cases at first, so that few workers compile the same
 * kernel, and few at the end, so that all workers end at about the same time.
 */
#define MIN_CLAIM 4u
#define MAX_CLAIM 64u
#define CLAIMS_PER_WORKER 4u
#define READ_BYTES 65536u
#define TICK_MS 1000

/* ---- in a worker ---- */

/* Returns the number of cases to claim. */
static uint64_t claim_size(const struct suite *suite)
{
    struct claims *claims = suite->worker->claims;
    const uint64_t next = atomic_load(&claims->next);
    uint64_t size = suite->cases > next ? suite->cases - next : 0;

    /* The calls of a block share their kernels. */
    if (suite->options->random_calls != 0)
        return suite->options->block_calls;
    size /= (uint64_t)CLAIMS_PER_WORKER * atomic_load(&claims->jobs);
    return size < MIN_CLAIM ? MIN_CLAIM : size > MAX_CLAIM ? MAX_CLAIM : size;
}

bool worker_claims_case(const struct suite *suite)
{
    struct worker *worker = suite->worker;
    const uint64_t number = worker->cases++;
    uint64_t size;

    if (number >= worker->end) {
        size = claim_size(suite);
        worker->begin = atomic_fetch_add(&worker->claims->next, size);
        worker->end = worker->begin + size;
    }
    return number >= worker->begin;
}

void worker_report_open(uint32_t jobs)
{
    printf("%copen %u\n", RECORD, jobs);
}

void worker_report_case(const struct suite *suite, const char *result)
{
    printf("%ccase %llu %c %s\n", RECORD,
           (unsigned long long)(suite->worker->cases - 1), result[0],
           suite->group);
}

void worker_report_end(const struct suite *suite)
{
    printf("%cend %llu %llu\n", RECORD, (unsigned long long)suite->computed,
           (unsigned long long)suite->rejected);
}

/* ---- in the parent ---- */

struct process {
    pid_t pid;
    int fd;     /* The end of the pipe from the worker, or -1. */
    char *text; /* Output of the current case, then perhaps a part of a line. */
    size_t bytes, room;
    size_t line; /* The offset of the last line. */
    bool has_ended;
};

/* The output of a case. */
struct outcome {
    char result; /* 'p', 'f' or 's', or 0 if the case has not ended. */
    char *text;
    char group[40];
};

struct pool {
    struct suite *suite;
    enum exit_code (*work)(struct suite *suite);
    struct claims *claims;
    struct process *processes;
    uint32_t count, running;
    /* A ring of `capacity` outcomes, of cases from `next` on. */
    struct outcome *outcomes;
    uint64_t capacity, next;
    enum exit_code code;
    int signal; /* The signal that ended a worker, or 0. */
    bool failed;
};

uint64_t worker_min_cases(const struct suite_options *options)
{
    return options->random_calls != 0 ? options->block_calls
                                      : MIN_CASES_PER_WORKER;
}

_Noreturn static void worker_main(struct pool *pool, pid_t parent, int out)
{
    struct worker worker = {.claims = pool->claims,
                            .is_first = pool->count == 0};

    /* If the parent is killed, the workers end, too. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(out, STDOUT_FILENO) < 0)
        _exit(EXIT_FAILED);
    close(out);
    pool->suite->worker = &worker;
    pool->suite->progress.terminal = false;
    exit(output_end(PROGRAM, (int)pool->work(pool->suite), EXIT_FAILED));
}

static bool worker_start(struct pool *pool)
{
    struct process *process = &pool->processes[pool->count];
    const pid_t parent = getpid();
    int ends[2];

    fflush(stdout);
    if (pipe(ends) != 0) {
        perror(PROGRAM ": pipe");
        return false;
    }
    process->pid = fork();
    if (process->pid == 0) {
        close(ends[0]);
        worker_main(pool, parent, ends[1]);
    }
    close(ends[1]);
    if (process->pid < 0) {
        perror(PROGRAM ": fork");
        close(ends[0]);
        return false;
    }
    process->fd = ends[0];
    pool->count++;
    pool->running++;
    return true;
}

/* Returns the outcome of a case that is not printed yet. */
static struct outcome *outcome_at(struct pool *pool, uint64_t number)
{
    while (number - pool->next >= pool->capacity) {
        const uint64_t capacity = pool->capacity == 0 ? 64 : 2 * pool->capacity;
        struct outcome *outcomes = must_allocate(capacity * sizeof(*outcomes));

        for (uint64_t i = pool->next; i < pool->next + pool->capacity; i++)
            outcomes[i % capacity] = pool->outcomes[i % pool->capacity];
        free(pool->outcomes);
        pool->outcomes = outcomes;
        pool->capacity = capacity;
    }
    return &pool->outcomes[number % pool->capacity];
}

static void outcome_print(struct suite *suite, struct outcome *outcome)
{
    const bool is_failed = outcome->result == 'f';

    if (outcome->text != NULL &&
        (!is_failed || suite->options->verbose || suite_prints_case(suite))) {
        progress_end(&suite->progress);
        fputs(outcome->text, stdout);
    }
    suite->passed += outcome->result == 'p';
    suite->failed += is_failed;
    suite->skipped += outcome->result == 's';
    free(outcome->text);
    memset(outcome, 0, sizeof(*outcome));
}

/* Prints the outcomes up to the first case that has not ended. */
static void outcomes_print(struct pool *pool)
{
    while (pool->capacity > 0 && outcome_at(pool, pool->next)->result != 0) {
        struct outcome *outcome = outcome_at(pool, pool->next);

        snprintf(pool->suite->group, sizeof(pool->suite->group), "%s",
                 outcome->group);
        outcome_print(pool->suite, outcome);
        pool->next++;
        suite_show_progress(pool->suite);
    }
}

/* Prints what exists after a worker failed. */
static void outcomes_print_rest(struct pool *pool)
{
    for (uint64_t i = 0; i < pool->capacity; i++)
        outcome_print(pool->suite, outcome_at(pool, pool->next + i));
    for (uint32_t i = 0; i < pool->count; i++)
        if (pool->processes[i].line > 0)
            fwrite(pool->processes[i].text, 1, pool->processes[i].line, stdout);
    fflush(stdout);
}

/* Prints the header of the first worker, and starts the others. */
static void opened(struct pool *pool, const char *header, uint32_t jobs)
{
    const uint64_t least = worker_min_cases(pool->suite->options);
    const uint64_t most = (pool->suite->cases + least - 1) / least;

    if (pool->count > 1)
        return;
    if (pool->suite->options->jobs != 0)
        jobs = pool->suite->options->jobs;
    if (jobs > most)
        jobs = (uint32_t)most;
    atomic_store(&pool->claims->jobs, jobs);
    while (pool->count < jobs && worker_start(pool))
        ;
    if (header[0] != '\0' && pool->count > 1)
        printf("%.*s, %u processes\n", (int)strcspn(header, "\n"), header,
               pool->count);
    else
        fputs(header, stdout);
}

/* Handles a record. `text` is the output before it. */
static void record_handle(struct pool *pool, struct process *process,
                          const char *record, const char *text)
{
    unsigned long long number, rejected;
    struct outcome *outcome;
    unsigned jobs;
    char result;
    int group = 0;

    if (sscanf(record, "case %llu %c %n", &number, &result, &group) >= 2 &&
        number >= pool->next) {
        outcome = outcome_at(pool, number);
        outcome->result = result;
        snprintf(outcome->group, sizeof(outcome->group), "%s", record + group);
        if (text[0] != '\0')
            outcome->text = strdup(text);
        outcomes_print(pool);
    } else if (sscanf(record, "open %u", &jobs) == 1) {
        opened(pool, text, jobs);
    } else if (sscanf(record, "end %llu %llu", &number, &rejected) == 2) {
        pool->suite->computed += number;
        pool->suite->rejected += rejected;
        process->has_ended = true;
    }
}

/* Handles the complete lines of a worker's output. */
static void lines_handle(struct pool *pool, struct process *process)
{
    char *end;

    while ((end = memchr(process->text + process->line, '\n',
                         process->bytes - process->line)) != NULL) {
        char *line = process->text + process->line;
        const size_t after = (size_t)(end + 1 - process->text);

        if (*line != RECORD) {
            process->line = after;
            continue;
        }
        *line = *end = '\0';
        record_handle(pool, process, line + 1, process->text);
        process->bytes -= after;
        process->line = 0;
        memmove(process->text, process->text + after, process->bytes);
    }
}

static void workers_kill(struct pool *pool)
{
    pool->failed = true;
    for (uint32_t i = 0; i < pool->count; i++)
        if (pool->processes[i].fd >= 0)
            kill(pool->processes[i].pid, SIGKILL);
}

/*
 * Reaps a worker whose output ends. Its state is unknown if the program was
 * started with SIGCHLD ignored.
 */
static void worker_end(struct pool *pool, struct process *process)
{
    int state = 0;

    close(process->fd);
    process->fd = -1;
    pool->running--;
    while (waitpid(process->pid, &state, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(state) && !pool->failed)
        pool->signal = WTERMSIG(state);
    if (WIFEXITED(state) && pool->code == EXIT_PASSED)
        pool->code = (enum exit_code)WEXITSTATUS(state);
    if (!process->has_ended && pool->code == EXIT_PASSED && !pool->failed) {
        if (pool->signal == 0)
            fputs(PROGRAM ": the plugin ended a process\n", stderr);
        pool->code = EXIT_FAILED;
    }
    if (pool->signal == 0 && process->has_ended)
        return;
    workers_kill(pool);
}

static void worker_read(struct pool *pool, struct process *process)
{
    ssize_t bytes;

    if (process->room - process->bytes < READ_BYTES) {
        process->room = 2 * process->room + READ_BYTES;
        process->text = realloc(process->text, process->room);
        if (process->text == NULL)
            abort();
    }
    bytes = read(process->fd, process->text + process->bytes, READ_BYTES);
    if (bytes > 0) {
        process->bytes += (size_t)bytes;
        lines_handle(pool, process);
    } else {
        worker_end(pool, process);
    }
}

/* Returns true if a worker has ended and is not reaped. */
static bool worker_is_dead(const struct process *process)
{
    siginfo_t info = {.si_pid = 0};

    if (process->fd < 0)
        return false;
    if (waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT))
        return errno == ECHILD;
    return info.si_pid != 0;
}

/*
 * Reads output until the tick. Processes that a worker started may keep its
 * pipe open, so a dead worker whose pipe is empty has ended, too.
 */
static void output_read(struct pool *pool)
{
    struct pollfd fds[MAX_JOBS];
    bool dead[MAX_JOBS];
    const uint32_t count = pool->count;
    int ready;

    for (uint32_t i = 0; i < count; i++) {
        dead[i] = worker_is_dead(&pool->processes[i]);
        fds[i] = (struct pollfd){.fd = pool->processes[i].fd, .events = POLLIN};
    }
    ready = poll(fds, count, TICK_MS);
    if (ready < 0 && errno == EINTR)
        return;
    if (ready < 0) {
        perror(PROGRAM ": poll");
        workers_kill(pool);
    }
    if (ready == 0)
        progress_tick(&pool->suite->progress);
    for (uint32_t i = 0; i < count; i++)
        if (ready > 0 && fds[i].revents != 0)
            worker_read(pool, &pool->processes[i]);
        else if ((ready < 0 || dead[i]) && pool->processes[i].fd >= 0)
            worker_end(pool, &pool->processes[i]);
}

static void pool_finish(struct pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++)
        free(pool->processes[i].text);
    free(pool->processes);
    free(pool->outcomes);
    munmap(pool->claims, sizeof(*pool->claims));
}

bool workers_run(struct suite *suite,
                 enum exit_code (*work)(struct suite *suite),
                 enum exit_code *out_code)
{
    struct pool pool = {.suite = suite, .work = work};

    *out_code = EXIT_FAILED;
    pool.claims = mmap(NULL, sizeof(*pool.claims), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pool.claims == MAP_FAILED) {
        perror(PROGRAM ": mmap");
        return false;
    }
    atomic_store(&pool.claims->jobs, 1);
    pool.processes = must_allocate(MAX_JOBS * sizeof(*pool.processes));
    pool.failed = !worker_start(&pool);
    while (pool.running > 0)
        output_read(&pool);
    progress_end(&suite->progress);
    if (pool.failed)
        outcomes_print_rest(&pool);
    pool_finish(&pool);
    if (pool.signal != 0) {
        prctl(PR_SET_DUMPABLE, 0); /* The worker has written its core. */
        signal(pool.signal, SIG_DFL);
        raise(pool.signal);
    }
    *out_code =
        pool.failed && pool.code == EXIT_PASSED ? EXIT_FAILED : pool.code;
    return !pool.failed;
}
