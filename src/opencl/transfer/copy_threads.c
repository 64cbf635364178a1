/* SPDX-License-Identifier: Apache-2.0 */
/* Copy threads; see copy_threads.h. */
#include "opencl/transfer/copy_threads.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "common/cpu_count.h"
#include "common/thread_state_guard.h"

#define STACK_BYTES ((size_t)256 << 10)
/* An idle copy thread spins for this long before it sleeps, because waking a
 * thread takes longer than copying a chunk. */
#define SPIN_NS 200000u
#define SPIN_ITERATIONS 32u
/* After this many iterations, copy_threads_drain tests whether this process is
 * a fork, because a signal handler can fork during the wait. */
#define DRAIN_ITERATIONS 4096u

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void relax(void)
{
#ifdef __SSE2__
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Copies with stores that bypass the CPU caches, because a device reads cached
 * data more slowly than data in memory. */
static void copy_non_temporal(unsigned char *to, const unsigned char *from,
                              uint64_t bytes)
{
#ifdef __SSE2__
    while (bytes != 0 && ((uintptr_t)to & 15u) != 0) {
        *to++ = *from++;
        bytes--;
    }
    for (; bytes >= 64; bytes -= 64, to += 64, from += 64) {
        const __m128i *in = (const __m128i *)(const void *)from;
        __m128i *out = (__m128i *)(void *)to;
        __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1),
                c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    memcpy(to, from, (size_t)bytes);
    _mm_sfence();
#else
    memcpy(to, from, (size_t)bytes);
#endif
}

static void copy_chunk(struct copy_threads *threads, uint64_t i)
{
    const struct copy_chunk *chunk = &threads->chunks[i % MAX_COPY_CHUNKS];
    const uint64_t number = chunk->number;
    const struct copy *part = &chunk->part;
    if (part->non_temporal)
        copy_non_temporal(part->to, part->from, part->bytes);
    else
        memcpy(part->to, part->from, (size_t)part->bytes);
    /* The caller can reuse the entry `chunk` from here on. */
    atomic_fetch_sub_explicit(&threads->chunks_left[number % MAX_COPIES], 1,
                              memory_order_release);
}

/* `limit` is raised after the chunks are stored, so a thread that sees a chunk
 * number below `limit` also sees the chunk. */
bool copy_threads_run_chunk(struct copy_threads *threads)
{
    uint64_t chunk = atomic_load_explicit(&threads->next, memory_order_relaxed);
    do {
        if (chunk >= atomic_load(&threads->limit))
            return false;
    } while (!atomic_compare_exchange_weak(&threads->next, &chunk, chunk + 1));
    copy_chunk(threads, chunk);
    return true;
}

static bool has_work(struct copy_threads *threads)
{
    return atomic_load(&threads->next) < atomic_load(&threads->limit);
}

/* Spins until there is a chunk to copy, but at most for SPIN_NS. */
static void spin_for_work(struct copy_threads *threads)
{
    uint64_t end = now_ns() + SPIN_NS;
    do {
        for (uint32_t i = 0; i < SPIN_ITERATIONS; i++) {
            if (has_work(threads))
                return;
            relax();
        }
    } while (now_ns() < end);
}

/* Sleeps until there is a chunk.  Returns false if the thread must end. */
static bool sleep_for_work(struct copy_threads *threads)
{
    pthread_mutex_lock(&threads->mutex);
    atomic_fetch_add(&threads->sleeping, 1);
    while (!threads->stop && !has_work(threads))
        pthread_cond_wait(&threads->posted, &threads->mutex);
    atomic_fetch_sub(&threads->sleeping, 1);
    bool continues = !threads->stop;
    pthread_mutex_unlock(&threads->mutex);
    return continues;
}

static void *thread_main(void *argument)
{
    struct copy_threads *threads = argument;
    do {
        while (copy_threads_run_chunk(threads))
            continue;
        spin_for_work(threads);
    } while (has_work(threads) || sleep_for_work(threads));
    return NULL;
}

static void threads_start(struct copy_threads *threads)
{
    uint32_t allowed = cpu_count_available();
    uint32_t max = threads->wanted < allowed ? threads->wanted : allowed;
    while (threads->count + 1 < max &&
           guarded_thread_start(&threads->ids[threads->count], "tandem-copy",
                                STACK_BYTES, thread_main, threads))
        threads->count++;
    threads->wanted = threads->count + 1;
}

void copy_threads_start(struct copy_threads *threads, uint64_t max_threads)
{
    pthread_mutex_init(&threads->mutex, NULL);
    pthread_cond_init(&threads->posted, NULL);
    threads->wanted = max_threads != 0 && max_threads < MAX_COPY_THREADS + 1
                          ? (uint32_t)max_threads
                          : MAX_COPY_THREADS + 1;
}

void copy_threads_finish(struct copy_threads *threads)
{
    pthread_mutex_lock(&threads->mutex);
    threads->stop = true;
    pthread_cond_broadcast(&threads->posted);
    pthread_mutex_unlock(&threads->mutex);
    for (uint32_t i = 0; i < threads->count; i++)
        pthread_join(threads->ids[i], NULL);
    pthread_cond_destroy(&threads->posted);
    pthread_mutex_destroy(&threads->mutex);
    free(threads->chunks);
}

bool copy_threads_begin(struct copy_threads *threads)
{
    threads->process = getpid();
    if (threads->chunks != NULL)
        return true;
    threads->chunks = calloc(MAX_COPY_CHUNKS, sizeof(*threads->chunks));
    if (threads->chunks == NULL)
        return false;
    threads_start(threads);
    threads->chunk_bytes = MIN_COPY_CHUNK_BYTES;
    while (threads->chunk_bytes * threads->wanted < MAX_COPY_CHUNK_BYTES)
        threads->chunk_bytes *= 2;
    return true;
}

void copy_threads_post(struct copy_threads *threads, uint64_t number,
                       const struct copy *copy)
{
    const uint64_t first = atomic_load(&threads->limit);
    uint64_t count = 0;
    for (uint64_t at = 0; at < copy->bytes; at += threads->chunk_bytes) {
        const uint64_t left = copy->bytes - at;
        threads->chunks[(first + count++) % MAX_COPY_CHUNKS] =
            (struct copy_chunk){
                {copy->to + at, copy->from + at,
                 left < threads->chunk_bytes ? left : threads->chunk_bytes,
                 copy->non_temporal},
                number};
    }
    atomic_store(&threads->chunks_left[number % MAX_COPIES], (uint32_t)count);
    atomic_store(&threads->limit, first + count);
    if (atomic_load(&threads->sleeping) == 0)
        return;
    pthread_mutex_lock(&threads->mutex);
    pthread_cond_broadcast(&threads->posted);
    pthread_mutex_unlock(&threads->mutex);
}

bool copy_threads_are_done(struct copy_threads *threads, uint64_t number)
{
    return atomic_load_explicit(&threads->chunks_left[number % MAX_COPIES],
                                memory_order_acquire) == 0;
}

bool copy_threads_are_lost(const struct copy_threads *threads)
{
    return getpid() != threads->process;
}

bool copy_threads_drain(struct copy_threads *threads)
{
    uint32_t iterations = 0;
    while (copy_threads_run_chunk(threads))
        continue;
    for (uint64_t i = 0; i < MAX_COPIES; i++)
        while (!copy_threads_are_done(threads, i)) {
            if (++iterations % DRAIN_ITERATIONS == 0 &&
                copy_threads_are_lost(threads))
                return false;
            relax();
        }
    return true;
}
