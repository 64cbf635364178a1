/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the owners of host memory; see host_block.h. */
#include <config.h>

#include "host/tensor/host_block.h"

#include <stdatomic.h>
#include <stdlib.h>

struct host_block {
    _Atomic uint32_t owners;
    tandem_release_fn release;
    void *user;
};

struct host_block *host_block_new(tandem_release_fn release, void *user)
{
    struct host_block *block = malloc(sizeof(*block));

    if (block == NULL)
        return NULL;
    block->owners = 1;
    block->release = release;
    block->user = user;
    return block;
}

void host_block_keep(struct host_block *block)
{
    block->owners++;
}

void host_block_drop(struct host_block *block)
{
    if (block == NULL || --block->owners > 0)
        return;
    if (block->release != NULL)
        block->release(block->user);
    free(block);
}
