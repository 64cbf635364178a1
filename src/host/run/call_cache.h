/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call cache: calls that passed the argument check.  Programs repeat their
 * operators on the same tensors, and the dtype, shape and strides of a tensor
 * never change.  The check and the sizes that the chooser needs therefore give
 * the same result each time.  Each context has one cache, guarded by its mutex.
 */
#ifndef TANDEM_HOST_RUN_CALL_CACHE_H
#define TANDEM_HOST_RUN_CALL_CACHE_H

#include "host/run/run.h"

#define JUDGED_ENTRIES 128u /* call_cache_find uses 7 bits of the hash */
#define JUDGED_OPERANDS 7u
#define JUDGED_INTS 2u

/* Identity of a call.  Calls with equal keys share an entry. */
struct judged_key {
    uint32_t op, int_count;
    uint32_t float_count;
    uint16_t input_count, output_count;
    uint64_t tensors[JUDGED_OPERANDS]; /* serials; 0 means a scalar */
    int64_t ints[JUDGED_INTS];
};

struct judged {
    struct judged_key key;
    uint32_t cost_class;
    double elements, bytes;
    double product[4]; /* see struct query */
    /* The operands.  Fields about their location are not valid. */
    uint32_t operand_count;
    struct operand operands[JUDGED_OPERANDS];
    /* Host fast path: the synchronous device that computes in host memory, if
     * no other device is faster when the inputs are on the host; else NULL.
     * Valid while `usable` equals the mask of usable devices. */
    struct device *home;
    uint32_t usable;
    uint32_t good; /* bit d is set if device d supports the call and is ready */
    double launch_ns, execute_ns; /* predicted times on `home` */
    struct work work;
};

struct judged_table {
    struct judged entries[JUDGED_ENTRIES];
};

/* Returns the cache entry of the call, or NULL if such calls are not cached or
 * memory is exhausted.  *out_found is true if the call has passed the check
 * before.  Otherwise the entry is empty or holds another call, and belongs to
 * this call once judged_key_make has set its key. */
struct judged *call_cache_find(const struct call *call, bool *out_found);
void judged_key_make(const struct call *call, struct judged_key *out);

/* Fills all fields of a query except the operands. */
void judged_query(struct judged *judged, struct query *out);

/* Returns the host fast path device of a cached call, or NULL.  Chooses it anew
 * if the set of usable devices has changed. */
struct device *judged_home(struct tandem_context *context,
                           struct judged *judged);

#endif
