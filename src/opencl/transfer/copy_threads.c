/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that copy for transfers; see copy_threads.h. */
#include "opencl/transfer/copy_threads.h"

#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "common/cpu_count.h"
#include "common/thread_state_guard.h"

#define STACK_BYTES ((size_t)256 << 10)
/* So long a thread looks for more before it sleeps: waking one costs more than
 * the piece that it would have copied meanwhile. */
#define SPIN_NS 200000u
#define SPIN_TURNS 32u
/* Who asked for it may be in a handler of a signal, and fork there. */
#define DRAIN_TURNS 4096u

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

/* ---- pieces ---- */

/* Past the caches: a device that reads what lies in one waits for it. */
static void copy_past(unsigned char *to, const unsigned char *from,
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

static uint64_t slot_pieces(const struct copier *copier, uint64_t s)
{
    const struct copier_job *job = &copier->job;
    uint64_t left = job->bytes - s * job->slot_bytes;
    uint64_t bytes = left < job->slot_bytes ? left : job->slot_bytes;
    return (bytes + copier->piece_bytes - 1) / copier->piece_bytes;
}

static void piece_copy(struct copier *copier, uint64_t piece)
{
    const struct copier_job *job = &copier->job;
    uint64_t offset = piece * copier->piece_bytes;
    uint64_t s = offset / job->slot_bytes;
    uint64_t left = job->bytes - offset;
    uint64_t bytes = left < copier->piece_bytes ? left : copier->piece_bytes;
    uint32_t place = (uint32_t)(s % job->slots);
    unsigned char *ring =
        job->ring + place * job->slot_bytes + offset % job->slot_bytes;
    if (job->to_ring && offset < job->past_bytes)
        copy_past(ring, job->host + offset, bytes);
    else
        memcpy(job->to_ring ? ring : job->host + offset,
               job->to_ring ? job->host + offset : ring, (size_t)bytes);
    atomic_fetch_sub_explicit(&copier->left[place], 1, memory_order_release);
}

/* Who reads a limit above a piece's number sees the piece's job, too. */
bool copy_threads_run_chunk(struct copier *copier)
{
    uint64_t piece = atomic_load_explicit(&copier->next, memory_order_relaxed);
    do {
        if (piece >= atomic_load(&copier->limit))
            return false;
    } while (!atomic_compare_exchange_weak(&copier->next, &piece, piece + 1));
    piece_copy(copier, piece - copier->first);
    return true;
}

/* ---- threads ---- */

static bool work_there(struct copier *copier)
{
    return atomic_load(&copier->next) < atomic_load(&copier->limit);
}

/* Returns when there is work, or none for so long. */
static void work_spin(struct copier *copier)
{
    uint64_t end = now_ns() + SPIN_NS;
    do {
        for (uint32_t i = 0; i < SPIN_TURNS; i++) {
            if (work_there(copier))
                return;
            relax();
        }
    } while (now_ns() < end);
}

/* false: it is time to end. */
static bool work_sleep(struct copier *copier)
{
    pthread_mutex_lock(&copier->mutex);
    atomic_fetch_add(&copier->asleep, 1);
    while (!copier->stop && !work_there(copier))
        pthread_cond_wait(&copier->posted, &copier->mutex);
    atomic_fetch_sub(&copier->asleep, 1);
    bool goes_on = !copier->stop;
    pthread_mutex_unlock(&copier->mutex);
    return goes_on;
}

static void *copy_pieces(void *argument)
{
    struct copier *copier = argument;
    do {
        while (copy_threads_run_chunk(copier))
            continue;
        work_spin(copier);
    } while (work_there(copier) || work_sleep(copier));
    return NULL;
}

static void threads_start(struct copier *copier)
{
    uint32_t allowed = cpu_count_available();
    uint32_t most = copier->wanted < allowed ? copier->wanted : allowed;
    while (copier->count + 1 < most &&
           guarded_thread_start(&copier->threads[copier->count], "tandem-copy",
                                STACK_BYTES, copy_pieces, copier))
        copier->count++;
    copier->wanted = copier->count + 1;
}

void copier_start(struct copier *copier, uint64_t most)
{
    pthread_mutex_init(&copier->mutex, NULL);
    pthread_cond_init(&copier->posted, NULL);
    copier->wanted = most != 0 && most < COPIER_THREADS + 1
                         ? (uint32_t)most
                         : COPIER_THREADS + 1;
}

void copier_finish(struct copier *copier)
{
    pthread_mutex_lock(&copier->mutex);
    copier->stop = true;
    pthread_cond_broadcast(&copier->posted);
    pthread_mutex_unlock(&copier->mutex);
    for (uint32_t i = 0; i < copier->count; i++)
        pthread_join(copier->threads[i], NULL);
    pthread_cond_destroy(&copier->posted);
    pthread_mutex_destroy(&copier->mutex);
}

/* ---- for the caller ---- */

static uint64_t piece_size(const struct copier *copier, uint64_t slot_bytes)
{
    uint64_t bytes = COPIER_LEAST_BYTES;
    while (bytes < COPIER_PIECE_BYTES && bytes * copier->wanted < slot_bytes)
        bytes *= 2;
    return bytes;
}

void copier_begin(struct copier *copier, const struct copier_job *job)
{
    if (copier->count + 1 < copier->wanted)
        threads_start(copier);
    copier->job = *job;
    copier->process = getpid();
    copier->piece_bytes = piece_size(copier, job->slot_bytes);
    copier->first = atomic_load(&copier->next);
}

void copier_post(struct copier *copier, uint64_t s)
{
    uint64_t pieces = slot_pieces(copier, s);
    atomic_store(&copier->left[s % copier->job.slots], (uint32_t)pieces);
    atomic_fetch_add(&copier->limit, pieces);
    if (atomic_load(&copier->asleep) == 0)
        return;
    pthread_mutex_lock(&copier->mutex);
    pthread_cond_broadcast(&copier->posted);
    pthread_mutex_unlock(&copier->mutex);
}

bool copier_done(struct copier *copier, uint64_t s)
{
    return atomic_load_explicit(&copier->left[s % copier->job.slots],
                                memory_order_acquire) == 0;
}

bool copier_orphaned(const struct copier *copier)
{
    return getpid() != copier->process;
}

bool copier_drain(struct copier *copier)
{
    uint32_t turns = 0;
    while (copy_threads_run_chunk(copier))
        continue;
    for (uint32_t i = 0; i < copier->job.slots; i++)
        while (!copier_done(copier, i)) {
            if (++turns % DRAIN_TURNS == 0 && copier_orphaned(copier))
                return false;
            relax();
        }
    return true;
}

void copier_copy(struct copier *copier, void *host, void *other,
                 uint64_t bytes, bool to_other)
{
    const struct copier_job job = {.host = host,
                                   .ring = other,
                                   .bytes = bytes,
                                   .slot_bytes = bytes,
                                   .slots = 1,
                                   .to_ring = to_other,
                                   .past_bytes = bytes};
    copier_begin(copier, &job);
    copier_post(copier, 0);
    copier_drain(copier);
}
