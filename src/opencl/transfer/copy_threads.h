/* SPDX-License-Identifier: Apache-2.0 */
/* The copy threads of a device copy data between the caller's memory and pinned
 * memory while the device transfers other data.  Several threads copy, because
 * one CPU copies more slowly than a bus transfers.  The threads start at the
 * first copy, sleep while there is nothing to copy, and end with the device.
 *
 * Copies are divided into chunks.  The copy threads and the calling thread copy
 * the chunks.  Only one thread at a time may call these functions.  The copy
 * threads lock copy_threads.mutex only to sleep. */
#ifndef TANDEM_OPENCL_TRANSFER_COPY_THREADS_H
#define TANDEM_OPENCL_TRANSFER_COPY_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MAX_COPY_THREADS 8u
/* Limits of unfinished copies and of their chunks. */
#define MAX_COPIES 32u
#define MAX_COPY_CHUNKS 1024u
/* Limits of the chunk size.  A copy of MAX_COPY_CHUNK_BYTES has about one chunk
 * per thread.  Copying a chunk below the minimum takes less time than passing
 * it to a thread. */
#define MIN_COPY_CHUNK_BYTES ((uint64_t)32 << 10)
#define MAX_COPY_CHUNK_BYTES ((uint64_t)128 << 10)

/* A copy from host memory to host memory. */
struct copy {
    unsigned char *to;
    const unsigned char *from;
    uint64_t bytes;
    bool non_temporal; /* the stores bypass the CPU caches */
};

/* A part of copy `number` that one thread copies. */
struct copy_chunk {
    struct copy part;
    uint64_t number;
};

struct copy_threads {
    struct copy_chunk *chunks; /* MAX_COPY_CHUNKS; NULL before the first copy */
    uint64_t chunk_bytes;
    _Atomic uint64_t next, limit; /* unclaimed chunks: next to limit - 1 */
    _Atomic uint32_t chunks_left[MAX_COPIES]; /* unfinished chunks by copy */
    pthread_mutex_t mutex;
    pthread_cond_t posted;
    _Atomic uint32_t sleeping;
    bool stop;
    pid_t process;          /* process that called copy_threads_begin */
    uint32_t wanted, count; /* `wanted` includes the caller */
    pthread_t ids[MAX_COPY_THREADS];
};

/* max_threads includes the calling thread; 0 means one thread per CPU. */
void copy_threads_start(struct copy_threads *threads, uint64_t max_threads);
/* Ends the copy threads.  All copies must be finished. */
void copy_threads_finish(struct copy_threads *threads);

/* Call this before the first copy of a transfer.  Starts the threads if they do
 * not run yet.  Returns false if there is no memory for the list of chunks. */
bool copy_threads_begin(struct copy_threads *threads);
/* Lets the threads copy.  `number` identifies the copy: copies are numbered in
 * order, and copy `number` - MAX_COPIES must be finished.  All unfinished
 * copies together have at most MAX_COPY_CHUNKS chunks. */
void copy_threads_post(struct copy_threads *threads, uint64_t number,
                       const struct copy *copy);
/* Returns true if copy `number` is finished. */
bool copy_threads_are_done(struct copy_threads *threads, uint64_t number);
/* Copies one chunk in the calling thread. Returns false if no chunk is left. */
bool copy_threads_run_chunk(struct copy_threads *threads);
/* Waits until all copies are finished.  If this process is a fork, which has no
 * copy threads, returns false, and copies can remain unfinished. */
bool copy_threads_drain(struct copy_threads *threads);
/* Returns true if this process is a fork, which has no copy threads. */
bool copy_threads_are_lost(const struct copy_threads *threads);

#endif
