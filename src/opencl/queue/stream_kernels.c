/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel objects of a stream, in a hash table; see stream_kernels.h. */
#include "opencl/queue/stream_kernels.h"

#include <stdlib.h>
#include <string.h>

#include "opencl/program/kernel_variants.h"
#include "opencl/plan/kernel_step.h"

#define INITIAL_KERNEL_SLOTS 64u

/* Returns the hash table slot for `key`.  The slot is empty if `key` is new. */
static struct stream_kernel *kernel_slot(struct stream_kernel *kernels,
                                         uint32_t slots,
                                         const struct kernel_key *key)
{
    uint32_t at = (uint32_t)kernel_key_hash(key) & (slots - 1);
    while (kernels[at].key.kernel != NULL &&
           !kernel_key_equal(&kernels[at].key, key))
        at = (at + 1) & (slots - 1);
    return &kernels[at];
}

static enum tandem_status kernel_slots_grow(struct tandem_stream *stream)
{
    uint32_t slots = stream->kernel_slots != 0 ? stream->kernel_slots * 2
                                               : INITIAL_KERNEL_SLOTS;
    struct stream_kernel *kernels = calloc(slots, sizeof(*kernels));
    if (kernels == NULL)
        return memory_error("launch: out of host memory");
    for (uint32_t i = 0; i < stream->kernel_slots; i++)
        if (stream->kernels[i].key.kernel != NULL)
            *kernel_slot(kernels, slots, &stream->kernels[i].key) =
                stream->kernels[i];
    free(stream->kernels);
    stream->kernels = kernels;
    stream->kernel_slots = slots;
    return TANDEM_OK;
}

static enum tandem_status kernel_create(struct tandem_stream *stream,
                                        const struct launch_plan *plan,
                                        uint32_t i,
                                        struct stream_kernel **out_kernel)
{
    const struct kernel_step *step = &plan->step[i];
    struct stream_kernel created = {.key = step->key};
    enum tandem_status status = TANDEM_OK;
    if (stream->kernel_count * 2 >= stream->kernel_slots)
        status = kernel_slots_grow(stream);
    if (status == TANDEM_OK)
        status = kernel_variant_create_kernel(stream->device, plan, i,
                                              &created.kernel);
    if (status != TANDEM_OK)
        return status;
    created.params = malloc(step->param_bytes);
    if (created.params == NULL) {
        clReleaseKernel(created.kernel);
        return memory_error("launch: out of host memory");
    }
    *out_kernel =
        kernel_slot(stream->kernels, stream->kernel_slots, &step->key);
    **out_kernel = created;
    stream->kernel_count++;
    return TANDEM_OK;
}

enum tandem_status stream_kernel_get(struct tandem_stream *stream,
                                     const struct launch_plan *plan,
                                     uint32_t step,
                                     struct stream_kernel **out_kernel)
{
    if (stream->kernel_slots != 0) {
        *out_kernel = kernel_slot(stream->kernels, stream->kernel_slots,
                                  &plan->step[step].key);
        if ((*out_kernel)->key.kernel != NULL)
            return TANDEM_OK;
    }
    return kernel_create(stream, plan, step, out_kernel);
}

void stream_kernels_free(struct tandem_stream *stream)
{
    for (uint32_t i = 0; i < stream->kernel_slots; i++)
        if (stream->kernels[i].key.kernel != NULL) {
            clReleaseKernel(stream->kernels[i].kernel);
            free(stream->kernels[i].params);
        }
    free(stream->kernels);
    stream->kernels = NULL;
    stream->kernel_slots = stream->kernel_count = 0;
}
