/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory with several owners: a storage, and DLPack tensors that outlive
 * it.  Any thread may call these functions. */
#ifndef TANDEM_HOST_TENSOR_HOST_BLOCK_H
#define TANDEM_HOST_TENSOR_HOST_BLOCK_H

#include <tandem/backend.h>

struct host_block;

/* Returns a block with one owner, or NULL if memory is exhausted.  When the
 * last owner drops it, calls release(user), or nothing if release is NULL. */
struct host_block *host_block_new(tandem_release_fn release, void *user);
void host_block_keep(struct host_block *block);
/* `block` may be NULL. */
void host_block_drop(struct host_block *block);

#endif
