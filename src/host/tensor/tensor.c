/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, describes and destroys tensors; see tensor.h.  tensor_io.c reads and
 * writes their content.  The public functions lock the context's mutex. */
#include <config.h>

#include "host/tensor/strided_copy.h"
#include "host/tensor/tensor.h"
#include "common/argument_check.h"
#include "common/last_error.h"
#include "common/operator_table.h"

#include <inttypes.h>
#include <string.h>

struct handle_pool tensor_pool = HANDLE_POOL(struct tandem_tensor, 0x5454454e);

/* Replaces the memory of wrapped tensors that have no elements. */
static _Alignas(64) char empty_memory[64];

enum tandem_status tensor_check(const struct tandem_tensor *tensor,
                                const struct tandem_context *context,
                                const char *what)
{
    if (!handle_live(&tensor_pool, tensor))
        return argument_error("%s: %s", what,
                              tensor == NULL ? "NULL; expected a tensor"
                                             : "destroyed or invalid tensor");
    if (context != NULL && tensor->context != context)
        return argument_error("%s: belongs to another context", what);
    return context_check(tensor->context);
}

/* ---- creation ---- */

/* Creates a tensor and takes over the caller's reference to `storage`.  If
 * memory is exhausted, returns NULL, and the caller keeps the reference.  The
 * context must be locked. */
static struct tandem_tensor *tensor_new(struct tandem_context *context,
                                        struct storage *storage,
                                        const struct tandem_tensor_desc *desc)
{
    struct tandem_tensor *tensor = handle_new(&tensor_pool);

    if (tensor == NULL)
        return NULL;
    tensor->context = context;
    tensor->storage = storage;
    tensor->serial = ++context->tensor_serial;
    tensor->desc = *desc;
    tensor->desc.buffer = (struct tandem_buffer *)storage;
    tensor->elements = shape_elements(desc->rank, desc->shape);
    tensor->bytes = (uint64_t)tensor->elements * dtype_bytes(desc->dtype);
    tensor->contiguous = tensor_contiguous(desc);
    tensor->whole = strides_are_dense(desc->rank, desc->shape, desc->strides) &&
                    tensor->bytes == storage->bytes;
    tensor->next = context->tensors;
    if (tensor->next != NULL)
        tensor->next->previous = tensor;
    context->tensors = tensor;
    return tensor;
}

static void desc_fill(struct tandem_tensor_desc *desc, uint32_t dtype,
                      uint32_t rank, const int64_t *shape,
                      const int64_t *strides)
{
    memset(desc, 0, sizeof(*desc));
    desc->dtype = dtype;
    desc->rank = rank;
    if (rank == 0)
        return;
    memcpy(desc->shape, shape, rank * sizeof(*shape));
    if (strides != NULL)
        memcpy(desc->strides, strides, rank * sizeof(*strides));
    else
        shape_strides(rank, shape, desc->strides);
}

static enum tandem_status tensor_shape_check(const char *what, uint32_t dtype,
                                             uint32_t rank,
                                             const int64_t *shape,
                                             uint64_t *out_bytes)
{
    int64_t elements = 0;
    enum tandem_status status;

    if (rank > 0 && rank <= TANDEM_MAX_RANK && shape == NULL)
        return argument_error("%s: shape is NULL with rank %u", what, rank);
    status = check_shape(what, dtype, rank, shape, &elements);
    if (status != TANDEM_OK)
        return status;
    if (__builtin_mul_overflow((uint64_t)elements, (uint64_t)dtype_bytes(dtype),
                               out_bytes) ||
        *out_bytes > INT64_MAX)
        return argument_error("%s: %" PRId64
                              " elements of %s are too many to address",
                              what, elements, dtype_name(dtype));
    return TANDEM_OK;
}

enum tandem_status tandem_tensor_create(struct tandem_context *context,
                                        uint32_t dtype, uint32_t rank,
                                        const int64_t *shape,
                                        struct tandem_tensor **out_tensor)
{
    struct tandem_tensor_desc desc;
    struct storage *storage;
    uint64_t bytes;
    enum tandem_status status;

    if (out_tensor == NULL)
        return argument_error("out_tensor: NULL");
    *out_tensor = NULL;
    status = context_check(context);
    if (status == TANDEM_OK)
        status = tensor_shape_check("tensor", dtype, rank, shape, &bytes);
    if (status != TANDEM_OK)
        return status;
    desc_fill(&desc, dtype, rank, shape, NULL);
    context_lock(context);
    storage = storage_new(context, bytes, NULL);
    if (storage != NULL) {
        *out_tensor = tensor_new(context, storage, &desc);
        if (*out_tensor == NULL)
            storage_release(storage);
    }
    context_unlock(context);
    if (*out_tensor == NULL)
        return last_error_set(TANDEM_OUT_OF_MEMORY, "no memory for a tensor");
    return TANDEM_OK;
}

/* Computes the offsets, in elements from element (0, ..., 0), of the elements
 * with the lowest and the highest address.  Returns false if an offset is too
 * large to address.  A shape without elements gives the offsets 0 and -1. */
static bool element_range(uint32_t rank, const int64_t *shape,
                          const int64_t *strides, int64_t *out_before,
                          int64_t *out_after)
{
    *out_before = 0;
    *out_after = -1;
    if (shape_elements(rank, shape) == 0)
        return true;
    *out_after = 0;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t far;
        int64_t *side = strides[i] < 0 ? out_before : out_after;

        if (__builtin_mul_overflow(shape[i] - 1, strides[i], &far) ||
            __builtin_add_overflow(*side, far, side))
            return false;
    }
    return *out_after < INT64_MAX / 16 && *out_before > -(INT64_MAX / 16);
}

static enum tandem_status wrap_check(const void *memory, uint32_t dtype,
                                     uint32_t rank, const int64_t *shape,
                                     const int64_t *strides, uint32_t flags,
                                     int64_t *out_before, uint64_t *out_bytes)
{
    const uint32_t element = dtype_bytes(dtype);
    int64_t after;
    uint64_t bytes = 0;
    enum tandem_status status =
        tensor_shape_check("tensor", dtype, rank, shape, &bytes);

    if (status != TANDEM_OK)
        return status;
    if (flags & ~(uint32_t)TANDEM_TENSOR_READ_ONLY)
        return argument_error("flags: 0x%x has unknown bits", flags);
    if (memory == NULL && bytes > 0)
        return argument_error("memory: NULL for a tensor of %" PRIu64 " bytes",
                              bytes);
    if ((uintptr_t)memory % element != 0)
        return argument_error("memory: %p is not aligned to an element of %s",
                              memory, dtype_name(dtype));
    *out_before = 0;
    *out_bytes = bytes;
    if (strides == NULL || rank == 0)
        return TANDEM_OK;
    if (!element_range(rank, shape, strides, out_before, &after))
        return argument_error(
            "strides: the elements are too far apart to address");
    *out_bytes = (uint64_t)(after - *out_before + 1) * element;
    return TANDEM_OK;
}

enum tandem_status tandem_tensor_wrap(struct tandem_context *context,
                                      void *memory, uint32_t dtype,
                                      uint32_t rank, const int64_t *shape,
                                      const int64_t *strides, uint32_t flags,
                                      struct tandem_tensor **out_tensor)
{
    struct tandem_tensor_desc desc;
    struct tandem_tensor *tensor = NULL;
    struct storage *storage;
    int64_t before = 0;
    uint64_t bytes = 0;
    enum tandem_status status;

    if (out_tensor == NULL)
        return argument_error("out_tensor: NULL");
    *out_tensor = NULL;
    status = context_check(context);
    if (status == TANDEM_OK)
        status = wrap_check(memory, dtype, rank, shape, strides, flags, &before,
                            &bytes);
    if (status != TANDEM_OK)
        return status;
    desc_fill(&desc, dtype, rank, shape, strides);
    before *= dtype_bytes(dtype);
    desc.byte_offset = (uint64_t)-before;
    context_lock(context);
    storage = storage_new(context, bytes,
                          bytes > 0 ? (char *)memory + before : empty_memory);
    if (storage != NULL)
        tensor = tensor_new(context, storage, &desc);
    if (tensor != NULL) {
        storage->read_only = flags & TANDEM_TENSOR_READ_ONLY;
        storage->has_gaps = !tensor->whole;
        tensor->whole = true;
        if (storage->has_gaps &&
            storage_add_writable_layout(storage, &desc) != TANDEM_OK) {
            context_unlock(context);
            tandem_tensor_destroy(tensor);
            return TANDEM_OUT_OF_MEMORY;
        }
    } else {
        storage_release(storage);
    }
    context_unlock(context);
    *out_tensor = tensor;
    if (tensor == NULL)
        return last_error_set(TANDEM_OUT_OF_MEMORY, "no memory for a tensor");
    return TANDEM_OK;
}

/* Sets a view's byte_offset.  Fails if the view exceeds the tensor's memory. */
static enum tandem_status view_check(const struct tandem_tensor *tensor,
                                     int64_t first_element,
                                     struct tandem_tensor_desc *desc)
{
    const uint32_t element = dtype_bytes(desc->dtype);
    uint64_t first, end;
    int64_t offset;

    if (__builtin_mul_overflow(first_element, (int64_t)element, &offset) ||
        __builtin_add_overflow(offset, (int64_t)tensor->desc.byte_offset,
                               &offset) ||
        offset < 0)
        return argument_error("first_element: %" PRId64
                              " is before the tensor's memory",
                              first_element);
    desc->byte_offset = (uint64_t)offset;
    if (!tensor_extent(desc, &first, &end) || end > tensor->storage->bytes)
        return argument_error(
            "view: its elements exceed the tensor's memory of %" PRIu64
            " bytes",
            tensor->storage->bytes);
    return TANDEM_OK;
}

enum tandem_status tandem_tensor_view(struct tandem_tensor *tensor,
                                      int64_t first_element, uint32_t rank,
                                      const int64_t *shape,
                                      const int64_t *strides,
                                      struct tandem_tensor **out_view)
{
    struct tandem_tensor_desc desc;
    struct tandem_context *context;
    uint64_t bytes;
    enum tandem_status status;

    if (out_view == NULL)
        return argument_error("out_view: NULL");
    *out_view = NULL;
    status = tensor_check(tensor, NULL, "tensor");
    if (status == TANDEM_OK)
        status =
            tensor_shape_check("view", tensor->desc.dtype, rank, shape, &bytes);
    if (status != TANDEM_OK)
        return status;
    context = tensor->context;
    desc_fill(&desc, tensor->desc.dtype, rank, shape, strides);
    status = view_check(tensor, first_element, &desc);
    if (status != TANDEM_OK)
        return status;
    context_lock(context);
    *out_view = tensor_new(context, tensor->storage, &desc);
    if (*out_view != NULL)
        tensor->storage->references++;
    context_unlock(context);
    if (*out_view == NULL)
        return last_error_set(TANDEM_OUT_OF_MEMORY, "no memory for a view");
    return TANDEM_OK;
}

/* ---- destruction ---- */

/* Frees the tensor and drops its storage reference.  The context is locked. */
static void tensor_free(struct tandem_tensor *tensor)
{
    if (tensor->previous != NULL)
        tensor->previous->next = tensor->next;
    else
        tensor->context->tensors = tensor->next;
    if (tensor->next != NULL)
        tensor->next->previous = tensor->previous;
    storage_release(tensor->storage);
    handle_free(&tensor_pool, tensor);
}

void tandem_tensor_destroy(struct tandem_tensor *tensor)
{
    struct tandem_context *context;

    if (!handle_live(&tensor_pool, tensor))
        return;
    context = tensor->context;
    /* After a fork, the child must not call plugins that the parent loaded. */
    if (context->generation != fork_generation)
        return;
    context_lock(context);
    tensor_free(tensor);
    context_unlock(context);
}

void tensors_free(struct tandem_context *context)
{
    while (context->tensors != NULL)
        tensor_free(context->tensors);
    storages_free_pending(context);
    storages_leak_pending(context);
}

enum tandem_status tandem_tensor_describe(const struct tandem_tensor *tensor,
                                          uint32_t *out_dtype,
                                          uint32_t *out_rank, int64_t *shape,
                                          int64_t *strides)
{
    const enum tandem_status status = tensor_check(tensor, NULL, "tensor");

    if (status != TANDEM_OK)
        return status;
    if (out_dtype == NULL || out_rank == NULL)
        return argument_error("%s: NULL",
                              out_dtype == NULL ? "out_dtype" : "out_rank");
    *out_dtype = tensor->desc.dtype;
    *out_rank = tensor->desc.rank;
    if (shape != NULL)
        memcpy(shape, tensor->desc.shape, sizeof(tensor->desc.shape));
    if (strides != NULL)
        memcpy(strides, tensor->desc.strides, sizeof(tensor->desc.strides));
    return TANDEM_OK;
}
