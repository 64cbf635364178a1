/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, describes and destroys tensors; see tensor.h.  tensor_io.c reads and
 * writes their content.  Any thread may call the public functions. */
#include <config.h>

#include "host/tensor/tensor.h"
#include "common/argument_check.h"
#include "common/last_error.h"
#include "common/operator_table.h"

#include <inttypes.h>
#include <string.h>

struct handle_pool tensor_pool = HANDLE_POOL(struct tandem_tensor, 0x5454454e);

/* Memory of wrapped tensors that have no elements. */
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

/* Returns true if the elements fill contiguous memory in any order, without
 * gaps or overlaps.  Strides may be negative. */
static bool layout_is_dense(const struct tandem_tensor_desc *desc)
{
    int64_t dense = 1;

    /* In a dense layout, the stride of each axis is `dense`, the number of
     * elements that all axes with smaller strides cover. */
    for (uint32_t round = 0; round < desc->rank; round++) {
        for (uint32_t i = 0; i < desc->rank; i++) {
            int64_t stride = desc->strides[i];

            if (desc->shape[i] > 1 && (stride == dense || stride == -dense))
                dense *= desc->shape[i];
        }
    }
    return !tensor_has_elements(desc) ||
           dense == shape_elements(desc->rank, desc->shape);
}

/* Frees the tensor and drops its storage reference. */
static void tensor_free(struct tandem_tensor *tensor)
{
    struct tandem_context *context = tensor->context;
    struct storage *storage = tensor->storage;

    handle_hide(tensor);
    pthread_mutex_lock(&context->mutex);
    if (tensor->previous != NULL)
        tensor->previous->next = tensor->next;
    else
        context->tensors = tensor->next;
    if (tensor->next != NULL)
        tensor->next->previous = tensor->previous;
    pthread_mutex_unlock(&context->mutex);
    storage_release(storage);
    handle_free(&tensor_pool, tensor);
}

struct tensor_layout tensor_layout_make(const struct tandem_tensor_desc *desc,
                                        uint32_t alignment)
{
    struct tensor_layout layout = {.alignment = alignment};

    layout.hash =
        hash_add(desc->dtype | (uint64_t)desc->rank << 32, layout.alignment);
    for (uint32_t i = 0; i < desc->rank; i++) {
        layout.hash = hash_add(layout.hash, (uint64_t)desc->shape[i]);
        layout.hash = hash_add(layout.hash, (uint64_t)desc->strides[i]);
    }
    return layout;
}

/* The buffers of a storage are aligned to at least 64 bytes, but those in
 * wrapped memory only like this memory. */
static struct tensor_layout layout_of(const struct storage *storage,
                                      const struct tandem_tensor_desc *desc)
{
    const uint64_t address =
        desc->byte_offset + (storage->wrapped ? storage->address : 0);
    const uint32_t low = (uint32_t)(address % MAX_TENSOR_ALIGNMENT);
    const uint32_t alignment = low != 0 ? low & -low : MAX_TENSOR_ALIGNMENT;
    const uint32_t bytes = dtype_bytes(desc->dtype);

    /* The element of an empty tensor may have any address. */
    return tensor_layout_make(desc, alignment > bytes ? alignment : bytes);
}

void tensor_layout_update(struct tandem_tensor *tensor)
{
    const struct tensor_layout layout =
        layout_of(tensor->storage, &tensor->desc);

    tensor->layout_hash = layout.hash;
    tensor->alignment = layout.alignment;
}

/* Creates a tensor, or a view if `kind` is "view", and takes over the caller's
 * reference to `storage`.  If memory is exhausted or `storage` is NULL,
 * releases the reference and leaves *out NULL. */
static enum tandem_status tensor_new(struct tandem_context *context,
                                     struct storage *storage,
                                     const struct tandem_tensor_desc *desc,
                                     const char *kind,
                                     struct tandem_tensor **out)
{
    struct tandem_tensor *tensor =
        storage != NULL ? handle_new(&tensor_pool) : NULL;

    if (tensor == NULL) {
        storage_release(storage);
        return memory_error("no memory for a %s", kind);
    }
    tensor->context = context;
    tensor->storage = storage;
    tensor->serial = ++context->tensor_serial;
    tensor->desc = *desc;
    tensor->desc.buffer = (struct tandem_buffer *)storage;
    tensor_layout_update(tensor);
    tensor->elements = shape_elements(desc->rank, desc->shape);
    tensor->bytes = (uint64_t)tensor->elements * dtype_bytes(desc->dtype);
    tensor->contiguous = tensor_contiguous(desc);
    tensor->whole = tensor->bytes == storage->bytes && layout_is_dense(desc);
    pthread_mutex_lock(&context->mutex);
    tensor->next = context->tensors;
    if (tensor->next != NULL)
        tensor->next->previous = tensor;
    context->tensors = tensor;
    pthread_mutex_unlock(&context->mutex);
    *out = tensor;
    return TANDEM_OK;
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
    enum tandem_status status;

    if (rank > 0 && rank <= TANDEM_MAX_RANK && shape == NULL)
        return argument_error("%s: shape is NULL with rank %u", what, rank);
    status = check_shape(what, dtype, rank, shape);
    /* check_shape limits the size of a tensor to INT64_MAX bytes. */
    if (status == TANDEM_OK)
        *out_bytes = (uint64_t)shape_elements(rank, shape) * dtype_bytes(dtype);
    return status;
}

enum tandem_status tandem_tensor_create(struct tandem_context *context,
                                        uint32_t dtype, uint32_t rank,
                                        const int64_t *shape,
                                        struct tandem_tensor **out_tensor)
{
    struct tandem_tensor_desc desc;
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
    return tensor_new(context, storage_new(context, bytes, NULL), &desc,
                      "tensor", out_tensor);
}

/* Checks the arguments of tandem_tensor_wrap and fills `desc`, whose
 * byte_offset counts from the lowest address of an element.  *out_bytes is the
 * size of the memory from this address to the end of the last element. */
static enum tandem_status wrap_check(const void *memory, uint32_t dtype,
                                     uint32_t rank, const int64_t *shape,
                                     const int64_t *strides, uint32_t flags,
                                     struct tandem_tensor_desc *desc,
                                     uint64_t *out_bytes)
{
    /* Leaves room at lower and higher addresses for negative strides. */
    const uint64_t origin = UINT64_C(1) << 62;
    uint64_t first, end;
    enum tandem_status status =
        tensor_shape_check("tensor", dtype, rank, shape, out_bytes);

    if (status != TANDEM_OK)
        return status;
    status = check_flags("tensor", flags, TANDEM_TENSOR_READ_ONLY);
    if (status != TANDEM_OK)
        return status;
    if (memory == NULL && *out_bytes > 0)
        return argument_error("memory: NULL for a tensor of %" PRIu64 " bytes",
                              *out_bytes);
    if ((uintptr_t)memory % dtype_bytes(dtype) != 0)
        return argument_error("memory: %p is not aligned to an element of %s",
                              memory, dtype_name(dtype));
    desc_fill(desc, dtype, rank, shape, strides);
    desc->byte_offset = origin;
    if (!tensor_extent(desc, &first, &end))
        return argument_error(
            "strides: the elements are too far apart to address");
    desc->byte_offset = origin - first;
    *out_bytes = end - first;
    return TANDEM_OK;
}

enum tandem_status tandem_tensor_wrap(struct tandem_context *context,
                                      void *memory, uint32_t dtype,
                                      uint32_t rank, const int64_t *shape,
                                      const int64_t *strides, uint32_t flags,
                                      struct tandem_tensor **out_tensor)
{
    struct tandem_tensor_desc desc;
    struct tandem_tensor *tensor;
    struct storage *storage;
    uint64_t bytes;
    enum tandem_status status;

    if (out_tensor == NULL)
        return argument_error("out_tensor: NULL");
    *out_tensor = NULL;
    status = context_check(context);
    if (status == TANDEM_OK)
        status = wrap_check(memory, dtype, rank, shape, strides, flags, &desc,
                            &bytes);
    if (status != TANDEM_OK)
        return status;
    if (bytes > 0)
        memory = (char *)memory - desc.byte_offset;
    storage = storage_new(context, bytes, bytes > 0 ? memory : empty_memory);
    status = tensor_new(context, storage, &desc, "tensor", &tensor);
    if (status == TANDEM_OK) {
        storage->read_only = flags & TANDEM_TENSOR_READ_ONLY;
        storage->has_gaps = !tensor->whole;
        tensor->whole = true;
        if (storage->has_gaps)
            status = storage_add_writable_layout(storage, &desc);
        if (status == TANDEM_OK)
            *out_tensor = tensor;
        else
            tensor_free(tensor);
    }
    return status;
}

/* Sets a view's byte_offset; `offset` is from the first element of the tensor.
 * Fails if the view exceeds the tensor's memory or is not aligned. */
static enum tandem_status view_check(const struct tandem_tensor *tensor,
                                     int64_t offset,
                                     struct tandem_tensor_desc *desc)
{
    const uint64_t base =
        tensor->storage->wrapped ? tensor->storage->address : 0;
    uint64_t first, end;

    if (__builtin_add_overflow(offset, (int64_t)tensor->desc.byte_offset,
                               &offset) ||
        offset < 0)
        return argument_error("view: it begins before the tensor's memory");
    desc->byte_offset = (uint64_t)offset;
    if (tensor_has_elements(desc) &&
        (base + desc->byte_offset) % dtype_bytes(desc->dtype) != 0)
        return argument_error("view: byte %" PRIu64 " of the tensor's memory "
                              "is not aligned to an element of %s",
                              desc->byte_offset, dtype_name(desc->dtype));
    if (!tensor_extent(desc, &first, &end) || end > tensor->storage->bytes)
        return argument_error(
            "view: its elements exceed the tensor's memory of %" PRIu64
            " bytes",
            tensor->storage->bytes);
    return TANDEM_OK;
}

enum tandem_status tandem_tensor_from_buffer(struct tandem_context *context,
                                             uint32_t device,
                                             struct tandem_buffer *buffer,
                                             uint32_t dtype, uint32_t rank,
                                             const int64_t *shape,
                                             struct tandem_tensor **out_tensor)
{
    struct tandem_tensor_desc desc;
    struct storage *storage;
    struct device *found;
    uint64_t bytes;
    enum tandem_status status;

    if (out_tensor == NULL)
        return argument_error("out_tensor: NULL");
    *out_tensor = NULL;
    status = context_check(context);
    if (status == TANDEM_OK)
        status = tensor_shape_check("tensor", dtype, rank, shape, &bytes);
    if (status == TANDEM_OK && buffer == NULL)
        status = argument_error("buffer: NULL");
    if (status == TANDEM_OK)
        status = device_get(context, device, &found);
    if (status == TANDEM_OK)
        status = device_open(found);
    if (status != TANDEM_OK)
        return status;
    if (found->is_zero_copy)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "buffer: %s computes in host memory: use "
                              "tandem_tensor_wrap",
                              found->label);
    desc_fill(&desc, dtype, rank, shape, NULL);
    storage = storage_new(context, bytes, NULL);
    if (storage != NULL)
        storage_set_buffer(storage, found, buffer);
    return tensor_new(context, storage, &desc, "tensor", out_tensor);
}

enum tandem_status tandem_tensor_reinterpret(struct tandem_tensor *tensor,
                                             uint32_t dtype,
                                             int64_t byte_offset, uint32_t rank,
                                             const int64_t *shape,
                                             const int64_t *strides,
                                             struct tandem_tensor **out_view)
{
    struct tandem_tensor_desc desc;
    uint64_t bytes;
    enum tandem_status status;

    if (out_view == NULL)
        return argument_error("out_view: NULL");
    *out_view = NULL;
    status = tensor_check(tensor, NULL, "tensor");
    if (status == TANDEM_OK)
        status = tensor_shape_check("view", dtype, rank, shape, &bytes);
    if (status != TANDEM_OK)
        return status;
    desc_fill(&desc, dtype, rank, shape, strides);
    status = view_check(tensor, byte_offset, &desc);
    if (status != TANDEM_OK)
        return status;
    tensor->storage->references++;
    return tensor_new(tensor->context, tensor->storage, &desc, "view",
                      out_view);
}

enum tandem_status tandem_tensor_view(struct tandem_tensor *tensor,
                                      int64_t first_element, uint32_t rank,
                                      const int64_t *shape,
                                      const int64_t *strides,
                                      struct tandem_tensor **out_view)
{
    enum tandem_status status;
    int64_t offset;

    if (out_view == NULL)
        return argument_error("out_view: NULL");
    *out_view = NULL;
    status = tensor_check(tensor, NULL, "tensor");
    if (status != TANDEM_OK)
        return status;
    if (__builtin_mul_overflow(
            first_element, (int64_t)dtype_bytes(tensor->desc.dtype), &offset))
        return argument_error("first_element: %" PRId64
                              " is outside the tensor's memory",
                              first_element);
    return tandem_tensor_reinterpret(tensor, tensor->desc.dtype, offset, rank,
                                     shape, strides, out_view);
}

/* ---- destruction ---- */

void tandem_tensor_destroy(struct tandem_tensor *tensor)
{
    struct float_env host;

    if (!handle_live(&tensor_pool, tensor))
        return;
    /* After a fork, the child must not call plugins that the parent loaded. */
    if (tensor->context->generation != fork_generation)
        return;
    host = float_env_enter();
    tensor_free(tensor);
    float_env_leave(host);
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
