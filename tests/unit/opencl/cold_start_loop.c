/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage: cold-starts [SECONDS [JOBS [SEED]]]
 *
 * For SECONDS seconds (3), runs JOBS processes at a time (1). Each process
 * finds no compiled program and launches kernels at once (cold_start_calls.h),
 * with seeds from SEED (1) on. Prints the output of each failed process, and
 * at the end "N cold starts, M lost". With COLD_STARTS_WARM=1 the processes
 * use the driver's own cache, because PoCL needs seconds for a kernel.
 */
#include <config.h>

#include <ftw.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cold_start_calls.h"
#include "support/case_summary.h"

#define MAX_JOBS 64u
/* Timeout of a process. */
#define TIMEOUT_SECONDS 300u

extern char **environ;

struct job {
    pid_t process; /* 0 if the slot is free. */
    uint64_t seed;
    char directory[64]; /* The directory of its caches. */
};

struct start_counts {
    uint64_t starts, lost;
};

static int remove_one(const char *path, const struct stat *status, int kind,
                      struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

/* Sets the directories of the plugin's and the drivers' caches. */
static void caches_set(const char *directory)
{
    setenv("XDG_CACHE_HOME", directory, 1);
    if (getenv("COLD_STARTS_WARM") != NULL)
        return;
    setenv("CUDA_CACHE_PATH", directory, 1);
    setenv("POCL_CACHE_DIR", directory, 1);
    setenv("MESA_SHADER_CACHE_DIR", directory, 1);
}

static bool job_start(struct job *job, const char *self, uint64_t seed)
{
    char number[32];
    snprintf(number, sizeof(number), "%" PRIu64, seed);
    char *const arguments[] = {(char *)(uintptr_t)self, "--one", number, NULL};
    snprintf(job->directory, sizeof(job->directory), "cold-starts.XXXXXX");
    if (mkdtemp(job->directory) == NULL)
        return false;
    char *path = realpath(job->directory, NULL);
    if (path == NULL)
        return false;
    caches_set(path);
    free(path);
    job->seed = seed;
    return posix_spawn(&job->process, self, NULL, NULL, arguments, environ) ==
           0;
}

static void job_end(struct job *job, int status,
                    struct start_counts *start_counts)
{
    start_counts->starts++;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        start_counts->lost++;
        fprintf(stderr, "lost: seed %" PRIu64 ": %s %d\n", job->seed,
                WIFSIGNALED(status) ? "signal" : "exit status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    nftw(job->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    job->process = 0;
}

static void wait_one(struct job *jobs, uint32_t count,
                     struct start_counts *start_counts)
{
    int status;
    pid_t ended = wait(&status);
    for (uint32_t i = 0; i < count; i++)
        if (ended > 0 && jobs[i].process == ended)
            job_end(&jobs[i], status, start_counts);
}

static int seconds_left(const struct timespec *end)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec < end->tv_sec;
}

static bool starts_run(const char *self, uint32_t seconds, uint32_t count,
                       uint64_t seed, struct start_counts *start_counts)
{
    struct job jobs[MAX_JOBS] = {{0}};
    struct timespec end;
    uint32_t running = 0;
    bool started = true;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += seconds;
    while (started &&
           (start_counts->starts + running == 0 || seconds_left(&end))) {
        uint32_t free_job = 0;
        while (jobs[free_job].process != 0)
            free_job++;
        started = job_start(&jobs[free_job], self, seed++);
        running += started;
        if (running == count) {
            wait_one(jobs, count, start_counts);
            running--;
        }
    }
    for (; running > 0; running--)
        wait_one(jobs, count, start_counts);
    return started;
}

int main(int argc, char **argv)
{
    struct start_counts start_counts = {0, 0};
    if (argc == 3 && strcmp(argv[1], "--one") == 0) {
        alarm(TIMEOUT_SECONDS);
        return cold_call(strtoull(argv[2], NULL, 10));
    }
    uint32_t seconds = argc > 1 ? (uint32_t)atoi(argv[1]) : 3;
    uint32_t jobs = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    if (argc > 4 || seconds == 0 || jobs == 0 || jobs > MAX_JOBS) {
        fprintf(stderr, "usage: %s [SECONDS [JOBS [SEED]]]\n", argv[0]);
        return 2;
    }
    printf("seeds from %" PRIu64 " on\n", seed);
    fflush(stdout);
    bool started = starts_run(argv[0], seconds, jobs, seed, &start_counts);
    printf("%" PRIu64 " cold starts, %" PRIu64 " lost\n", start_counts.starts,
           start_counts.lost);
    return case_summary(started ? start_counts.starts - start_counts.lost : 0,
                        start_counts.lost);
}
