/* SPDX-License-Identifier: Apache-2.0 */
/* The call cache remembers operator calls that passed the argument check.
 * Programs repeat operators on the same tensors, whose dtype, shape and strides
 * never change.  A repeated call needs no second check, and its cost class and
 * sizes are cached.  Each context has one cache, which its mutex guards. */
#ifndef TANDEM_HOST_RUN_CALL_CACHE_H
#define TANDEM_HOST_RUN_CALL_CACHE_H

#include "host/run/run.h"

#define CALL_CACHE_ENTRIES 128u /* an index is 7 bits of a hash */
#define MAX_CACHED_OPERANDS 7u
#define MAX_CACHED_INTS 2u
#define MAX_KEY_WORDS (1u + MAX_CACHED_OPERANDS + MAX_CACHED_INTS)

struct call_descriptor {
    uint64_t key[MAX_KEY_WORDS]; /* see call_key_make; 0 in an empty entry */
    struct workload workload;
    /* Each operand has only storage, bytes, read, written and partial set. */
    uint32_t operand_count;
    struct operand operands[MAX_CACHED_OPERANDS];
    /* Device that runs this call at once if all inputs are on the host (see
     * run.c).  NULL means that the chooser must compare the devices. */
    struct device *host_device;
    uint32_t usable; /* value of context->usable when host_device was chosen */
    /* Mask of devices that support the call and need not compile first. */
    uint32_t ready_devices;
    struct run_cost run_cost;
};

struct call_cache {
    struct call_descriptor entries[CALL_CACHE_ENTRIES];
};

/* Returns the cache entry for the call, or NULL if the call cannot be cached or
 * memory is exhausted.  *out_found is true if the entry holds this call, which
 * has then passed the check.  Otherwise the caller must check the call, fill
 * the entry and set its key with call_key_make. */
struct call_descriptor *call_cache_find(const struct call *call,
                                        bool *out_found);
/* Writes the words that identify a call: the operator, the number of operands
 * and attributes, the serial numbers of the tensors (0 for a scalar), and the
 * attributes.  Returns the word count.  Calls with equal words share an
 * entry. */
uint32_t call_key_make(const struct call *call, uint64_t out[MAX_KEY_WORDS]);

/* Returns cached->host_device.  If the context's set of usable devices has
 * changed, first chooses the device for the new set. */
struct device *host_fast_path_device(struct tandem_context *context,
                                     struct call_descriptor *cached);

#endif
