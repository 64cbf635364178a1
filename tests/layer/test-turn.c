/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs on disk while another process has its turn: its lock of the cache's
 * directory is one that this test holds.  PoCL's binaries are then not asked
 * for, and what is computed is right all the same.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "single.h"

static char directory[4096];

static int directory_open(void)
{
    int made = mkdir(directory, 0700);
    int opened = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ck_assert(made == 0 || errno == EEXIST);
    ck_assert_int_ge(opened, 0);
    return opened;
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

/* Since the script was set. */
static uint64_t calls_of(const char *function)
{
    const char *name;
    uint64_t calls;

    for (uint32_t i = 0; (name = plug.function(i, &calls)); i++)
        if (strcmp(name, function) == 0)
            return calls;
    ck_abort_msg("no function %s", function);
    return 0;
}

/* A negation by a device of its own, which waits so long for its turn.  Whether
 * programs were compiled from their source. */
static bool work_done(const char *turn_ms)
{
    const struct layer_script nothing = {.fault = LAYER_FAULT_CALL, .nth = 0};
    const char *const pairs[] = {"cache_dir",    directory, "test.cache", "1",
                                 "test.turn_ms", turn_ms,   NULL};
    struct tandem_buffer *buffer;
    bool compiled;

    memset(&work, 0, sizeof work);
    work.api = plug.api;
    plug.script_set(&nothing);
    ck_assert_msg(workload_open(&work, pairs), "%s", work.failed);
    ck_assert_int_eq(plug.api->stream_create(work.device, 0, &work.stream),
                     TANDEM_OK);
    buffer = ramp_new();
    ck_assert_int_eq(unary(TANDEM_OP_NEG, buffer), TANDEM_OK);
    ck_assert_int_eq(synchronize(), TANDEM_OK);
    for (int i = 0; i < N; i++) {
        float got;

        ck_assert_int_eq(plug.api->download(work.stream, buffer,
                                            (uint64_t)i * sizeof got, &got,
                                            sizeof got, 0, TANDEM_FOREVER),
                         TANDEM_OK);
        ck_assert(got == -(float)(i + 1));
    }
    compiled = calls_of("clCreateProgramWithSource") > 0;
    plug.api->free(buffer);
    plug.api->stream_destroy(work.stream);
    workload_close(&work);
    return compiled;
}

START_TEST(no_binary_is_asked_for_without_the_turn)
{
    int other = directory_open();

    ck_assert_int_eq(flock(other, LOCK_EX), 0);
    ck_assert(work_done("20"));
    ck_assert_uint_eq(calls_of("clGetProgramInfo"), 0);
    ck_assert_uint_eq(files_kept(), 0);
    close(other);
}
END_TEST

/* The turn is taken and ended, and the next process compiles nothing. */
START_TEST(what_is_compiled_in_turn_is_kept)
{
    int other = directory_open();

    ck_assert(work_done("60000"));
    ck_assert_uint_gt(calls_of("clGetProgramInfo"), 0);
    ck_assert_uint_gt(files_kept(), 0);
    ck_assert_int_eq(flock(other, LOCK_EX | LOCK_NB), 0);
    /* What is there needs no turn. */
    ck_assert(!work_done("20"));
    ck_assert_uint_eq(calls_of("clGetProgramInfo"), 0);
    close(other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("turn");
    TCase *tests = tcase_create("turn");
    int status;

    /* Another driver's binaries are asked for in no turn. */
    setenv("OCL_ICD_VENDORS", "/etc/OpenCL/vendors/pocl.icd", 1);
    if (!plug_start(&plug))
        return 77;
    plug_cache(directory, sizeof directory, "turn");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, no_binary_is_asked_for_without_the_turn);
    tcase_add_test(tests, what_is_compiled_in_turn_is_kept);
    status = single_main(suite);
    plug_cache_remove(directory);
    return status;
}
