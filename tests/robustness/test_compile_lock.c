/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cached programs while another process holds the compile lock, which this
 * test takes in the cache directory. The plugin must not ask PoCL for binaries
 * then, and its results are correct all the same.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "single_fault.h"

static char directory[4096];

static int directory_open(void)
{
    int made = mkdir(directory, 0700);
    int opened = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ck_assert(made == 0 || errno == EEXIST);
    ck_assert_int_ge(opened, 0);
    return opened;
}

static char aside[4096];

/* Moves all cached files from one directory to another. */
static void files_move(const char *from, const char *to)
{
    DIR *stream = opendir(from);
    const struct dirent *entry;
    char old[2 * 4096], new[2 * 4096];

    ck_assert_ptr_nonnull(stream);
    while ((entry = readdir(stream))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(old, sizeof old, "%s/%s", from, entry->d_name);
        snprintf(new, sizeof new, "%s/%s", to, entry->d_name);
        ck_assert_int_eq(rename(old, new), 0);
    }
    closedir(stream);
}

static unsigned files_kept(void)
{
    DIR *stream = opendir(directory);
    const struct dirent *entry;
    unsigned count = 0;

    ck_assert_ptr_nonnull(stream);
    while ((entry = readdir(stream)))
        count += entry->d_name[0] != '.';
    closedir(stream);
    return count;
}

/*
 * Computes a negation on a new device with this timeout for the compile lock.
 * Returns true if programs were compiled from source.
 */
static bool compiled_from_source(const char *lock_timeout_ms)
{
    const struct layer_script nothing = {.fault = LAYER_FAULT_CALL, .nth = 0};
    const char *const pairs[] = {"cache_dir",
                                 directory,
                                 "test.force_program_cache",
                                 "1",
                                 "test.compile_lock_timeout_ms",
                                 lock_timeout_ms,
                                 NULL};
    struct tandem_buffer *buffer;
    bool compiled;

    plug.script_set(&nothing);
    device_open(pairs);
    buffer = ramp_new();
    OK(unary(TANDEM_OP_NEG, buffer));
    OK(synchronize());
    for (int i = 0; i < N; i++) {
        float got;

        OK(plug.api->download(work.stream, buffer, (uint64_t)i * sizeof got,
                              &got, sizeof got, 0, TANDEM_TIMEOUT_INFINITE));
        ck_assert(got == -(float)(i + 1));
    }
    compiled = calls_of("clCreateProgramWithSource") > 0;
    plug.api->free(buffer);
    plug.api->stream_destroy(work.stream);
    workload_close(&work);
    return compiled;
}

TEST(no_binary_is_requested_without_the_lock)
{
    int other = directory_open();

    ck_assert_int_eq(flock(other, LOCK_EX), 0);
    ck_assert(compiled_from_source("20"));
    ck_assert_uint_eq(calls_of("clGetProgramInfo"), 0);
    ck_assert_uint_eq(files_kept(), 0);
    close(other);
}

/* The lock is taken and released, and the next process compiles nothing. */
TEST(programs_compiled_under_the_lock_are_cached)
{
    int other = directory_open();

    ck_assert(compiled_from_source("60000"));
    ck_assert_uint_gt(calls_of("clGetProgramInfo"), 0);
    ck_assert_uint_gt(files_kept(), 0);
    ck_assert_int_eq(flock(other, LOCK_EX | LOCK_NB), 0);
    /* Cached programs are used without the lock. */
    ck_assert(!compiled_from_source("20"));
    ck_assert_uint_eq(calls_of("clGetProgramInfo"), 0);
    close(other);
}

/*
 * Acts as another process that compiles the same program. It releases the lock
 * when the program is cached.
 */
static void *other_compiles(void *turn)
{
    nanosleep(&(struct timespec){0, 500000000}, NULL);
    files_move(aside, directory);
    close(*(const int *)turn);
    return NULL;
}

TEST(programs_compiled_meanwhile_are_found)
{
    int other = directory_open();
    pthread_t thread;

    files_move(directory, aside);
    ck_assert_uint_eq(files_kept(), 0);
    ck_assert_int_eq(flock(other, LOCK_EX), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, other_compiles, &other), 0);
    ck_assert(!compiled_from_source("60000"));
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

int main(void)
{
    int status;

    /* For other drivers, binaries are requested without the lock. */
    setenv("OCL_ICD_VENDORS", "/etc/OpenCL/vendors/pocl.icd", 1);
    if (!plug_start(&plug))
        return 77;
    plug_cache(directory, sizeof directory, "turn");
    plug_cache(aside, sizeof aside, "turn-aside");
    if (mkdir(aside, 0700) != 0 && errno != EEXIST)
        return 99;
    status = tests_run_without_fork("turn", NULL, NULL);
    plug_cache_remove(aside);
    plug_cache_remove(directory);
    return status;
}
