/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors: dtype, shape and strides over a storage.
 */
#ifndef TANDEM_HOST_TENSOR_TENSOR_H
#define TANDEM_HOST_TENSOR_TENSOR_H

#include "common/handle_pool.h"
#include "host/tensor/storage.h"

struct tandem_tensor {
    struct handle handle;
    struct tandem_context *context;
    struct storage *storage;
    struct tandem_tensor *previous, *next; /* of context->tensors */
    uint64_t serial; /* from 1, never used again in the context */
    int64_t elements;
    uint64_t bytes;  /* of the elements */
    bool contiguous; /* row-major */
    bool whole;      /* covers all of the storage that is the library's */
    /* buffer is set before each use (locked): the storage for checks, the
     * device's buffer for plugins. */
    struct tandem_tensor_desc desc;
};

extern struct handle_pool tensor_pool;

/* Whether writing the tensor leaves nothing of its storage as it was. */
static inline bool tensor_covers(const struct tandem_tensor *tensor)
{
    const struct claim *claims = tensor->storage->claims;

    return tensor->whole && (claims == NULL || claims->next == NULL);
}

/* A live tensor of this process and, where context is not NULL, of that
 * context; else a status with its message set. */
enum tandem_status tensor_check(const struct tandem_tensor *tensor,
                                const struct tandem_context *context,
                                const char *what);
/* Frees every tensor of the context.  Locked. */
void tensors_free(struct tandem_context *context);

/* strided_copy.c: copies elements between two layouts of one shape. */
void strided_copy(char *target, const int64_t *target_strides,
                  const char *source, const int64_t *source_strides,
                  uint32_t rank, const int64_t *shape, uint32_t element_bytes);
/* Whether the elements of a layout lie side by side in some order, none
 * twice. */
bool strided_dense(uint32_t rank, const int64_t *shape,
                   const int64_t *strides);

#endif
