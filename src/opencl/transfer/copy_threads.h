/* SPDX-License-Identifier: Apache-2.0 */
/* Copy threads are threads of a device.  They copy the caller's memory to slots
 * of other memory, or back, while the device transfers other slots, because one
 * CPU alone copies more slowly than a bus transfers.  The threads start at the
 * first job, sleep while there is no job, and end with the device.
 *
 * Slots are divided into chunks, which the threads and the caller copy.  There
 * is one job at a time; the caller must serialize jobs.  Threads lock
 * copy_threads.mutex only to sleep and to wake others. */
#ifndef TANDEM_OPENCL_TRANSFER_COPY_THREADS_H
#define TANDEM_OPENCL_TRANSFER_COPY_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MAX_COPY_THREADS 8u
#define MAX_COPY_SLOTS 128u
/* Limits of the size of a chunk.  A slot has about one chunk per thread.
 * Copying a smaller chunk takes less time than handing it over to a thread. */
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
    /* Stores of this many bytes, the job's first, bypass the CPU caches. */
    uint64_t non_temporal_bytes;
};

struct copy_threads {
    struct copy_job job;
    uint64_t first_chunk; /* number of chunks of all earlier jobs */
    uint64_t chunk_bytes;
    _Atomic uint64_t next, limit; /* range of unclaimed chunks, [next, limit) */
    _Atomic uint32_t chunks_left[MAX_COPY_SLOTS]; /* uncopied chunks by slot */
    pthread_mutex_t mutex;
    pthread_cond_t posted;
    _Atomic uint32_t sleeping;
    bool stop;
    pid_t process;          /* process that started the threads */
    uint32_t wanted, count; /* wanted counts the caller's thread, too */
    pthread_t ids[MAX_COPY_THREADS];
};

/* max_threads includes the caller's thread; 0 means one thread per CPU. */
void copy_threads_start(struct copy_threads *threads, uint64_t max_threads);
/* Ends the copy threads.  No job may be running. */
void copy_threads_finish(struct copy_threads *threads);

void copy_threads_begin(struct copy_threads *threads,
                        const struct copy_job *job);
/* Lets the threads copy slot s. The caller must post slots in order. */
void copy_threads_post_slot(struct copy_threads *threads, uint64_t s);
/* Returns true if slot s was copied.  No later slot may have been posted to the
 * same place in the ring. */
bool copy_threads_slot_is_copied(struct copy_threads *threads, uint64_t s);
/* Copies one chunk in the calling thread. Returns false if no chunk is left. */
bool copy_threads_run_chunk(struct copy_threads *threads);
/* Waits until all posted slots are copied. Returns false if this process is a
 * fork. A fork has no copy threads, so slots stay uncopied. */
bool copy_threads_drain(struct copy_threads *threads);
/* Returns true if this process is a fork, which has no copy threads. */
bool copy_threads_are_lost(const struct copy_threads *threads);
/* Copies `bytes` bytes as a job of one slot and waits until the job is done. */
void copy_threads_copy(struct copy_threads *threads, void *host, void *other,
                       uint64_t bytes, bool to_other);

#endif
