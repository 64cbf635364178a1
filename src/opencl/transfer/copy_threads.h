/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of a device that copy the caller's memory to slots of other memory,
 * or back, while the slots before are transferred: one processor copies less
 * than a bus carries.  They start at the first job, sleep when there is none,
 * and end with the device.
 *
 * Slots are cut into pieces, which threads and the caller take in turn.  One
 * job at a time, whose caller has the copier to himself; nothing is locked but
 * to fall asleep and to wake up.
 */
#ifndef TANDEM_OPENCL_TRANSFER_COPY_THREADS_H
#define TANDEM_OPENCL_TRANSFER_COPY_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define COPIER_THREADS 8u
#define COPIER_SLOTS 128u
/* Bounds of a piece, of which a slot has about one for each thread: what is
 * less is copied sooner than it is handed over. */
#define COPIER_LEAST_BYTES ((uint64_t)32 << 10)
#define COPIER_PIECE_BYTES ((uint64_t)128 << 10)

/* Slot s of the bytes, from 0 on, is at ring + s % slots * slot_bytes, which is
 * a multiple of COPIER_PIECE_BYTES unless there is one slot alone. */
struct copier_job {
    unsigned char *host, *ring;
    uint64_t bytes, slot_bytes;
    uint32_t slots; /* at most COPIER_SLOTS */
    bool to_ring;   /* else to the host */
    uint64_t past_bytes; /* of the first that go past the caches to the ring */
};

struct copier {
    struct copier_job job;
    uint64_t first; /* number of the job's first piece: they count on */
    uint64_t piece_bytes;
    _Atomic uint64_t next, limit; /* pieces below limit may be taken */
    _Atomic uint32_t left[COPIER_SLOTS]; /* pieces of what is in the slot */
    pthread_mutex_t mutex; /* falling asleep, waking up */
    pthread_cond_t posted;
    _Atomic uint32_t asleep;
    bool stop;
    pid_t process;          /* that has them */
    uint32_t wanted, count; /* threads */
    pthread_t threads[COPIER_THREADS];
};

/* most: threads that may be used, the caller's among them; 0: as many as the
 * process may use. */
void copier_start(struct copier *copier, uint64_t most);
/* Ends the threads; no job is under way. */
void copier_finish(struct copier *copier);

void copier_begin(struct copier *copier, const struct copier_job *job);
/* Slot s, the next one in order, may be copied. */
void copier_post(struct copier *copier, uint64_t s);
/* Whether slot s, the last that was posted for its place, has been copied. */
bool copier_done(struct copier *copier, uint64_t s);
/* Copies a piece; false: none is left to be taken. */
bool copy_threads_run_chunk(struct copier *copier);
/* Waits until all that was posted has been copied.  false: it never will be, as
 * this process is a fork of the one that has the threads. */
bool copier_drain(struct copier *copier);
/* Whether it is. */
bool copier_orphaned(const struct copier *copier);
/* A job of one slot, begun, posted and drained. */
void copier_copy(struct copier *copier, void *host, void *other,
                 uint64_t bytes, bool to_other);

#endif
