/* SPDX-License-Identifier: Apache-2.0 */
/* The packed copies of GEMM operands that belong to a buffer.
 * launch/packed_copies.c packs them.
 *
 * A buffer lists the operands in it that a GEMM has packed.  An operand that is
 * packed again, although the buffer was not written, gets a copy for all later
 * GEMMs; an operand in a sealed buffer gets one at once.  The copy is dropped
 * when the buffer is freed, when another GEMM uses the operand after a write,
 * or when other allocations need the memory.  The statistics count copies as
 * cached memory.
 *
 * Any thread may call these functions.  pool.mutex guards the lists. */
#ifndef TANDEM_OPENCL_MEMORY_PACKED_COPY_H
#define TANDEM_OPENCL_MEMORY_PACKED_COPY_H

#include "opencl/memory/buffer.h"

/* Copies take at most the device memory divided by this number. */
#define PACKED_COPIES_MEMORY_DIVISOR 8u
/* Maximum number of operands in the list of a buffer. */
#define MAX_PACKED_COPIES 64u

/* Identifies a packed operand within its buffer.  Keys are compared with
 * memcmp, so the struct must not contain padding. */
struct packed_copy_key {
    uint64_t byte_offset;
    int64_t rows, depth, ld, batch_stride, batches;
    uint64_t layout; /* from packing_layout_id */
    uint32_t mn_major, dtype;
};

struct packed_copy {
    struct packed_copy *next; /* in the list of the buffer */
    struct packed_copy_key key;
    /* The last write of the buffer before the operand was used: the stream id
     * and the number of the command. */
    uint64_t written_stream, written_seqno;
    uint32_t uses;         /* GEMMs that used the operand since then */
    uint32_t backoff_log2; /* factor of the uses before the next copy is made */
    uint32_t users;        /* launches that are using or making the copy now */
    bool is_packed;
    struct tandem_buffer memory; /* has no handle; no block without a copy */
};

/* Records that a GEMM uses the operand `key` of the buffer.  Returns a packed
 * copy, or one that the caller must pack (is_packed is false), or NULL if there
 * is to be no copy.  The caller ends the use with packed_copy_release, or, if
 * the copy was not packed, with packed_copy_finish. */
struct packed_copy *packed_copy_acquire(struct tandem_buffer *buffer,
                                        const struct packed_copy_key *key);
void packed_copy_release(struct packed_copy *copy);

/* Returns true if the limits leave room for a copy of `bytes` bytes. */
bool packed_copy_fits(const struct packed_copy *copy, uint64_t bytes);
/* Makes an allocated block of at least `bytes` bytes the copy's memory. */
void packed_copy_set_block(struct packed_copy *copy, struct block *block,
                           uint64_t bytes);
/* Makes the copy available if it is packed, and keeps it in use.  Otherwise
 * ends the use, and drops the memory. */
void packed_copy_finish(struct packed_copy *copy, bool is_packed);

/* The caller of the functions below must hold pool.mutex. */

/* Drops the copies of all buffers, except those in use by a launch.  A dropped
 * copy is made again after more uses than before. */
void packed_copies_drop(struct pool *pool);
/* Frees the list of a buffer. */
void packed_copies_free(struct tandem_buffer *buffer);

#endif
