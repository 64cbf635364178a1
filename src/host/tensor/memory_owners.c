/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the owners of memory; see memory_owners.h. */
#include <config.h>

#include "host/tensor/memory_owners.h"

#include <stdatomic.h>
#include <stdlib.h>

struct memory_owners {
    _Atomic uint32_t count;
    tandem_release_fn release;
    void *user;
};

struct memory_owners *memory_owners_new(tandem_release_fn release, void *user)
{
    struct memory_owners *owners = malloc(sizeof(*owners));

    if (owners == NULL)
        return NULL;
    owners->count = 1;
    owners->release = release;
    owners->user = user;
    return owners;
}

void memory_owners_add(struct memory_owners *owners)
{
    owners->count++;
}

void memory_owners_drop(struct memory_owners *owners)
{
    if (owners == NULL || --owners->count > 0)
        return;
    if (owners->release != NULL)
        owners->release(owners->user);
    free(owners);
}
