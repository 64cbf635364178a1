/* SPDX-License-Identifier: Apache-2.0 */
/* The prepared operators of a context.  An operator that is called again with
 * the same attributes and with tensors of the same dtypes, shapes and strides
 * is neither checked nor planned again.  Any thread may call these functions.
 *
 * The cache has several stripes.  A thread locks its own stripe to find an
 * entry, so threads rarely wait for each other; it locks all stripes to add or
 * remove an entry.  A stripe lists the entries that calls of its threads use,
 * which are not removed. */
#ifndef TANDEM_HOST_RUN_PREPARED_CACHE_H
#define TANDEM_HOST_RUN_PREPARED_CACHE_H

#include "host/run/call.h"
#include "host/chooser/chooser.h"

#define PREPARED_CACHE_BUCKETS 256u /* an index is 8 bits of a hash */
/* The entries that were not used for the longest time are released first. */
#define MAX_PREPARED_ENTRIES 1024u
#define CACHE_STRIPES 16u
#define STRIPE_USES 15u

/* A valid call without its tensors, and what is known about it. */
struct prepared_entry {
    struct prepared_entry *next; /* of the same bucket */
    uint64_t hash;
    _Atomic uint64_t last_use;      /* value of cache->additions */
    _Atomic uint32_t unlisted_uses; /* calls that are in no list of a stripe */
    struct tandem_op op;
    uint32_t input_count, output_count;
    struct workload workload;
    /* Device that runs this call at once if all inputs are on the host (see
     * run.c).  NULL means that the chooser must compare the devices. */
    _Atomic(struct device *) host_device;
    /* Value of context->usable when host_device was chosen. */
    _Atomic uint32_t usable;
    /* Mask of devices that support the call and need not compile first. */
    _Atomic uint32_t ready_devices;
    struct run_cost run_cost;
    /* NULL: not yet prepared */
    _Atomic(struct tandem_prepared *) prepared[TANDEM_MAX_DEVICES];
    /* Inputs, then outputs; the rank of a scalar is SCALAR_RANK. */
    struct tandem_operand_desc operands[];
};
#define SCALAR_RANK UINT32_MAX

/* The entries that calls of some threads use now. */
struct cache_stripe {
    _Alignas(64) pthread_mutex_t mutex;
    _Alignas(64) _Atomic(struct prepared_entry *) uses[STRIPE_USES];
};

struct prepared_cache {
    struct cache_stripe stripes[CACHE_STRIPES];
    struct prepared_entry *buckets[PREPARED_CACHE_BUCKETS];
    uint32_t count;
    _Atomic uint64_t additions; /* number of entries added so far */
};

enum tandem_status prepared_cache_make(struct tandem_context *context);
/* Frees the cache of the context, before its devices are closed.  Releases the
 * plugins' operators if `releases` is set. */
void prepared_cache_free(struct tandem_context *context, bool releases);

/* Sets call->entry to the entry of the call, until prepared_entry_put.  Checks
 * the call if it is new. */
enum tandem_status prepared_cache_find(struct call *call);
void prepared_entry_put(struct call *call);
/* Returns true if the call's tensors still have the alignments of its entry.
 * Their storages must be locked. */
bool prepared_entry_fits(const struct call *call);

/* Opens the device and prepares the call for it, unless that was done before.
 * Returns the plugin's reason if the device does not support the call. */
enum tandem_status call_prepare_on(const struct call *call,
                                   struct device *device);

/* Returns TANDEM_OK if the device supports the call and need not compile first,
 * TANDEM_NOT_READY if it has to compile, or why it does not support the call.
 * Does not start to compile. */
enum tandem_status call_query_on(const struct call *call,
                                 struct device *device);

/* Returns entry->host_device.  If the context's set of usable devices has
 * changed, first chooses the device for the new set. */
struct device *host_fast_path_device(struct tandem_context *context,
                                     struct prepared_entry *entry);

#endif
