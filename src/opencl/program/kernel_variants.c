/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kernel variants, and who waits for one; program_build.c builds.
 */
#include "opencl/program/kernel_variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/device/device.h"
#include "opencl/plan/plan.h"
#include "opencl/device/cl_status.h"
#include "opencl/program/variant_options.h"

#define GROUP_LOG2 8u
/* What failed so often, not for lack of memory, is not built again. */
#define MAX_BUILD_FAILURES 3u

static uint32_t first_group_log2(const struct tandem_device *device)
{
    uint32_t limit = log2_floor(device->hardware->group_limit);
    return limit < GROUP_LOG2 ? limit : GROUP_LOG2;
}

void programs_start(struct tandem_device *device)
{
    struct programs *programs = &device->programs;
    pthread_condattr_t clock;
    pthread_mutex_init(&programs->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&programs->changed, &clock);
    pthread_condattr_destroy(&clock);
    programs->group_log2 = first_group_log2(device);
}

bool programs_need_smaller_groups(const struct tandem_device *device)
{
    return device->programs.group_log2 < first_group_log2(device);
}

void programs_finish(struct tandem_device *device)
{
    struct programs *programs = &device->programs;
    for (uint32_t i = 0; i < VARIANT_BUCKETS; i++)
        for (struct variant *at = programs->buckets[i], *next; at != NULL;
             at = next) {
            next = at->chain;
            free(at);
        }
    build_finish(programs);
    pthread_cond_destroy(&programs->changed);
    pthread_mutex_destroy(&programs->mutex);
}

uint64_t programs_count(struct programs *programs)
{
    pthread_mutex_lock(&programs->mutex);
    uint64_t built = programs->built;
    pthread_mutex_unlock(&programs->mutex);
    return built;
}

/* ---- variants ---- */

/* Returns the variant of `key` and creates it if there is none.  Returns NULL
 * if host memory is short.  The caller holds the mutex. */
static struct variant *variant_find(struct programs *programs, uint64_t key)
{
    uint32_t bucket =
        (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) % VARIANT_BUCKETS;
    struct variant *variant = programs->buckets[bucket];
    while (variant != NULL && variant->key != key)
        variant = variant->chain;
    if (variant != NULL)
        return variant;
    variant = calloc(1, sizeof(*variant));
    if (variant == NULL) {
        last_error_set(TANDEM_OUT_OF_MEMORY, "out of host memory");
        return NULL;
    }
    variant->key = key;
    variant->chain = programs->buckets[bucket];
    programs->buckets[bucket] = variant;
    return variant;
}

void kernel_variant_set_result(struct programs *programs,
                               struct variant *variant,
                               enum tandem_status status)
{
    pthread_mutex_lock(&programs->mutex);
    /* Smaller groups have another key.  Memory may be there next time. */
    variant->status = status;
    variant->state = status == TANDEM_OK          ? BUILD_DONE
                     : status == TANDEM_NOT_READY ? BUILD_NONE
                                                  : BUILD_FAILED;
    variant->failures += status == TANDEM_FAILED;
    if (status == TANDEM_OK)
        programs->built++;
    else
        snprintf(variant->message, sizeof(variant->message), "%s",
                 message_get());
    pthread_cond_broadcast(&programs->changed);
    pthread_mutex_unlock(&programs->mutex);
}

bool kernel_variant_can_build(const struct variant *variant)
{
    return variant->state == BUILD_NONE ||
           (variant->state == BUILD_FAILED &&
            variant->failures < MAX_BUILD_FAILURES);
}

enum tandem_status build_result(const struct variant *variant)
{
    if (variant->state == BUILD_DONE)
        return TANDEM_OK;
    if (variant->state == BUILD_FAILED)
        return last_error_set(variant->status, "%s", variant->message);
    return last_error_set(TANDEM_NOT_READY, "the operator is not compiled yet");
}

/* ---- for launch, prepare and ready ---- */

/* Has the variant built, and waits for it. */
static enum tandem_status
kernel_variant_ensure_built(struct tandem_device *device,
                            struct variant *variant)
{
    struct programs *programs = &device->programs;
    enum tandem_status status;
    pthread_mutex_lock(&programs->mutex);
    bool served =
        variant->state == BUILD_DONE || build_wait(device, variant, &status);
    if (variant->state == BUILD_DONE)
        status = TANDEM_OK;
    if (!served)
        build_mark_running(variant, 0);
    pthread_mutex_unlock(&programs->mutex);
    if (served)
        return status;
    status = kernel_variant_build(device, variant, false);
    kernel_variant_set_result(programs, variant, status);
    return status;
}

static struct variant *kernel_variant_get(struct programs *programs,
                                          uint64_t key)
{
    pthread_mutex_lock(&programs->mutex);
    struct variant *variant = variant_find(programs, key);
    pthread_mutex_unlock(&programs->mutex);
    return variant;
}

enum tandem_status kernel_variant_create_kernel(struct tandem_device *device,
                                                const struct kernel_step *step,
                                                cl_kernel *out_kernel)
{
    struct variant_text text;
    cl_int code = CL_SUCCESS;
    *out_kernel = NULL;
    struct variant *variant = kernel_variant_get(&device->programs, step->key);
    if (variant == NULL)
        return TANDEM_OUT_OF_MEMORY;
    enum tandem_status status = kernel_variant_ensure_built(device, variant);
    if (status != TANDEM_OK)
        return status;
    variant_text_make(&text, step->key, device->hardware);
    *out_kernel = clCreateKernel(variant->program, text.function, &code);
    return status_from_cl(device, code, "clCreateKernel");
}

enum tandem_status kernel_variant_prepare(struct tandem_device *device,
                                          uint64_t key)
{
    struct variant *variant = kernel_variant_get(&device->programs, key);
    if (variant == NULL)
        return TANDEM_OUT_OF_MEMORY;
    build_enqueue(device, variant);
    return TANDEM_OK;
}

enum tandem_status kernel_variant_query(struct tandem_device *device,
                                        uint64_t key)
{
    struct programs *programs = &device->programs;
    pthread_mutex_lock(&programs->mutex);
    struct variant *variant = variant_find(programs, key);
    enum tandem_status status =
        variant != NULL ? build_result(variant) : TANDEM_OUT_OF_MEMORY;
    if (status == TANDEM_NOT_READY)
        status = build_pending_status(device, variant);
    pthread_mutex_unlock(&programs->mutex);
    return status;
}

void kernel_variant_mark_ready(struct tandem_device *device, uint64_t key)
{
    struct programs *programs = &device->programs;
    pthread_mutex_lock(&programs->mutex);
    struct variant *variant = variant_find(programs, key);
    if (variant != NULL && variant->state != BUILD_DONE &&
        variant->state != BUILD_RUNNING) {
        variant->state = BUILD_DONE;
        programs->built++;
        pthread_cond_broadcast(&programs->changed);
    }
    pthread_mutex_unlock(&programs->mutex);
}
