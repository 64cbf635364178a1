/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a device's kernel variants, which build_threads.c and
 * program_build.c build. */
#include "opencl/program/kernel_variants.h"

#include <stdlib.h>

#include "common/log2_floor.h"
#include "opencl/device/device.h"
#include "opencl/plan/plan.h"
#include "opencl/device/cl_status.h"
#include "opencl/program/trial_launch.h"

/* log2 of the largest work-group size for plans on a newly opened device. */
#define MAX_GROUP_LOG2 8u

static uint32_t initial_group_log2(const struct tandem_device *device)
{
    uint32_t limit = log2_floor(device->hardware->group_limit);
    return limit < MAX_GROUP_LOG2 ? limit : MAX_GROUP_LOG2;
}

void programs_init(struct tandem_device *device,
                   const struct program_callbacks *callbacks)
{
    struct programs *programs = &device->programs;
    pthread_condattr_t clock;
    pthread_mutex_init(&programs->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&programs->changed, &clock);
    pthread_condattr_destroy(&clock);
    programs->callbacks = callbacks;
    programs->group_log2 = initial_group_log2(device);
}

void programs_free(struct tandem_device *device)
{
    struct programs *programs = &device->programs;
    for (uint32_t i = 0; i < VARIANT_BUCKETS; i++)
        for (struct kernel_variant *at = programs->buckets[i], *next;
             at != NULL; at = next) {
            next = at->next_in_bucket;
            free(at->trial);
            free(at);
        }
    programs_release_built(programs);
    pthread_cond_destroy(&programs->changed);
    pthread_mutex_destroy(&programs->mutex);
}

uint64_t programs_built_count(struct programs *programs)
{
    pthread_mutex_lock(&programs->mutex);
    uint64_t count = programs->built_count;
    pthread_mutex_unlock(&programs->mutex);
    return count;
}

/* ---- variants ---- */

/* Returns the variant of `key`.  Adds a missing variant to the table.  Returns
 * NULL if host memory is exhausted.  The caller holds programs.mutex. */
static struct kernel_variant *variant_find(struct programs *programs,
                                           const struct kernel_key *key)
{
    uint32_t bucket = (uint32_t)(kernel_key_hash(key) % VARIANT_BUCKETS);
    struct kernel_variant *variant = programs->buckets[bucket];
    while (variant != NULL && !kernel_key_equal(&variant->key, key))
        variant = variant->next_in_bucket;
    if (variant != NULL)
        return variant;
    variant = calloc(1, sizeof(*variant));
    if (variant == NULL) {
        memory_error("out of host memory");
        return NULL;
    }
    variant->key = *key;
    variant->next_in_bucket = programs->buckets[bucket];
    programs->buckets[bucket] = variant;
    return variant;
}

/* ---- for launch, prepare and prepared_wait ---- */

static struct kernel_variant *kernel_variant_get(struct programs *programs,
                                                 const struct kernel_key *key)
{
    pthread_mutex_lock(&programs->mutex);
    struct kernel_variant *variant = variant_find(programs, key);
    pthread_mutex_unlock(&programs->mutex);
    return variant;
}

enum tandem_status kernel_variant_create_kernel(struct tandem_device *device,
                                                const struct launch_plan *plan,
                                                uint32_t step,
                                                cl_kernel *out_kernel)
{
    const struct kernel_key *key = &plan->step[step].key;
    cl_int code = CL_SUCCESS;
    *out_kernel = NULL;
    struct kernel_variant *variant = kernel_variant_get(&device->programs, key);
    if (variant == NULL)
        return TANDEM_OUT_OF_MEMORY;
    enum tandem_status status =
        build_ensure(device, variant, trial_launch_create(plan, step));
    if (status != TANDEM_OK)
        return status;
    *out_kernel =
        clCreateKernel(variant->program, key->kernel->function, &code);
    return status_from_cl(device, code, "clCreateKernel");
}

enum tandem_status kernel_variant_prepare(struct tandem_device *device,
                                          const struct launch_plan *plan,
                                          uint32_t step)
{
    struct kernel_variant *variant =
        kernel_variant_get(&device->programs, &plan->step[step].key);
    if (variant == NULL)
        return TANDEM_OUT_OF_MEMORY;
    build_enqueue(device, variant, trial_launch_create(plan, step));
    return TANDEM_OK;
}

enum tandem_status kernel_variant_prepare_clblast(struct tandem_device *device)
{
    const struct kernel_key key = clblast_key();
    struct kernel_variant *variant =
        kernel_variant_get(&device->programs, &key);
    if (variant == NULL)
        return TANDEM_OUT_OF_MEMORY;
    build_enqueue(device, variant, NULL);
    return TANDEM_OK;
}

enum tandem_status kernel_variant_query(struct tandem_device *device,
                                        const struct kernel_key *key)
{
    struct programs *programs = &device->programs;
    pthread_mutex_lock(&programs->mutex);
    struct kernel_variant *variant = variant_find(programs, key);
    enum tandem_status status =
        variant != NULL ? build_status(device, variant) : TANDEM_OUT_OF_MEMORY;
    pthread_mutex_unlock(&programs->mutex);
    return status;
}

enum tandem_status kernel_variant_wait(struct tandem_device *device,
                                       const struct kernel_key *key)
{
    struct programs *programs = &device->programs;
    pthread_mutex_lock(&programs->mutex);
    struct kernel_variant *variant = variant_find(programs, key);
    enum tandem_status status =
        variant != NULL ? build_wait(device, variant) : TANDEM_OUT_OF_MEMORY;
    pthread_mutex_unlock(&programs->mutex);
    return status;
}

void kernel_variant_mark_ready(struct tandem_device *device,
                               const struct kernel_key *key)
{
    struct programs *programs = &device->programs;
    pthread_mutex_lock(&programs->mutex);
    struct kernel_variant *variant = variant_find(programs, key);
    if (variant != NULL && variant->state != BUILD_DONE &&
        variant->state != BUILD_RUNNING) {
        variant->state = BUILD_DONE;
        programs->built_count++;
        pthread_cond_broadcast(&programs->changed);
    }
    pthread_mutex_unlock(&programs->mutex);
}
