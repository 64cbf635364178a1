/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor describes elements in a storage by dtype, shape and strides.  It
 * does not change, except its list links, which the context's mutex guards, and
 * its layout, which changes with the memory of the storage. */
#ifndef TANDEM_HOST_TENSOR_TENSOR_H
#define TANDEM_HOST_TENSOR_TENSOR_H

#include "common/handle_pool.h"
#include "host/tensor/storage.h"

#define MAX_TENSOR_ALIGNMENT 64u

/* Properties of a tensor that distinguish prepared operators. */
struct tensor_layout {
    uint64_t hash; /* of dtype, shape, strides and alignment */
    /* Alignment of the first element on every device, in bytes: at most 64, and
     * at least the element's size. */
    uint32_t alignment;
};

struct tandem_tensor {
    struct handle handle;
    struct tandem_context *context;
    struct storage *storage;
    struct tandem_tensor *previous, *next; /* list context->tensors */
    uint64_t serial; /* number of the tensor, unique in the context, from 1 */
    int64_t elements;
    uint64_t bytes;  /* total size of the elements */
    bool contiguous; /* true if the layout is row-major without gaps */
    /* True if the tensor covers the whole storage, or is the strided tensor
     * that was created with the storage. */
    bool whole;
    /* A struct tensor_layout.  Changes only while the storage is locked alone,
     * but a call reads it also before it has the lock. */
    _Atomic uint64_t layout_hash;
    _Atomic uint32_t alignment;
    /* desc.buffer is the storage, for the checks of arguments. */
    struct tandem_tensor_desc desc;
};

extern struct handle_pool tensor_pool;

/* `alignment` is that of the first element, a power of two. */
struct tensor_layout tensor_layout_make(const struct tandem_tensor_desc *desc,
                                        uint32_t alignment);

/* Adds a word to a hash. */
static inline uint64_t hash_add(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* Returns true if a write to the tensor replaces the whole storage content. */
static inline bool tensor_covers_storage(const struct tandem_tensor *tensor)
{
    const struct writable_layout *claims = tensor->storage->writable_layouts;

    return tensor->whole && (claims == NULL || claims->next == NULL);
}

/* Computes the layout again, after the storage got other memory. */
void tensor_layout_update(struct tandem_tensor *tensor);

/* Locks the tensor's storage and sets the default floating-point environment,
 * which tensor_unlock restores.  Returns an error that is set if another thread
 * keeps the lock until deadline_ns or destroyed the tensor. */
enum tandem_status tensor_lock(struct tandem_tensor *tensor, bool alone,
                               uint64_t deadline_ns,
                               struct float_env *out_host);
void tensor_unlock(struct tandem_tensor *tensor, struct float_env host);

/* Returns TANDEM_OK if the tensor is live and belongs to this process and, if
 * `context` is not NULL, to that context.  Otherwise sets the error message, in
 * which `what` names the argument. */
enum tandem_status tensor_check(const struct tandem_tensor *tensor,
                                const struct tandem_context *context,
                                const char *what);
/* Frees every tensor of a context that is destroyed. */
void tensors_free(struct tandem_context *context);

#endif
