/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy threads of bulk transfers: each byte is copied once, through slots
 * that are reused, with and without threads, and after the threads have slept.
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
#define RING_BYTES ((uint64_t)1 << 20)

static unsigned char *host, *ring, *device_memory;

static unsigned char byte_of(uint64_t i, unsigned seed)
{
    return (unsigned char)((i * 2654435761u >> 13) + seed);
}

static bool bytes_match(const unsigned char *at, uint64_t bytes, unsigned seed)
{
    for (uint64_t i = 0; i < bytes; i++)
        if (at[i] != byte_of(i, seed))
            return false;
    return true;
}

static void memory_setup(void)
{
    host = malloc(MAX_BYTES + 1);
    ring = malloc(RING_BYTES);
    device_memory = malloc(MAX_BYTES);
    ck_assert(host != NULL && ring != NULL && device_memory != NULL);
}

static void memory_teardown(void)
{
    free(host);
    free(ring);
    free(device_memory);
}

/* Copies a slot between the ring and the device, as a transfer does. */
static void device_copy_slot(const struct copy_job *job, uint64_t s)
{
    uint64_t offset = s * job->slot_bytes;
    uint64_t left = job->bytes - offset;
    uint64_t bytes = left < job->slot_bytes ? left : job->slot_bytes;
    unsigned char *slot = ring + s % job->slots * job->slot_bytes;

    if (job->to_ring)
        memcpy(device_memory + offset, slot, bytes);
    else
        memcpy(slot, device_memory + offset, bytes);
}

static void job_run(struct copy_threads *threads, const struct copy_job *job)
{
    uint64_t count = (job->bytes + job->slot_bytes - 1) / job->slot_bytes;
    uint64_t begun = 0, over = 0;

    copy_threads_begin(threads, job);
    while (over < count) {
        if (begun < count && begun < over + job->slots) {
            if (!job->to_ring)
                device_copy_slot(job, begun);
            copy_threads_post_slot(threads, begun++);
        } else if (copy_threads_slot_is_copied(threads, over)) {
            if (job->to_ring)
                device_copy_slot(job, over);
            over++;
        } else {
            copy_threads_run_chunk(threads);
        }
    }
    ck_assert(copy_threads_drain(threads));
    ck_assert(!copy_threads_run_chunk(threads));
}

/* Copies to the device and back, from an odd address. */
static void round_trip(struct copy_threads *threads, uint64_t bytes,
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
    memset(device_memory, 0, bytes);
    job_run(threads, &job);
    ck_assert(bytes_match(device_memory, bytes, seed));
    memset(host, 0, bytes + 1);
    job.to_ring = false;
    job_run(threads, &job);
    ck_assert(bytes_match(host + 1, bytes, seed));
    ck_assert_uint_eq(host[0], 0);
}

static void sizes(uint64_t max_threads)
{
    static const uint64_t bytes[] = {
        1, 63, 4097, 131072, 1000003, RING_BYTES, RING_BYTES + 1, MAX_BYTES};
    const struct timespec rest = {0, 1000000};
    struct copy_threads threads = {0};

    copy_threads_start(&threads, max_threads);
    for (unsigned i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
        for (uint64_t slot = 64 << 10; slot <= 512 << 10; slot *= 2) {
            round_trip(&threads, bytes[i], slot, i);
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

/* One slot of any size, as for a mapped buffer. */
TEST(one_slot)
{
    struct copy_threads threads = {0};
    const uint64_t bytes = 1000003;
    const struct copy_job job = {.host = host,
                                 .ring = device_memory,
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
    ck_assert_int_eq(memcmp(host, device_memory, bytes), 0);
    copy_threads_finish(&threads);
}

/* In a forked child, a thread's unfinished chunk is never completed. */
TEST(a_fork_has_no_threads)
{
    struct copy_threads threads = {0};
    const struct copy_job job = {.host = host,
                                 .ring = device_memory,
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

TEST(without_a_job)
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
