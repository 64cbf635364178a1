/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy threads of transfers: each byte is copied once, while entries of the
 * lists of copies and chunks are reused, with and without threads, and after
 * the threads have slept.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/test_list.h"
#include "opencl/transfer/copy_threads.h"

#define MAX_BYTES ((uint64_t)9 << 20)

static unsigned char *from, *to;

static unsigned char byte_of(uint64_t i, unsigned seed)
{
    return (unsigned char)((i * 2654435761u >> 13) + seed);
}

static void memory_setup(void)
{
    from = malloc(MAX_BYTES + 1);
    to = malloc(MAX_BYTES + 2);
    ck_assert(from != NULL && to != NULL);
}

static void memory_teardown(void)
{
    free(from);
    free(to);
}

/* Copies in pieces, as many at a time as are allowed, from and to odd
 * addresses. */
static void copies_run(struct copy_threads *threads, uint64_t bytes,
                       uint64_t piece, unsigned seed)
{
    const uint64_t count = (bytes + piece - 1) / piece;
    uint64_t posted = 0, done = 0, same = 0;

    for (uint64_t i = 0; i < bytes; i++)
        from[i + 1] = byte_of(i, seed);
    memset(to, 0, bytes + 2);
    ck_assert(copy_threads_begin(threads));
    while (done < count) {
        const uint64_t at = posted * piece;

        if (posted < count && posted < done + MAX_COPIES) {
            const struct copy copy = {to + 1 + at, from + 1 + at,
                                      at + piece < bytes ? piece : bytes - at,
                                      posted % 2 == 0};

            copy_threads_post(threads, posted++, &copy);
        } else if (copy_threads_are_done(threads, done)) {
            done++;
        } else {
            copy_threads_run_chunk(threads);
        }
    }
    ck_assert(copy_threads_drain(threads));
    ck_assert(!copy_threads_run_chunk(threads));
    while (same < bytes && to[same + 1] == byte_of(same, seed))
        same++;
    ck_assert_uint_eq(same, bytes);
    ck_assert(to[0] == 0 && to[bytes + 1] == 0);
}

static void sizes(uint64_t max_threads)
{
    static const uint64_t bytes[] = {1,       63,       4097,     131072,
                                     1000003, 1u << 20, MAX_BYTES};
    const struct timespec rest = {0, 1000000};
    struct copy_threads threads = {0};

    copy_threads_start(&threads, max_threads);
    for (unsigned i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
        for (uint64_t piece = 64 << 10; piece <= 1 << 20; piece *= 2) {
            copies_run(&threads, bytes[i], piece, i);
            nanosleep(&rest, NULL); /* The threads sometimes fall asleep. */
        }
    ck_assert_uint_le(threads.count, MAX_COPY_THREADS);
    if (max_threads == 1)
        ck_assert_uint_eq(threads.count, 0);
    copy_threads_finish(&threads);
}

TEST(without_threads)
{
    sizes(1);
}

TEST(with_one_thread)
{
    sizes(2);
}

TEST(with_the_maximum_of_threads)
{
    sizes(0);
}

/* In a forked child, a thread's unfinished chunk is never completed. */
TEST(a_fork_has_no_threads)
{
    struct copy_threads threads = {0};
    const struct copy copy = {to, from, 1000003, false};
    int ended = -1;
    pid_t child;

    copy_threads_start(&threads, 1);
    ck_assert(copy_threads_begin(&threads));
    copy_threads_post(&threads, 0, &copy);
    atomic_fetch_add(&threads.next, 1);
    child = fork();
    if (child == 0) {
        alarm(60);
        _exit(copy_threads_drain(&threads) ? 1 : 0);
    }
    ck_assert_int_eq(waitpid(child, &ended, 0), child);
    ck_assert(WIFEXITED(ended));
    ck_assert_int_eq(WEXITSTATUS(ended), 0);
    atomic_fetch_sub(&threads.chunks_left[0], 1);
    ck_assert(copy_threads_drain(&threads));
    copy_threads_finish(&threads);
}

TEST(without_a_copy)
{
    struct copy_threads threads = {0};

    copy_threads_start(&threads, 0);
    ck_assert_uint_eq(threads.count, 0);
    copy_threads_finish(&threads);
}

int main(void)
{
    TCase *tests = tcase_create("copy threads");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, memory_setup, memory_teardown);
    tests_add(tests);
    return runner_run_case("copy threads", tests);
}
