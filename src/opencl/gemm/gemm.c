/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the plugin's GEMM functions. The plugin's own kernels include the
 * epilogue; after CLBlast, a separate epilogue kernel runs. */
#include "opencl/gemm/gemm.h"

#include "common/argument_check.h"
#include "opencl/gemm/clblast.h"
#include "opencl/gemm/pack_cache_fill.h"
#include "opencl/queue/kernel_launch.h"
#include "opencl/plan/operand_packing.h"

/* The way in which a GEMM is computed. If `clblast` is set, CLBlast runs first.
 * The kernels of `plan` run after it. */
struct gemm_dispatch {
    bool is_zero; /* alpha or k is 0; only beta * c and the epilogue remain */
    bool clblast;
    bool naive; /* the plan uses the naive kernel, which runs everywhere */
    struct gemm_selection selection;
    struct launch_plan plan; /* may be empty */
};

static bool is_empty(const struct tandem_gemm *gemm)
{
    return gemm->m == 0 || gemm->n == 0 || gemm->batch == 0;
}

/* Returns true if the plan runs the kernel that the selector selected. */
static bool uses_selected_kernel(const struct gemm_dispatch *dispatch)
{
    return !dispatch->is_zero && !dispatch->clblast && !dispatch->naive;
}

/* Selects CLBlast or a kernel. Returns false if neither CLBlast nor one of the
 * plugin's fast kernels supports the GEMM. */
static bool kernel_select(struct gemm_selection *out,
                          struct tandem_device *device,
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

static void dispatch_select(struct gemm_dispatch *out,
                            struct tandem_device *device,
                            const struct tandem_gemm *gemm)
{
    uint32_t group_log2 = device->programs.group_log2;
    /* CLBlast rejects GEMMs with k = 0. */
    out->is_zero = gemm->k == 0 || gemm->alpha == 0;
    out->plan.step_count = 0;
    out->naive = !out->is_zero && !kernel_select(&out->selection, device, gemm);
    out->clblast = !out->is_zero && !out->naive && out->selection.clblast;
    if (out->naive)
        plan_naive_gemm(&out->plan, gemm, group_log2);
    else if (uses_selected_kernel(out))
        plan_gemm(&out->plan, gemm, out->selection.kernel, out->selection.split,
                  NULL, group_log2);
    else if (out->is_zero || gemm_has_epilogue(gemm))
        plan_epilogue(&out->plan, gemm, group_log2,
                      out->is_zero ? (float)gemm->beta : 1.0f);
}

/* Disables the selected kernel if `status` means that the device cannot run it.
 * Returns true if the caller must select again. */
static bool gemm_dispatch_disable_failed(struct tandem_device *device,
                                         const struct tandem_gemm *gemm,
                                         const struct gemm_dispatch *dispatch,
                                         enum tandem_status status)
{
    if (!uses_selected_kernel(dispatch) ||
        (status != TANDEM_FAILED && status != TANDEM_UNSUPPORTED))
        return false;
    device_log(device, TANDEM_LOG_WARNING,
               "gemm: kernel %s is disabled on %s: %s",
               gemm_configs[dispatch->selection.kernel].name,
               device->hardware->info.name, last_error_get());
    gemm_selector_disable(&device->gemm_selector, gemm,
                          dispatch->selection.kernel);
    return true;
}

/* Calls `function` for each variant that the GEMM needs, until a call fails. */
static enum tandem_status variants_visit(
    struct tandem_device *device, const struct tandem_gemm *gemm,
    const struct gemm_dispatch *dispatch,
    enum tandem_status (*function)(struct tandem_device *device, uint64_t key))
{
    enum tandem_status status = TANDEM_OK;
    const struct launch_plan *plan = &dispatch->plan;
    if (dispatch->clblast)
        status = function(device, clblast_variant_key(gemm));
    for (uint32_t i = 0; i < plan->step_count && status == TANDEM_OK; i++)
        if (variant_key_needs_build(plan->step[i].key))
            status = function(device, plan->step[i].key);
    return status;
}

enum tandem_status gemm_prepare(struct tandem_device *device,
                                const struct tandem_gemm *given)
{
    struct tandem_gemm gemm;
    struct gemm_dispatch dispatch;
    if (is_empty(given))
        return TANDEM_OK;
    gemm_args_normalize(&gemm, given);
    dispatch_select(&dispatch, device, &gemm);
    return variants_visit(device, &gemm, &dispatch, kernel_variant_prepare);
}

enum tandem_status gemm_ready(struct tandem_device *device,
                              const struct tandem_gemm *given)
{
    struct tandem_gemm gemm;
    struct gemm_dispatch dispatch;
    if (is_empty(given))
        return TANDEM_OK;
    gemm_args_normalize(&gemm, given);
    dispatch_select(&dispatch, device, &gemm);
    enum tandem_status status =
        variants_visit(device, &gemm, &dispatch, kernel_variant_query);
    while (gemm_dispatch_disable_failed(device, &gemm, &dispatch, status)) {
        dispatch_select(&dispatch, device, &gemm);
        status =
            variants_visit(device, &gemm, &dispatch, kernel_variant_prepare);
        if (status == TANDEM_OK)
            status =
                variants_visit(device, &gemm, &dispatch, kernel_variant_query);
    }
    return status;
}

/* ---- launch ---- */

static enum tandem_status check_poison(const struct tandem_gemm *gemm)
{
    const struct tandem_buffer *inputs[4] = {
        gemm->a.buffer, gemm->b.buffer, gemm->bias,
        gemm->beta != 0 ? gemm->c.buffer : NULL};
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < 4 && status == TANDEM_OK; i++)
        if (inputs[i] != NULL)
            status = buffer_check_poison(inputs[i]);
    return status;
}

/* Selects the kernels and waits until they are built, so that a build failure
 * is found before any work is enqueued. */
static enum tandem_status dispatch_prepare(struct tandem_stream *stream,
                                           const struct tandem_gemm *gemm,
                                           struct gemm_dispatch *out)
{
    struct stream_kernel *kernel;
    enum tandem_status status;
    do {
        dispatch_select(out, stream->device, gemm);
        status = TANDEM_OK;
        for (uint32_t i = 0; i < out->plan.step_count && status == TANDEM_OK;
             i++)
            if (variant_key_needs_build(out->plan.step[i].key))
                status = stream_kernel_get(stream, &out->plan.step[i], &kernel);
    } while (status == TANDEM_NOT_READY ||
             gemm_dispatch_disable_failed(stream->device, gemm, out, status));
    return status;
}

/* Acquires packed copies of the operands from the pack cache, and plans with
 * these copies. out_entries[i] is NULL if operand i has no copy. */
static void use_pack_cache(struct tandem_stream *stream,
                           const struct tandem_gemm *gemm,
                           struct gemm_dispatch *dispatch,
                           struct pack_cache_entry **out_entries)
{
    const struct gemm_selection *selection = &dispatch->selection;
    const struct tandem_matrix *matrices[OPERAND_COUNT] = {NULL, NULL};
    bool any = false;
    uint32_t packed = 0;
    if (uses_selected_kernel(dispatch))
        packed = gemm_packed_operands(gemm, selection->kernel);
    for (uint32_t i = 0; i < OPERAND_COUNT; i++) {
        out_entries[i] = NULL;
        if ((packed >> i & 1u) != 0)
            out_entries[i] = pack_cache_acquire_or_pack(
                stream, gemm, selection->kernel, (enum operand_id)i);
        if (out_entries[i] == NULL)
            continue;
        matrices[i] = &out_entries[i]->matrix;
        any = true;
    }
    if (any)
        plan_gemm(&dispatch->plan, gemm, selection->kernel, selection->split,
                  matrices, stream->device->programs.group_log2);
}

/* Enqueues the plan. If there is no memory for its temporary buffer, enqueues
 * instead a kernel that needs no such buffer. In deterministic mode, returns
 * the error, because that kernel adds in a different order. */
static enum tandem_status plan_launch(struct tandem_stream *stream,
                                      const struct tandem_gemm *gemm,
                                      struct launch_plan *plan)
{
    bool has_temporary = plan->temp_bytes != 0;
    enum tandem_status status = launch_plan(stream, plan);
    if (status != TANDEM_OUT_OF_MEMORY || !has_temporary ||
        stream->device->gemm_selector.deterministic ||
        atomic_load(&stream->status) != TANDEM_OK)
        return status;
    plan_gemm(plan, gemm, GEMM_SIMT_32X64, NO_SPLIT, NULL,
              stream->device->programs.group_log2);
    return launch_plan(stream, plan);
}

enum tandem_status gemm_launch(struct tandem_stream *stream,
                               const struct tandem_gemm *given)
{
    struct gemm_dispatch dispatch;
    struct tandem_gemm gemm;
    struct address_range_user user = {stream->device, "gemm"};
    enum tandem_status status = check_gemm(given, buffer_address_range, &user);
    if (status != TANDEM_OK)
        return status;
    gemm_args_normalize(&gemm, given);
    status = check_poison(&gemm);
    if (status != TANDEM_OK || is_empty(&gemm))
        return status;
    status = dispatch_prepare(stream, &gemm, &dispatch);
    if (status == TANDEM_OK && dispatch.clblast)
        status = clblast_gemm_launch(stream, &gemm);
    if (status != TANDEM_OK || dispatch.plan.step_count == 0)
        return status;
    struct pack_cache_entry *entries[OPERAND_COUNT];
    use_pack_cache(stream, &gemm, &dispatch, entries);
    status = plan_launch(stream, &gemm, &dispatch.plan);
    for (uint32_t i = 0; i < OPERAND_COUNT; i++)
        pack_cache_release(entries[i]);
    /* If CLBlast ran but the epilogue kernel did not, c has wrong values. */
    return status == TANDEM_OK || !dispatch.clblast
               ? status
               : stream_fail(stream, status);
}
