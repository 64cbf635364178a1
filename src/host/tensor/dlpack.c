/* SPDX-License-Identifier: Apache-2.0 */
/* Converts tensors from and to DLPack, the structs by which frameworks share
 * tensors.  Layouts and constants are those of DLPack 1.1 and, for the legacy
 * struct, 0.8: https://dmlc.github.io/dlpack/latest/c_api.html.  Any thread may
 * call the functions, and the deleters of exported tensors. */
#include <config.h>

#include "common/last_error.h"
#include "common/operator_table.h"
#include "host/tensor/tensor.h"

#include <stdlib.h>

#define DLPACK_MAJOR 1u
#define DLPACK_MINOR 1u
#define DLPACK_READ_ONLY UINT64_C(1) /* a flag */
/* Devices whose memory the host can use. */
#define DLPACK_CPU 1
#define DLPACK_CUDA_HOST 3
#define DLPACK_ROCM_HOST 11

struct dlpack_dtype {
    uint8_t code, bits;
    uint16_t lanes;
};

struct dlpack_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t rank;
    struct dlpack_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL means row-major */
    uint64_t byte_offset;
};

struct DLManagedTensor {
    struct dlpack_tensor tensor;
    void *manager;
    void (*deleter)(struct DLManagedTensor *self); /* may be NULL */
};

struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *manager;
    void (*deleter)(struct DLManagedTensorVersioned *self); /* may be NULL */
    uint64_t flags;
    struct dlpack_tensor tensor;
};

static const struct {
    uint32_t dtype;
    struct dlpack_dtype dlpack;
} dtypes[] = {
    {TANDEM_I8, {0, 8, 1}},   {TANDEM_I16, {0, 16, 1}},
    {TANDEM_I32, {0, 32, 1}}, {TANDEM_I64, {0, 64, 1}},
    {TANDEM_U8, {1, 8, 1}},   {TANDEM_U16, {1, 16, 1}},
    {TANDEM_U32, {1, 32, 1}}, {TANDEM_U64, {1, 64, 1}},
    {TANDEM_F16, {2, 16, 1}}, {TANDEM_F32, {2, 32, 1}},
    {TANDEM_F64, {2, 64, 1}}, {TANDEM_BF16, {4, 16, 1}},
    {TANDEM_BOOL, {6, 8, 1}},
};
#define DTYPES (sizeof(dtypes) / sizeof(dtypes[0]))

/* ---- import ---- */

static enum tandem_status dtype_import(struct dlpack_dtype from,
                                       uint32_t *out_dtype)
{
    for (uint32_t i = 0; i < DTYPES; i++) {
        if (dtypes[i].dlpack.code == from.code &&
            dtypes[i].dlpack.bits == from.bits && from.lanes == 1) {
            *out_dtype = dtypes[i].dtype;
            return TANDEM_OK;
        }
    }
    return last_error_set(TANDEM_UNSUPPORTED,
                          "DLPack: the element type with code %u, %u bits and "
                          "%u lanes is unsupported",
                          from.code, from.bits, from.lanes);
}

/* Wraps the memory, and lets the tensor own `managed`. */
static enum tandem_status
dlpack_import(struct tandem_context *context, const struct dlpack_tensor *from,
              uint32_t flags, tandem_release_fn release, void *managed,
              struct tandem_tensor **out_tensor)
{
    struct tandem_tensor *tensor = NULL;
    uint32_t dtype = 0;
    enum tandem_status status;

    if (from->device_type != DLPACK_CPU &&
        from->device_type != DLPACK_CUDA_HOST &&
        from->device_type != DLPACK_ROCM_HOST)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "DLPack: memory of device type %d; expected host "
                              "memory (1, 3 or 11): copy the tensor to the CPU "
                              "before",
                              from->device_type);
    if (from->rank < 0 || from->rank > (int32_t)TANDEM_MAX_RANK)
        return last_error_set(
            from->rank < 0 ? TANDEM_INVALID_ARGUMENT : TANDEM_UNSUPPORTED,
            "DLPack: rank %d; expected 0 to %u", from->rank, TANDEM_MAX_RANK);
    status = dtype_import(from->dtype, &dtype);
    if (status == TANDEM_OK)
        status = tandem_tensor_wrap(
            context,
            from->data != NULL ? (char *)from->data + from->byte_offset : NULL,
            dtype, (uint32_t)from->rank, from->shape, from->strides, flags,
            &tensor);
    if (status == TANDEM_OK && release != NULL)
        status = tandem_tensor_set_release(tensor, release, managed);
    if (status == TANDEM_OK)
        *out_tensor = tensor;
    else
        tandem_tensor_destroy(tensor);
    return status;
}

static void versioned_release(void *user)
{
    struct DLManagedTensorVersioned *managed = user;

    managed->deleter(managed);
}

static void legacy_release(void *user)
{
    struct DLManagedTensor *managed = user;

    managed->deleter(managed);
}

static enum tandem_status import_check(const void *managed,
                                       struct tandem_tensor **out_tensor)
{
    if (out_tensor == NULL)
        return argument_error("out_tensor: NULL");
    *out_tensor = NULL;
    return managed != NULL ? TANDEM_OK : argument_error("managed: NULL");
}

enum tandem_status
tandem_tensor_from_dlpack(struct tandem_context *context,
                          struct DLManagedTensorVersioned *managed,
                          struct tandem_tensor **out_tensor)
{
    const enum tandem_status status = import_check(managed, out_tensor);

    if (status != TANDEM_OK)
        return status;
    /* The layout after the version is unknown. */
    if (managed->major != DLPACK_MAJOR)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "DLPack: version %u.%u; expected %u",
                              managed->major, managed->minor, DLPACK_MAJOR);
    return dlpack_import(
        context, &managed->tensor,
        managed->flags & DLPACK_READ_ONLY ? TANDEM_TENSOR_READ_ONLY : 0,
        managed->deleter != NULL ? versioned_release : NULL, managed,
        out_tensor);
}

enum tandem_status
tandem_tensor_from_dlpack_legacy(struct tandem_context *context,
                                 struct DLManagedTensor *managed,
                                 struct tandem_tensor **out_tensor)
{
    const enum tandem_status status = import_check(managed, out_tensor);

    return status == TANDEM_OK
               ? dlpack_import(context, &managed->tensor, 0,
                               managed->deleter != NULL ? legacy_release : NULL,
                               managed, out_tensor)
               : status;
}

/* ---- export ---- */

/* An exported tensor, of which one of the first two members is used. */
struct exported {
    union {
        struct DLManagedTensorVersioned versioned;
        struct DLManagedTensor legacy;
    } managed;
    struct memory_owners *owners;
    int64_t shape[TANDEM_MAX_RANK], strides[TANDEM_MAX_RANK];
};

static void exported_free(struct exported *exported)
{
    memory_owners_drop(exported->owners);
    free(exported);
}

static void versioned_delete(struct DLManagedTensorVersioned *self)
{
    exported_free(self->manager);
}

static void legacy_delete(struct DLManagedTensor *self)
{
    exported_free(self->manager);
}

/* Describes the tensor, whose storage is locked and has a host copy. */
static void dlpack_fill(struct dlpack_tensor *out, struct exported *exported,
                        const struct tandem_tensor *tensor)
{
    const struct tandem_tensor_desc *desc = &tensor->desc;

    for (uint32_t i = 0; i < desc->rank; i++) {
        exported->shape[i] = desc->shape[i];
        exported->strides[i] = desc->strides[i];
    }
    *out = (struct dlpack_tensor){.data =
                                      tensor->storage->host + desc->byte_offset,
                                  .device_type = DLPACK_CPU,
                                  .rank = (int32_t)desc->rank,
                                  .shape = exported->shape,
                                  .strides = exported->strides};
    for (uint32_t i = 0; i < DTYPES; i++) {
        if (dtypes[i].dtype == desc->dtype)
            out->dtype = dtypes[i].dlpack;
    }
}

/* Adds an owner to the storage's host memory. */
static enum tandem_status host_memory_share(struct storage *storage,
                                            struct memory_owners **out_owners)
{
    if (storage->host_owners == NULL)
        storage->host_owners =
            memory_owners_new(storage->wrapped ? NULL : free,
                              storage->wrapped ? NULL : storage->host);
    if (storage->host_owners == NULL)
        return memory_error("no memory for a DLPack tensor");
    memory_owners_add(storage->host_owners);
    *out_owners = storage->host_owners;
    return TANDEM_OK;
}

/* Exports the tensor.  On success the caller fills exported->managed and
 * unlocks the tensor. */
static enum tandem_status export_begin(struct tandem_tensor *tensor,
                                       uint64_t timeout_ns,
                                       struct exported **out_exported,
                                       struct float_env *out_host)
{
    struct exported *exported;
    enum tandem_status status = tandem_tensor_sync(tensor, timeout_ns);

    if (status != TANDEM_OK)
        return status;
    exported = calloc(1, sizeof(*exported));
    if (exported == NULL)
        return memory_error("no memory for a DLPack tensor");
    status = tensor_lock(tensor, true, HANG_DEADLINE, out_host);
    if (status == TANDEM_OK) {
        status = host_memory_share(tensor->storage, &exported->owners);
        if (status != TANDEM_OK)
            tensor_unlock(tensor, *out_host);
    }
    if (status == TANDEM_OK)
        *out_exported = exported;
    else
        free(exported);
    return status;
}

enum tandem_status
tandem_tensor_to_dlpack(struct tandem_tensor *tensor, uint64_t timeout_ns,
                        struct DLManagedTensorVersioned **out_managed)
{
    struct exported *exported;
    struct float_env host;
    enum tandem_status status;

    if (out_managed == NULL)
        return argument_error("out_managed: NULL");
    *out_managed = NULL;
    status = export_begin(tensor, timeout_ns, &exported, &host);
    if (status != TANDEM_OK)
        return status;
    exported->managed.versioned = (struct DLManagedTensorVersioned){
        .major = DLPACK_MAJOR,
        .minor = DLPACK_MINOR,
        .manager = exported,
        .deleter = versioned_delete,
        .flags = storage_is_unwritable(tensor->storage) ? DLPACK_READ_ONLY : 0};
    dlpack_fill(&exported->managed.versioned.tensor, exported, tensor);
    tensor_unlock(tensor, host);
    *out_managed = &exported->managed.versioned;
    return TANDEM_OK;
}

enum tandem_status
tandem_tensor_to_dlpack_legacy(struct tandem_tensor *tensor,
                               uint64_t timeout_ns,
                               struct DLManagedTensor **out_managed)
{
    struct exported *exported;
    struct float_env host;
    enum tandem_status status;

    if (out_managed == NULL)
        return argument_error("out_managed: NULL");
    *out_managed = NULL;
    status = tensor_check(tensor, NULL, "tensor");
    if (status == TANDEM_OK && storage_is_unwritable(tensor->storage))
        return last_error_set(TANDEM_UNSUPPORTED,
                              "tensor: it is read-only, which a legacy DLPack "
                              "tensor cannot say: use tandem_tensor_to_dlpack");
    if (status == TANDEM_OK)
        status = export_begin(tensor, timeout_ns, &exported, &host);
    if (status != TANDEM_OK)
        return status;
    exported->managed.legacy =
        (struct DLManagedTensor){.manager = exported, .deleter = legacy_delete};
    dlpack_fill(&exported->managed.legacy.tensor, exported, tensor);
    tensor_unlock(tensor, host);
    *out_managed = &exported->managed.legacy;
    return TANDEM_OK;
}
