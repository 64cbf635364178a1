/* SPDX-License-Identifier: Apache-2.0 */
/* The copy threads of a device copy data between the caller's memory and slots
 * of a ring while the device transfers other slots.  Several threads copy,
 * because one CPU copies more slowly than a bus transfers.  The threads start
 * at the first job, sleep while there is no job, and end with the device.
 *
 * Slots are divided into chunks.  The copy threads and the calling thread copy
 * the chunks.  There is one job at a time; the caller must serialize jobs.
 * Threads lock copy_threads.mutex only to sleep and to wake others. */
#ifndef TANDEM_OPENCL_TRANSFER_COPY_THREADS_H
#define TANDEM_OPENCL_TRANSFER_COPY_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MAX_COPY_THREADS 8u
#define MAX_COPY_SLOTS 128u
/* Limits of the chunk size.  A slot has about one chunk per thread.  Copying a
 * chunk below the minimum takes less time than passing it to a thread. */
#define MIN_COPY_CHUNK_BYTES ((uint64_t)32 << 10)
#define MAX_COPY_CHUNK_BYTES ((uint64_t)128 << 10)

/* Slot s of a job holds the bytes at host + s * slot_bytes. The slot is stored
 * at ring + slot_bytes * (s % slots). slot_bytes is a multiple of
 * MAX_COPY_CHUNK_BYTES if slots > 1. */
struct copy_job {
    unsigned char *host, *ring;
    uint64_t bytes, slot_bytes;
    uint32_t slots; /* slots in the ring, at most MAX_COPY_SLOTS */
    bool to_ring;   /* false means to `host` */
    /* Stores of the first non_temporal_bytes bytes bypass the CPU caches. */
    uint64_t non_temporal_bytes;
};

struct copy_threads {
    struct copy_job job;
    uint64_t first_chunk; /* number of chunks of all earlier jobs */
    uint64_t chunk_bytes;
    _Atomic uint64_t next, limit; /* unclaimed chunks: next to limit - 1 */
    _Atomic uint32_t chunks_left[MAX_COPY_SLOTS]; /* uncopied chunks by slot */
    pthread_mutex_t mutex;
    pthread_cond_t posted;
    _Atomic uint32_t sleeping;
    bool stop;
    pid_t process;          /* process that began the job */
    uint32_t wanted, count; /* `wanted` includes the caller */
    pthread_t ids[MAX_COPY_THREADS];
};

/* max_threads includes the calling thread; 0 means one thread per CPU. */
void copy_threads_start(struct copy_threads *threads, uint64_t max_threads);
/* Ends the copy threads.  No job may be running when this is called. */
void copy_threads_finish(struct copy_threads *threads);

void copy_threads_begin(struct copy_threads *threads,
                        const struct copy_job *job);
/* Lets the threads copy slot s. The caller must post slots in order. */
void copy_threads_post_slot(struct copy_threads *threads, uint64_t s);
/* Returns true if slot s was copied. The caller must not have posted a later
 * slot that uses the same memory of the ring. */
bool copy_threads_slot_is_copied(struct copy_threads *threads, uint64_t s);
/* Copies one chunk in the calling thread. Returns false if no chunk is left. */
bool copy_threads_run_chunk(struct copy_threads *threads);
/* Waits until all posted slots are copied.  If this process is a fork, which
 * has no copy threads, returns false, and slots can remain uncopied. */
bool copy_threads_drain(struct copy_threads *threads);
/* Returns true if this process is a fork, which has no copy threads. */
bool copy_threads_are_lost(const struct copy_threads *threads);
/* Copies `bytes` bytes between `host` and `other`, and waits for the copy. */
void copy_threads_copy(struct copy_threads *threads, void *host, void *other,
                       uint64_t bytes, bool to_other);

#endif
