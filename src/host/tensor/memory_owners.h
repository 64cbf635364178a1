/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the owners of memory: a storage, and DLPack tensors that outlive it.
 * The last one that drops the memory releases it.  Any thread may call these
 * functions. */
#ifndef TANDEM_HOST_TENSOR_MEMORY_OWNERS_H
#define TANDEM_HOST_TENSOR_MEMORY_OWNERS_H

#include <tandem/backend.h>

struct memory_owners;

/* Returns a count of one owner, or NULL if memory is exhausted.  When the last
 * owner drops it, calls release(user), or nothing if release is NULL. */
struct memory_owners *memory_owners_new(tandem_release_fn release, void *user);
void memory_owners_add(struct memory_owners *owners);
/* `owners` may be NULL. */
void memory_owners_drop(struct memory_owners *owners);

#endif
