/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: by our kernels, which do all in one, or by CLBlast with our
 * epilogue after it; gemm_selector.c says which. */
#include "opencl/gemm/gemm.h"

#include "common/argument_check.h"
#include "opencl/gemm/clblast.h"
#include "opencl/gemm/pack_cache_fill.h"
#include "opencl/queue/kernel_launch.h"
#include "opencl/plan/operand_packing.h"
#include "opencl/device/cl_status.h"

/* No product, so that CLBlast, which rejects sizes of 0, is not asked. */
static bool product_zero(const struct tandem_gemm *gemm)
{
    return gemm->k == 0 || gemm->alpha == 0;
}

static bool has_epilogue(const struct tandem_gemm *gemm)
{
    return gemm->bias_kind != TANDEM_BIAS_NONE ||
           gemm->activation != TANDEM_OP_INVALID;
}

static bool nothing(const struct tandem_gemm *gemm)
{
    return gemm->m == 0 || gemm->n == 0 || gemm->batch == 0;
}

/* How a product is computed: by CLBlast's kernels, by a plan, or by one after
 * the other. */
struct way {
    bool zero, clblast, plain; /* plain: by a kernel that cannot be broken */
    struct gemm_selection route;
    struct launch_plan plan; /* of no steps: CLBlast's kernels do all */
};

/* false: CLBlast cannot take what the route leaves to it. */
static bool route_find(struct gemm_selection *out, struct tandem_device *device,
                       const struct tandem_gemm *gemm)
{
    gemm_selector_choose(&device->gemm_selector, gemm, out);
    if (!out->clblast)
        return true;
    if (!clblast_supports_gemm(gemm))
        return false;
    if (clblast_supports_alignment(device, gemm))
        return true;
    gemm_selector_choose_without_clblast(&device->gemm_selector, gemm, out);
    return !out->clblast;
}

static void way_find(struct way *out, struct tandem_device *device,
                     const struct tandem_gemm *gemm)
{
    uint32_t group_log2 = device->programs.group_log2;
    out->zero = product_zero(gemm);
    out->plan.step_count = 0;
    out->clblast = out->plain = false;
    if (!out->zero)
        out->plain = !route_find(&out->route, device, gemm);
    if (!out->zero && !out->route.clblast) {
        plan_gemm(&out->plan, gemm, out->route.tile, out->route.division, NULL,
                  group_log2);
        return;
    }
    if (out->plain) {
        plan_naive_gemm(&out->plan, gemm, group_log2);
        return;
    }
    out->clblast = !out->zero;
    if (out->zero || has_epilogue(gemm))
        plan_epilogue(&out->plan, gemm, group_log2,
                      out->zero ? (float)gemm->beta : 1.0f);
}

/* Whether status says that the way's own kernels do not run on this device,
 * so that another way is to be found. */
static bool way_broken(struct tandem_device *device,
                       const struct tandem_gemm *gemm, const struct way *way,
                       enum tandem_status status)
{
    if (way->clblast || way->zero || way->plain ||
        (status != TANDEM_FAILED && status != TANDEM_UNSUPPORTED))
        return false;
    device_log(device, TANDEM_LOG_WARNING,
               "gemm: the %s tiles are not used on %s: %s",
               gemm_configs[way->route.tile].name, device->hardware->info.name,
               message_get());
    gemm_selector_disable(&device->gemm_selector, gemm, &way->route);
    return true;
}

static enum tandem_status way_prepare(struct tandem_device *device,
                                      const struct tandem_gemm *gemm,
                                      const struct way *way)
{
    enum tandem_status status = TANDEM_OK;
    if (way->clblast)
        status = kernel_variant_prepare(device, clblast_variant_key(gemm));
    for (uint32_t i = 0; i < way->plan.step_count && status == TANDEM_OK; i++)
        if (variant_key_needs_build(way->plan.step[i].key))
            status = kernel_variant_prepare(device, way->plan.step[i].key);
    return status;
}

enum tandem_status gemm_prepare(struct tandem_device *device,
                                const struct tandem_gemm *gemm)
{
    struct tandem_gemm whole;
    struct way way;
    if (nothing(gemm))
        return TANDEM_OK;
    gemm_args_normalize(&whole, gemm);
    way_find(&way, device, &whole);
    return way_prepare(device, &whole, &way);
}

static enum tandem_status way_ready(struct tandem_device *device,
                                    const struct tandem_gemm *gemm,
                                    const struct way *way)
{
    enum tandem_status status = TANDEM_OK;
    if (way->clblast)
        status = kernel_variant_query(device, clblast_variant_key(gemm));
    for (uint32_t i = 0; i < way->plan.step_count && status == TANDEM_OK; i++)
        if (variant_key_needs_build(way->plan.step[i].key))
            status = kernel_variant_query(device, way->plan.step[i].key);
    return status;
}

enum tandem_status gemm_ready(struct tandem_device *device,
                              const struct tandem_gemm *gemm)
{
    struct tandem_gemm whole;
    struct way way;
    if (nothing(gemm))
        return TANDEM_OK;
    gemm_args_normalize(&whole, gemm);
    way_find(&way, device, &whole);
    enum tandem_status status = way_ready(device, &whole, &way);
    while (way_broken(device, &whole, &way, status)) {
        way_find(&way, device, &whole);
        status = way_prepare(device, &whole, &way);
        if (status == TANDEM_OK)
            status = way_ready(device, &whole, &way);
    }
    return status;
}

/* ---- the call ---- */

static enum tandem_status check_poison(const struct tandem_gemm *gemm)
{
    const struct tandem_buffer *inputs[4] = {
        gemm->a.buffer, gemm->b.buffer, gemm->bias,
        gemm->beta != 0 ? gemm->c.buffer : NULL};
    for (uint32_t i = 0; i < 4; i++) {
        enum tandem_status status = TANDEM_OK;
        if (inputs[i] != NULL)
            status = buffer_check_poison(inputs[i]);
        if (status != TANDEM_OK)
            return status;
    }
    return TANDEM_OK;
}

/* The kernels of the way's plan, compiled before any work starts: a failure
 * then has started none. */
static enum tandem_status way_kernels(struct tandem_stream *stream,
                                      const struct tandem_gemm *gemm,
                                      struct way *out)
{
    struct stream_kernel *kernel;
    enum tandem_status status;
    do {
        way_find(out, stream->device, gemm);
        status = TANDEM_OK;
        for (uint32_t i = 0; i < out->plan.step_count && status == TANDEM_OK;
             i++)
            if (variant_key_needs_build(out->plan.step[i].key))
                status =
                    stream_kernel_get(stream, &out->plan.step[i], &kernel);
    } while (status == TANDEM_NOT_READY ||
             way_broken(stream->device, gemm, out, status));
    return status;
}

/* Acquires cached copies of the operands that the kernel needs packed, and
 * plans with them. */
static void way_use_pack_cache(struct tandem_stream *stream,
                               const struct tandem_gemm *gemm, struct way *way,
                               struct pack_cache_entry **out_entries)
{
    const struct tandem_matrix *matrices[OPERAND_COUNT] = {NULL, NULL};
    bool any = false;
    uint32_t needs = 0;
    if (!way->zero && !way->clblast && !way->plain)
        needs = gemm_packed_operands(gemm, way->route.tile);
    for (uint32_t i = 0; i < OPERAND_COUNT; i++) {
        out_entries[i] = NULL;
        if ((needs >> i & 1u) == 0)
            continue;
        out_entries[i] = pack_cache_acquire_or_pack(
            stream, gemm, way->route.tile, (enum operand_id)i);
        if (out_entries[i] == NULL)
            continue;
        matrices[i] = &out_entries[i]->matrix;
        any = true;
    }
    if (any)
        plan_gemm(&way->plan, gemm, way->route.tile, way->route.division,
                  matrices, stream->device->programs.group_log2);
}

/* The way's plan; where its temporary has no memory, one without, unless paths
 * are fixed. */
static enum tandem_status way_launch(struct tandem_stream *stream,
                                     const struct tandem_gemm *gemm,
                                     struct way *way)
{
    bool temporary = way->plan.temp_bytes != 0;
    enum tandem_status status = launch_plan(stream, &way->plan);
    /* Other tiles add in another order. */
    if (status != TANDEM_OUT_OF_MEMORY || !temporary ||
        stream->device->gemm_selector.deterministic ||
        atomic_load(&stream->status) != TANDEM_OK)
        return status;
    plan_gemm(&way->plan, gemm, GEMM_SIMT_32X64, NO_SPLIT, NULL,
              stream->device->programs.group_log2);
    return launch_plan(stream, &way->plan);
}

enum tandem_status gemm_launch(struct tandem_stream *stream,
                               const struct tandem_gemm *given)
{
    struct way way;
    struct tandem_gemm whole;
    const struct tandem_gemm *gemm = &whole;
    struct address_range_user user = {stream->device, "gemm"};
    enum tandem_status status = check_gemm(given, buffer_address_range, &user);
    if (status != TANDEM_OK)
        return status;
    gemm_args_normalize(&whole, given);
    status = check_poison(gemm);
    if (status != TANDEM_OK || nothing(gemm))
        return status;
    status = way_kernels(stream, gemm, &way);
    if (status == TANDEM_OK && way.clblast)
        status = clblast_gemm_launch(stream, gemm);
    if (status != TANDEM_OK || way.plan.step_count == 0)
        return status;
    struct pack_cache_entry *entries[OPERAND_COUNT];
    way_use_pack_cache(stream, gemm, &way, entries);
    status = way_launch(stream, gemm, &way);
    for (uint32_t i = 0; i < OPERAND_COUNT; i++)
        pack_cache_release(entries[i]);
    return status == TANDEM_OK || !way.clblast ? status
                                               : stream_fail(stream, status);
}
