/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that copy for transfers: every byte, once, in slots that are used
 * again and again, with and without threads, after they have slept.
 */
#include <config.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../support/check_runner.h"
#include "opencl/transfer/copy_threads.h"

#define MOST_BYTES ((uint64_t)9 << 20)
#define RING_BYTES ((uint64_t)1 << 20)

static unsigned char *host, *ring, *far_end;

static unsigned char byte_of(uint64_t i, unsigned seed)
{
    return (unsigned char)((i * 2654435761u >> 13) + seed);
}

static bool bytes_right(const unsigned char *at, uint64_t bytes, unsigned seed)
{
    for (uint64_t i = 0; i < bytes; i++)
        if (at[i] != byte_of(i, seed))
            return false;
    return true;
}

static void memory_setup(void)
{
    host = malloc(MOST_BYTES + 1);
    ring = malloc(RING_BYTES);
    far_end = malloc(MOST_BYTES);
    ck_assert(host != NULL && ring != NULL && far_end != NULL);
}

static void memory_teardown(void)
{
    free(host);
    free(ring);
    free(far_end);
}

/* What a transfer does with a slot that is in the ring. */
static void slot_carry(const struct copy_job *job, uint64_t s)
{
    uint64_t offset = s * job->slot_bytes;
    uint64_t left = job->bytes - offset;
    uint64_t bytes = left < job->slot_bytes ? left : job->slot_bytes;
    unsigned char *slot = ring + s % job->slots * job->slot_bytes;

    if (job->to_ring)
        memcpy(far_end + offset, slot, bytes);
    else
        memcpy(slot, far_end + offset, bytes);
}

static void job_run(struct copy_threads *threads, const struct copy_job *job)
{
    uint64_t count = (job->bytes + job->slot_bytes - 1) / job->slot_bytes;
    uint64_t begun = 0, over = 0;

    copy_threads_begin(threads, job);
    while (over < count) {
        if (begun < count && begun < over + job->slots) {
            if (!job->to_ring)
                slot_carry(job, begun);
            copy_threads_post_slot(threads, begun++);
        } else if (copy_threads_slot_is_copied(threads, over)) {
            if (job->to_ring)
                slot_carry(job, over);
            over++;
        } else {
            copy_threads_run_chunk(threads);
        }
    }
    ck_assert(copy_threads_drain(threads));
    ck_assert(!copy_threads_run_chunk(threads));
}

/* There and back, from an odd address. */
static void there_and_back(struct copy_threads *threads, uint64_t bytes,
                           uint64_t slot_bytes, unsigned seed)
{
    struct copy_job job = {.host = host + 1,
                           .ring = ring,
                           .bytes = bytes,
                           .slot_bytes = slot_bytes,
                           .slots = (uint32_t)(RING_BYTES / slot_bytes),
                           .to_ring = true,
                           .non_temporal_bytes = bytes / 2};

    if (job.slots > MAX_COPY_SLOTS)
        job.slots = MAX_COPY_SLOTS;
    for (uint64_t i = 0; i < bytes; i++)
        host[i + 1] = byte_of(i, seed);
    memset(far_end, 0, bytes);
    job_run(threads, &job);
    ck_assert(bytes_right(far_end, bytes, seed));
    memset(host, 0, bytes + 1);
    job.to_ring = false;
    job_run(threads, &job);
    ck_assert(bytes_right(host + 1, bytes, seed));
    ck_assert_uint_eq(host[0], 0);
}

static void sizes(uint64_t max_threads)
{
    static const uint64_t bytes[] = {1,      63,        4097,
                                     131072, 1000003,   RING_BYTES,
                                     RING_BYTES + 1,    MOST_BYTES};
    const struct timespec rest = {0, 1000000};
    struct copy_threads threads = {0};

    copy_threads_start(&threads, max_threads);
    for (unsigned i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
        for (uint64_t slot = 64 << 10; slot <= 512 << 10; slot *= 2) {
            there_and_back(&threads, bytes[i], slot, i);
            nanosleep(&rest, NULL); /* asleep, now and then */
        }
    ck_assert_uint_le(threads.count, MAX_COPY_THREADS);
    if (max_threads == 1)
        ck_assert_uint_eq(threads.count, 0);
    copy_threads_finish(&threads);
}

START_TEST(alone)
{
    sizes(1);
}
END_TEST

START_TEST(with_a_thread)
{
    sizes(2);
}
END_TEST

START_TEST(with_as_many_as_there_may_be)
{
    sizes(0);
}
END_TEST

/* One slot of any size, as a mapped buffer is. */
START_TEST(one_slot)
{
    struct copy_threads threads = {0};
    const uint64_t bytes = 1000003;
    const struct copy_job job = {.host = host,
                                 .ring = far_end,
                                 .bytes = bytes,
                                 .slot_bytes = bytes,
                                 .slots = 1,
                                 .to_ring = true};

    copy_threads_start(&threads, 0);
    for (uint64_t i = 0; i < bytes; i++)
        host[i] = byte_of(i, 5);
    copy_threads_begin(&threads, &job);
    copy_threads_post_slot(&threads, 0);
    copy_threads_drain(&threads);
    ck_assert(copy_threads_slot_is_copied(&threads, 0));
    ck_assert_int_eq(memcmp(host, far_end, bytes), 0);
    copy_threads_finish(&threads);
}
END_TEST

/* A thread copies a chunk, which it never completes in the child of a fork. */
START_TEST(a_fork_has_no_threads)
{
    struct copy_threads threads = {0};
    const struct copy_job job = {.host = host,
                                 .ring = far_end,
                                 .bytes = 1000003,
                                 .slot_bytes = 1000003,
                                 .slots = 1,
                                 .to_ring = true};
    int ended = -1;
    pid_t child;

    copy_threads_start(&threads, 1);
    copy_threads_begin(&threads, &job);
    copy_threads_post_slot(&threads, 0);
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
END_TEST

START_TEST(without_a_job)
{
    struct copy_threads threads = {0};

    copy_threads_start(&threads, 0);
    ck_assert_uint_eq(threads.count, 0);
    copy_threads_finish(&threads);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("copy threads");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, memory_setup, memory_teardown);
    tcase_add_test(tests, alone);
    tcase_add_test(tests, with_a_thread);
    tcase_add_test(tests, with_as_many_as_there_may_be);
    tcase_add_test(tests, one_slot);
    tcase_add_test(tests, a_fork_has_no_threads);
    tcase_add_test(tests, without_a_job);
    return runner_run_case("copy threads", tests);
}
